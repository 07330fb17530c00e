"""Rounds on tables that somebody else wrote to: refused, taken back, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.storage import Store
from crawler.tables.direct import open_table
from crawler.tables.ledger import Ledger, State
from jobs import exits
from jobs.cli import invoke
from tests.jobs.conftest import Said

ALONE = ("--set", "fetch.only_allowed=true")  # and nothing is allowed: nobody is asked
Run = Callable[..., Said]


@pytest.fixture
def store(lake_uri: str) -> Store:
    return Store.open(lake_uri)


@pytest.fixture
def orbweaver(spark: SparkSession, store: Store, capfd: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str) -> Said:
        code = invoke([*words, "--lake", store.uri])
        said = capfd.readouterr()
        return Said(code, said.out, said.err)

    return command


def deleting(store: Store, table: schemas.Table, then: Callable[..., Any]) -> Callable[..., Any]:
    """Somebody deletes all rows of a table before a stage of the round."""

    def stage(*given: Any) -> Any:
        open_table(store, table).delete()
        return then(*given)

    return stage


def test_a_round_refuses_what_a_stranger_wrote_until_it_is_taken_back(orbweaver: Run, store: Store) -> None:
    assert orbweaver("inject", "http://127.0.0.1:3999/", *ALONE).code == 0
    assert orbweaver("round").code == 0
    open_table(store, schemas.FRONTIER).delete()
    assert orbweaver("inject", "http://127.0.0.1:3999/more").code == 0
    for command in (["round"], ["crawl", "http://127.0.0.1:3999/again"], ["maintain"], ["repair"]):
        said = orbweaver(*command)
        assert said.code == exits.BAD_TABLE, command
        assert "table frontier: version" in said.err
        assert "was written by a stranger: DELETE by delta-rs" in said.err
        assert f"`orbweaver restore --lake {store.uri}`" in said.err
    assert Ledger(store).newest(1)[-1].round == 1
    restored = orbweaver("restore")
    assert (restored.code, restored.out.split(":")[0]) == (0, "frontier")
    said = orbweaver("round", "--json")
    assert (said.code, json.loads(said.out)["counts"]["planned"]) == (0, 2)


@pytest.mark.parametrize(
    ("stage", "table", "left"),
    [
        ("plan_round", schemas.URL_CHECKSUMS, State.FETCHED),
        ("fetch_plan", schemas.FRONTIER, State.FETCHED),
        ("reconcile_round", schemas.SEEDS, State.FETCHED),
        ("commit_round", schemas.PLANS, State.FETCHED),
    ],
)
def test_a_stranger_in_the_middle_of_a_round_is_found_before_it_commits(
    orbweaver: Run, store: Store, monkeypatch: pytest.MonkeyPatch, stage: str, table: schemas.Table, left: State
) -> None:
    import jobs.crawl_round

    assert orbweaver("inject", "http://127.0.0.1:3999/", *ALONE).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(jobs.crawl_round, stage, deleting(store, table, getattr(jobs.crawl_round, stage)))
        said = orbweaver("round")
    assert (said.code, f"table {table.name}: version" in said.err) == (exits.BAD_TABLE, True), said.err
    assert Ledger(store).newest(1)[-1].state is left
    assert orbweaver("restore").code == 0
    said = orbweaver("round", "--json")
    assert (said.code, json.loads(said.out)["counts"].get("outcome.address_refused")) == (0, 1), said.err


def test_a_round_keeps_its_settings_and_a_later_one_starts_from_the_lakes(
    orbweaver: Run, store: Store, tmp_path: Path
) -> None:
    assert orbweaver("inject", "http://127.0.0.1:3999/", *ALONE, "--set", "fetch.connections=7").code == 0
    assert orbweaver("round").code == 0
    said = orbweaver("round", "--at", "+9d", "--set", "fetch.connections=8")
    assert said.code == 0
    assert "fetch.connections = 8 (--set fetch.connections=8): the lake's is 7" in said.err
    shown = [json.loads(orbweaver("config", "show", "--round", n, "--json").out)["fetch"] for n in ("1", "2")]
    assert [(one["connections"], one["only_allowed"]) for one in shown] == [(7, True), (8, True)]
