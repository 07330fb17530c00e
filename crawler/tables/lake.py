"""A lake: one URI with the tables, the WARC files, the inbox and the lock of a crawl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler import schemas
from crawler.faults import fault
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.delta import DeltaTables, Holds
from crawler.tables.direct import DataFile, Write, append_rows, create_tables, read_rows
from crawler.tables.ledger import Ledger
from crawler.tables.lock import Lock, hold_lock
from crawler.tables.manifest import FORMAT, MANIFEST, read_manifest
from crawler.tables.runs import Run, bucket_of, pin_run

Versions = Mapping[str, int]
Row = dict[str, Any]


@dataclass(frozen=True)
class Lake:
    """An open lake, held by this driver."""

    tables: DeltaTables
    lock: Lock
    buckets: int

    @property
    def store(self) -> Store:
        return self.tables.store

    @property
    def spark(self) -> SparkSession:
        return self.tables.spark

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.store)

    def read(self, table: Table, versions: Versions, holds: Holds | None = None) -> DataFrame:
        return self.tables.read(table, versions[table.name], holds)

    def files(self, table: Table, versions: Versions, holds: Holds | None = None) -> list[DataFile]:
        return self.tables.files(table, versions[table.name], holds)

    def rows(self, table: Table, versions: Versions, columns: Sequence[str]) -> list[Row]:
        """Rows of a small table, read by the driver alone."""
        return read_rows(self.store, [file.path for file in self.files(table, versions)], columns)

    def run(self, table: Table, versions: Versions) -> Run:
        return pin_run(self.tables, table, versions[table.name], self.buckets)

    def versions(self) -> dict[str, int]:
        """The newest version of every table but the ledger."""
        return {table.name: self.tables.version(table) for table in schemas.TABLES if table is not schemas.ROUNDS}

    def append(self, table: Table, rows: DataFrame, write: Write) -> None:
        """Add rows once, in buckets where the table is a run."""
        self.lock.check()
        if table.shape == "run":
            rows = rows.withColumn("bucket", bucket_of(table.sorted_by[0], self.buckets))
        self.tables.append(table, rows, write)
        fault(f"commit.{table.name}")

    def note(self, table: Table, rows: Sequence[Mapping[str, Any]], write: Write) -> None:
        """Add a few rows of the driver's own once, without Spark."""
        self.lock.check()
        append_rows(self.store, table, rows, write)
        fault(f"commit.{table.name}")

    def turn_calendar(self, used: Sequence[DataFile], rows: DataFrame, write: Write) -> None:
        """In one commit take the used up files out of the calendar and put the rows in."""
        self.lock.check()
        self.tables.change(schemas.FRONTIER, used, rows, write)
        fault(f"commit.{schemas.FRONTIER.name}")

    def write(self, application: str, round_number: int) -> Write:
        """The identity of a write of a round, signed with the lock's token."""
        return Write(f"orbweaver/{application}", round_number, note=f"round {round_number}, token {self.lock.token}")


@contextmanager
def hold_lake(spark: SparkSession, store: Store, buckets: int) -> Iterator[Lake]:
    """Open a lake for writing, creating it where there is none, and hold its lock. Raises LockHeld."""
    with hold_lock(store) as lock:
        store.put_new(MANIFEST, json.dumps({"format": FORMAT, "buckets": buckets}).encode())
        tables = DeltaTables(spark, store)
        create_tables(store, schemas.TABLES)
        yield Lake(tables, lock, read_manifest(store)["buckets"])


def round_files(lake: Lake, table: Table, versions: Versions, number: int) -> list[DataFile]:
    """The files of a log that may hold rows of a round; of an open round, they hold no others."""
    return [file for file in lake.files(table, versions) if file.may_hold(number)]


def round_frame(lake: Lake, table: Table, versions: Versions, number: int) -> DataFrame:
    """The rows of a round of a log."""
    return lake.tables.read_these(table, round_files(lake, table, versions, number)).where(F.col("round") == number)


def round_rows(lake: Lake, table: Table, versions: Versions, columns: Sequence[str], number: int) -> list[Row]:
    """The rows of a round of a small log, read by the driver alone."""
    paths = [file.path for file in round_files(lake, table, versions, number)]
    rows = read_rows(lake.store, paths, ["round", *columns])
    return [row for row in rows if row["round"] == number]
