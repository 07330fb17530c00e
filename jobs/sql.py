"""SQL on a lake as it was committed: Spark with Delta's own reader, a view a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader
from jobs.driver import find_java_home, require_jars
from jobs.exits import BAD_USE, NOT_FOUND, Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AS_JSON = """to_json(struct(*), map('timeZone', 'UTC', 'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss'Z'"))"""
FAULTS_OF_STATEMENTS = ("22", "42")  # classes of SQLSTATE (ISO 9075): data exception; syntax error or unknown name


@contextmanager
def open_views(
    store: Store, settings: Settings, number: int | None = None, statement: str = ""
) -> Iterator[SparkSession]:
    """A session in which every table is a view of its name, as a round committed it, the newest by default.

    Raises Stop where no such round is committed. A notebook may use it as well: it takes no lock and writes nothing.
    For a `statement` that names tables, these alone are opened: 0.2 s each on a local disk.
    """
    row = Reader.open(store).committed(number)
    if row is None:
        raise Stop(NOT_FOUND, f"{store.uri}: round {number or 1} is not committed; `orbweaver status` shows what is")
    find_java_home()
    require_jars()
    from crawler.spark import open_session

    spark = open_session(settings, "orbweaver-sql", with_delta=True)
    try:
        for table in named_in(statement):
            reader = spark.read.format("delta")
            if table.name in row["versions"]:
                reader = reader.option("versionAsOf", row["versions"][table.name])
            reader.load(store.uri_of(f"tables/{table.name}")).createOrReplaceTempView(table.name)
        yield spark
    finally:
        spark.stop()


def query(spark: SparkSession, statement: str, most: int) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns and the first rows of the answer, as JSON knows values.

    Raises Stop with Spark's own words for a statement that has no answer.
    """
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True  # it would say the same again, as JSON
    try:
        found = spark.sql(statement)
        rows = [json.loads(row[0]) for row in found.limit(most).selectExpr(AS_JSON).collect()]
    except PySparkException as error:
        if str(error.getSqlState())[:2] not in FAULTS_OF_STATEMENTS:
            raise
        tables = ", ".join(table.name for table in schemas.TABLES)
        raise Stop(BAD_USE, f"{str(error).strip().splitlines()[0]}\nTables: {tables}") from error
    return found.columns, [[row.get(name) for name in found.columns] for row in rows]


def named_in(statement: str) -> list[schemas.Table]:
    """The tables whose names are words of a statement, wherever they stand; all where there is none."""
    words = set(re.findall(r"\w+", statement.lower()))
    return [table for table in schemas.TABLES if table.name in words] or list(schemas.TABLES)
