"""Compaction: the same rows in fewer, sorted files. A run keeps of `hosts` only the newest row of a key, as its readers
do, so every answer stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from crawler import schemas
from crawler.schemas import Table
from crawler.tables.delta import DeltaTables
from crawler.tables.direct import Write

Partition = tuple[tuple[str, int], ...]


def crowded_partitions(tables: DeltaTables, table: Table, version: int, max_files: int) -> list[Partition]:
    """The partitions of a version with more than `max_files` files, as (column, value) pairs; () is a whole table."""
    files = Counter(tuple(file.partition.items()) for file in tables.files(table, version))
    return sorted(partition for partition, count in files.items() if count > max_files)


def compact(tables: DeltaTables, table: Table, version: int, crowded: Sequence[Partition], write: Write) -> None:
    """Rewrite the crowded partitions of a version in one commit."""
    condition = " OR ".join(_matches(partition) for partition in crowded)
    rows = tables.read(table, version).where(condition)
    tables.replace_partitions(table, condition, newest_only(rows) if table is schemas.HOSTS else rows, write)


def newest_only(rows: DataFrame) -> DataFrame:
    """Of each host the row of its newest round."""
    newest_first = Window.partitionBy("host_key").orderBy(F.desc("round"))
    return rows.withColumn("place", F.row_number().over(newest_first)).where("place = 1").drop("place")


def _matches(partition: Partition) -> str:
    return "(" + (" AND ".join(f"{column} = {value}" for column, value in partition) or "true") + ")"
