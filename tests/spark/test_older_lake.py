"""A lake of the version before, worked on by this one: its open round is finished, more follow, all is checked."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from crawler.tables.manifest import read_manifest
from jobs.cli import invoke
from tests.house.sources import ROOT
from tests.spark.invariants import Committed

SETS = ("fetch.only_allowed=true", 'crawl.name="ORB-DEMO"', "fetch.delay_s=0.0", "crawl.operator=Birds")
Command = Callable[..., Any]
Temporary = pytest.TempPathFactory


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The tests of this file run in their order on it."""
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(ROOT / "tests" / "lakes" / "format-2.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return Store.open(str(folder / "lake"))


@pytest.fixture
def orbweaver(spark: SparkSession, lake: Store, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command, which must end well; what it printed as JSON comes back."""

    def command(*words: str) -> Any:
        code = invoke([*words, "--lake", lake.uri, "--json"])
        said = capfd.readouterr()
        assert code == 0, said.err
        return json.loads(said.out)

    return command


def test_the_round_that_was_killed_is_finished(orbweaver: Command, lake: Store, tmp_path_factory: Temporary) -> None:
    fetched = Ledger(lake).newest(1)[-1]
    hosts = tmp_path_factory.mktemp("names") / "hosts"  # of the web that is gone: nobody is asked for their addresses
    names = {row["host"].partition(":")[0] for row in Committed(lake).rows(schemas.FRONTIER)}
    hosts.write_text("".join(f"127.0.0.9 {name}\n" for name in sorted(names)))
    given = [word for one in (*SETS, f"fetch.host_map={hosts}") for word in ("--set", one)]
    done = orbweaver("round", *given)
    assert (done["round"], done["state"]) == (3, "COMMITTED")
    rows = Ledger(lake).newest(1)
    assert [row.state for row in rows] == list(State)
    assert (rows[2].settings, fetched.settings) == ("", "")
    assert json.loads(rows[3].settings)["crawl"]["operator"] == "Birds"
    assert Committed(lake).breaches() == []


def test_from_then_on_the_lake_remembers(orbweaver: Command, lake: Store) -> None:
    remembered = read_manifest(lake).remembered()
    assert (remembered["crawl.operator"], remembered["fetch.only_allowed"], remembered["lake.buckets"]) == (
        *("Birds", True),
        4,
    )
    assert orbweaver("config", "show")["crawl"]["operator"] == "Birds"


def test_more_rounds_follow_and_keep_their_settings(orbweaver: Command, lake: Store) -> None:
    done = orbweaver("round", "--at", "+40d", "--set", "fetch.connections=3")
    assert (done["round"], done["state"]) == (4, "COMMITTED")
    assert done["counts"]["planned"] == done["counts"]["outcome.address_refused"] > 5
    settings = orbweaver("config", "show", "--round", "4")
    assert (settings["fetch"]["connections"], settings["fetch"]["only_allowed"]) == (3, True)
    assert orbweaver("config", "show")["fetch"]["connections"] == 200


def test_it_is_maintained_and_verified(orbweaver: Command, lake: Store) -> None:
    before = Committed(lake).breaches(), len(Committed(lake).captures)
    assert {one["table"] for one in orbweaver("maintain")} == {table.name for table in schemas.TABLES}
    assert (Committed(lake).breaches(), len(Committed(lake).captures)) == before
    done = orbweaver("verify")
    assert (done["rows"] > 10, done["findings"]) == (True, [])
    assert orbweaver("repair")["files"] == []
    for command in (["status"], ["report"], ["report", "--round", "2"], ["gc"]):
        orbweaver(*command)


def test_every_url_that_was_known_still_is(orbweaver: Command, lake: Store) -> None:
    newest = Ledger(lake).committed()
    assert newest is not None
    home = next(row["url"] for row in Committed(lake).captures if row["round"] == 1)
    facts = orbweaver("why", home)
    assert (facts["known_since_round"], facts["captures"][0]["outcome"]) == (1, "success")
