"""The soak: seeded kills of drivers, workers and JVMs, at random and at every fault point, over many rounds.

`make soak` runs it; SOAK_KILLS sets how many kills (200), SOAK_SEED which (1). After every kill the
invariants of what is committed are checked, and at the end the tables are held against an undisturbed crawl. What reads
the tables and files shares neither Spark nor the writers with the crawl.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler.faults import POINTS, TABLES
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from crawler.tables.ledger import Ledger
from tests.spark.chain import (
    ALL,
    DELAY_S,
    DRIVER,
    JVM,
    PARTITIONS,
    SEGMENT_URLS,
    SLACK_S,
    SMALL,
    WORKER,
    KilledCrawl,
    chain_settings,
    seeded_lake,
)
from tests.spark.contents import contents, different
from tests.spark.driver import BUCKETS, run_to
from tests.spark.invariants import Committed
from tests.web import DemoWeb, witness

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

KILLS = int(os.environ.get("SOAK_KILLS", "200"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
HOURS = 15 * 24.0  # between rounds: all that was fetched is due again
LATEST_S = 25.0  # a random kill comes this long after a driver was let go, at the latest
FIRST = ("files.seeds", "commit.seeds")  # come to only where seeds come in or are planned
MAINTAINING = ("maintain.table", "maintain.vacuumed")  # come to once for every table
NEVER = {"files.segments", "files.rounds"}  # the driver writes these rows itself
IN_EVERY_ROUND = [point for point in POINTS if point not in {*FIRST, *MAINTAINING, *NEVER}]
OFTEN = ("fetch.body", "warc.record", "segment.")  # a task comes to these several times


def test_a_crawl_survives_every_kill(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with DemoWeb(scale=SMALL, log=tmp_path / "requests.jsonl") as web:
        settings = chain_settings(web)
        seeded_lake(tmp_path / "killed", web)
        crawl = KilledCrawl(web, tmp_path, settings, rounds=10_000, hours=HOURS)
        try:
            kill_many(crawl, random.Random(SEED))
            crawl.rounds = rounds_begun(crawl)
            crawl.finish()
        finally:
            crawl.close()
        requests = web.requests()
        refetched = pages_asked_in_vain(crawl, len(requests))
        with capsys.disabled():
            print(f"\n{len(crawl.kills)} kills (seed {SEED}) in {crawl.rounds} rounds: {kinds(crawl)}")
            print(
                f"{len(requests)} requests, {refetched} pages asked again: {refetched / KILLS:.2f} a kill; violations 0"
            )
        assert len(crawl.kills) == KILLS
        assert refetched <= KILLS * PARTITIONS * (SEGMENT_URLS + SMALL.hosts)
        undisturbed = seeded_lake(tmp_path / "undisturbed", web)
        with hold_lake(spark, undisturbed, BUCKETS) as lake:
            run_to(lake, settings, crawl.rounds, HOURS)
        assert different(contents(undisturbed), contents(Store.open(str(crawl.lake)))) == {}


def kill_many(crawl: KilledCrawl, chance: random.Random) -> None:
    """Every point once in a random order, again and again, and between them kills of anybody at any moment, and in
    the midst of maintenance."""
    for point in FIRST:
        crawl.die_at(point)
    points: list[str] = []
    while len(crawl.kills) < KILLS:
        if chance.random() < 0.1:
            crawl.die_at(f"{chance.choice(MAINTAINING)}:{chance.randint(1, len(TABLES))}", maintaining=True)
        elif chance.random() < 0.5:
            points = points or chance.sample(IN_EVERY_ROUND, len(IN_EVERY_ROUND))
            point = points.pop()
            crawl.die_at(f"{point}:{chance.choice((1, 2, 3))}" if point.startswith(OFTEN) else point)
        else:
            who = chance.choice((DRIVER, JVM, WORKER, ALL))
            crawl.die_when(after(chance.uniform(0.0, LATEST_S)), who, f"{who} at a random moment")
        check(crawl)


def after(seconds: float) -> Callable[[], bool]:
    due = time.monotonic() + seconds
    return lambda: time.monotonic() >= due


def check(crawl: KilledCrawl) -> None:
    """What is committed holds the invariants, and no host or address was hurried, so far."""
    store = Store.open(str(crawl.lake))
    last = crawl.kills[-1].where if crawl.kills else "no kill"
    if store.list("tables/rounds") and Ledger(store).committed() is not None:
        assert Committed(store).breaches() == [], f"after {last}"
    requests = crawl.web.requests()
    assert witness.hurried(requests, DELAY_S, tolerance_s=SLACK_S) == [], f"after {last}"
    assert witness.hurried(requests, DELAY_S / 2, witness.by_address, tolerance_s=SLACK_S) == [], f"after {last}"


def rounds_begun(crawl: KilledCrawl) -> int:
    newest = Ledger(Store.open(str(crawl.lake))).newest()
    return newest[-1].round if newest else 1


def pages_asked_in_vain(crawl: KilledCrawl, seen: int) -> int:
    """Requests for pages that no accepted capture came of."""
    captures = Committed(Store.open(str(crawl.lake))).captures
    asked = [request for request in crawl.web.requests()[:seen] if not request.is_robots]
    return len(asked) - sum(row["warc_filename"] is not None for row in captures)


def kinds(crawl: KilledCrawl) -> dict[str, int]:
    names = [kill.where.partition(":")[0].partition(" at a")[0].partition(".")[0] for kill in crawl.kills]
    return dict(Counter(names).most_common())
