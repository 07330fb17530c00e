"""The hand-made corners of the demo web, in one table: where, what a first visit must end as, what it is, and what a
good crawler does. Each row's answer stands in one of the `corner_*` modules.

The outcome is a value of `crawler.records.Outcome`, or `never`: no request for it may ever be made. A row
marked `hidden` is not linked from its host's home, mostly because it would cost a crawl its patience.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.web import (
    corner_bodies,
    corner_changes,
    corner_copies,
    corner_faults,
    corner_links,
    corner_robots,
    corner_turns,
)
from tests.web.answers import Answer, Visit, handler_for, page

MODULES = (corner_bodies, corner_changes, corner_copies, corner_faults, corner_links, corner_robots, corner_turns)
"""Importing them registers their answers."""

TABLE = Path(__file__).with_name("corners.txt")


@dataclass(frozen=True, slots=True)
class Corner:
    """A row of the table."""

    host: str
    path: str
    outcome: str
    is_hidden: bool
    what: str
    good: str


def _read(table: str) -> tuple[Corner, ...]:
    corners: list[Corner] = []
    for block in table.strip().replace("\n  ", "\t").splitlines():
        head, _, sentences = block.partition("\t")
        what, _, good = sentences.replace("\t", " ").partition(" | ")
        host, path, outcome, *marks = head.split()
        corners.append(Corner(host, path, outcome, "hidden" in marks, what, good))
    return tuple(corners)


CORNERS = _read(TABLE.read_text())
HOSTS = tuple(dict.fromkeys(corner.host for corner in CORNERS))


def answer(visit: Visit) -> Answer:
    """The answer of a corner host."""
    handler = handler_for(visit.host, visit.path)
    if handler:
        return handler(visit)
    if visit.path == "/robots.txt":
        return Answer(200, b"User-agent: *\nDisallow:\n", "text/plain")
    return home(visit) if visit.path == "/" else Answer(404, b"<html><body>No such corner.</body></html>\n")


def home(visit: Visit) -> Answer:
    """The front page of a corner host, which links to its corners."""
    paths = [corner.path for corner in CORNERS if corner.host == visit.host and not corner.is_hidden]
    return page(visit, *(path for path in paths if path != "/"))
