"""Compaction: the same rows in fewer, sorted files. A run keeps of `hosts` only the newest row of a key, as its readers
do, so every answer stays the same. Small files of a log become larger ones, round after round; large ones stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from crawler import schemas
from crawler.schemas import Table
from crawler.tables.data_files import TASK_BYTES
from crawler.tables.delta import DeltaTables
from crawler.tables.direct import DataFile, Write

LARGE_BYTES = TASK_BYTES // 2  # as much as a task reads, and so writes, is not far from it
Partition = tuple[tuple[str, int], ...]


def crowded_files(tables: DeltaTables, table: Table, version: int, max_files: int) -> list[DataFile]:
    """The files of a version in partitions with more than `max_files` of them; a table without partitions is one."""
    files = [file for file in tables.files(table, version) if table.shape != "log" or file.size < LARGE_BYTES]
    crowd = Counter(_partition(file) for file in files)
    return [file for file in files if crowd[_partition(file)] > max_files]


def _partition(file: DataFile) -> Partition:
    return tuple(file.partition.items())


def compact(tables: DeltaTables, table: Table, crowded: Sequence[DataFile], write: Write) -> None:
    """Rewrite the files in one commit."""
    rows = tables.read_these(table, sorted(crowded, key=lambda file: (file.least or 0, file.path)))
    tables.change(table, crowded, newest_only(rows) if table is schemas.HOSTS else rows, write)


def newest_only(rows: DataFrame) -> DataFrame:
    """Of each host the row of its newest round."""
    newest_first = Window.partitionBy("host_key").orderBy(F.desc("round"))
    return rows.withColumn("place", F.row_number().over(newest_first)).where("place = 1").drop("place")
