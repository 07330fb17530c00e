"""The data files of a table, written and read by executors with Arrow.

Spark moves rows and opens no file: so a lake needs one kind of access to its storage, the same on a laptop, on a
cluster and on S3, and a file counts only when the driver commits it by name.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from crawler.schemas import Column, Table, arrow_schema, ddl
from crawler.storage import ObjectWriter, Store

ROW_GROUP_BYTES = 4 * 1024 * 1024  # small row groups let a look-up skip what its keys cannot be in
TASK_BYTES = 64 * 1024 * 1024
WRITTEN = "path string, size bigint, partition string, stats string, written_ms bigint"

Values = tuple[int, ...]


@dataclass(frozen=True)
class ReadFile:
    """A file to read: its path in the lake, its size in bytes (about), and the values of columns that are not in it."""

    path: str
    size: int
    values: Mapping[str, int | str] = field(default_factory=dict)


def read_files(spark: SparkSession, store: Store, files: Sequence[ReadFile], columns: Sequence[Column]) -> DataFrame:
    """The rows of the files with these columns; a column that a file does not hold has the file's value for it, or is
    null."""
    if not files:
        return spark.createDataFrame([], ddl(tuple(columns)))
    shares = _shares(files)
    read = partial(_read_share, shares=shares, store=store, columns=tuple(columns))
    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(read, ddl(tuple(columns)))


def _shares(files: Sequence[ReadFile]) -> list[list[ReadFile]]:
    """The files in their order, about `TASK_BYTES` of them for each task."""
    shares: list[list[ReadFile]] = [[]]
    size = 0
    for file in files:
        if shares[-1] and size + file.size > TASK_BYTES:
            shares.append([])
            size = 0
        shares[-1].append(file)
        size += file.size
    return shares


def _read_share(
    numbers: Iterable[pa.RecordBatch], shares: list[list[ReadFile]], store: Store, columns: tuple[Column, ...]
) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(columns)
    for number in (number for batch in numbers for number in batch["id"].to_numpy().tolist()):
        for file in shares[number]:
            yield from _read_file(store, file, schema)


def _read_file(store: Store, file: ReadFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    parquet = pq.ParquetFile(store.open_input(file.path))
    stored = [name for name in schema.names if name in parquet.schema_arrow.names]
    for batch in parquet.iter_batches(columns=stored):
        yield pa.RecordBatch.from_arrays([_column(batch, file, each) for each in schema], schema=schema)


def _column(batch: pa.RecordBatch, file: ReadFile, wanted: Any) -> Any:
    if wanted.name in batch.schema.names:
        return batch.column(wanted.name).cast(wanted.type)
    return pa.repeat(pa.scalar(file.values.get(wanted.name), wanted.type), batch.num_rows)


@dataclass(frozen=True)
class WrittenFile:
    """A file that waits for its commit: its path below the table, and what the table's log will say of it."""

    path: str
    size: int
    partition: Mapping[str, str]
    stats: str
    written_ms: int


def write_files(rows: DataFrame, table: Table, store: Store) -> list[WrittenFile]:
    """Write the rows, whose partitions are sorted by the table's partition columns, as files nobody knows yet."""
    write: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(
        _write_share, table=table, store=store
    )
    written: pa.Table = rows.mapInArrow(write, WRITTEN).toArrow()
    return [WrittenFile(**{**row, "partition": json.loads(row["partition"])}) for row in written.to_pylist()]


def _write_share(batches: Iterable[pa.RecordBatch], table: Table, store: Store) -> Iterator[pa.RecordBatch]:
    current: _OpenFile | None = None
    try:
        for batch in batches:
            for values, rows in _by_partition(batch, table.partitioned_by):
                if current is not None and current.values != values:
                    yield current.close()
                    current = None
                current = current or _OpenFile.create(table, store, values)
                current.add(rows)
        if current is not None:
            yield current.close()
    except BaseException:
        if current is not None:
            current.writer.abort()
        raise


def _by_partition(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Stretches of rows with the same partition values."""
    if not batch.num_rows:
        return
    columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
    starts = np.zeros(batch.num_rows, bool)
    starts[0] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    edges = [*np.flatnonzero(starts).tolist(), batch.num_rows]
    for start, end in pairwise(edges):
        yield tuple(int(column[start]) for column in columns), batch.slice(start, end - start)


@dataclass
class _OpenFile:
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
    def create(cls, table: Table, store: Store, values: Values) -> _OpenFile:
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
