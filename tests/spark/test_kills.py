"""kill -9: a crawl that is killed between each two of its writes, and while it fetches, ends as one that was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from crawler.storage import Store
from crawler.tables.lake import hold_lake
from crawler.tables.ledger import Ledger, State
from tests.spark.chain import (
    ALL,
    DELAY_S,
    DRIVER,
    PARTITIONS,
    SEGMENT_URLS,
    SLACK_S,
    SMALL,
    Kill,
    KilledCrawl,
    chain_settings,
    seeded_lake,
)
from tests.spark.contents import contents, different
from tests.spark.driver import BUCKETS, run_to
from tests.spark.invariants import Committed
from tests.web import DemoWeb, Request, witness

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

PLANNING = ("commit.rounds", "commit.seeds", "commit.url_checksums", "commit.frontier", "commit.plans")
FETCHING = {
    1: ("fetch.body:3", "warc.record:7"),
    2: ("segment.unsealed", "segment.sealed", "fetch.returned"),
}
COMMITTING = (
    *("commit.segments", "files.captures", "commit.captures", "commit.content_checksums", "commit.near_duplicates"),
    *("commit.url_checksums", "commit.hosts", "commit.frontier"),
)
AT_RANDOM = ("round 1, all at once", "round 2, the driver only")
IN_FETCH = len(AT_RANDOM) + sum(map(len, FETCHING.values()))
REQUESTS = 3  # of a driver before it is killed: round 1 has at least twice as many left, the robots files among them


@dataclass
class Chain:
    """A crawl of two rounds by many drivers, and one by a single driver, of the same web."""

    web: DemoWeb
    killed: Store
    undisturbed: Store
    kills: list[Kill]
    requests: list[Request]
    undisturbed_requests: list[Request]


@pytest.fixture(scope="module")
def chain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("killed")
    with DemoWeb(scale=SMALL, log=folder / "requests.jsonl") as web:
        settings = chain_settings(web)
        killed, undisturbed = (seeded_lake(folder / name, web) for name in ("killed", "undisturbed"))
        with hold_lake(spark, undisturbed, BUCKETS) as lake:
            run_to(lake, settings, 2)
        before = web.requests()
        crawl = KilledCrawl(web, folder, settings, rounds=2)
        try:
            kill_everywhere(crawl)
        finally:
            crawl.close()
        yield Chain(web, killed, undisturbed, crawl.kills, web.requests()[len(before) :], before)


def kill_everywhere(crawl: KilledCrawl) -> None:
    """The drivers of two rounds, in their order."""
    for fault in (*PLANNING, *FETCHING[1]):
        crawl.die_at(fault)
    die_fetching(crawl, AT_RANDOM[0], ALL)
    crawl.die_at("round.committed")
    die_fetching(crawl, AT_RANDOM[1], DRIVER)
    for fault in (*FETCHING[2], *COMMITTING):
        crawl.die_at(fault)
    crawl.finish()


def die_fetching(crawl: KilledCrawl, where: str, who: str) -> None:
    """Kill when the web has seen some requests of the driver."""
    before = len(crawl.web.requests())
    crawl.die_when(lambda: len(crawl.web.requests()) >= before + REQUESTS, who, where)


def test_every_kill_hit_its_place(chain: Chain) -> None:
    """The fetch stages were killed while there was still something to fetch."""
    assert [kill.where for kill in chain.kills] == [
        *PLANNING, *FETCHING[1], AT_RANDOM[0], "round.committed", AT_RANDOM[1], *FETCHING[2], *COMMITTING,
    ]  # fmt: skip
    assert len(chain.kills) >= 20
    counts = {kill.where: kill.requests for kill in chain.kills}  # of two with one name the later
    in_fetch = [counts[name] for name in ("commit.plans", "warc.record:7", *AT_RANDOM, "segment.sealed")]
    assert all(one < next_one for one, next_one in pairwise(in_fetch))
    assert counts["fetch.returned"] == counts["commit.segments"] == len(chain.requests)


def test_the_tables_say_what_an_undisturbed_crawl_says(chain: Chain) -> None:
    assert different(contents(chain.undisturbed), contents(chain.killed)) == {}


def test_the_invariants_hold(chain: Chain) -> None:
    assert Committed(chain.undisturbed).breaches() == []
    assert Committed(chain.undisturbed).orphans() == []
    assert Committed(chain.killed).breaches() == []


def test_two_rounds_reached_each_state_once(chain: Chain) -> None:
    rows = Ledger(chain.killed).newest(2)
    assert [(row.round, row.state) for row in rows] == [(number, state) for number in (1, 2) for state in State]
    assert rows[-1].counts["new_urls"] > 10
    wanted = [row.counts for row in Ledger(chain.undisturbed).newest(2)]
    files = {"segments", "warc_files", "warc_bytes"}
    for row, counts in zip(rows, wanted, strict=True):
        assert {name: n for name, n in row.counts.items() if name not in files} == {
            name: n for name, n in counts.items() if name not in files
        }


def test_nothing_is_left_in_the_inbox(chain: Chain) -> None:
    assert chain.killed.list("inbox") == []
    assert chain.killed.list("progress") == []


def test_every_page_was_asked_for_and_little_was_asked_again(chain: Chain) -> None:
    """Again at most what was in an open segment of a partition or on its way to one of the hosts."""
    asked, wanted = (witness.url_counts(requests) for requests in (chain.requests, chain.undisturbed_requests))
    assert set(asked) == set(wanted)
    again = sum((asked - wanted).values())
    assert 0 < again <= IN_FETCH * (PARTITIONS * SEGMENT_URLS + SMALL.hosts)


def test_no_host_and_no_address_was_hurried_by_a_restart(chain: Chain) -> None:
    for requests in (chain.requests, chain.undisturbed_requests):
        assert witness.hurried(requests, DELAY_S, tolerance_s=SLACK_S) == []
        assert witness.hurried(requests, DELAY_S / 2, witness.by_address, tolerance_s=SLACK_S) == []
        assert witness.pages_before_robots(requests) == []
        assert witness.misdirected(requests) == []
    by_host = Counter(request.host for request in chain.requests if request.is_robots)
    assert max(by_host.values()) <= 1 + IN_FETCH
