"""The plan: budgets, reasons, places."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler.page.url import host_key, host_name
from crawler.schemas import ddl
from crawler.settings import FetchSettings, RoundSettings, Settings
from crawler.spark import with_owners
from crawler.transforms import select
from crawler.transforms.select import Server
from jobs.stages.place import PLACEMENT
from jobs.stages.plan import fill_round, turns_of
from tests.spark import plan_oracle as oracle
from tests.spark.rows import NOW, Row, at, host, hosts, visit, visits

SETTINGS = replace(Settings(), round=RoundSettings(time_limit_s=100.0, max_urls_per_host=3))


def due_hosts(spark: SparkSession, due: DataFrame, known: Sequence[Row], settings: Settings) -> DataFrame:
    found = with_owners(select.due_hosts(due, hosts(spark, known)))
    return select.limit_hosts(found, settings, NOW).localCheckpoint()


def left_out(
    spark: SparkSession, rows: Sequence[Row], known: Sequence[Row] = (), settings: Settings = SETTINGS
) -> dict[str, int]:
    """How many of the due URLs are planned (`planned`), or left out, by reason."""
    _, urls, counts = chosen(spark, rows, known, settings)
    assert sum(row["rows"] for row in counts) + len(urls) == len(rows)
    reasons = Counter({"planned": len(urls)}) if urls else Counter[str]()
    for row in counts:
        reasons[row["reason"]] += row["rows"]
    return dict(reasons)


def chosen(
    spark: SparkSession,
    rows: Sequence[Row],
    known: Sequence[Row] = (),
    settings: Settings = SETTINGS,
    addresses: Mapping[str, str] | None = None,
) -> tuple[DataFrame, dict[int, Any], list[Any]]:
    """The hosts, the planned URLs by key, and the counts of the others. `addresses`: of names, where they count."""
    due = visits(spark, rows).select(*select.DUE_NAMES)
    found = due_hosts(spark, due, known, settings)
    turns = turns_of(due, found, settings, select.count_queued(found))
    if addresses is not None:
        at = spark.createDataFrame(list(addresses.items()), "name string, address string")
        turns = select.within_addresses(turns, at, settings).localCheckpoint()
    urls = fill_round(turns, settings)
    counts = select.left_out_rows(found, urls, 4).collect()
    return found, {row["url_key"]: row for row in urls.where("reason IS NULL").collect()}, counts


def pages(name: str, count: int, **differs: object) -> list[dict[str, Any]]:
    return [visit(f"http://{name}/{number}", **differs) for number in range(count)]


@pytest.mark.parametrize(
    ("sentence", "known", "settings", "expected"),
    [
        ("a new host gives its budget", {}, {}, {"planned": 3, "host_budget": 2}),
        ("a crawl delay leaves less", {"crawl_delay_s": 50.0}, {}, {"planned": 2, "host_budget": 3}),
        ("a delay beyond the round leaves one", {"crawl_delay_s": 500.0}, {}, {"planned": 1, "host_budget": 4}),
        ("robots may not hurry us", {"crawl_delay_s": 0.1}, {"delay_s": 50.0}, {"planned": 2, "host_budget": 3}),
        ("a wait shortens the time", {"not_before": NOW + 98.5}, {}, {"planned": 1, "host_budget": 4}),
        ("a wait beyond the round leaves none", {"not_before": NOW + 101}, {}, {"host_waiting": 5}),
        ("so does a delay since the last request", {"last_request_at": NOW - 9, "crawl_delay_s": 120.0}, {},
         {"host_waiting": 5}),
        ("without a delay only the budget counts", {}, {"delay_s": 0.0}, {"planned": 3, "host_budget": 2}),
    ],
)  # fmt: skip
def test_a_host_gives_what_politeness_can_fetch(
    spark: SparkSession, sentence: str, known: Any, settings: Any, expected: dict[str, int]
) -> None:
    chosen = replace(SETTINGS, fetch=replace(FetchSettings(), **settings))
    found = left_out(spark, pages("a.test", 5), [host("a.test", **known)] if known else [], chosen)
    assert found == expected, sentence


@pytest.mark.parametrize(
    ("sentence", "known", "expected"),
    [
        ("one budget", [], {"planned": 3, "host_budget": 3}),
        ("the longest delay of all ports", [host("a.test:81", crawl_delay_s=50.0)], {"planned": 2, "host_budget": 4}),
        ("one wait", [host("a.test:82", not_before=NOW + 101)], {"host_waiting": 6}),
        (
            "one gap",
            [host("a.test", crawl_delay_s=120.0), host("a.test:81", last_request_at=NOW - 9)],
            {"host_waiting": 6},
        ),
    ],
)
def test_all_ports_of_a_name_are_one_host(
    spark: SparkSession, sentence: str, known: list[Row], expected: dict[str, int]
) -> None:
    rows = [row for port in ("", ":81", ":82") for row in pages(f"a.test{port}", 2)]
    assert left_out(spark, rows, known) == expected, sentence


def test_the_best_of_a_host_are_taken_first(spark: SparkSession) -> None:
    rows = [visit(f"http://a.test/{tier}", tier=tier) for tier in (3, 0, 2, 1)]
    taken = sorted(chosen(spark, rows)[1].values(), key=lambda row: row["position"])
    assert [row["tier"] for row in taken] == [0, 1, 2]


FULL = replace(SETTINGS, round=replace(SETTINGS.round, max_urls=4, max_domain_share=1.0))
WILD = [row for number in range(9) for row in pages(f"w{number}.wild.test", 1, due_at=at(-60))]


@pytest.mark.parametrize(
    ("sentence", "rows", "expected"),
    [
        ("the first of every host", pages("a.test", 3) + pages("b.test", 3) + pages("c.test", 1), [1, 1, 2]),
        ("a domain's many hosts take turns", WILD + pages("a.test", 3), [1, 1, 2]),
        ("so do two such domains", WILD + pages("x.d.test", 1) + pages("y.d.test", 2), [1, 1, 1, 1]),
        ("a better tier comes before any turn", [*pages("a.test", 3, tier=0), *WILD], [1, 3]),
    ],
)
def test_domains_take_turns_then_hosts(
    spark: SparkSession, sentence: str, rows: list[Row], expected: list[int]
) -> None:
    taken = Counter(row["host"] for row in chosen(spark, rows, settings=FULL)[1].values())
    assert sorted(taken.values()) == expected, sentence


SHARED = replace(SETTINGS, round=replace(SETTINGS.round, max_urls=10, max_domain_share=0.4, max_urls_per_host=9))


@pytest.mark.parametrize(
    ("sentence", "rows", "expected"),
    [
        ("while others wait a domain has its share",
         [*pages("a.d.test", 9, tier=0), *pages("e.test", 9), *pages("f.test", 9)],
         {"planned": 10, "domain_share": 15, "round_budget": 2}),
        ("alone it has everything", pages("a.d.test", 9) + pages("b.d.test", 3), {"planned": 10, "domain_share": 2}),
        ("what the others leave it may take", [*pages("a.d.test", 9, tier=0), *pages("e.test", 3)],
         {"planned": 10, "domain_share": 2}),
        ("a round that is not full knows no shares", pages("a.d.test", 9), {"planned": 9}),
    ],
)  # fmt: skip
def test_a_domain_has_its_share_while_others_wait(
    spark: SparkSession, sentence: str, rows: list[Row], expected: dict[str, int]
) -> None:
    assert left_out(spark, rows, settings=SHARED) == expected, sentence


FEW_NEW = replace(SETTINGS, round=replace(SETTINGS.round, max_new_hosts_per_domain=2))


@pytest.mark.parametrize(
    ("sentence", "rows", "known", "expected"),
    [
        ("of new names the best", WILD, [], {"planned": 2, "domain_hosts": 7}),
        ("names that were asked before are not new", WILD, [host(f"w{n}.wild.test", last_request_at=1.0)
                                                            for n in range(9)], {"planned": 9}),
        ("names that were only found are", WILD, [host(f"w{n}.wild.test") for n in range(9)],
         {"planned": 2, "domain_hosts": 7}),
        ("what seeds name is not invented", [{**row, "depth": 0} for row in WILD], [], {"planned": 9}),
        ("ports are no names", [row for n in range(9) for row in pages(f"a.test:{8000 + n}", 1)], [],
         {"planned": 3, "host_budget": 6}),
        ("customers of a platform have domains of their own",
         [row for n in range(5) for row in pages(f"c{n}.github.io", 1)], [], {"planned": 5}),
        ("whose names count", [row for n in range(5) for row in pages(f"w{n}.one.github.io", 1)], [],
         {"planned": 2, "domain_hosts": 3}),
        ("addresses are no domain's names", [row for n in range(5) for row in pages(f"127.0.0.{n}", 1)], [],
         {"planned": 5}),
    ],
)  # fmt: skip
def test_new_names_of_an_owner_are_bounded(
    spark: SparkSession, sentence: str, rows: list[Row], known: list[Row], expected: dict[str, int]
) -> None:
    assert left_out(spark, rows, known, FEW_NEW) == expected, sentence


CROWDED = replace(SETTINGS, fetch=replace(FetchSettings(), delay_s=20.0), round=replace(SHARED.round, max_urls=10))
FARM = [row for number in range(9) for row in pages(f"farm{number}.test", 1, due_at=at(-60))]


@pytest.mark.parametrize(
    ("sentence", "rows", "settings", "expected"),
    [
        ("no more than politeness can fetch from it", FARM, CROWDED, {"planned": 9}),
        ("which is less where the gap is wider", FARM,
         replace(CROWDED, fetch=replace(CROWDED.fetch, address_delay_share=1.0)), {"planned": 5, "address_budget": 4}),
        ("its share while others wait", [*FARM, *pages("a.test", 5), *pages("b.test", 5)], CROWDED,
         {"planned": 10, "address_share": 5, "domain_share": 2, "round_budget": 2}),
        ("and what they leave", [*FARM, *pages("a.test", 2)], CROWDED, {"planned": 10, "address_share": 1}),
    ],
)  # fmt: skip
def test_hosts_of_an_address_share_a_budget(
    spark: SparkSession, sentence: str, rows: list[Row], settings: Settings, expected: dict[str, int]
) -> None:
    addresses = {f"farm{number}.test": "192.0.2.7" for number in range(9)}
    _, urls, counts = chosen(spark, rows, settings=settings, addresses=addresses)
    reasons = Counter({"planned": len(urls)})
    for row in counts:
        reasons[row["reason"]] += row["rows"]
    assert reasons == expected, sentence


def made(seed: int) -> tuple[Sequence[Row], Sequence[Row], Settings, dict[str, str]]:
    """Due URLs, known hosts, settings and addresses of a random little web with a wildcard domain, a farm and ports."""
    chance = random.Random(seed)
    names = [f"{one}.{domain}.test" for domain in "abc" for one in "xyz"]
    names += [f"w{number}.wild.test" for number in range(chance.choice((3, 40)))]
    names += [f"farm{number}.test" for number in range(chance.choice((2, 20)))]
    urls = {
        f"http://{chance.choice(names)}{chance.choice(('', '', '', ':81'))}/{n}" for n in range(chance.randint(1, 400))
    }
    rows = [
        visit(url, tier=chance.choice((0, 1, 1, 3)), due_at=at(chance.randint(-3, 0)), depth=chance.choice((0, 1, 1)))
        for url in sorted(urls)
    ]
    known = [
        host(
            name,
            last_request_at=chance.choice((0.0, 1.0, NOW - 30)),
            crawl_delay_s=chance.choice((None, 2.0, 60.0)),
            not_before=chance.choice((0.0, 0.0, NOW + 50, NOW + 500)),
        )
        for name in {url.split("/")[2] for url in urls}
        if chance.random() < 0.6
    ]
    budgets = RoundSettings(
        max_urls=chance.choice((5, 60, 1_000)),
        max_urls_per_host=chance.choice((2, 30)),
        max_domain_share=chance.choice((0.1, 0.4, 1.0)),
        max_new_hosts_per_domain=chance.choice((1, 5)),
        time_limit_s=100.0,
    )
    at_farm = {name: "192.0.2.1" for name in names if name.startswith("farm")}
    return rows, known, replace(Settings(), round=budgets, fetch=FetchSettings(delay_s=20.0)), at_farm


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_is_what_sorting_everything_would_choose(spark: SparkSession, seed: int) -> None:
    rows, known, settings, addresses = made(seed)
    _, urls, counts = chosen(spark, rows, known, settings, addresses)
    expected = oracle.reasons(rows, known, settings, addresses)
    assert set(urls) == {key for key, reason in expected.items() if reason is None}
    host_of = {row["url_key"]: row["host"] for row in rows}
    left = Counter((host_of[key], reason) for key, reason in expected.items() if reason is not None)
    assert {(row["host"], row["reason"]): row["rows"] for row in counts} == left


def test_the_boundary_is_exact_where_turns_share_a_step(spark: SparkSession) -> None:
    """A domain of 5,000 hosts: turns beyond the 1,024th share a step with their neighbours."""
    rows = [visit(f"http://h{number}.d.test/", due_at=at(number % 7)) for number in range(5_000)]
    known = [host(row["host"], last_request_at=1.0) for row in rows]
    in_order = sorted(rows, key=lambda row: (row["due_at"], row["url_key"]))
    for most in (1_024, 3_333):
        settings = replace(SETTINGS, round=replace(SETTINGS.round, max_urls=most))
        taken = chosen(spark, rows, known, settings)[1]
        assert set(taken) == {row["url_key"] for row in in_order[:most]}


def test_plan_rows_hold_every_due_url_once_or_its_count(spark: SparkSession) -> None:
    known = [host("a.test", crawl_delay_s=2.0)]
    rows = pages("a.test", 5) + pages("b.test", 2)
    found, _, _ = chosen(spark, rows, known)
    due = visits(spark, rows)
    urls = turns_of(due.select(*select.DUE_NAMES), found, SETTINGS, len(rows))
    keys = [row["host_key"] for row in found.collect()]
    placed = [(key, 7, 2, [{"address": "192.0.2.7", "expires_at": 9.0}], ["192.0.2.7"]) for key in keys]
    states = hosts(spark, known).select("host_key", F.struct(*select.HOST_NAMES).alias("host_state"))
    servers = spark.createDataFrame(placed, ddl(PLACEMENT)).join(states, on="host_key", how="left")
    planned = [row.asDict(recursive=True) for row in select.plan_rows(due, urls, servers, 4).collect()]
    assert len(planned) == 5
    states_of = {(r["host"], r["position"]): r["host_state"] for r in planned}
    assert states_of[("a.test", 0)]["crawl_delay_s"] == 2.0
    assert states_of[("a.test", 1)] is None
    assert states_of[("b.test", 0)]["crawl_delay_s"] is None
    assert states_of[("b.test", 0)]["addresses"] == [{"address": "192.0.2.7", "expires_at": 9.0}]
    assert [row["grouped_by"] for row in planned if row["position"] == 0] == [["192.0.2.7"]] * 2
    assert {(r["partition"], r["gap_factor"], r["round"]) for r in planned} == {(7, 2, 4)}
    counts = select.left_out_rows(found, urls, 4).collect()
    assert [(r["host"], r["reason"], r["rows"], r["partition"]) for r in counts] == [("a.test", "host_budget", 2, -1)]


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
        Server(key, domain, f"h{key}", **{kind: tuple(shared)})
        for key, domain, shared in zip(keys, domains, sites, strict=True)
    ]
    grouping = select.group_by_server(servers, partitions=1000, max_hosts=10)
    for left, right in together:
        assert grouping.partitions[left] == grouping.partitions[right], sentence
    alone = [at for at in range(3) if all(at not in pair for pair in together)]
    assert all((grouping.partitions == grouping.partitions[at]).sum() == 1 for at in alone), sentence
    assert set(grouping.gap_factors) == {1}
    assert grouping.bound_by == [sorted([f"h{key}", *shared]) for key, shared in zip(keys, sites, strict=True)]


PLATFORMS: list[tuple[dict[str, tuple[str, ...]], int]] = [({"addresses": ("1",)}, 4), ({"names": ("x.test",)}, 1)]


@pytest.mark.parametrize(("shared", "gap_factor"), PLATFORMS)
def test_a_platform_is_spread_and_binds_nothing(shared: dict[str, tuple[str, ...]], gap_factor: int) -> None:
    """Hosts of one address pay with wider gaps; a robots.txt of too many hosts is left to none of them."""
    count = 400
    servers = [Server(at * (2**64 // count) - 2**63, f"d{at}", f"h{at}", **shared) for at in range(count)]
    grouping = select.group_by_server(servers, partitions=4, max_hosts=50)
    assert set(grouping.partitions) == {0, 1, 2, 3}
    assert set(grouping.gap_factors) == {gap_factor}
    assert grouping.bound_by == [[f"h{at}"] for at in range(count)]


def test_a_name_is_never_parted_however_many_ports_it_has() -> None:
    """Its ports are no platform, neither as a domain nor at their address: they keep the plain gap."""
    count = 400
    servers = [
        Server(at * (2**64 // count) - 2**63, "a.test", "www.a.test", ("192.0.2.7",), (f"www.a.test:{at}",))
        for at in range(count)
    ]
    grouping = select.group_by_server(servers, partitions=16, max_hosts=50)
    assert len(set(grouping.partitions)) == 1
    assert set(grouping.gap_factors) == {1}
    assert grouping.bound_by[3] == ["192.0.2.7", "www.a.test", "www.a.test:3"]


def test_the_ports_of_a_name_on_a_platform_stay_together() -> None:
    """Of two hundred names of one domain, each at three ports."""
    names = [f"h{at // 3}.d.test" for at in range(600)]
    servers = [Server(at * (2**64 // 600) - 2**63, "d.test", name) for at, name in enumerate(names)]
    grouping = select.group_by_server(servers, partitions=16, max_hosts=50)
    assert len(set(grouping.partitions)) == 16
    assert all(len(set(grouping.partitions[at : at + 3])) == 1 for at in range(0, 600, 3))


@pytest.mark.parametrize("hosts", [1, 2, 5, 50])
def test_partitions_are_filled_alike_however_many_hosts_a_domain_has(hosts: int) -> None:
    chance, domains = random.Random(hosts), 64 * 40
    keys = [chance.randrange(-(2**63), 2**63) for _ in range(domains * hosts)]
    servers = [Server(key, f"d{at // hosts}.test", f"h{at}") for at, key in enumerate(keys)]
    grouping = select.group_by_server(servers, partitions=64, max_hosts=100)
    filled = np.bincount(grouping.partitions, minlength=64) / hosts
    assert filled.min() >= 15  # 40 each on average, so a standard deviation of 6.3
    assert filled.max() <= 70


def test_host_keys_and_names_are_those_of_the_page_room(spark: SparkSession) -> None:
    names = ["example.org", "xn--bcher-kva.example", "a.test:8080", "[::1]:81", "[::1]", "127.0.0.1", "127.0.0.1:8"]
    rows = spark.createDataFrame([(name,) for name in names], "host string")
    found = rows.select(select.host_key().alias("key"), select.name_of().alias("name")).collect()
    assert [(row["key"], row["name"]) for row in found] == [(host_key(name), host_name(name)) for name in names]
