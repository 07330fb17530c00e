"""What the tests of the fetch room share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fetch.little_web import LittleWeb, little_web
from tests.fetch.partition_runs import Run


@pytest.fixture
def web() -> Iterator[LittleWeb]:
    """A little web on 127.0.0.1."""
    with little_web() as web:
        yield web


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A lake with a partition to plan and fetch."""
    return Run(tmp_path)
