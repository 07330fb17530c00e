"""From links to new URLs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler.columns import Column
from crawler.schemas import DISCOVERIES
from crawler.settings import DuplicateSettings, FetchSettings, NearDuplicateSettings, RoundSettings, Settings
from crawler.spark import with_owners
from crawler.transforms import discover
from tests.spark.rows import NOW, frame, host, hosts, key_of, outcome, outcomes, visit, visits

A, B, C, X, Y, Z = (f"http://{name}.test/" for name in "abcxyz")
FRESH = tuple(
    Column(name, kind, "")
    for name, kind in [
        ("url_key", "bigint"),
        ("host_key", "bigint"),
        ("depth", "int"),
        ("link_tier", "int"),
        ("seed_hops", "int"),
    ]
)


HORIZONS = "host_key bigint, horizon_at double, crawl_delay_s double"


def marked(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    plain = outcomes(spark, rows)
    kind = F.when(F.col("reason").isNotNull(), F.col("reason"))
    return plain.withColumn("match", F.when(kind.isNotNull(), F.struct(kind.alias("kind"))))


@pytest.mark.parametrize(
    ("payload", "near", "expected"),
    [
        ("skip", "demote", {A: 0, C: 3}),
        ("follow", "skip", {A: 0, B: 0}),
        ("demote", "follow", {A: 0, B: 3, C: 0}),
    ],
)
def test_links_of_duplicates_count_as_the_settings_say(
    spark: SparkSession, payload: Any, near: Any, expected: dict[str, int]
) -> None:
    settings = replace(
        Settings(), duplicates=DuplicateSettings(links=payload), near_duplicates=NearDuplicateSettings(links=near)
    )
    rows = [outcome(A), outcome(B, reason="payload"), outcome(C, reason="near")]
    pages = discover.link_tier(marked(spark, rows), settings).collect()
    assert {row["url"]: row["link_tier"] for row in pages} == expected


def test_the_best_way_to_a_url_wins(spark: SparkSession) -> None:
    rows = [
        outcome(A, links=[key_of(X), key_of(Y)]),
        outcome(B, links=[key_of(X)], reason="near"),
        outcome(C, links=[key_of(Y)], redirect_key=key_of(Z)),
    ]
    pages = discover.link_tier(marked(spark, rows), Settings())
    planned = visits(spark, [visit(A, depth=5), visit(B, depth=0), visit(C, depth=1)])
    found = discover.candidates(pages, planned).collect()
    assert {row["url_key"]: (row["link_tier"], row["depth"], row["source_key"]) for row in found} == {
        key_of(X): (0, 6, key_of(A)), key_of(Y): (0, 2, key_of(C)), key_of(Z): (0, 2, key_of(C)),
    }  # fmt: skip


def test_a_page_with_the_bytes_of_the_page_it_was_found_on_leads_nowhere(spark: SparkSession) -> None:
    rows = [outcome(url, payload_checksum=5, links=[key_of(f"{url}more")], reason="payload") for url in (A, B, C)]
    rows.append(outcome(X, payload_checksum=None, links=[key_of(Y)], reason="near"))
    planned = [visit(A, source_payload=5), visit(B, source_payload=6), visit(C, source_payload=None), visit(X)]
    cases: list[tuple[Any, tuple[str, ...]]] = [("demote", (B, C)), ("follow", (A, B, C))]
    for links, wanted in cases:
        settings = replace(Settings(), duplicates=DuplicateSettings(links=links))
        pages = discover.link_tier(marked(spark, rows), settings)
        found = discover.candidates(pages, visits(spark, planned)).collect()
        payloads = {row["url_key"]: row["source_payload"] for row in found}
        assert payloads == {**{key_of(f"{url}more"): 5 for url in wanted}, key_of(Y): None}


def test_what_a_seed_redirects_to_is_better_than_any_link(spark: SparkSession) -> None:
    """Of several seeds that redirect to one URL the one that is nearest to the inbox counts, then the least key."""
    rows = [
        outcome(A, redirect_key=key_of(X), seed_hops=2, outcome="redirect_temp"),
        outcome(B, redirect_key=key_of(X), seed_hops=1, outcome="redirect_perm"),
        outcome(C, links=[key_of(X), key_of(Y)]),
        outcome(Z, redirect_key=None, seed_hops=None, outcome="redirect_perm"),
    ]
    outcomes_of = marked(spark, rows)
    planned = visits(spark, [visit(url, depth=0) for url in (A, B, C, Z)])
    linked = discover.candidates(discover.link_tier(outcomes_of, Settings()), planned)
    named = discover.from_robots(frame(spark, DISCOVERIES.columns, []))
    found = discover.best_candidates(linked, named, discover.from_seeds(outcomes_of)).collect()
    assert {row["url_key"]: tuple(row)[1:] for row in found} == {
        key_of(X): (-1, 0, 1, key_of(B), None), key_of(Y): (0, 1, None, key_of(C), key_of(C) ^ 1),
    }  # fmt: skip


def test_a_seed_is_due_now_whatever_its_host_has_to_do(spark: SparkSession) -> None:
    seed = {"url_key": 1, "host_key": host("a.test")["host_key"], "depth": 0, "link_tier": -1, "seed_hops": 1}
    rows = discover.spread(
        frame(spark, FRESH, [seed]),
        hosts(spark, [host("a.test", horizon_at=NOW + 9e6)]).select("host_key", "horizon_at", "crawl_delay_s"),
        Settings(),
        NOW,
    ).collect()
    assert [(row["tier"], row["due_at"].timestamp()) for row in rows] == [(discover.SEED_TIER, NOW)]


@pytest.mark.parametrize(("lowest", "tiers"), [(4, [1, 1, 1, 3, 3]), (2, [1] * 5), (1, [1] * 5)])
def test_what_is_near_the_seeds_comes_before_what_is_deep(spark: SparkSession, lowest: int, tiers: list[int]) -> None:
    settings = replace(Settings(), revisit=replace(Settings().revisit, lowest_tier=lowest))
    depths = spark.createDataFrame([(depth,) for depth in range(5)], "depth int")
    found = depths.select("depth", discover.tier_of(settings).alias("tier")).orderBy("depth").collect()
    assert [row["tier"] for row in found] == tiers


def test_new_urls_take_their_text_from_any_one_segment(spark: SparkSession) -> None:
    text = [{"url_key": key_of(url), "url": url, "host": url[7:-1], "source": "link"} for url in (X, X, Y, Z)]
    unseen = spark.createDataFrame([(key_of(X),), (key_of(Z),)], "url_key bigint")
    columns = "url_key bigint, link_tier int, depth int, source_key bigint, source_payload bigint, seed_hops int"
    found = spark.createDataFrame([(key_of(url), 1, 2, 9, 8, 1 if url == Z else None) for url in (X, Y, Z)], columns)
    rows = discover.new_urls(unseen, found, frame(spark, DISCOVERIES.columns, text)).collect()
    assert sorted((row["url"], row["source"]) for row in rows) == [(X, "link"), (Z, "redirect")]


def fresh(spark: SparkSession, count: int) -> DataFrame:
    rows = [{"url_key": n, "host_key": host("a.test")["host_key"], "depth": 1, "link_tier": 0} for n in range(count)]
    return frame(spark, FRESH, rows)


@pytest.mark.parametrize(
    ("sentence", "known", "waits", "horizon"),
    [
        ("a round's worth is due now, the rest as it can be fetched", {}, [0, 0, 0, 0, 0, 50, 60, 70], 80),
        ("a site with a backlog goes on after it", {"horizon_at": NOW + 30}, [0, 0, 50, 60, 70, 80, 90, 100], 110),
        ("an old horizon is no credit", {"horizon_at": NOW - 999}, [0, 0, 0, 0, 0, 50, 60, 70], 80),
        ("a crawl delay spreads wider", {"crawl_delay_s": 30.0}, [0, 0, 60, 90, 120, 150, 180, 210], 240),
    ],
)
def test_a_hosts_new_urls_are_spread_at_the_pace_of_its_delay(
    spark: SparkSession, sentence: str, known: dict[str, Any], waits: list[int], horizon: int
) -> None:
    settings = replace(Settings(), fetch=FetchSettings(delay_s=10.0), round=RoundSettings(time_limit_s=50.0))
    horizons = hosts(spark, [host("a.test", **known)]).select("host_key", "horizon_at", "crawl_delay_s")
    rows = discover.spread(fresh(spark, 8), horizons, settings, NOW).orderBy("url_key").collect()
    assert [round(row["due_at"].timestamp() - NOW) for row in rows] == waits, sentence
    assert round(max(row["horizon_at"] for row in rows) - NOW) == horizon, sentence


N = 2
FEW_A_ROUND = replace(
    Settings(), fetch=FetchSettings(delay_s=10.0), round=RoundSettings(time_limit_s=50.0, max_new_hosts_per_domain=N)
)


def queue(
    spark: SparkSession, found: list[str], known: list[dict[str, Any]], late: Sequence[tuple[str, int]] = ()
) -> dict[str, tuple[int, int]]:
    """Of each name found, or left out by the plan, the start of its turns and that of its owner's next, from NOW."""
    kinds = [("url_key", "bigint"), ("host_key", "bigint"), ("host", "string"), ("registered_domain", "string"),
             ("depth", "int"), ("link_tier", "int")]  # fmt: skip
    columns = tuple(Column(name, kind, "") for name, kind in kinds)
    rows = [{**host(name), "url_key": at, "depth": 1, "link_tier": 0} for at, name in enumerate(found)]
    table = hosts(spark, known)
    names = discover.found_names(frame(spark, columns, rows), table)
    names = discover.all_names(
        names, discover.late_names(spark.createDataFrame(list(late), "host string, position int"))
    )
    queued = discover.queue_names(with_owners(names), table, FEW_A_ROUND, NOW).collect()
    return {row["host"]: (round(row["start_at"] - NOW), round(row["names_horizon_at"] - NOW)) for row in queued}


