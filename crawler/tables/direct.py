"""Delta without Spark, for what the driver does alone: make tables, list a version's files, commit.

A log entry is created atomically (a hard link on local disks, a conditional put on S3), and costs milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
from crawler.tables.manifest import TableError, TableMissing, file_gone

if TYPE_CHECKING:
    from crawler.tables.data_files import WrittenFile

PROPERTIES: dict[str, str | None] = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 60 days",
    "delta.deletedFileRetentionDuration": "interval 14 days",
    "delta.dataSkippingNumIndexedCols": "2",
}


@dataclass(frozen=True)
class Write:
    """Identity of one write: a replay of the same application and version changes nothing."""

    application: str
    version: int
    note: str = ""

    @property
    def commit(self) -> CommitProperties:
        return CommitProperties(
            custom_metadata={"userMetadata": self.note},
            app_transactions=[Transaction(self.application, self.version)],
        )


def create_tables(store: Store, tables: Sequence[Table]) -> None:
    """Create the tables that do not exist, with a comment on every column."""
    for table in tables:
        try:
            DeltaTable.create(
                store.uri_of(f"tables/{table.name}"),
                _described(table),
                mode="ignore",
                partition_by=list(table.partitioned_by),
                configuration=PROPERTIES,
                storage_options=store.delta_options(),
            )
        except DeltaError:
            open_table(store, table)  # it is there when only the answer was lost; else this says what is wrong


def add_columns(store: Store, table: Table) -> bool:
    """Give a table of an earlier version the columns, and the fields of its structures, that it lacks, in one entry of
    its log; files that lack them read as nulls. False when it lacks none.

    Raises TableError for a table with columns that this version does not know, or knows with another type.
    """
    delta = open_table(store, table)
    held, wanted = delta.schema(), _described(table)
    strange = [one.name for one in held.fields if one.name not in table.names]
    if strange:
        raise TableError(
            f"table {table.name} of {store.uri} has columns that this Orbweaver does not know ({', '.join(strange)}): "
            "a newer one has written here. Use that, or a copy of the lake from before it"
        )
    types = {one.name: one.type for one in held.fields}
    lacking = [one for one in wanted.fields if types.get(one.name) != one.type]
    if not lacking:
        return False
    write = Write(f"orbweaver/columns/{table.name}", delta.version(), note=", ".join(one.name for one in lacking))
    try:
        with _heard(store, table, write, delta.version()):
            delta.alter.add_columns(lacking, commit_properties=write.commit)
    except DeltaError as error:
        names = ", ".join(f"{one.name} {types.get(one.name, 'new')}" for one in lacking)
        raise TableError(
            f"table {table.name} of {store.uri} cannot be given the columns of this version ({names}): "
            f"{str(error).splitlines()[0][:200]}"
        ) from error
    return True


def _described(table: Table) -> Schema:
    """The columns as Delta knows them, each with its sentence."""
    schema = arrow_schema(table.columns)
    described = [
        field.with_metadata({"comment": column.sentence}) for field, column in zip(schema, table.columns, strict=True)
    ]
    return Schema.from_arrow(pa.schema(described))


def open_table(store: Store, table: Table, version: int | None = None) -> DeltaTable:
    """A table at a version, the newest when none is given. Raises TableMissing where there is no such table, TableError
    where it cannot be read."""
    try:
        return DeltaTable(store.uri_of(f"tables/{table.name}"), version=version, storage_options=store.delta_options())
    except TableNotFoundError as error:
        raise TableMissing(
            f"table {table.name} of {store.uri} is not there: bring the folder tables/{table.name} back from a copy of "
            "the lake; nothing else has its rows"
        ) from error
    except DeltaError as error:
        which = "the newest version" if version is None else f"version {version}, which the ledger names,"
        raise TableError(
            f"table {table.name} of {store.uri}: {which} cannot be read ({str(error).splitlines()[0][:200]}). VACUUM, "
            "log retention or somebody's hand may have removed it; bring it back from a copy of the lake"
        ) from error


class DataFile(NamedTuple):
    """A data file of a table's version: its path in the lake, its size in bytes, its rows, the values of its partition
    columns, and the range of the first column it is sorted by, where the log knows that."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, int]
    least: int | None = None
    greatest: int | None = None

    def may_hold(self, key: int) -> bool:
        """False when no row has this value in the first column of the order."""
        return self.least is None or self.greatest is None or self.least <= key <= self.greatest


