"""Committed tables read without Spark: for people who ask about a lake and want the answer within a second.

Reads at the versions that the ledger names, through `deltalake` and Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute
from deltalake import DeltaTable

from crawler import schemas
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.direct import lost_of, open_table
from crawler.tables.manifest import TableError, TableMissing, read_manifest, require_unbegun
from crawler.tables.scan import read_matching

STATES = ("OPENED", "PLANNED", "FETCHED", "COMMITTED")
Versions = Mapping[str, int]
Row = dict[str, Any]
Condition = pyarrow.compute.Expression
Rows = Any  # a pyarrow.Table; its stubs, and those of its kernels, refuse much of what they take
pc: Any = pyarrow.compute


@dataclass
class Reader:
    """The tables of one lake, read only. What it has opened stays as it was then."""

    store: Store
    buckets: int
    _opened: dict[tuple[str, int | None], DeltaTable] = field(default_factory=dict)

    @staticmethod
    def open(store: Store) -> Reader:
        """Raises TableError where there is no lake."""
        return Reader(store, read_manifest(store).buckets)

    @cached_property
    def rounds(self) -> list[Row]:
        """All rows of the ledger, by round and state; empty before the first round."""
        try:
            table = read_matching(self.store, schemas.ROUNDS, open_table(self.store, schemas.ROUNDS))
        except TableMissing:
            require_unbegun(self.store)
            return []
        rows: list[Row] = table.to_pylist(maps_as_pydicts="strict")
        return sorted(rows, key=lambda row: (row["round"], STATES.index(row["state"]), row["recorded_at"]))

    def committed(self, number: int | None = None) -> Row | None:
        """The COMMITTED row of a round, or of the newest committed one; None when there is none.

        Maintenance adds a row with the versions after it; the time of the commit stays that of the first one.
        """
        rows = [row for row in self.rounds if row["state"] == "COMMITTED" and number in {None, row["round"]}]
        if not rows:
            return None
        first = next(row for row in rows if row["round"] == rows[-1]["round"])
        return {**rows[-1], "recorded_at": first["recorded_at"]}

    @property
    def open_round(self) -> Row | None:
        """The newest row of a round that is not committed yet."""
        newest = self.rounds[-1] if self.rounds else None
        return newest if newest and newest["state"] != "COMMITTED" else None

    def rows(
        self,
        table: Table,
        versions: Versions,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
    ) -> Rows:
        """The rows of a table at its version that match; conditions on partition columns leave other files unread."""
        return read_matching(self.store, table, self._table(table, versions), columns, where)

    def partitions(self, table: Table, versions: Versions) -> list[Row]:
        """The partition values and `num_records` of every data file, from the log alone."""
        actions = pa.table(self._table(table, versions).get_add_actions(flatten=True))
        names = [*(f"partition.{name}" for name in table.partitioned_by), "num_records"]
        held = [name for name in names if name in actions.column_names]
        return [
            {name.removeprefix("partition."): row[name] for name in held} for row in actions.select(held).to_pylist()
        ]

    def require_whole(self, tables: Sequence[Table], versions: Versions) -> None:
        """Raise TableError where the log, or a data file, of one of the tables at these versions is missing: for those
        who go on with readers whose errors are not ours."""
        for table in tables:
            lost = lost_of(self.store, table, versions.get(table.name))
            if lost:
                raise TableError(f"table {table.name} of {self.store.uri} is not whole: {lost}")

    def bucket_of(self, key: int) -> int:
        """The bucket of a signed 64-bit key: its range among 2^24 equal ones."""
        return ((key & 0xFFFFFFFFFFFFFFFF) >> 40) * self.buckets >> 24

    def _table(self, table: Table, versions: Versions) -> DeltaTable:
        version = versions.get(table.name)
        key = (table.name, version)
        if key not in self._opened:
            self._opened[key] = open_table(self.store, table, version)
        return self._opened[key]


def of_key(key: int) -> Condition:
    """Rows of one URL."""
    return pyarrow.compute.field("url_key") == pa.scalar(key, pa.int64())


def of_round(number: int) -> Condition:
    """Rows of one round."""
    return pyarrow.compute.field("round") == pa.scalar(number, pa.int32())


def due_urls(reader: Reader, hour: int) -> int:
    """How many URLs the newest committed calendar holds in slots that have come by `hour` (hours since 1970)."""
    newest = reader.committed()
    if newest is None:
        return 0
    parts = reader.partitions(schemas.FRONTIER, newest["versions"])
    return sum(part["num_records"] or 0 for part in parts if part["slot"] <= hour)
