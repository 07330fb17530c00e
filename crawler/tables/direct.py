"""Delta without Spark, for what the driver does alone: make tables, list a version's files, append a few rows.

A small append or listing costs milliseconds here and a second in Spark. One driver writes a lake at a time, so the two
writers never meet on a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from pyarrow import fs

from crawler.schemas import Table, arrow_schema
from crawler.storage import Store

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

    def options(self) -> dict[str, str]:
        """As options of a Spark writer."""
        return {"txnAppId": self.application, "txnVersion": str(self.version), "userMetadata": self.note}


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
        )


class DataFile(NamedTuple):
    """A data file of a table's version: where it is, its rows, and the values of its partition columns."""

    uri: str
    rows: int
    partition: Mapping[str, int]


def data_files(store: Store, table: Table, version: int | None = None) -> list[DataFile]:
    """The data files of a version, the newest when none is given, by name; from the log alone."""
    path = store.uri_of(f"tables/{table.name}")
    actions: Any = DeltaTable(path, version=version).get_add_actions(flatten=True)
    return sorted(_data_file(path, table, row) for row in pa.table(actions).to_pylist())


def _data_file(path: str, table: Table, row: Mapping[str, Any]) -> DataFile:
    values = {name: row[f"partition.{name}"] for name in table.partitioned_by}
    return DataFile(f"{path}/{unquote(row['path'])}", row["num_records"], values)


def append_rows(store: Store, table: Table, rows: Sequence[Mapping[str, Any]], write: Write) -> None:
    """Add rows once; a replay changes nothing."""
    delta = DeltaTable(store.uri_of(f"tables/{table.name}"))
    done = delta.transaction_version(write.application)
    if done is not None and done >= write.version:
        return
    batch = pa.Table.from_pylist(list(rows), schema=arrow_schema(table.columns))
    transaction = Transaction(write.application, write.version)
    properties = CommitProperties(custom_metadata={"userMetadata": write.note}, app_transactions=[transaction])
    write_deltalake(delta, batch, mode="append", commit_properties=properties)


def read_rows(store: Store, uris: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a few data files, without their partition columns."""
    batches = [pq.read_table(store.open_input(store.relative(uri)), columns=list(columns)) for uri in uris]
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
