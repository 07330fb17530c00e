"""Lakes for the tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.crawled import Crawl, crawl_demo_web


@pytest.fixture
def lake_uri(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


@pytest.fixture(scope="session")
def crawled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """The demo web after three rounds."""
    with crawl_demo_web(spark, tmp_path_factory.mktemp("crawled")) as crawl:
        yield crawl
