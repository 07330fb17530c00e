"""`orbweaver sql`: Spark with Delta's own reader over what the crawl wrote without it, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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


THROUGH_VIEWS = """
import sys
from crawler.settings import Settings
from crawler.storage import Store
from jobs.exits import Stop
from jobs.sql import open_views, query
place = f"delta.`{sys.argv[1]}/tables/seeds`"
WRITES = ["DELETE FROM {}", "INSERT INTO {} SELECT * FROM seeds", "UPDATE {} SET line = 'x'"]
DELTAS_OWN = [
    "OPTIMIZE {}", "VACUUM {} RETAIN 1000 HOURS", "RESTORE TABLE {} TO VERSION AS OF 0",
    "REORG TABLE {} APPLY (PURGE)", "DESCRIBE HISTORY {}", "DESCRIBE DETAIL {}",
    "GENERATE symlink_format_manifest FOR TABLE {}",
    "CREATE TABLE x SHALLOW CLONE {}", "ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')"]
with open_views(Store.open(sys.argv[1]), Settings(), statement="seeds") as spark:
    for statement in [one.format("seeds") for one in WRITES]:
        try:
            spark.sql(statement).collect()
            print("went through", statement)
        except Exception as error:
            print("refused")
    for statement in [one.format(name) for one in WRITES + DELTAS_OWN for name in ("seeds", place)]:
        try:
            print("went through", statement, query(spark, statement, 5))
        except Stop as stop:
            print("refused" if "only queries are answered" in str(stop) else stop)
    print(query(spark, "SELECT count(*) > 0 AS some FROM seeds", 1))
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


QUERIES = """
SELECT count(*) FROM numbers
SELECT * FROM numbers ORDER BY id LIMIT 2;
TABLE numbers
VALUES (1), (2)
VALUES (1, upper('a'))
FROM numbers SELECT id
FROM numbers |> WHERE id > 1 |> SELECT id
WITH a AS (SELECT 1 AS one) SELECT * FROM a
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r
SELECT (SELECT max(id) FROM numbers) AS most
SELECT id FROM numbers WHERE id IN (SELECT id FROM numbers) AND EXISTS (SELECT 1)
SELECT * FROM range(3) DISTRIBUTE BY id SORT BY id
SELECT DISTINCT id % 2 AS odd FROM numbers CLUSTER BY odd
SELECT id, count(*) AS n FROM numbers GROUP BY id HAVING count(*) > 0
SELECT id, grouping_id() AS g, count(*) AS n FROM numbers GROUP BY CUBE (id)
SELECT row_number() OVER w AS place FROM numbers WINDOW w AS (ORDER BY id)
SELECT id, word FROM numbers LATERAL VIEW explode(array('a', 'b')) words AS word
SELECT n.id, word FROM numbers n, LATERAL (SELECT explode(array(1, 2)) AS word)
SELECT * FROM (SELECT id, id % 2 AS odd FROM numbers) PIVOT (sum(id) FOR odd IN (0, 1))
SELECT * FROM (SELECT 1 AS a, 2 AS b) UNPIVOT (v FOR k IN (a, b))
(SELECT 1 AS n) UNION ALL (SELECT 2) EXCEPT SELECT 3 INTERSECT SELECT 1
SELECT /*+ BROADCAST(a) */ a.id FROM numbers a JOIN numbers b USING (id)
SELECT a.id FROM numbers a LEFT ANTI JOIN numbers b ON a.id < b.id
SELECT * FROM numbers TABLESAMPLE (50 PERCENT)
SELECT id FROM numbers ORDER BY id LIMIT 1 OFFSET 1
SELECT transform(array(1, 2), x -> x + 1) AS some
SELECT 'DROP TABLE numbers; DELETE FROM numbers' AS words
DESCRIBE numbers
DESCRIBE QUERY SELECT 1
SHOW TABLES
SHOW COLUMNS IN numbers
EXPLAIN SELECT * FROM numbers
"""
NO_QUERIES = """
DELETE FROM numbers
WITH a AS (SELECT 1 AS id) DELETE FROM numbers
INSERT INTO numbers VALUES (1)
INSERT OVERWRITE numbers SELECT 1
INSERT OVERWRITE DIRECTORY 'PLACE' USING csv SELECT 1
INSERT INTO IDENTIFIER('numbers') VALUES (1)
FROM numbers INSERT INTO a SELECT id INSERT INTO b SELECT id
WITH a AS (SELECT 1) INSERT INTO numbers SELECT * FROM a
UPDATE numbers SET id = 1
MERGE INTO numbers t USING numbers s ON t.id = s.id WHEN MATCHED THEN DELETE
DROP TABLE numbers
DROP VIEW numbers
DROP VIEW IDENTIFIER('numbers')
TRUNCATE TABLE numbers
ALTER TABLE numbers ADD COLUMN y int
ALTER VIEW numbers AS SELECT 1
CREATE TABLE x (a int)
CREATE TABLE x USING csv LOCATION 'PLACE' AS SELECT 1
CREATE TABLE x SHALLOW CLONE delta.`PLACE`
CREATE OR REPLACE TEMP VIEW numbers AS SELECT 1
CREATE VIEW IDENTIFIER('x') AS SELECT 1
CREATE FUNCTION f AS 'java.lang.Runtime'
CREATE TEMPORARY FUNCTION f(a INT) RETURNS INT RETURN a
CREATE SCHEMA mine
SET spark.sql.ansi.enabled = false
SET
RESET
USE default
ADD JAR 'PLACE.jar'
ADD FILE 'PLACE'
LIST JARS
CACHE TABLE numbers
CACHE TABLE IDENTIFIER('numbers')
CACHE TABLE x AS SELECT 1
UNCACHE TABLE numbers
CLEAR CACHE
REFRESH TABLE numbers
REFRESH 'PLACE'
ANALYZE TABLE numbers COMPUTE STATISTICS
LOAD DATA INPATH 'PLACE' INTO TABLE numbers
MSCK REPAIR TABLE numbers
COMMENT ON TABLE numbers IS 'mine'
OPTIMIZE delta.`PLACE`
VACUUM delta.`PLACE` RETAIN 0 HOURS
RESTORE TABLE delta.`PLACE` TO VERSION AS OF 1
CONVERT TO DELTA parquet.`PLACE`
GENERATE symlink_format_manifest FOR TABLE delta.`PLACE`
REORG TABLE delta.`PLACE` APPLY (PURGE)
DECLARE VARIABLE v INT DEFAULT 1
SET VAR v = 2
EXECUTE IMMEDIATE 'DROP VIEW numbers'
BEGIN DROP VIEW numbers; END
BEGIN SELECT 1; END
CALL system.rollback('x')
EXPLAIN DELETE FROM numbers
EXPLAIN EXTENDED INSERT INTO numbers VALUES (1)
SELECT TRANSFORM(id) USING 'touch PLACE' AS (x) FROM numbers
FROM numbers MAP id USING 'touch PLACE' AS (x)
"""
OUTSIDE = """
DESCRIBE HISTORY delta.`PLACE`
SELECT 1; SELECT 2
SELECT 1; DROP VIEW numbers
SELECT 1; -- ; DROP VIEW numbers
SELECT * FROM text.`PLACE`
SELECT * FROM csv.`PLACE`
SELECT * FROM delta.`PLACE`
SELECT * FROM IDENTIFIER('text.`PLACE`')
SELECT reflect('java.lang.System', 'getProperty', 'user.home')
SELECT JAVA_METHOD('java.lang.System', 'getProperty', 'user.home') FROM numbers
SELECT upper(`try_reflect`('java.lang.System', 'getProperty', 'user.home'))
SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getProperty', 'user.home')
SELECT id FROM numbers WHERE reflect('java.lang.System', 'getProperty', 'user.home') = 'x'
SELECT (SELECT max(java_method('java.lang.System', 'getProperty', 'user.home')) FROM numbers)
WITH a AS (SELECT reflect('java.lang.System', 'getProperty', 'user.home') AS x) SELECT 1 FROM a
VALUES (reflect('java.lang.System', 'getProperty', 'user.home'))
SELECT raise_error('mine')
""".replace("SELECT 1; -- ; DROP VIEW numbers\n", "")


