"""SQL on a lake as it was committed: Spark with Delta's own reader, a view a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader
from jobs.driver import find_java_home, require_jars
from jobs.exits import NOT_FOUND, Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def open_views(store: Store, settings: Settings, number: int | None = None) -> Iterator[SparkSession]:
    """A session in which every table is a view of its name, as a round committed it, the newest by default.

    Raises Stop where no such round is committed. A notebook may use it as well: it takes no lock and writes nothing.
    """
    row = Reader.open(store).committed(number)
    if row is None:
        raise Stop(NOT_FOUND, f"{store.uri}: round {number or 1} is not committed; `orbweaver status` shows what is")
    find_java_home()
    require_jars()
    from crawler.spark import open_session

    spark = open_session(settings, "orbweaver-sql", with_delta=True)
    try:
        for table in schemas.TABLES:
            reader = spark.read.format("delta")
            if table.name in row["versions"]:
                reader = reader.option("versionAsOf", row["versions"][table.name])
            reader.load(store.uri_of(f"tables/{table.name}")).createOrReplaceTempView(table.name)
        yield spark
    finally:
        spark.stop()


def query(spark: SparkSession, statement: str, most: int) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns and the first rows of the answer, as JSON knows values."""
    found = spark.sql(statement)
    rows = found.limit(most).toJSON().collect()
    return found.columns, [[json.loads(str(row)).get(name) for name in found.columns] for row in rows]
