"""A committed round as its report reads it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from crawler import schemas
from crawler.records import UNTRIED
from crawler.tables.reader import Reader, Row, Rows, Versions, of_round, pc

COLUMNS = (
    "url_key", "url", "host", "outcome", "reason", "fetch_time", "fetch_s", "fetch_status", "content_mime_detected",
    "content_length", "links_found", "links_kept", "links_refused", "duplicate_kind", "duplicate_of_key",
    "duplicate_of_round", "similarity", "parse_status",
)  # fmt: skip


@dataclass(frozen=True)
class Round:
    """A committed round: its ledger rows by state, its captures, and the versions at which the logs are read.

    These are the newest committed ones: logs keep the rows of all rounds, while files of old versions are removed.
    """

    reader: Reader
    states: dict[str, Row]
    versions: Versions
    captures: Rows

    @property
    def number(self) -> int:
        return int(self.end["round"])

    @property
    def end(self) -> Row:
        return self.states["COMMITTED"]

    @property
    def asked(self) -> Rows:
        """The captures of URLs for which a request was made."""
        untried = pa.array([str(outcome) for outcome in UNTRIED])
        return self.captures.filter(pc.invert(pc.is_in(self.captures["outcome"], untried)))

    def seconds(self, start: str, end: str) -> float | None:
        """Seconds between two states; None where one of them was never recorded."""
        if start not in self.states or end not in self.states:
            return None
        took = self.states[end]["recorded_at"] - self.states[start]["recorded_at"]
        return float(round(took.total_seconds(), 3))


def load_round(reader: Reader, committed: Row) -> Round:
    """The round of a COMMITTED row."""
    states = {row["state"]: row for row in reader.rounds if row["round"] == committed["round"]}
    versions = (reader.committed() or committed)["versions"]
    captures = reader.rows(schemas.CAPTURES, versions, COLUMNS, of_round(committed["round"]))
    return Round(reader, states | {"COMMITTED": committed}, versions, captures)
