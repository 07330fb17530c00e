"""Executors that die, pause or lose their driver: the round ends, nobody is hurried, and the tables do not know."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawler import schemas
from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from crawler.tables.reader import Reader
from tests.cluster.crawls import DELAY_S, SEGMENT_URLS, SLACK_S, Place, Submission, is_at
from tests.cluster.processes import Machine
from tests.spark.contents import contents, different
from tests.spark.invariants import Committed
from tests.web import Request, witness

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

IMPATIENT = {
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": "5s",
    "spark.network.timeoutInterval": "1s",
}
"""A driver that gives an executor up after five seconds of silence."""
GIVEN_UP = "Executor heartbeat timed out"
STILL_UNDER_WAY_S = 0.5  # for a request that was sent just before


@dataclass(frozen=True)
class Fetch:
    """A running fetch task: its partition, the process that asks, and the machine it is on."""

    partition: int
    worker: int
    machine: Machine

    @property
    def executor(self) -> int:
        pid = self.machine.executor()
        assert pid is not None
        return pid


def running_fetch(place: Place, lake: Path) -> Fetch:
    """The fetch task of round 2 that takes longest, by the process that holds the lease of its partition."""
    path = max((lake / "leases" / "2").glob("*/000001.json"), key=lambda path: longest_queue(lake, path.parent.name))
    worker = json.loads(path.read_text())["pid"]
    machine = next(one for one in place.cluster.machines if worker in one.python_workers())
    return Fetch(int(path.parent.name), worker, machine)


def longest_queue(lake: Path, partition: str) -> int:
    """URLs of the host of the partition that has most."""
    hosts = Counter(url.split("/")[2] for url in planned_urls(lake, int(partition)))
    return max(hosts.values(), default=0)


def planned_urls(lake: Path, partition: int) -> set[str]:
    """What the plan of the newest round, which is at least PLANNED, gave to a partition."""
    store = Store.open(str(lake))
    newest = Ledger(store).newest()[-1]
    rows = Reader.open(store).rows(schemas.PLANS, newest.versions).to_pylist()
    return {
        row["url"]
        for row in rows
        if row["kind"] == "url" and (row["round"], row["partition"]) == (newest.round, partition)
    }


def attempts(lake: Path) -> dict[int, int]:
    """By partition the last attempt of the second round whose segments count."""
    sealed = [one for one in Committed(Store.open(str(lake))).segments if one["round"] == 2]
    return {one["partition"]: one["attempt"] for one in sorted(sealed, key=lambda one: one["attempt"])}


def assert_as_undisturbed(place: Place, round_: Submission) -> None:
    """The tables are those of the crawl on one machine, the files hold what they name, and no server was hurried."""
    lake = Store.open(str(round_.lake))
    assert different(contents(Store.open(str(place.rounds.after_two))), contents(lake)) == {}
    assert Committed(lake).breaches() == []
    assert set(witness.url_counts(round_.requests())) == set(witness.url_counts(place.rounds.asked))
    assert_nobody_hurried(round_.requests())


def assert_given_up_and_undisturbed(place: Place, round_: Submission) -> None:
    code = round_.driver.end()
    assert code == 0, round_.driver.said()[-3_000:]
    assert GIVEN_UP in round_.driver.said()
    assert_as_undisturbed(place, round_)


def assert_nobody_hurried(requests: list[Request]) -> None:
    assert witness.hurried(requests, DELAY_S, tolerance_s=SLACK_S) == []
    assert witness.hurried(requests, DELAY_S / 2, witness.by_address, tolerance_s=SLACK_S) == []
    assert witness.crowded(requests) == []


@pytest.mark.parametrize("victim", ["executor", "worker"])
def test_a_task_that_is_killed_runs_again_in_the_same_driver(place: Place, tmp_path: Path, victim: str) -> None:
    """The victim is the executor, or only the Python worker in which its task runs."""
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2)
    round_.wait_for_fetching(2)
    fetch = running_fetch(place, round_.lake)
    os.kill(getattr(fetch, victim), signal.SIGKILL)
    assert round_.driver.end() == 0, round_.driver.said()[-3_000:]
    assert is_at(round_.lake, 2, State.COMMITTED)
    assert attempts(round_.lake) == {0: 1, 1: 1} | {fetch.partition: 2}
    again = witness.asked_again(round_.requests())
    mine = planned_urls(round_.lake, fetch.partition)
    assert again.keys() <= mine, "a task that was not killed asked again"
    # An open segment, and what was on its way to one of the partition's hosts.
    assert len(again) <= SEGMENT_URLS + len({url.split("/")[2] for url in mine})
    assert_as_undisturbed(place, round_)


@pytest.mark.parametrize("files", [1, 3])
def test_lost_shuffle_files_and_blocks_lose_no_round(place: Place, tmp_path: Path, files: int) -> None:
    """What the other stages need of them is computed again, by the same driver."""
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2)
    round_.wait_for(lambda: is_at(round_.lake, 2, State.FETCHED), "FETCHED")
    before = {id(machine): machine.shuffle_files() for machine in place.cluster.machines}
    found: list[Machine] = []

    def has_files() -> bool:
        found[:] = [one for one in place.cluster.machines if one.shuffle_files() >= before[id(one)] + files]
        return bool(found)

    round_.wait_for(has_files, f"{files} shuffle files")
    executor = found[0].executor()
    assert executor is not None
    os.kill(executor, signal.SIGKILL)
    assert round_.driver.end() == 0, round_.driver.said()[-3_000:]
    assert is_at(round_.lake, 2, State.COMMITTED)
    assert_as_undisturbed(place, round_)


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Processes that do nothing for the block, as on a machine that swaps; they go on after it, if they are alive."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def wait_for_the_next_attempt(round_: Submission, fetch: Fetch) -> None:
    """Until another attempt has begun on the partition; it asks nobody yet."""
    path = round_.lake / "leases" / "2" / str(fetch.partition) / "000002.json"
    round_.wait_for(path.exists, "the next attempt")


def wait_for_the_retry(round_: Submission, fetch: Fetch) -> None:
    """Until the partition's hosts are asked, although its first attempt does nothing."""
    began = time.time() + STILL_UNDER_WAY_S
    hosts = {url.split("/")[2] for url in planned_urls(round_.lake, fetch.partition)}

    def is_retried() -> bool:
        return any(request.time > began and request.url.split("/")[2] in hosts for request in round_.requests())

    round_.wait_for(is_retried, "the retry")


