"""A round whose intermediate results are lost, as they are with an executor, goes on in the same driver."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler.settings import Settings
from crawler.spark import is_lost_result
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow, State
from jobs.crawl import run_round
from jobs.inject import inject
from jobs.progress import Progress
from jobs.stages.reconcile import Reconciled, reconcile_round

STOCK = Settings()
SETTINGS = replace(STOCK, fetch=replace(STOCK.fetch, only_allowed=True))
NOT_ALLOWED = "http://127.0.0.1/"  # so nobody is asked
Reconcile = Callable[[Lake, Settings, RoundRow], Reconciled | None]


def lose_results(spark: SparkSession) -> None:
    """Take away every block of every checkpoint, as the end of all executors does."""
    context: Any = spark.sparkContext._jsc
    for number in list(context.getPersistentRDDs()):
        context.sc().env().blockManager().master().removeRdd(number, True)


def losing(times: int) -> Reconcile:
    """`reconcile_round` whose results are lost so many times before the commit."""
    left = [times]

    def reconcile(lake: Lake, settings: Settings, rnd: RoundRow) -> Reconciled | None:
        found = reconcile_round(lake, settings, rnd)
        if left[0]:
            left[0] -= 1
            lose_results(lake.spark)
        return found

    return reconcile


def test_lost_results_are_known_by_their_error(spark: SparkSession) -> None:
    frame = spark.range(10).localCheckpoint()
    lose_results(spark)
    with pytest.raises(Exception, match="Checkpoint block") as lost:
        frame.collect()
    assert is_lost_result(lost.value)
    assert not is_lost_result(ValueError("no such column"))


def test_what_was_lost_is_computed_again(spark: SparkSession, lake_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(lake_uri)
    inject(store, SETTINGS, [NOT_ALLOWED])
    monkeypatch.setattr("jobs.crawl_round.reconcile_round", losing(1))
    said = io.StringIO()
    with hold_lake(spark, store, buckets=2) as lake:
        rnd = run_round(lake, SETTINGS, None, Progress(stream=said))
    assert (rnd.round, rnd.state, rnd.counts["outcome.address_refused"]) == (1, State.COMMITTED, 1)
    assert said.getvalue().count("an executor was lost with its results") == 1


def test_what_is_lost_every_time_ends_the_round(
    spark: SparkSession, lake_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(lake_uri)
    inject(store, SETTINGS, [NOT_ALLOWED])
    monkeypatch.setattr("jobs.crawl_round.reconcile_round", losing(2))
    monkeypatch.setattr("jobs.crawl.TRIES", 2)
    with hold_lake(spark, store, buckets=2) as lake, pytest.raises(Exception, match="Checkpoint block"):
        run_round(lake, SETTINGS, None, Progress(stream=io.StringIO()))
