"""The report of a round as text, in the order of Heritrix's crawl report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobs.words import LEFT_OUT, columns, count_of, duration, lines_of, number, size

Facts = dict[str, Any]
MOST_ROWS = 15
CONTENT_NAMES = {
    "novel": "novel",
    "duplicate_by_hash": "duplicate by hash",
    "duplicate_by_text": "duplicate by text",
    "near_duplicate": "near-duplicate",
    "not_modified": "not modified",
}


def report_text(facts: Facts) -> str:
    """All sections, each with a title; empty ones are left out."""
    parts = [_section(title, list(lines)) for title, lines in _sections(facts)]
    return lines_of([*_head(facts), *(line for part in parts for line in part)]) + "\n"


def _sections(facts: Facts) -> Iterator[tuple[str, Iterable[str]]]:
    yield "Seeds", _seeds(facts["seeds"])
    yield "URIs", _uris(facts)
    yield "Failures and what was not asked", _failures(facts["uris"]["failure_reasons"])
    yield "Contents", _contents(facts["contents"])
    yield "Links", _links(facts)
    yield "Status codes", _groups(facts["by_status"])
    yield "MIME types (by the bytes)", _groups(facts["by_mime"])
    yield "Parsing", _groups(facts["parsing"]["by_status"])
    yield "Parsing that failed or was stopped", _failures(facts["parsing"]["reasons"], "parse_status")
    yield "Hosts", _hosts(facts["hosts"]["rows"])
    yield "Politeness", _gaps(facts["gaps"])
    yield "Near-duplicate clusters", _clusters(facts["near_duplicates"])
    yield "Left out of the plan", _left_out(facts["left_out"])
    yield "Due next", _due(facts["due"])


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _head(facts: Facts) -> Iterator[str]:
    took = {name.replace("_", " "): seconds for name, seconds in facts["stages_s"].items() if seconds is not None}
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items())
    yield f"Crawl {facts['crawl']}, round {facts['round']}: {facts['state']}"
    yield f"  lake        {facts['lake']}"
    yield f"  scheduled   {facts['scheduled_at']}"
    yield f"  ran         {facts['began_at']} to {facts['ended_at']}, {duration(facts['duration_s'])} ({stages})"
    yield f"  planned     {count_of(facts['planned']['urls'], 'URL')} of {count_of(facts['planned']['hosts'], 'host')}"
    yield f"  hosts       {number(facts['hosts']['visited'])} visited"
    warc = facts["warc"]
    files = f"{count_of(warc['warc_files'], 'WARC file')} in {count_of(warc['segments'], 'segment')}"
    yield f"  stored      {size(warc['warc_bytes'])} in {files}"
    yield f"  new URLs    {number(facts['new_urls'])}"


def _seeds(seeds: Facts) -> list[str]:
    told = []
    if seeds["lines"]:
        crawled = f"{number(seeds['crawled'])} crawled, {number(seeds['uncrawled'])} not crawled"
        head = f"  {count_of(seeds['lines'], 'line')} from the inbox; {crawled}"
        told += [head, *columns(seeds["verdicts"].items(), "    ")]
    if seeds["from_redirects"]:
        told.append(f"  {count_of(seeds['from_redirects'], 'new seed')} to which seeds redirect, for the next round")
    return told


def _uris(facts: Facts) -> list[str]:
    uris, rates = facts["uris"], facts["rates"]
    names = ("processed", "successes", "failures", "disregarded", "not_reached")
    rows = [(name.replace("_", " "), uris[name]) for name in names]
    mean = rates["mean_fetch_s"]
    took = f", {mean * 1000:.0f} ms a request on average" if mean is not None else ""
    return [
        *columns(rows),
        f"  {rates['uris_per_s']:.2f} URIs/s, {rates['kb_per_s']:.1f} KB/s, {size(rates['bytes'])} received{took}",
        "  outcomes:",
        *columns(uris["by_outcome"].items(), "    "),
    ]


def _failures(rows: Sequence[Facts], kind: str = "outcome") -> list[str]:
    shown = [(row[kind], row["uris"], (row["reason"] or "")[:90]) for row in rows[:MOST_ROWS]]
    return columns(shown) + _more(rows) if rows else []


def _contents(contents: Mapping[str, Facts]) -> list[str]:
    rows = [(CONTENT_NAMES[name], one["uris"], size(one["bytes"])) for name, one in contents.items()]
    return columns(rows) if any(one["uris"] for one in contents.values()) else []


def _links(facts: Facts) -> list[str]:
    links = facts["links"]
    if not links["found"]:
        return []
    refused = sorted(links["refused"].items(), key=lambda item: -item[1])
    head = [f"  {number(links['found'])} found, {number(links['kept'])} kept"]
    return [*head, "  refused:", *columns(refused, "    ")] if refused else head


def _groups(groups: Sequence[Facts]) -> list[str]:
    rows = [(str(row["value"] or "none"), row["uris"], size(row["bytes"])) for row in groups[:MOST_ROWS]]
    return columns(rows) + _more(groups) if rows else []


def _hosts(rows: Sequence[Facts]) -> list[str]:
    names = ("requests", "successes", "robots_denied", "not_reached")
    head = [("", *(name.replace("_", " ") for name in names), "received")]
    shown = [(row["host"], *(row[name] for name in names), size(row["bytes"])) for row in rows[:MOST_ROWS]]
    return columns([*head, *shown]) + _more(rows) if rows else []


def _gaps(gaps: Facts) -> list[str]:
    if not gaps["pairs"]:
        return []
    measured = f"shortest {gaps['shortest_s']:.3f} s, median {gaps['median_s']:.3f} s"
    return [
        f"  promised: {gaps['promised_s']:g} s between two requests to a host, or the host's own crawl-delay",
        f"  {number(gaps['pairs'])} gaps between pages: {measured}; {number(gaps['below_promise'])} below the promise",
    ]


def _clusters(near: Facts) -> list[str]:
    lines = [f"  {count_of(near['pages'], 'page')} in {count_of(near['clusters'], 'cluster')}"] if near["pages"] else []
    for one in near["largest"][:MOST_ROWS]:
        similarity = f"similarity {one['least_similarity']:.2f} to {one['greatest_similarity']:.2f}"
        original = f"{one['url'] or one['url_key']} (round {one['round']})"
        lines.append(f"  {original}: {count_of(one['pages'], 'page')}, {similarity}")
        lines += [f"    {url}" for url in one["members"][:3]]
    return lines


def _left_out(counts: Mapping[str, int]) -> list[str]:
    rows = [(reason, many, LEFT_OUT.get(reason, "")) for reason, many in counts.items()]
    return columns(rows) if rows else []


def _due(due: Facts) -> list[str]:
    weeks = [sum(due["days"][at : at + 7]) for at in range(0, len(due["days"]), 7)]
    named = {
        "now": due["now"],
        **{f"in week {week}": many for week, many in enumerate(weeks, 1)},
        "later": due["later"],
    }
    rows = [row for row in named.items() if row[1]]
    return columns(rows) if rows else []


def _more(rows: Sequence[object]) -> list[str]:
    return [f"  ... and {number(len(rows) - MOST_ROWS)} more" for _ in range(1) if len(rows) > MOST_ROWS]
