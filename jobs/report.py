"""The report of a round: counted once, kept in the lake as text, JSON and HTML. It can be made again at will."""

from __future__ import annotations

from typing import Any, NamedTuple

from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader
from jobs.exits import NOT_FOUND, Stop
from jobs.output import json_text
from jobs.report_facts import report_facts
from jobs.report_round import load_round
from jobs.report_text import report_text


class Report(NamedTuple):
    """What a round did, as facts and as text, and the files that say it."""

    facts: dict[str, Any]
    text: str
    files: list[str]


def make_report(store: Store, settings: Settings, number: int | None = None) -> Report:
    """Count a committed round (the newest by default) and publish its report. Raises Stop where there is none."""
    facts, text = count_report(store, settings, number)
    return Report(facts, text, publish(store, facts, text))


def count_report(store: Store, settings: Settings, number: int | None = None) -> tuple[dict[str, Any], str]:
    """The report of a committed round as facts and as text, without publishing it. Raises Stop where there is none."""
    reader = Reader.open(store)
    committed = reader.committed(number)
    if committed is None:
        raise Stop(NOT_FOUND, f"{store.uri}: {_missing(reader, number)}")
    facts = report_facts(load_round(reader, committed), settings)
    return facts, report_text(facts)


def publish(store: Store, facts: dict[str, Any], text: str) -> list[str]:
    """Write reports/ROUND/report.txt, .json and .html; their paths come back."""
    from jobs.report_html import report_html
    from jobs.report_plots import plots

    contents = {
        "txt": text,
        "json": json_text(facts, indent=1),
        "html": report_html(facts, plots(facts)),
    }
    paths = report_paths(facts["round"])
    for kind, path in paths.items():
        store.put(path, contents[kind].encode())
    return list(paths.values())


def report_paths(number: int) -> dict[str, str]:
    """Where the report of a round is, by kind, relative to the lake."""
    return {kind: f"reports/{number}/report.{kind}" for kind in ("txt", "json", "html")}


def _missing(reader: Reader, number: int | None) -> str:
    newest = reader.committed()
    if newest is None:
        return "no round is committed yet"
    return f"round {number} is not committed; the newest committed one is {newest['round']}"
