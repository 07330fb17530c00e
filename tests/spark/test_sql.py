"""`orbweaver sql`: Spark with Delta's own reader over what the crawl wrote without it, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from crawler import schemas
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
