"""Delta without Spark, for what the driver does alone: make tables, list a version's files, commit.

A log entry is created atomically (a hard link on local disks, a conditional put on S3), and costs milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
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
        schema = arrow_schema(table.columns)
        described = [
            field.with_metadata({"comment": column.sentence})
            for field, column in zip(schema, table.columns, strict=True)
        ]
        DeltaTable.create(
            store.uri_of(f"tables/{table.name}"),
            Schema.from_arrow(pa.schema(described)),
            mode="ignore",
            partition_by=list(table.partitioned_by),
            configuration=PROPERTIES,
            storage_options=store.delta_options(),
        )


def open_table(store: Store, table: Table, version: int | None = None) -> DeltaTable:
    """A table at a version, the newest when none is given."""
    return DeltaTable(store.uri_of(f"tables/{table.name}"), version=version, storage_options=store.delta_options())


class DataFile(NamedTuple):
    """A data file of a table's version: its path in the lake, its size in bytes, its rows, and the values of its
    partition columns."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, int]


def data_files(store: Store, table: Table, version: int | None = None) -> list[DataFile]:
    """The data files of a version, the newest when none is given, by name; from the log alone."""
    actions: Any = open_table(store, table, version).get_add_actions(flatten=True)
    return sorted(_data_file(table, row) for row in pa.table(actions).to_pylist())


def _data_file(table: Table, row: Mapping[str, Any]) -> DataFile:
    values = {name: row[f"partition.{name}"] for name in table.partitioned_by}
    return DataFile(f"tables/{table.name}/{unquote(row['path'])}", row["size_bytes"], row["num_records"], values)


def is_done(store: Store, table: Table, write: Write) -> bool:
    """True when the table's log holds this write."""
    done = open_table(store, table).transaction_version(write.application)
    return done is not None and done >= write.version


def append_rows(store: Store, table: Table, rows: Sequence[Mapping[str, Any]], write: Write) -> None:
    """Add rows once; a replay changes nothing."""
    if not is_done(store, table, write):
        batch = pa.Table.from_pylist(list(rows), schema=arrow_schema(table.columns))
        write_deltalake(open_table(store, table), batch, mode="append", commit_properties=write.commit)


def commit_files(
    store: Store, table: Table, dropped: Sequence[DataFile], added: Sequence[WrittenFile], write: Write
) -> None:
    """In one log entry take the dropped files out of the table and put the added ones in."""
    root, now_ms = f"tables/{table.name}/", int(time.time() * 1000)
    removes = [
        RemoveAction(
            file.path.removeprefix(root), True, now_ms, file.size, {k: str(v) for k, v in file.partition.items()}
        )
        for file in dropped
    ]
    adds = [AddAction(f.path, f.size, f.partition, f.written_ms, data_change=True, stats=f.stats) for f in added]
    delta = open_table(store, table)
    delta.create_write_transaction(
        [*removes, *adds], "append", delta.schema(), list(table.partitioned_by), commit_properties=write.commit
    )


def read_rows(store: Store, paths: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a few data files, without their partition columns."""
    batches = [pq.read_table(store.open_input(path), columns=list(columns)) for path in paths]
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def read_dataset(table: DeltaTable, columns: Sequence[str] | None = None, where: Any = None) -> Any:
    """The rows of a table as a pyarrow.Table.

    Local files are read by Arrow's own file system: in `deltalake`'s, which is Python, Arrow's threads may still be
    when the interpreter ends, and that aborts the process (exit code 134, in about one run of five).
    """
    uri = urlsplit(table.table_uri)
    local = fs.SubTreeFileSystem(unquote(uri.path), fs.LocalFileSystem()) if uri.scheme in {"", "file"} else None
    dataset: Any = table.to_pyarrow_dataset(filesystem=local)
    return dataset.to_table(columns=None if columns is None else list(columns), filter=where, use_threads=bool(local))
