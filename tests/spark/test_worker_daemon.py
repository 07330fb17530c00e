"""The parent of the Python workers is ours, and quiet about one thing only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler.worker_daemon import print_unexpected


@pytest.mark.parametrize(("error", "is_said"), [(BrokenPipeError(32, "Broken pipe"), False), (ValueError("x"), True)])
def test_only_closed_connections_are_kept_quiet(
    error: Exception, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except Exception:  # noqa: BLE001 - whichever it is
        print_unexpected()
    assert bool(capsys.readouterr().err) == is_said


def test_workers_are_its_children(spark: SparkSession) -> None:
    parents = spark.sparkContext.parallelize([0], 1).map(lambda _: os.getppid()).collect()
    assert b"crawler.worker_daemon" in Path(f"/proc/{parents[0]}/cmdline").read_bytes()
