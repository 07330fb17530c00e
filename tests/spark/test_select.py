"""The plan: budgets, reasons, places."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from crawler.schemas import ddl
from crawler.settings import FetchSettings, RoundSettings, Settings
from crawler.transforms import select
from crawler.transforms.select import Server
from jobs.stages.place import PLACEMENT
from tests.spark.rows import NOW, Row, at, host, hosts, visit, visits

SETTINGS = replace(Settings(), round=RoundSettings(time_limit_s=100.0, max_urls_per_host=3))


def ranked(spark: SparkSession, rows: Sequence[Row], known: Sequence[Row], settings: Settings = SETTINGS) -> DataFrame:
    return select.rank_in_budgets(select.with_host_state(visits(spark, rows), hosts(spark, known)), settings, NOW)


def within_round(frame: DataFrame, max_urls: int) -> DataFrame:
    boundary = select.boundary_of(select.step_sizes(frame).collect(), max_urls)
    return select.within_round(frame, boundary) if boundary else frame


def pages(name: str, count: int, **differs: object) -> list[dict[str, Any]]:
    return [visit(f"http://{name}/{number}", **differs) for number in range(count)]


def reasons(frame: DataFrame) -> dict[str, int]:
    counts = {row["reason"]: row["count"] for row in frame.groupBy("reason").count().collect()}
    return {str(reason): count for reason, count in counts.items()}


@pytest.mark.parametrize(
    ("sentence", "known", "settings", "expected"),
    [
        ("a new host gives its budget", {}, {}, {"None": 3, "host_budget": 2}),
        ("a crawl delay leaves less", {"crawl_delay_s": 50.0}, {}, {"None": 2, "host_budget": 3}),
        ("a delay beyond the round leaves one", {"crawl_delay_s": 500.0}, {}, {"None": 1, "host_budget": 4}),
        ("robots may not hurry us", {"crawl_delay_s": 0.1}, {"delay_s": 50.0}, {"None": 2, "host_budget": 3}),
        ("a wait shortens the time", {"not_before": NOW + 98.5}, {}, {"None": 1, "host_budget": 4}),
        ("a wait beyond the round leaves none", {"not_before": NOW + 101}, {}, {"host_waiting": 5}),
        ("so does a delay since the last request", {"last_request_at": NOW - 9, "crawl_delay_s": 120.0}, {},
         {"host_waiting": 5}),
        ("without a delay only the budget counts", {}, {"delay_s": 0.0}, {"None": 3, "host_budget": 2}),
    ],
)  # fmt: skip
def test_a_host_gives_what_politeness_can_fetch(
    spark: SparkSession, sentence: str, known: Any, settings: Any, expected: dict[str, int]
) -> None:
    chosen = replace(SETTINGS, fetch=replace(FetchSettings(), **settings))
    frame = ranked(spark, pages("a.test", 5), [host("a.test", **known)] if known else [], chosen)
    assert reasons(frame) == expected, sentence


def test_the_best_of_a_host_are_taken_first(spark: SparkSession) -> None:
    rows = [visit(f"http://a.test/{tier}", tier=tier) for tier in (3, 0, 2, 1)]
    taken = ranked(spark, rows, []).where("reason IS NULL").orderBy("position").collect()
    assert [row["tier"] for row in taken] == [0, 1, 2]


def test_the_round_takes_the_first_of_every_host_before_the_second_of_any(spark: SparkSession) -> None:
    frame = ranked(spark, pages("a.test", 3) + pages("b.test", 3) + pages("c.test", 1), [])
    within = within_round(frame, max_urls=4)
    taken = within.where("reason IS NULL").groupBy("host").count().collect()
    assert sorted(row["count"] for row in taken) == [1, 1, 2]
    assert reasons(within) == {"None": 4, "round_budget": 3}


def test_the_boundary_of_a_round_is_where_sorting_everything_puts_it(spark: SparkSession) -> None:
    chance = random.Random(4)
    rows = [
        visit(
            f"http://{chance.choice('abcdef')}.test/{n}",
            tier=chance.choice((0, 1, 4)),
            due_at=at(chance.randint(0, 2)),
        )
        for n in range(60)
    ]
    settings = replace(SETTINGS, round=RoundSettings(max_urls_per_host=8))
    frame = ranked(spark, rows, [], settings).localCheckpoint()
    best = frame.where("reason IS NULL").orderBy("tier", "position", "due_at", "url_key").select("url_key").collect()
    over_host = reasons(frame)["host_budget"]
    for most in (1, 2, 7, 11, 12, 30, len(best) - 1, len(best), len(best) + 1):
        within = within_round(frame, most)
        taken = {row["url_key"] for row in within.where("reason IS NULL").collect()}
        assert taken == {row["url_key"] for row in best[:most]}
        assert within.count() == len(rows)
        assert reasons(within)["host_budget"] == over_host


def test_a_domain_takes_its_share_of_the_round_and_no_more(spark: SparkSession) -> None:
    settings = replace(SETTINGS, round=RoundSettings(max_urls=10, max_domain_share=0.4))
    rows = [row for name in ("a.d.test", "b.d.test", "e.test") for row in pages(name, 3)]
    known = [host(name) for name in ("a.d.test", "b.d.test", "e.test")]
    assert reasons(ranked(spark, rows, known, settings)) == {"None": 7, "domain_share": 2}


def test_plan_rows_hold_every_due_url_once_or_its_count(spark: SparkSession) -> None:
    known = [host("a.test", crawl_delay_s=2.0)]
    within = within_round(ranked(spark, pages("a.test", 5) + pages("b.test", 2), known), max_urls=100)
    keys = [row["host_key"] for row in within.select("host_key").distinct().collect()]
    placed = [(key, 7, 2, [{"address": "192.0.2.7", "expires_at": 9.0}], ["192.0.2.7"]) for key in keys]
    placement = spark.createDataFrame(placed, ddl(PLACEMENT))
    rows = [row.asDict(recursive=True) for row in select.plan_rows(within, placement, 4).collect()]
    planned = [row for row in rows if row["kind"] == "url"]
    left_out = [row for row in rows if row["kind"] == "left_out"]
    assert len(planned) == 5
    assert [(r["host"], r["reason"], r["rows"]) for r in left_out] == [("a.test", "host_budget", 2)]
    states = {(r["host"], r["position"]): r["host_state"] for r in planned}
    assert states[("a.test", 0)]["crawl_delay_s"] == 2.0
    assert states[("a.test", 1)] is None
    assert states[("b.test", 0)]["crawl_delay_s"] is None
    assert states[("b.test", 0)]["addresses"] == [{"address": "192.0.2.7", "expires_at": 9.0}]
    assert [row["grouped_by"] for row in planned if row["position"] == 0] == [["192.0.2.7"]] * 2
    assert {(r["partition"], r["gap_factor"], r["round"]) for r in planned} == {(7, 2, 4)}


def test_slots_open_tier_by_tier_until_there_is_enough() -> None:
    waiting = {(10, 1): 50, (11, 0): 10, (9, 1): 50, (8, 3): 1000}
    assert select.choose_slots(waiting, max_urls=10) == [(11, 0), (9, 1)]
    assert select.choose_slots(waiting, max_urls=1000) == [(11, 0), (9, 1), (10, 1), (8, 3)]
    assert select.choose_slots({}, max_urls=10) == []


GROUPS = [
    ("hosts of a domain stay together", ["d", "d", "e"], [[], [], []], {(0, 1)}),
    ("hosts of an address stay together", ["d", "e", "f"], [["1"], ["1"], ["2"]], {(0, 1)}),
    ("bonds chain", ["d", "d", "e"], [["1"], ["2"], ["2"]], {(0, 1), (1, 2)}),
    ("a second address binds too", ["d", "e", "f"], [["1", "2"], ["2", "3"], ["3"]], {(0, 1), (1, 2)}),
    ("a robots.txt on another host binds", ["d", "e", "f"], [["x", "y"], ["y"], ["z"]], {(0, 1)}),
    ("two whose robots.txt are on one host", ["d", "e", "f"], [["w", "x"], ["w", "y"], ["z"]], {(0, 1)}),
]


@pytest.mark.parametrize(("sentence", "domains", "sites", "together"), GROUPS)
@pytest.mark.parametrize("are_names", [False, True])
def test_servers_are_in_one_partition(
    sentence: str, domains: list[str], sites: list[list[str]], together: set[tuple[int, int]], are_names: bool
) -> None:
    keys = [-(2**62), 2**62, 3 * 2**60]
    kind = "names" if are_names else "addresses"
    servers = [
        Server(key, domain, **{kind: tuple(shared)}) for key, domain, shared in zip(keys, domains, sites, strict=True)
    ]
    grouping = select.group_by_server(servers, partitions=1000, max_hosts=10)
    for left, right in together:
        assert grouping.partitions[left] == grouping.partitions[right], sentence
    alone = [at for at in range(3) if all(at not in pair for pair in together)]
    assert all((grouping.partitions == grouping.partitions[at]).sum() == 1 for at in alone), sentence
    assert set(grouping.gap_factors) == {1}
    assert grouping.bound_by == sites


PLATFORMS: list[tuple[dict[str, tuple[str, ...]], int]] = [({"addresses": ("1",)}, 4), ({"names": ("x.test",)}, 1)]


@pytest.mark.parametrize(("shared", "gap_factor"), PLATFORMS)
def test_a_platform_is_spread_and_binds_nothing(shared: dict[str, tuple[str, ...]], gap_factor: int) -> None:
    """Hosts of one address pay with wider gaps; a robots.txt of too many hosts is left to none of them."""
    count = 400
    servers = [Server(at * (2**64 // count) - 2**63, f"d{at}", **shared) for at in range(count)]
    grouping = select.group_by_server(servers, partitions=4, max_hosts=50)
    assert set(grouping.partitions) == {0, 1, 2, 3}
    assert set(grouping.gap_factors) == {gap_factor}
    assert grouping.bound_by == [[]] * count


@pytest.mark.parametrize("hosts", [1, 2, 5, 50])
def test_partitions_are_filled_alike_however_many_hosts_a_domain_has(hosts: int) -> None:
    chance, domains = random.Random(hosts), 64 * 40
    keys = [chance.randrange(-(2**63), 2**63) for _ in range(domains * hosts)]
    servers = [Server(key, f"d{at // hosts}.test") for at, key in enumerate(keys)]
    grouping = select.group_by_server(servers, partitions=64, max_hosts=100)
    filled = np.bincount(grouping.partitions, minlength=64) / hosts
    assert filled.min() >= 15  # 40 each on average, so a standard deviation of 6.3
    assert filled.max() <= 70


def test_host_key_is_the_one_of_the_page_room(spark: SparkSession) -> None:
    from crawler.page.url import host_key

    names = ["example.org", "xn--bcher-kva.example", "a.test:8080", "[::1]:81"]
    rows = spark.createDataFrame([(name,) for name in names], "host string").select(select.host_key().alias("key"))
    assert [row["key"] for row in rows.collect()] == [host_key(name) for name in names]