@pytest.mark.parametrize(
    ("sentence", "found", "known", "late", "expected"),
    [
        ("two names a round of fifty seconds", [f"{n}.d.test" for n in "abc"], [], [],
         {"a.d.test": (0, 75), "b.d.test": (25, 75), "c.d.test": (50, 75)}),
        ("a name that is known is not in line", ["a.d.test", "b.d.test"], [host("a.d.test")], [],
         {"b.d.test": (0, 25)}),
        ("the line of earlier rounds goes on", ["a.d.test"], [host("d.test", names_horizon_at=NOW + 90)], [],
         {"a.d.test": (90, 115)}),
        ("an old one is no credit", ["a.d.test"], [host("d.test", names_horizon_at=NOW - 90)], [],
         {"a.d.test": (0, 25)}),
        ("every owner has a line", ["a.d.test", "a.e.test", "c.github.io", "d.github.io"], [], [],
         {"a.d.test": (0, 25), "a.e.test": (0, 25), "c.github.io": (0, 25), "d.github.io": (0, 25)}),
        ("ports are one name", ["a.d.test:8", "a.d.test:9", "b.d.test"], [], [],
         {"a.d.test:8": (0, 50), "a.d.test:9": (0, 50), "b.d.test": (25, 50)}),
        ("a name that is found while it waits", ["a.d.test"], [], [("a.d.test", 3)], {"a.d.test": (0, 25)}),
        ("what the plan left out comes first", ["a.d.test"], [], [("z.d.test", 4), ("y.d.test", 3)],
         {"y.d.test": (0, 75), "z.d.test": (25, 75), "a.d.test": (50, 75)}),
    ],
)  # fmt: skip
def test_new_names_wait_in_the_line_of_their_owner(
    spark: SparkSession, sentence: str, found: Any, known: Any, late: Any, expected: Any
) -> None:
    assert queue(spark, found, known, late) == expected, sentence


def test_urls_of_a_new_name_are_spread_from_its_first_turn_on(spark: SparkSession) -> None:
    starts = spark.createDataFrame([(host("a.test")["host_key"], NOW + 60, None)], HORIZONS)
    rows = discover.spread(fresh(spark, 2), starts, FEW_A_ROUND, NOW).orderBy("url_key").collect()
    assert [round(row["due_at"].timestamp() - NOW) for row in rows] == [60, 70]
