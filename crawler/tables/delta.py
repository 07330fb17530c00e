"""Delta in and out: read at a version, write once.

Executors write data files; the driver commits them by name, in one log entry that is created atomically on local disks
and on S3. Every write names its application and version (Delta's `txn` action), so a write that is replayed after a
crash changes nothing, and of two drivers that try the same write one is refused. Inputs of a write are pinned or
durable, so the replay would have written the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from crawler.faults import fault
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.data_files import ReadFile, read_files, write_files
from crawler.tables.direct import DataFile, Write, commit_files, data_files, is_done, lost_of, open_table
from crawler.tables.manifest import TableError
from crawler.tables.provenance import newest_version

Holds = Callable[[Mapping[str, int]], bool]
"""Whether a partition, given by the values of its columns, may hold what is asked for."""


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables of one lake."""

    spark: SparkSession
    store: Store

    def path(self, table: Table) -> str:
        return self.store.uri_of(f"tables/{table.name}")

    def version(self, table: Table) -> int:
        """The newest version, read from the names in the log; -1 before the table exists."""
        return newest_version(self.store, table)

    def files(self, table: Table, version: int | None = None, holds: Holds | None = None) -> list[DataFile]:
        """The data files of a version, the newest when none is given; only those whose partitions hold what is
        asked for."""
        return [file for file in data_files(self.store, table, version) if holds is None or holds(file.partition)]

    def read(self, table: Table, version: int | None = None, holds: Holds | None = None) -> DataFrame:
        """The table at a version, the newest when none is given.

        The files that the version names are read straight: the tables have no deletion vectors or renamed columns.
        """
        return self.read_these(table, self.files(table, version, holds))

    def read_these(self, table: Table, files: Sequence[DataFile], names: Sequence[str] | None = None) -> DataFrame:
        """The rows of some data files of a table, with all columns or those that are named."""
        named = [ReadFile(file.path, file.size, file.partition) for file in files]
        columns = [column for column in table.columns if names is None or column.name in names]
        return read_files(self.spark, self.store, named, columns)

    def append(self, table: Table, rows: DataFrame, write: Write) -> None:
        """Add rows, once."""
        self.change(table, (), rows, write)

    def change(self, table: Table, dropped: Sequence[DataFile], rows: DataFrame, write: Write) -> None:
        """In one commit drop these files and add the rows, which may lie in any partition; once."""
        if not is_done(self.store, table, write):
            added = write_files(_arranged(table, rows), table, self.store)
            fault(f"files.{table.name}")
            commit_files(self.store, table, dropped, added, write)

    def vacuum(self, table: Table) -> None:
        """Remove the files that no version younger than the table's retention names."""
        open_table(self.store, table).vacuum(dry_run=False)

    def require_versions(self, versions: Mapping[str, int], tables: Sequence[Table]) -> None:
        """Refuse to go on where a pinned version can no longer be read whole, rather than read another one."""
        for table in tables:
            lost = lost_of(self.store, table, versions[table.name])
            if lost:
                raise TableError(
                    f"table {table.name}: version {versions[table.name]}, which the open round reads, is gone "
                    f"({lost}). VACUUM or log retention removed it. Restore its files, or go on with a copy of the "
                    f"lake from before it."
                )


def _arranged(table: Table, rows: DataFrame) -> DataFrame:
    """The table's columns; together what belongs into one file, sorted as the table promises."""
    columns = rows.selectExpr(*(f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in table.columns))
    if not table.partitioned_by:
        return columns  # of a log: all of one round, or of files in their order
    return columns.repartition(*table.partitioned_by).sortWithinPartitions(*table.partitioned_by, *table.sorted_by)
