"""The lake, the home, the jars and the files of settings lie in folders with names that programs trip over."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.jars import jar_folder
from crawler.settings import Settings
from crawler.spark import session_conf
from tests.fetch.little_web import little_web, page
from tests.spark.little_crawl import LittleCrawl

ODD = '50% off, "a" b\'s #1 a?b+c&d {e,f} *.* $g `h` ü '


@pytest.mark.slow
def test_a_round_and_sql_in_odd_folders(spark: SparkSession, tmp_path: Path) -> None:
    """The round in the session of the tests; SQL, which needs the jars and Java's options, in a process of its own."""
    place = tmp_path / ODD
    place.mkdir()
    with little_web() as web:
        crawl = LittleCrawl(spark, place, web, ["a.test"])
        crawl.inject(web.put("a.test", "/", page("/x")), web.put("a.test", "/x", page()))
        crawl.rounds(10, 10)
    assert {row["outcome"] for row in crawl.rows(schemas.CAPTURES)} == {"success"}
    (place / "jars").mkdir()
    for kept in jar_folder().iterdir():
        (place / "jars" / kept.name).symlink_to(kept)
    (place / "my.toml").write_text("[round]\nmax_urls = 7\n")
    environ = {**os.environ, "HOME": str(place), "TMPDIR": str(place), "ORBWEAVER_JARS": str(place / "jars")}
    asked = "SELECT count(*) AS pages, count(DISTINCT url) AS urls FROM captures"
    given = ["--lake", "lake", "--config", "my.toml", "--json"]
    said = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "sql", asked, *given],
        cwd=place, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == [{"pages": 2, "urls": 2}]


def test_java_options_name_odd_folders_as_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark splits the line as its launcher does: at spaces, with quotes and `\\` as in a shell."""
    archive = tmp_path / "a \\ b'\"$(c)\u00fc" / "classes.jsa"
    archive.parent.mkdir()
    archive.touch()
    monkeypatch.setattr("crawler.class_archive.archive_path", lambda java: archive)
    monkeypatch.setattr("crawler.settings_files.conf_folder", lambda: archive.parent)
    words = shlex.split(session_conf(Settings())["spark.driver.extraJavaOptions"])
    assert f"-XX:SharedArchiveFile={archive}" in words
    assert f"-Dlog4j2.configurationFile={(archive.parent / 'log4j2.properties').as_uri()}" in words
