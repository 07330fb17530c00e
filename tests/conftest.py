"""Marks that follow from what a test uses, the settings of test libraries, and one Spark session for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

hypothesis.settings.register_profile("patient", deadline=None)  # shared machines pause for longer than any deadline
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses the fixture `spark` needs a JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of all tests that ask for one, set up as the embedded one."""
    from crawler.settings import Settings, SparkSettings  # late: the tests without a JVM start in no time
    from crawler.spark import open_session

    settings = replace(Settings(), spark=SparkSettings(master="local[2]", shuffle_partitions=2))
    session = open_session(settings, "orbweaver-tests")
    yield session
    session.stop()
