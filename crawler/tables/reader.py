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
from deltalake.exceptions import DeltaError, TableNotFoundError

from crawler import schemas
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.direct import open_table
from crawler.tables.manifest import TableError, read_manifest
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
        return Reader(store, read_manifest(store)["buckets"])

    @cached_property
    def rounds(self) -> list[Row]:
        """All rows of the ledger, by round and state; empty before the first round."""
        try:
            table = read_matching(self.store, schemas.ROUNDS, open_table(self.store, schemas.ROUNDS))
        except TableNotFoundError:
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

    def bucket_of(self, key: int) -> int:
        """The bucket of a signed 64-bit key: its range among 2^24 equal ones."""
        return ((key & 0xFFFFFFFFFFFFFFFF) >> 40) * self.buckets >> 24

    def _table(self, table: Table, versions: Versions) -> DeltaTable:
        version = versions.get(table.name)
        key = (table.name, version)
        if key not in self._opened:
            self._opened[key] = self._open(table, version)
        return self._opened[key]

    def _open(self, table: Table, version: int | None) -> DeltaTable:
        try:
            return open_table(self.store, table, version)
        except DeltaError as error:
            said = str(error).splitlines()[0][:200]
            raise TableError(
                f"table {table.name} of {self.store.uri}: version {version}, which the round committed, cannot be "
                f"read ({said}). VACUUM or log retention may have removed it; a newer round can still be read."
            ) from error


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
