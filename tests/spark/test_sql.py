"""`orbweaver sql`: Spark with Delta's own reader over what the crawl wrote without it, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from jobs.exits import BAD_USE, Stop
from jobs.output import json_text, say_row
from jobs.sql import named_in, query
from tests.spark.crawled import Crawl

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

NAMES = [table.name for table in schemas.TABLES]
COUNTS = " UNION ALL ".join(f"SELECT '{name}' AS name, count(*) AS rows FROM {name}" for name in sorted(NAMES))
WRITE = """
import sys
from crawler.settings import Settings
from crawler.spark import open_session
spark = open_session(Settings(), with_delta=True)
spark.sql(f"INSERT INTO delta.`{sys.argv[1]}` (line, round) VALUES ('by delta-spark', 99)")
spark.sql(f"OPTIMIZE delta.`{sys.argv[1]}`")
"""


def test_delta_spark_reads_every_table_as_committed(crawled: Crawl) -> None:
    lake = crawled.lake.store.uri
    command = [sys.executable, "-m", "jobs.cli", "sql", COUNTS, "--lake", lake, "--round", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]
    counts = {row["name"]: row["rows"] for row in json.loads(done.stdout)}
    versions = {table.name: crawled.versions[table.name] for table in schemas.TABLES if table is not schemas.ROUNDS}
    assert {name: counts[name] for name in versions} == {
        name: crawled.lake.read(table, crawled.versions).count()
        for table in schemas.TABLES
        if (name := table.name) in versions
    }
    assert counts["rounds"] >= 12


def test_a_table_that_delta_spark_wrote_and_optimized_is_still_read(crawled: Crawl) -> None:
    table = crawled.lake.tables.path(schemas.SEEDS)
    before = crawled.lake.tables.version(schemas.SEEDS)
    done = subprocess.run(
        [sys.executable, "-c", WRITE, table], capture_output=True, text=True, check=False, timeout=300, env=os.environ
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert crawled.lake.tables.version(schemas.SEEDS) > before
    rows = crawled.lake.read(schemas.SEEDS, crawled.lake.versions())
    assert rows.where("line = 'by delta-spark'").count() == 1


def test_an_answer_is_what_json_knows(spark: SparkSession) -> None:
    statement = "SELECT 1 AS one, NULL AS nothing, TIMESTAMP '2026-11-21 00:00:00' AS at, array(1, 2) AS some"
    names, rows = query(spark, statement, 5)
    assert names == ["one", "nothing", "at", "some"]
    assert [row[:2] + row[3:] for row in rows] == [[1, None, [1, 2]]]
    assert str(rows[0][2]).startswith("2026-11-2")
    assert query(spark, "SELECT id FROM range(10)", 3)[1] == [[0], [1], [2]]


def test_an_answer_in_json_is_exact_whatever_the_time_zone(spark: SparkSession) -> None:
    statement = """
        SELECT * FROM VALUES
            (1L, TIMESTAMP '2026-11-21T23:00:00.123456Z', array(-9223372036854775808L, 7L), 9007199254740993L, 0.0D)
            AS found(url_key, fetch_time, links, many, retry_at)
    """
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone
    for one in ("Asia/Kolkata", "UTC"):
        spark.conf.set("spark.sql.session.timeZone", one)
        names, rows = query(spark, statement, 5)
        [read] = json.loads(json_text([dict(zip(names, row, strict=True)) for row in rows]))
        assert read == {
            "url_key": "1",
            "fetch_time": "2026-11-21T23:00:00Z",
            "links": ["-9223372036854775808", "7"],
            "many": "9007199254740993",
            "retry_at": "1970-01-01T00:00:00Z",
        }
    spark.conf.set("spark.sql.session.timeZone", zone)


def test_text_of_the_web_stays_in_its_cell(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    """Tabs and line ends part cells and rows; escapes would act on the terminal."""
    statement = "SELECT 'a\\tb\\nc' AS one, concat(char(27), '[2J', char(133), char(8238)) AS other, NULL AS nothing"
    names, rows = query(spark, statement, 5)
    capfd.readouterr()
    for row in (names, *rows):
        say_row(row)
    assert capfd.readouterr().out.splitlines()[1].startswith("a\\x09b\\x0ac\t\\x1b[2J")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT 1 FROM pages", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT nothing FROM range(1)", "UNRESOLVED_COLUMN"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
    ],
)
def test_a_statement_without_an_answer_is_bad_use(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], statement: str, said: str
) -> None:
    with pytest.raises(Stop, match=said) as stop:
        query(spark, statement, 5)
    assert stop.value.code == BAD_USE
    assert "Tables: frontier, " in str(stop.value)
    assert "\n" not in str(stop.value).partition("\nTables:")[0]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("SELECT count(*) FROM captures", ["captures"]),
        ("select * from Hosts h join PLANS using (host)", ["plans", "hosts"]),
        ("SELECT 'seeds' AS word", ["seeds"]),
        ("SELECT 1 FROM captures_of_mine", NAMES),
        ("SHOW TABLES", NAMES),
    ],
)
def test_the_tables_that_a_statement_names_are_opened_or_all(statement: str, names: list[str]) -> None:
    assert [table.name for table in named_in(statement)] == names
