"""The report of a round as one HTML file that needs nothing beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from jobs.report_text import CONTENT_NAMES
from jobs.words import LEFT_OUT, duration, number, size, visible

Facts = dict[str, Any]
MOST_ROWS = 50
LEFT = ' class="text"'
TEXTS = ("reason", "meaning")
AMOUNT = re.compile(r"-|[\d,.]+( [KMGT]?i?B)?")
STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1080px; padding: 1.5rem; color: #1d2329; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 0 0 .5rem; }
header p { color: #57606a; margin: .1rem 0; }
.figures { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(115px, 1fr)); margin: 1.2rem 0; }
.figures div { background: #f4f6f8; border-radius: 6px; padding: .6rem .8rem; }
.figures b { display: block; font-size: 1.25rem; } .figures span { color: #57606a; font-size: .85rem; }
.grid { display: grid; gap: 1.4rem; grid-template-columns: repeat(auto-fill, minmax(460px, 1fr)); }
section { min-width: 0; } section svg { height: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .87rem; width: 100%; }
th, td { border-bottom: 1px solid #e3e7eb; padding: .2rem .5rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child, .text { overflow-wrap: anywhere; text-align: left; }
td:first-child { min-width: 10rem; }
th { color: #57606a; font-weight: 600; }
.more { color: #57606a; font-size: .85rem; }
"""


def report_html(facts: Facts, pictures: Mapping[str, str]) -> str:
    """The page. All text from the crawl is escaped, its control characters as on a terminal."""
    title = f"{facts['crawl']}, round {facts['round']}"
    drawn = [f"<section><h2>{escape(name)}</h2>{svg}</section>" for name, svg in pictures.items()]
    tables = [_section(name, head, rows) for name, head, rows in _tables(facts) if rows]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n{_header(facts, title)}\n"
        f'{_figures(facts)}\n<div class="grid">\n{"".join(drawn)}\n</div>\n'
        f'<div class="grid" style="margin-top:1.4rem">\n{"".join(tables)}\n</div>\n</body></html>\n'
    )


def _header(facts: Facts, title: str) -> str:
    stages = ", ".join(f"{name.replace('_', ' ')} {took:.1f} s" for name, took in facts["stages_s"].items() if took)
    lines = [
        f"{facts['state']}; scheduled for {facts['scheduled_at']}",
        f"ran {facts['began_at']} to {facts['ended_at']}, {duration(facts['duration_s'])} ({stages})",
        facts["lake"],
    ]
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<header><h1>{escape(title)}</h1>{paragraphs}</header>"


def _figures(facts: Facts) -> str:
    uris, rates = facts["uris"], facts["rates"]
    figures = {
        "URIs processed": number(uris["processed"]),
        "successes": number(uris["successes"]),
        "failures": number(uris["failures"]),
        "not reached": number(uris["not_reached"]),
        "hosts visited": number(facts["hosts"]["visited"]),
        "new URLs": number(facts["new_urls"]),
        "URIs a second": number(rates["uris_per_s"], 1),
        "received": size(rates["bytes"]),
    }
    cells = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in figures.items())
    return f'<div class="figures">{cells}</div>'


Rows = Sequence[Sequence[object]]


def _tables(facts: Facts) -> list[tuple[str, Sequence[str], Rows]]:
    uris, seeds = facts["uris"], facts["seeds"]
    groups = ("URIs", "bytes")
    hosts = ("requests", "successes", "robots_denied", "not_reached")
    return [
        ("Outcomes", ("outcome", "URIs"), _items(uris["by_outcome"])),
        ("Contents", ("kind", *groups), _contents(facts["contents"])),
        ("Seeds", ("verdict", "lines"), _seeds(seeds)),
        ("Failures and what was not asked", ("outcome", "reason", "URIs"), _failures(uris["failure_reasons"])),
        ("Status codes", ("status", *groups), _groups(facts["by_status"])),
        ("MIME types (by the bytes)", ("type", *groups), _groups(facts["by_mime"])),
        ("Parsing", ("status", *groups), _groups(facts["parsing"]["by_status"])),
        ("Parsing that failed or was stopped", ("status", "reason", "URIs"),
         _failures(facts["parsing"]["reasons"], "parse_status")),
        ("Links refused", ("reason", "links"), _items(facts["links"]["refused"])),
        ("Left out of the plan", ("reason", "URLs", "meaning"), [
            (reason, many, LEFT_OUT.get(reason, "")) for reason, many in facts["left_out"].items()
        ]),
        ("Hosts", ("host", *(name.replace("_", " ") for name in hosts), "received"), [
            (row["host"], *(row[name] for name in hosts), size(row["bytes"])) for row in facts["hosts"]["rows"]
        ]),
        ("Near-duplicate clusters", ("original", "pages", "least similarity"), [
            (one["url"] or one["url_key"], one["pages"], f"{one['least_similarity']:.2f}")
            for one in facts["near_duplicates"]["largest"]
        ]),
    ]  # fmt: skip


def _seeds(seeds: Facts) -> Rows:
    more = {"seeds to which seeds redirect": seeds["from_redirects"]} if seeds["from_redirects"] else {}
    return _items(seeds["verdicts"] | more)


def _items(counts: Mapping[str, int]) -> Rows:
    return list(counts.items())


def _contents(contents: Mapping[str, Facts]) -> Rows:
    return [(CONTENT_NAMES[name], one["uris"], size(one["bytes"])) for name, one in contents.items() if one["uris"]]


def _failures(rows: Iterable[Facts], kind: str = "outcome") -> Rows:
    return [(row[kind], row["reason"] or "", row["uris"]) for row in rows]


def _groups(groups: Iterable[Facts]) -> Rows:
    return [(str(row["value"] or "none"), row["uris"], size(row["bytes"])) for row in groups]


def _section(name: str, head: Sequence[str], rows: Rows) -> str:
    titles = "".join(f"<th{LEFT if title in TEXTS else ''}>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    more = f'<p class="more">and {len(rows) - MOST_ROWS:,} more in report.json</p>' if len(rows) > MOST_ROWS else ""
    return f"<section><h2>{escape(name)}</h2><table><tr>{titles}</tr>{body}</table>{more}</section>"


def _cell(value: object) -> str:
    text = number(value) if isinstance(value, int) else visible(str(value))
    kind = "" if AMOUNT.fullmatch(text) else LEFT
    return f"<td{kind}>{escape(text)}</td>"
