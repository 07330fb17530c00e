"""The data files of a table, written and read by executors with Arrow.

Spark moves rows and opens no file: so a lake needs one kind of access to its storage, the same on a laptop, on a
cluster and on S3, and a file counts only when the driver commits it by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from crawler.schemas import Column, Table, arrow_schema, ddl
from crawler.storage import Store
from crawler.tables.growing_file import GrowingFile, Values
from crawler.tables.scan import filled

TASK_BYTES = 64 * 1024 * 1024
WRITTEN = "path string, size bigint, partition string, stats string, written_ms bigint"


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
        yield pa.RecordBatch.from_arrays(filled(batch, batch.num_rows, schema, file.values), schema=schema)


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
    current: GrowingFile | None = None
    try:
        for batch in batches:
            for values, rows in _by_partition(batch, table.partitioned_by):
                if current is not None and current.values != values:
                    yield current.close()
                    current = None
                current = current or GrowingFile.create(table, store, values)
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
