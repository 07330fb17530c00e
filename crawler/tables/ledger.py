"""The round ledger: which state a round has reached, and the version of every table it reads or has written.

States of a round are rows of `rounds`, appended once each: OPENED (clock, inbox and versions pinned), PLANNED (plan
written), FETCHED (segments accepted), COMMITTED (all tables written; the commit). What has no COMMITTED row is open and
is finished by the next run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crawler import schemas
from crawler.faults import fault
from crawler.storage import Store
from crawler.tables.direct import Write, append_rows, open_table
from crawler.tables.manifest import TableMissing, require_unbegun
from crawler.tables.scan import read_matching


class State(StrEnum):
    OPENED = "OPENED"
    PLANNED = "PLANNED"
    FETCHED = "FETCHED"
    COMMITTED = "COMMITTED"


ORDER = {state: place for place, state in enumerate(State)}


@dataclass(frozen=True)
class RoundRow:
    """A row of `rounds`. `now` is the scheduling time, epoch seconds; `settings` is JSON, empty where none was kept."""

    round: int
    state: State
    now: float
    segment_folder: str
    versions: dict[str, int]
    inbox: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    settings_hash: str = ""
    holder: str = ""
    token: int = 0
    recorded: float = 0.0
    settings: str = ""


@dataclass(frozen=True)
class Ledger:
    """The ledger of one lake. It is written and read without Spark, which would cost a second a state."""

    store: Store

    def record(self, row: RoundRow, write: Write | None = None) -> None:
        """Append a state once; a replay changes nothing. Maintenance, which commits a round's tables anew, names its
        own write."""
        once = Write("rounds", row.round * 10 + ORDER[row.state], note=f"token {row.token}")
        append_rows(self.store, schemas.ROUNDS, [_as_dict(row)], write or once)
        fault(f"commit.{schemas.ROUNDS.name}")

    def newest(self, rounds: int = 1) -> list[RoundRow]:
        """The rows of the newest rounds, oldest state first; none before the first round of a lake."""
        try:
            table = open_table(self.store, schemas.ROUNDS)
        except TableMissing:
            require_unbegun(self.store)
            return []
        actions: Any = table.get_add_actions(flatten=True)
        numbers: Any = pa.table(actions).column("max.round").to_pylist() if table.file_uris() else []
        if not numbers:
            return []
        last: int = max(numbers)
        newest = pc.field("round") > pa.scalar(last - rounds, pa.int32())
        rows = read_matching(self.store, schemas.ROUNDS, table, where=newest).to_pylist()
        return sorted((_from_row(row) for row in rows), key=lambda r: (r.round, ORDER[r.state], r.recorded))

    def committed(self) -> RoundRow | None:
        """The newest committed round: what readers may see."""
        found = [row for row in self.newest(2) if row.state is State.COMMITTED]
        return found[-1] if found else None


def _as_dict(row: RoundRow) -> dict[str, object]:
    plain = ("round", "segment_folder", "settings_hash", "holder", "token")
    return {name: getattr(row, name) for name in plain} | {
        "state": str(row.state),
        "now_at": datetime.fromtimestamp(row.now, UTC),
        "recorded_at": datetime.fromtimestamp(row.recorded, UTC),
        "versions": list(row.versions.items()),
        "inbox": list(row.inbox),
        "counts": list(row.counts.items()),
        "settings": row.settings or None,
    }


def _from_row(row: dict[str, Any]) -> RoundRow:
    return RoundRow(
        round=row["round"],
        state=State(row["state"]),
        now=row["now_at"].timestamp(),
        recorded=row["recorded_at"].timestamp(),
        segment_folder=row["segment_folder"],
        versions=dict(row["versions"]),
        inbox=tuple(row["inbox"]),
        counts=dict(row["counts"]),
        settings_hash=row["settings_hash"],
        holder=row["holder"],
        token=row["token"],
        settings=row["settings"] or "",
    )