Wait = Callable[[Submission, Fetch], None]
WAITS = pytest.mark.parametrize("wait", [wait_for_the_next_attempt, wait_for_the_retry], ids=["it waits", "it asks"])


@WAITS
def test_an_executor_that_pauses_finds_its_work_done_by_others(place: Place, tmp_path: Path, wait: Wait) -> None:
    """It goes on when the next attempt is so far."""
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2, IMPATIENT)
    round_.wait_for_fetching(2)
    fetch = running_fetch(place, round_.lake)
    with stopped([fetch.executor, *fetch.machine.daemons(), *fetch.machine.python_workers()]):
        wait(round_, fetch)
    assert_given_up_and_undisturbed(place, round_)
    assert attempts(round_.lake)[fetch.partition] >= 2


@WAITS
def test_python_that_outlives_its_executor_counts_for_nothing(place: Place, tmp_path: Path, wait: Wait) -> None:
    """The executor stays away. Its Python goes on when the next attempt is so far, and nobody ends it."""
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2, IMPATIENT)
    round_.wait_for_fetching(2)
    fetch = running_fetch(place, round_.lake)
    workers = fetch.machine.python_workers()
    with stopped([*fetch.machine.daemons(), fetch.executor]):
        with stopped(workers):
            wait(round_, fetch)
        assert_given_up_and_undisturbed(place, round_)
    assert attempts(round_.lake)[fetch.partition] >= 2


def test_an_executor_that_is_cut_off_from_its_driver_does_not_hurry_anybody(place: Place, tmp_path: Path) -> None:
    """Its JVM is silent, so the driver starts the task elsewhere; its Python goes on, maybe to the end."""
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2, IMPATIENT)
    round_.wait_for_fetching(2)
    fetch = running_fetch(place, round_.lake)
    with stopped([fetch.executor]):
        wait_for_the_next_attempt(round_, fetch)
        assert_given_up_and_undisturbed(place, round_)