@pytest.fixture
def numbers(spark: SparkSession) -> SparkSession:
    """A view, and whether it is still there tells whether a command ran."""
    spark.range(3).createOrReplaceTempView("numbers")
    return spark


@pytest.mark.parametrize("statement", QUERIES.strip().splitlines())
def test_every_kind_of_query_is_answered(numbers: SparkSession, statement: str) -> None:
    names, rows = query(numbers, statement, 9)
    assert len(names) >= 1
    assert len(rows) >= 1


def views_of(spark: SparkSession) -> list[str]:
    """Names of the views; the catalog's own listing needs compiled expressions, which small rounds switch off."""
    return [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]


@pytest.mark.parametrize("statement", [*NO_QUERIES.strip().splitlines(), *OUTSIDE.strip().splitlines()])
def test_what_is_no_query_is_refused_before_anything_ran(numbers: SparkSession, tmp_path: Path, statement: str) -> None:
    place = tmp_path / "place"
    conf, views = numbers.conf.getAll, views_of(numbers)
    with pytest.raises(Stop) as stop:
        query(numbers, statement.replace("PLACE", str(place)), 5)
    assert stop.value.code == BAD_USE
    if statement in NO_QUERIES:
        assert "only queries are answered" in str(stop.value) or "[PARSE_SYNTAX_ERROR]" in str(stop.value)
    assert list(tmp_path.iterdir()) == []
    assert [row["id"] for row in numbers.table("numbers").collect()] == [0, 1, 2]
    assert {**numbers.conf.getAll, "spark.sql.runSQLOnFiles": ""} == {**conf, "spark.sql.runSQLOnFiles": ""}
    assert views_of(numbers) == views


def test_neither_a_notebook_nor_a_statement_of_deltas_own_writes_through_a_view(crawled: Crawl) -> None:
    lake = crawled.lake.store.uri
    before = {table.name: crawled.lake.tables.version(table) for table in schemas.TABLES}
    done = subprocess.run([sys.executable, "-c", THROUGH_VIEWS, lake], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.splitlines() == ["refused"] * (3 + 2 * 12) + ["(['some'], [[True]])"]
    assert {table.name: crawled.lake.tables.version(table) for table in schemas.TABLES} == before


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