def data_files(store: Store, table: Table, version: int | None = None) -> list[DataFile]:
    """The data files of a version, the newest when none is given, by name; from the log alone."""
    actions: Any = open_table(store, table, version).get_add_actions(flatten=True)
    return sorted(_data_file(table, row) for row in pa.table(actions).to_pylist())


def _data_file(table: Table, row: Mapping[str, Any]) -> DataFile:
    values = {name: row[f"partition.{name}"] for name in table.partitioned_by}
    bounds = [row.get(f"{end}.{table.sorted_by[0]}") if table.sorted_by else None for end in ("min", "max")]
    path = f"tables/{table.name}/{unquote(row['path'])}"
    return DataFile(path, row["size_bytes"], row["num_records"], values, *bounds)


def lost_of(store: Store, table: Table, version: int | None) -> str | None:
    """What is missing of a version; None when all of it is there."""
    try:
        named = {file.path for file in data_files(store, table, version)}
    except TableError as error:
        return str(error)
    missing = named.difference(store.list(f"tables/{table.name}"))
    return f"{len(missing)} of {len(named)} files, such as {min(missing)}" if missing else None


def is_done(store: Store, table: Table, write: Write) -> bool:
    """True when the table's log holds this write."""
    return _has(open_table(store, table), write)


def _has(delta: DeltaTable, write: Write) -> bool:
    done = delta.transaction_version(write.application)
    return done is not None and done >= write.version


def append_rows(store: Store, table: Table, rows: Sequence[Mapping[str, Any]], write: Write) -> None:
    """Add rows once; a replay changes nothing."""
    delta = open_table(store, table)
    if not _has(delta, write):
        batch = pa.Table.from_pylist(list(rows), schema=arrow_schema(table.columns))
        with _heard(store, table, write, delta.version()):
            write_deltalake(delta, batch, mode="append", commit_properties=write.commit)


def commit_files(
    store: Store, table: Table, dropped: Sequence[DataFile], added: Sequence[WrittenFile], write: Write
) -> None:
    """In one log entry take the dropped files out of the table and put the added ones in; a replay changes nothing."""
    root, now_ms = f"tables/{table.name}/", int(time.time() * 1000)
    removes = [
        RemoveAction(
            file.path.removeprefix(root), True, now_ms, file.size, {k: str(v) for k, v in file.partition.items()}
        )
        for file in dropped
    ]
    adds = [AddAction(f.path, f.size, f.partition, f.written_ms, data_change=True, stats=f.stats) for f in added]
    delta = open_table(store, table)
    if _has(delta, write):
        return  # by another driver, while the files were written: deltalake looks only at what comes after `delta`
    with _heard(store, table, write, delta.version()):
        delta.create_write_transaction(
            [*removes, *adds], "append", delta.schema(), list(table.partitioned_by), commit_properties=write.commit
        )


@contextmanager
def _heard(store: Store, table: Table, write: Write, before: int) -> Iterator[None]:
    """For one commit on top of the version `before`: an error is none when the log has the write all the same.

    S3's answer to a create may be lost. deltalake then asks again, is told that the entry exists, and takes its own
    for another driver's.
    """
    try:
        yield
    except (DeltaError, OSError):
        if not _is_in_log(store, table, before + 1, write):
            raise


def _is_in_log(store: Store, table: Table, version: int, write: Write) -> bool:
    """True when an entry from this version on is this very write, of this driver: its note says which."""
    try:
        entry = store.read(f"tables/{table.name}/_delta_log/{version:020d}.json")
    except FileNotFoundError:
        return False
    actions = [json.loads(line) for line in entry.splitlines() if line.strip()]
    notes = [one["commitInfo"].get("userMetadata") for one in actions if "commitInfo" in one]
    signed = [(one["txn"]["appId"], one["txn"]["version"]) for one in actions if "txn" in one]
    is_ours = (write.application, write.version) in signed and write.note in notes
    return is_ours or _is_in_log(store, table, version + 1, write)


def read_rows(store: Store, paths: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a few data files, without their partition columns; null what a file does not hold."""
    nothing = dict.fromkeys(columns)
    batches = [_opened(store, path).read(list(columns), use_threads=False) for path in paths]
    return [nothing | row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def _opened(store: Store, path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(store.open_input(path))
    except FileNotFoundError as error:
        raise file_gone(store, path) from error
