"""Delta in and out: create, read at a version, write once.

Every write names its application and version (`txnAppId`, `txnVersion`), so a write that is replayed after a crash
changes nothing. Inputs of a write are pinned or durable, so the replay would have written the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from crawler.schemas import Table, ddl
from crawler.storage import Store
from crawler.tables.direct import DataFile, Write, data_files
from crawler.tables.manifest import TableError

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
        names = (path.rsplit("/", 1)[-1] for path in self.store.list(f"tables/{table.name}/_delta_log"))
        stems = (name.split(".")[0] for name in names if name.endswith(".json") and name[0].isdigit())
        return max((int(stem) for stem in stems if stem.isdigit()), default=-1)

    def files(self, table: Table, version: int | None = None) -> list[DataFile]:
        """The data files of a version."""
        return data_files(self.store, table, version)

    def read(self, table: Table, version: int | None = None, holds: Holds | None = None) -> DataFrame:
        """The table at a version, the newest when none is given; only the partitions that hold what is asked for.

        The files that the version names are read straight: the tables have no deletion vectors or renamed columns, and
        Delta's own reader spends a Spark job a table to find the same files.
        """
        files = [file for file in self.files(table, version) if holds is None or holds(file.partition)]
        if not files:
            return self.spark.createDataFrame([], ddl(table.columns))
        reader = self.spark.read.schema(ddl(table.columns)).option("basePath", self.path(table))
        return reader.parquet(*(file.uri for file in files)).select(*table.names)

    def append(self, table: Table, rows: DataFrame, write: Write) -> None:
        """Add rows, once."""
        _writer(table, rows, write, "append").save(self.path(table))

    def replace_partitions(self, table: Table, condition: str, rows: DataFrame, write: Write) -> None:
        """In one commit drop the partitions that match and add the rows, which may lie in any partition."""
        _writer(table, rows, write, "overwrite").option("replaceWhere", condition).save(self.path(table))

    def vacuum(self, table: Table) -> None:
        """Remove the files that no version younger than the table's retention names."""
        DeltaTable(self.path(table)).vacuum(dry_run=False)

    def require_versions(self, versions: Mapping[str, int], tables: Sequence[Table]) -> None:
        """Refuse to go on where a pinned version can no longer be read whole, rather than read another one."""
        for table in tables:
            lost = self._lost(table, versions[table.name])
            if lost:
                raise TableError(
                    f"table {table.name}: version {versions[table.name]}, which the open round reads, is gone "
                    f"({lost}). VACUUM or log retention removed it. Restore its files, or go on with a copy of the "
                    f"lake from before it."
                )

    def _lost(self, table: Table, version: int) -> str | None:
        """What is missing of a version; None when all of it is there."""
        try:
            named = {self.store.relative(file.uri) for file in self.files(table, version)}
        except DeltaError as error:
            return str(error).splitlines()[0][:200]
        missing = named.difference(self.store.list(f"tables/{table.name}"))
        return f"{len(missing)} of {len(named)} files, such as {min(missing)}" if missing else None


def _writer(table: Table, rows: DataFrame, write: Write, mode: str) -> DataFrameWriter:
    columns = rows.selectExpr(*(f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in table.columns))
    return _arranged(table, columns).write.format("delta").mode(mode).options(**write.options())


def _arranged(table: Table, rows: DataFrame) -> DataFrame:
    """Together what belongs into one file, sorted as the table promises."""
    if table.shape == "log" and "partition" not in table.partitioned_by:
        return rows if "round" in table.partitioned_by else rows.coalesce(1)
    return rows.repartition(*table.partitioned_by).sortWithinPartitions(*table.partitioned_by, *table.sorted_by)
