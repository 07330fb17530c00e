"""Somebody else's VACUUM between a crash and the resume: a refusal that says so, and nothing is changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.direct import data_files, open_table
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import State
from crawler.tables.manifest import TableError
from jobs.crawl_round import crawl_round
from jobs.inject import inject

STOCK = Settings()
SETTINGS = replace(STOCK, fetch=replace(STOCK.fetch, only_allowed=True))  # and nothing is allowed: nobody is asked
TABLES = (schemas.URL_CHECKSUMS, schemas.FRONTIER, schemas.HOSTS, schemas.PLANS)


class Crash(Exception):
    """In place of a kill, after which the same is stored."""


@pytest.fixture(scope="module")
def left(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose second round has its plan and no more."""
    folder = tmp_path_factory.mktemp("left") / "lake"
    store = Store.open(str(folder))
    with hold_lake(spark, store, buckets=1) as lake:
        inject(store, SETTINGS, ["http://127.0.0.1/"])
        crawl_round(lake, SETTINGS)
        inject(store, SETTINGS, [f"http://127.0.0.1/{number}" for number in range(3)])
        patch = pytest.MonkeyPatch()
        patch.setattr("jobs.crawl_round.fetch_plan", crash)
        with pytest.raises(Crash):
            crawl_round(lake, SETTINGS)
        patch.undo()
        assert lake.ledger.newest(1)[-1].state is State.PLANNED
    return folder


def crash(*_: object) -> None:
    raise Crash


@pytest.fixture
def crashed(spark: SparkSession, left: Path, lake_uri: str) -> Iterator[Lake]:
    """A copy of it, held by the next driver."""
    shutil.copytree(left, lake_uri)
    with hold_lake(spark, Store.open(lake_uri), buckets=1) as lake:
        yield lake


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_pinned_version_that_was_vacuumed_is_refused_by_name(crashed: Lake, table: schemas.Table) -> None:
    delta = open_table(crashed.store, table)
    delta.delete()  # of all rows, the quickest way to files that only older versions name
    delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    before = stored(crashed)
    with pytest.raises(TableError, match=rf"table {table.name}: version \d+, which the open round reads, is gone"):
        crawl_round(crashed, SETTINGS)
    assert stored(crashed) == before
    assert crashed.ledger.newest(1)[-1].state is State.PLANNED


def test_a_vacuum_that_keeps_pinned_versions_does_no_harm(crashed: Lake) -> None:
    for table in TABLES:
        open_table(crashed.store, table).vacuum(retention_hours=24, enforce_retention_duration=False, dry_run=False)
    done = crawl_round(crashed, SETTINGS)
    assert (done.round, done.state, done.counts["outcome.address_refused"]) == (2, State.COMMITTED, 3)


def stored(lake: Lake) -> dict[str, list[str]]:
    """The data files of every table, and what else lies in the lake."""
    named = {table.name: [file.path for file in data_files(lake.store, table)] for table in schemas.TABLES}
    return {**named, "": [path for path in lake.store.list("") if not path.startswith("lock/")]}
