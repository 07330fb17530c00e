"""A data file as it grows: Arrow batches in, a Parquet file and what a table's log says of it out."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from crawler.schemas import Table, arrow_schema
from crawler.storage import ObjectWriter, Store

ROW_GROUP_BYTES = 4 * 1024 * 1024  # small row groups let a look-up skip what its keys cannot be in

Values = tuple[int, ...]


@dataclass
class GrowingFile:
    """A file as it grows, a row group at a time."""

    table: Table
    values: Values
    path: str
    writer: ObjectWriter
    schema: pa.Schema
    parquet: pq.ParquetWriter
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    rows: int = 0
    least: int | None = None
    greatest: int | None = None

    @classmethod
    def create(cls, table: Table, store: Store, values: Values) -> GrowingFile:
        folder = "".join(f"{name}={value}/" for name, value in zip(table.partitioned_by, values, strict=True))
        path = f"{folder}part-{uuid4()}.zstd.parquet"
        schema = arrow_schema(tuple(c for c in table.columns if c.name not in table.partitioned_by))
        writer = store.open_writer(f"tables/{table.name}/{path}")
        return cls(table, values, path, writer, schema, parquet_writer(writer, schema, table.sorted_by[:1]))

    def add(self, rows: pa.RecordBatch) -> None:
        plain = pa.RecordBatch.from_arrays([rows.column(f.name).cast(f.type) for f in self.schema], schema=self.schema)
        self.waiting.append(plain)
        self.waiting_bytes += plain.nbytes
        self.rows += plain.num_rows
        if self.waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        group = pa.Table.from_batches(self.waiting, self.schema)
        self.parquet.write_table(group, row_group_size=max(group.num_rows, 1))
        self._count(group)
        self.waiting, self.waiting_bytes = [], 0

    def _count(self, group: pa.Table) -> None:
        """Keep the range of the first sort column, which look-ups and people's filters skip files by."""
        first = self.table.sorted_by[:1]
        if group.num_rows and first and pa.types.is_integer(self.schema.field(first[0]).type):
            keys = group[first[0]].to_numpy()
            self.least = min(int(keys.min()), self.least if self.least is not None else int(keys[0]))
            self.greatest = max(int(keys.max()), self.greatest if self.greatest is not None else int(keys[0]))

    def close(self) -> pa.RecordBatch:
        """Finish the file; the one row about it."""
        self._flush()
        self.parquet.close()
        size = self.writer.tell()
        self.writer.close()
        stats: dict[str, Any] = {"numRecords": self.rows}
        if self.least is not None:
            key = self.table.sorted_by[0]
            stats |= {"minValues": {key: self.least}, "maxValues": {key: self.greatest}, "nullCount": {key: 0}}
        row = {
            "path": self.path,
            "size": size,
            "partition": json.dumps(
                {name: str(value) for name, value in zip(self.table.partitioned_by, self.values, strict=True)}
            ),
            "stats": json.dumps(stats),
            "written_ms": int(time.time() * 1000),
        }
        return pa.RecordBatch.from_pylist([row])


def parquet_writer(writer: ObjectWriter, schema: pa.Schema, keys: Sequence[str]) -> pq.ParquetWriter:
    """Parquet as all readers know it; sorted 64-bit keys as differences, which takes 5.2 bytes of the 8."""
    differences = [name for name in keys if pa.types.is_int64(schema.field(name).type)]
    others = [name for name in _leaves(schema) if name not in differences]
    sink: Any = _Sink(writer)
    dictionaries: Any = others or False  # names of columns, which the stubs do not know
    return pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        compression="zstd",
        use_dictionary=dictionaries,
        column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED") or None,
        coerce_timestamps="us",
        store_schema=False,  # Parquet's own types say it all, and Arrow's copy is a third of a small file
    )


def _leaves(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if not pa.types.is_nested(schema.field(name).type)]


class _Sink:
    """An `ObjectWriter` as the file that Arrow wants."""

    closed = False

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> int:
        self._writer.write(bytes(data))
        return len(data)

    def tell(self) -> int:
        return self._writer.tell()

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
