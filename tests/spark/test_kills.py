"""kill -9: a crawl that is killed between each two of its writes, and while it fetches, ends as one that was not."""

from __future__ import annotations

import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler.settings import SegmentSettings, Settings, SparkSettings
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from crawler.tables.ledger import Ledger, State
from tests.spark.contents import contents, different
from tests.spark.crawled import settings_for
from tests.spark.driver import BUCKETS, Driver, run_to
from tests.spark.invariants import Committed
from tests.web import DemoWeb, Request, Scale, witness
from tests.web.sites import PORTAL

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

SMALL = Scale(pages=60, hosts=13, words=300, corners=False)
SEEDS = 6  # so few that the second round, too, finds URLs which nobody knew
DELAY_S = 0.4
SLACK_S = 0.15  # between the start of a request and its line in the log, on a machine that has others to serve
SEGMENT_URLS = 4
PARTITIONS = 2
FIRST_STEPS = ("OPENED", "admit/seeds", "admit/urls", "admit/frontier", "plans")
LAST_STEPS = ("segments", "captures", "content_checksums", "near_duplicates", "url_checksums", "hosts", "frontier")
FETCH_KILLS = ("round 1, all at once", "round 2, the driver only", "round 2, all at once")
PATIENCE_S = 120.0
REQUESTS = 8  # that the web sees before it is the fetch stage's turn to be killed


@dataclass
class Kill:
    """What one driver was killed in, and how many requests the web had seen by then."""

    where: str
    requests: int


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
        settings = _settings(web)
        killed, undisturbed = (_lake(folder / name, web) for name in ("killed", "undisturbed"))
        with hold_lake(spark, undisturbed, BUCKETS) as lake:
            run_to(lake, settings, 2)
        before = web.requests()
        kills = _Chain(web, folder, settings, len(before)).run()
        yield Chain(web, killed, undisturbed, kills, web.requests()[len(before) :], before)


class _Chain:
    """Runs the drivers, each of which opens its session while the one before it works."""

    def __init__(self, web: DemoWeb, folder: Path, settings: Settings, seen: int) -> None:
        self._web, self._folder, self._seen = web, folder, seen
        self._settings = folder / "settings.pickle"
        self._settings.write_bytes(pickle.dumps(settings))
        self._started: list[Driver] = []
        self._kills: list[Kill] = []

    def run(self) -> list[Kill]:
        try:
            self._start()
            for step in FIRST_STEPS:
                self._die_after(f"1:{step}")
            self._die_fetching(FETCH_KILLS[0], 1, is_whole=True)
            self._die_after("1:COMMITTED")
            self._die_fetching(FETCH_KILLS[1], 2, is_whole=False)
            self._die_fetching(FETCH_KILLS[2], 2, is_whole=True)
            for step in LAST_STEPS:
                self._die_after(f"2:{step}")
            self._next(None)
            assert self._started[-1].end() == 0
        finally:
            for driver in self._started:
                driver.close()
        return self._kills

    def _start(self) -> None:
        number = len(self._started)
        self._started.append(Driver(self._folder / "killed", self._settings, self._folder / f"driver-{number}.log"))

    def _next(self, die_after: str | None) -> Driver:
        """Let the waiting driver go, and start the one that waits for its end."""
        driver = self._started[-1]
        driver.go(2, die_after)
        if die_after is not None:
            self._start()
        return driver

    def _die_after(self, step: str) -> None:
        driver = self._next(step)
        assert driver.end() == -signal.SIGKILL, f"the driver did not come to {step}"
        self._note(step)

    def _die_fetching(self, name: str, number: int, *, is_whole: bool) -> None:
        """Kill when the round's plan stands and the web has then seen some requests."""
        driver = self._next("never")
        self._wait_for(driver, lambda: self._is_planned(number))
        asked = len(self._web.requests())
        self._wait_for(driver, lambda: len(self._web.requests()) >= asked + REQUESTS)
        driver.kill_all() if is_whole else driver.kill()
        self._note(name)

    def _is_planned(self, number: int) -> bool:
        newest = Ledger(Store.open(str(self._folder / "killed"))).newest()
        return bool(newest) and (newest[-1].round, newest[-1].state) == (number, State.PLANNED)

    def _wait_for(self, driver: Driver, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, "the driver did not come so far"
            assert driver.process.poll() is None, "the driver ended by itself"
            time.sleep(0.02)

    def _note(self, where: str) -> None:
        self._kills.append(Kill(where, len(self._web.requests()) - self._seen))


def _settings(web: DemoWeb) -> Settings:
    base = settings_for(web, delay_s=DELAY_S, max_crawl_delay_s=1.0)
    spark = SparkSettings(master="local[2]", driver_memory="1g", shuffle_partitions=2)
    return replace(base, segment=SegmentSettings(max_urls=SEGMENT_URLS), spark=spark)


def _lake(folder: Path, web: DemoWeb) -> Store:
    store = Store.open(str(folder))
    homes = [web.url(host) for host in web.web.addresses if host != PORTAL]
    store.put_new("inbox/seeds.urls", "\n".join(homes[:SEEDS]).encode())
    return store


def test_every_kill_hit_its_place(chain: Chain) -> None:
    """The fetch stages were killed while there was still something to fetch."""
    counts = {kill.where: kill.requests for kill in chain.kills}
    assert list(counts) == [
        *(f"1:{step}" for step in FIRST_STEPS), FETCH_KILLS[0], "1:COMMITTED", *FETCH_KILLS[1:],
        *(f"2:{step}" for step in LAST_STEPS),
    ]  # fmt: skip
    fetched = [counts[name] for name in (*FETCH_KILLS, "2:segments")]
    assert counts["1:plans"] == 0
    assert all(one < next_one for one, next_one in pairwise(fetched))
    assert counts["2:segments"] == len(chain.requests)


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
    assert 0 < again <= len(FETCH_KILLS) * (PARTITIONS * SEGMENT_URLS + SMALL.hosts)


def test_no_host_and_no_address_was_hurried_by_a_restart(chain: Chain) -> None:
    for requests in (chain.requests, chain.undisturbed_requests):
        assert witness.hurried(requests, DELAY_S, tolerance_s=SLACK_S) == []
        assert witness.hurried(requests, DELAY_S / 2, witness.by_address, tolerance_s=SLACK_S) == []
        assert witness.pages_before_robots(requests) == []
        assert witness.misdirected(requests) == []
    by_host = Counter(request.host for request in chain.requests if request.is_robots)
    assert max(by_host.values()) <= 1 + len(FETCH_KILLS)
