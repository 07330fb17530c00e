"""Runs: append-only tables sorted by a 64-bit key and partitioned by key range, asked for the keys of a batch.

A look-up sends the batch's distinct keys to their buckets and merges them there with the files that the pinned version
names, read straight with Arrow. Its price is the batch and the keys, never a join with history in Spark. The plain
Spark join is the oracle in the tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from crawler.schemas import Table, arrow_schema, ddl
from crawler.storage import Store
from crawler.tables.delta import DeltaTables

Keep = Literal["newest", "oldest"]
ORDERING = ("round", "kind", "url_key")
FEW_WORDS = ["kind", "scheme"]  # columns of a few texts: to write each out took a third of a look-up


def bucket_of(key: str, buckets: int) -> Column:
    """The bucket of a key column: its range among 2^24 equal ones, so that a host and its URLs share a bucket."""
    return F.expr(f"CAST(shiftright(shiftrightunsigned({key}, 40) * {buckets}L, 24) AS INT)")


@dataclass(frozen=True)
class Run:
    """A pinned run: its files by bucket, and how it is asked. Travels to the executors."""

    table: Table
    files: dict[int, tuple[str, ...]]
    buckets: int
    store: Store

    @property
    def key(self) -> str:
        return self.table.sorted_by[0]


def pin_run(tables: DeltaTables, table: Table, version: int, buckets: int) -> Run:
    """The run as it stands at a version."""
    files: dict[int, list[str]] = defaultdict(list)
    for file in tables.files(table, version):
        files[file.partition["bucket"]].append(file.path)
    return Run(table, {bucket: tuple(paths) for bucket, paths in files.items()}, buckets, tables.store)


def find(run: Run, keys: DataFrame, keep: Keep, names: Sequence[str] | None = None) -> DataFrame:
    """The run's rows for the batch's keys (one column, named as the run's key): the newest or oldest row of each.

    `names` are the columns that are wanted beside those that order rows: all by default, and each has its price.
    """
    wanted = set(run.table.names if names is None else (run.key, *ORDERING, *names))
    columns = tuple(column for column in run.table.columns if column.name in wanted and column.name != "bucket")
    if not run.files:
        return keys.sparkSession.createDataFrame([], ddl(columns))

    def look_up(group: pa.Table) -> pa.Table:
        return _find_in_bucket(group, run, keep, arrow_schema(columns))

    return _by_bucket(run, keys).applyInArrow(look_up, ddl(columns))


def absent(run: Run, keys: DataFrame) -> DataFrame:
    """The batch's distinct keys that the run does not hold."""
    if not run.files:
        return keys.select(run.key).distinct()

    def look_up(group: pa.Table) -> pa.Table:
        return _absent_in_bucket(group, run)

    return _by_bucket(run, keys).applyInArrow(look_up, f"{run.key} bigint")


def _by_bucket(run: Run, keys: DataFrame) -> GroupedData:
    return keys.select(run.key).withColumn("bucket", bucket_of(run.key, run.buckets)).groupBy("bucket")


def _batch(group: pa.Table, run: Run) -> tuple[np.ndarray, tuple[str, ...]]:
    """The sorted distinct keys of a group, and the files of its bucket."""
    if not group.num_rows:
        return np.empty(0, np.int64), ()
    return np.unique(group[run.key].to_numpy()), run.files.get(group["bucket"][0].as_py(), ())


def _absent_in_bucket(group: pa.Table, run: Run) -> pa.Table:
    keys, files = _batch(group, run)
    is_seen = np.zeros(len(keys), bool)
    for path in files:
        for few in _row_groups(run, path, keys):
            is_seen[few.asked] |= few.ends > few.starts
    return pa.table({run.key: pa.array(keys[~is_seen])})


def _find_in_bucket(group: pa.Table, run: Run, keep: Keep, schema: pa.Schema) -> pa.Table:
    keys, files = _batch(group, run)
    found = [rows for path in files for rows in _matching_rows(run, path, keys, schema)]
    if not found:
        return schema.empty_table()
    return _one_per_key(pa.concat_tables(found), run.key, keep)


def _matching_rows(run: Run, path: str, keys: np.ndarray, schema: pa.Schema) -> list[pa.Table]:
    matching = []
    for group in _row_groups(run, path, keys):
        is_found = group.ends > group.starts
        if is_found.any():
            change = np.zeros(len(group.keys) + 1, np.int32)
            change[group.starts[is_found]] = 1
            change[group.ends[is_found]] -= 1
            is_wanted = np.cumsum(change[:-1]) > 0
            others = [name for name in schema.names if name != run.key]
            rows = group.file.read_row_group(group.number, columns=others, use_threads=False)
            rows = rows.filter(pa.array(is_wanted)).append_column(run.key, pa.array(group.keys[is_wanted]))
            for field in schema:  # a file of an older version lacks what came later
                if field.name not in rows.schema.names:
                    rows = rows.append_column(field, pa.nulls(len(rows), field.type))
            matching.append(rows.select(schema.names).cast(schema))
    return matching


class _RowGroup(NamedTuple):
    """A row group in whose range some keys of the batch lie: its keys, which were asked for, and of each of those the
    stretch of its rows."""

    file: pq.ParquetFile
    number: int
    keys: np.ndarray
    asked: slice
    starts: np.ndarray
    ends: np.ndarray


def _row_groups(run: Run, path: str, keys: np.ndarray) -> Iterator[_RowGroup]:
    """The row groups that may hold keys of the batch, both sorted: few keys are looked for among many stored ones."""
    words = [name for name in FEW_WORDS if name in run.table.names]
    file = pq.ParquetFile(run.store.open_input(path), read_dictionary=words)
    key_at = file.schema_arrow.names.index(run.key)
    for number in range(file.num_row_groups):
        asked = _in_range(keys, file.metadata.row_group(number).column(key_at).statistics)
        if asked.start < asked.stop:
            stored = file.read_row_group(number, columns=[run.key], use_threads=False)[run.key].to_numpy()
            starts, ends = (np.searchsorted(stored, keys[asked], side) for side in ("left", "right"))
            yield _RowGroup(file, number, stored, asked, starts, ends)


def _in_range(keys: np.ndarray, statistics: Any) -> slice:
    """Which of the sorted keys lie in the range of a row group; all where it is not known."""
    if statistics is None or not statistics.has_min_max:
        return slice(0, len(keys))
    start, stop = np.searchsorted(keys, statistics.min), np.searchsorted(keys, statistics.max, side="right")
    return slice(int(start), int(stop))


def _one_per_key(rows: pa.Table, key: str, keep: Keep) -> pa.Table:
    """The first row of each key by round, ties broken by the columns that order a run."""
    others = [name for name in ("kind", "url_key") if name in rows.schema.names and name != key]
    groups = [key, *(name for name in ("kind",) if name in rows.schema.names)]
    order: list[tuple[str, Literal["ascending", "descending"]]] = [(name, "ascending") for name in groups]
    order += [("round", "descending" if keep == "newest" else "ascending")]
    order += [(name, "ascending") for name in others if name not in groups]
    ordered = rows.take(pc.sort_indices(rows.select([name for name, _ in order]), sort_keys=order))
    return ordered.filter(_is_first(ordered, groups))


def _is_first(ordered: pa.Table, groups: Sequence[str]) -> pa.BooleanArray:
    differs = np.zeros(len(ordered), bool)
    differs[:1] = True
    for name in groups:
        values = ordered[name].to_numpy(zero_copy_only=False)
        differs[1:] |= values[1:] != values[:-1]
    return pa.array(differs)
