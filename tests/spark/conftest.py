"""One Spark session for all tests that need a JVM, set up as the embedded one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler.settings import Settings, SparkSettings
from crawler.spark import open_session
from tests.spark.crawled import Crawl, crawl_demo_web


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = replace(Settings(), spark=SparkSettings(master="local[2]", shuffle_partitions=2))
    session = open_session(settings, "orbweaver-tests")
    yield session
    session.stop()


@pytest.fixture
def lake_uri(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


@pytest.fixture(scope="session")
def crawled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """The demo web after three rounds."""
    with crawl_demo_web(spark, tmp_path_factory.mktemp("crawled")) as crawl:
        yield crawl
