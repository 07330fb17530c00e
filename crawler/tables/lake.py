"""A lake: one URI with the tables, the WARC files, the inbox and the lock of a crawl."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler import schemas
from crawler.faults import fault
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.delta import DeltaTables, Holds
from crawler.tables.direct import DataFile, Write, add_columns, append_rows, create_tables, read_rows
from crawler.tables.ledger import Ledger
from crawler.tables.lock import Lock, hold_lock
from crawler.tables.manifest import change_manifest, make_lake, read_manifest, require_same_keys
from crawler.tables.provenance import (
    ANY_ROUND,
    gone,
    newest_version,
    refuse_strangers,
    settled_versions,
    strangers_since,
)
from crawler.tables.runs import Run, bucket_of, pin_run

Versions = Mapping[str, int]
Row = dict[str, Any]


@dataclass(frozen=True)
class Lake:
    """An open lake, held by this driver. Of tables in `seen` every version up to the one named is known to be ours."""

    tables: DeltaTables
    lock: Lock
    buckets: int
    seen: dict[str, int] = field(default_factory=dict)

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
        """The newest version of every table but the ledger, whoever wrote it."""
        return {table.name: self.tables.version(table) for table in schemas.TABLES if table is not schemas.ROUNDS}

    def settled(self, since: Versions, number: int | None = None) -> dict[str, int]:
        """The newest versions again, which hold nothing but what the crawl wrote since these: the open round of that
        number, and care of the lake. Raises TableError. From here on no write goes on top of anybody else's."""
        found = settled_versions(self.store, since, number)
        self.seen.update(found)
        return found

    def require_ours(self, table: Table) -> None:
        """Raise where this driver was overtaken, or somebody else wrote into the table since it was looked at."""
        self.lock.check()
        if table.name in self.seen:
            newest = self.tables.version(table)
            found = strangers_since(self.store, table, self.seen[table.name], ANY_ROUND, newest)
            refuse_strangers(self.store, found)
            self.seen[table.name] = newest

    def append(self, table: Table, rows: DataFrame, write: Write) -> None:
        """Add rows once, in buckets where the table is a run."""
        self.require_ours(table)
        if table.shape == "run":
            rows = rows.withColumn("bucket", bucket_of(table.sorted_by[0], self.buckets))
        self.tables.append(table, rows, write)
        fault(f"commit.{table.name}")

    def note(self, table: Table, rows: Sequence[Mapping[str, Any]], write: Write) -> None:
        """Add a few rows of the driver's own once, without Spark."""
        self.require_ours(table)
        append_rows(self.store, table, rows, write)
        fault(f"commit.{table.name}")

    def turn_calendar(self, used: Sequence[DataFile], rows: DataFrame, write: Write) -> None:
        """In one commit take the used up files out of the calendar and put the rows in."""
        self.require_ours(schemas.FRONTIER)
        self.tables.change(schemas.FRONTIER, used, rows, write)
        fault(f"commit.{schemas.FRONTIER.name}")

    def write(self, application: str, round_number: int) -> Write:
        """The identity of a write of a round, signed with the lock's token."""
        return Write(f"orbweaver/{application}", round_number, note=f"round {round_number}, token {self.lock.token}")


@contextmanager
def hold_lake(spark: SparkSession, store: Store, buckets: int | None = None) -> Iterator[Lake]:
    """Hold the lock of a lake and open it for writing; its tables are made, or get the columns of this version.

    With `buckets` a lake is made where there is nothing. Raises LockHeld, and TableError for a lake that this version
    cannot write to.
    """
    if buckets is not None:
        make_lake(store, buckets)
    manifest = read_manifest(store)
    require_same_keys(store, manifest)
    with hold_lock(store) as lock:
        prepare_tables(store, lock)
        yield Lake(DeltaTables(spark, store), lock, manifest.buckets)


def prepare_tables(store: Store, lock: Lock) -> None:
    """Make the tables of a new lake, and add to those of an older one what they lack. Costs nothing when the lake says
    that it was done.

    Raises TableError for a table that was there once and is gone: an empty one in its place would be a lie.
    """
    columns = columns_checksum()
    if read_manifest(store).schemas == columns:
        return
    rows = Ledger(store).newest(1)
    named = rows[-1].versions if rows else {}
    for table in schemas.TABLES:
        lock.check()
        if newest_version(store, table) >= 0:
            add_columns(store, table)
        elif table.name in named:
            raise gone(store, table.name)
        else:
            create_tables(store, [table])
    lock.check()
    change_manifest(store, schemas=columns)


def columns_checksum() -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the names and types of all tables' columns."""
    text = "\n".join(f"{table.name}: {schemas.ddl(table.columns)}" for table in schemas.TABLES)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
