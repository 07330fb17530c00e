"""Hosts are placed by what their names resolve to now: two of one server are never asked side by side, new or not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler.settings import FetchSettings, RoundSettings, Settings
from crawler.spark import with_owners
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from crawler.transforms import select
from jobs.stages.place import placement
from jobs.stages.plan import Due, choose, turns_of
from tests.spark.rows import NOW, host, hosts, visit, visits

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

PARTITIONS = 1_000
NAMES = {"one.test": "127.9.0.1", "two.test": "127.9.0.1", "three.test": "127.9.0.3", "rules.test": "127.9.0.4"}
NAMES["old.test"] = "10.0.0.1"  # which may not be asked
GOOD, OLD = time.time() + 600.0, time.time() - 600.0
KNOWN = [
    host("old.test", addresses=[{"address": "127.9.0.9", "expires_at": OLD}]),
    host("good.test", addresses=[{"address": "127.9.0.3", "expires_at": GOOD}]),
    host("led.test", addresses=[{"address": "127.9.0.7", "expires_at": GOOD}], robots_hosts=["rules.test"]),
    *(host(name, registered_domain="kin.test", addresses=[]) for name in ("sister.test", "brother.test")),
    host("fourth.test", addresses=[{"address": "127.9.0.4", "expires_at": GOOD}]),
]


@pytest.fixture
def placed(spark: SparkSession, tmp_path: Path) -> dict[str, dict[str, Any]]:
    (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in NAMES.items()))
    fetch = FetchSettings(only_allowed=True, allow_addresses=("127.9.0.0/16",), host_map=str(tmp_path / "hosts"))
    settings = Settings(fetch=fetch, round=RoundSettings(partitions=PARTITIONS, time_limit_s=60.0))
    known = [row["host"] for row in KNOWN]
    due = visits(spark, [visit(f"http://{name}/") for name in ("one.test", "two.test", "three.test", *known)])
    known_hosts, count = hosts(spark, KNOWN), len(known) + 3
    found = select.limit_hosts(with_owners(select.due_hosts(due, known_hosts)), settings, NOW)
    with hold_lake(spark, Store.open(str(tmp_path / "lake")), buckets=1) as lake:
        chosen = choose(lake, settings, Due(turns_of(due, found, settings, count), count, found, known_hosts))
        rows = placement(lake, settings, chosen.hosts, chosen.found).collect()
    named = {row["host_key"]: row["host"] for row in chosen.hosts}
    return {named[row["host_key"]]: row.asDict(recursive=True) for row in rows}


def addresses(row: dict[str, Any]) -> list[str]:
    return [one["address"] for one in row["addresses"]]


def test_hosts_of_one_server_share_a_partition_from_the_first_round_on(placed: dict[str, dict[str, Any]]) -> None:
    partitions = {name: row["partition"] for name, row in placed.items()}
    assert partitions["one.test"] == partitions["two.test"]
    assert partitions["three.test"] == partitions["good.test"]
    assert partitions["led.test"] == partitions["fourth.test"]  # at the address of rules.test, which is not planned
    assert partitions["sister.test"] == partitions["brother.test"]  # of one domain, by the list of an earlier day
    assert len(set(partitions.values())) == len(placed) - 4
    assert {row["gap_factor"] for row in placed.values()} == {1}


def test_the_plan_knows_addresses_and_what_binds(placed: dict[str, dict[str, Any]]) -> None:
    assert addresses(placed["one.test"]) == ["127.9.0.1"]
    assert placed["one.test"]["addresses"][0]["expires_at"] > time.time()
    assert placed["one.test"]["grouped_by"] == ["127.9.0.1", "one.test"]
    assert placed["old.test"]["addresses"] == [{"address": "127.9.0.9", "expires_at": OLD}]  # not forgotten
    assert placed["led.test"]["grouped_by"] == ["127.9.0.4", "127.9.0.7", "led.test", "rules.test"]
