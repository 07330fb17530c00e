"""Leases: one attempt at a time may ask servers and seal segments."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from crawler.fetch import lease as leases
from crawler.fetch.attempt import AttemptOver, LeaseLost, StorageFailed
from crawler.fetch.lease import LEASE_S, RENEW_S, Lease, LeaseHolder, lease_folder, take_over
from crawler.fetch.segments import SegmentWriter
from crawler.processes import process_started
from crawler.settings import SegmentSettings
from crawler.storage import Store
from tests.fetch.little_web import LittleWeb, page
from tests.fetch.partition_runs import Run
from tests.fetch.segment_samples import INFO, TASK, row

FOLDER = lease_folder(TASK.round, TASK.partition)


@dataclass
class Time:
    """A clock that moves when somebody sleeps."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def holder(store: Store, number: int, **given: object) -> None:
    """A lease file of another process on this machine that is alive: the first one."""
    said = {"host": socket.gethostname(), "pid": os.getppid(), "process_started": process_started(os.getppid())}
    store.put_new(f"{FOLDER}/{number:06}.json", json.dumps(said | given).encode())


def looks_at(store: Store, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = bool) -> list[str]:
    """The folders that are listed from now on; `meanwhile` happens before each answer."""
    looked: list[str] = []
    listed = store.list

    def look(prefix: str) -> list[str]:
        looked.append(prefix)
        meanwhile()
        return listed(prefix)

    monkeypatch.setattr(store, "list", look)
    return looked


def seal(store: Store, lease: Lease) -> str:
    writer = SegmentWriter(store, TASK, SegmentSettings(), INFO, lease.number, fence=lease.check)
    writer.add(row(1), None)
    sealed = writer.seal()
    assert sealed is not None
    return sealed.outcomes


@pytest.mark.parametrize(
    ("earlier", "waits"),
    [
        ({}, True),
        ({"host": "another.machine"}, True),
        ({"pid": 4_194_305}, False),
        ({"process_started": "1@boot"}, False),
        ({"pid": os.getpid(), "process_started": process_started(os.getpid())}, False),
    ],
    ids=["alive here", "on another machine", "gone", "its id used again", "this process"],
)
def test_nobody_is_asked_before_the_earlier_attempt_is_surely_over(
    store: Store, earlier: dict[str, object], *, waits: bool
) -> None:
    clock = Time()
    holder(store, 1, **earlier)
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    assert lease.number == 2
    assert clock.slept == ([LEASE_S] if waits else [])


def test_an_attempt_that_let_go_is_not_waited_for(store: Store) -> None:
    clock = Time()
    holder(store, 1)
    Lease(store, FOLDER, 1, clock).release()
    take_over(store, TASK, clock.sleep, clock)
    assert clock.slept == []


def test_a_still_older_attempt_is_waited_for_too(store: Store) -> None:
    """The second took over, waited for the first, and died before it had waited long enough."""
    clock = Time()
    holder(store, 1)
    holder(store, 2, pid=4_194_305)
    take_over(store, TASK, clock.sleep, clock)
    assert clock.slept == [LEASE_S]


def test_an_attempt_that_slept_through_its_time_finds_itself_overtaken(store: Store) -> None:
    clock = Time()
    zombie, _ = take_over(store, TASK, clock.sleep, clock)
    take_over(store, TASK, clock.sleep, clock)
    zombie.check()
    clock.now += LEASE_S
    with pytest.raises(LeaseLost, match="attempt 1 at leases/3/7 was overtaken by 2"):
        zombie.check()


def test_a_lease_is_renewed_as_long_as_nobody_else_comes(store: Store) -> None:
    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    for _ in range(5):
        clock.now += LEASE_S
        lease.check()
    assert lease.valid_until == clock.now + LEASE_S


@pytest.mark.parametrize(
    ("later_s", "looks"), [(0.0, 0), (RENEW_S - 0.1, 0), (RENEW_S, 1), (LEASE_S - 0.1, 1), (LEASE_S + 9.0, 1)]
)
def test_a_lease_is_renewed_in_good_time_and_not_all_the_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, later_s: float, looks: int
) -> None:
    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    looked = looks_at(store, monkeypatch)
    clock.now += later_s
    asyncio.run(lease.renew_if_due())
    assert looked == [FOLDER] * looks
    assert lease.valid_until == (clock.now if looks else 1_000.0) + LEASE_S


@pytest.mark.parametrize(("later_s", "looks"), [(LEASE_S - 0.1, 0), (LEASE_S, 1), (LEASE_S + 0.1, 1)])
def test_nobody_asks_or_seals_on_a_lease_whose_time_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch, later_s: float, looks: int
) -> None:
    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    looked = looks_at(store, monkeypatch)
    clock.now += later_s
    for hold in (lease.check, lambda: asyncio.run(lease.hold())):
        looked.clear()
        lease.valid_until = 1_000.0 + LEASE_S
        hold()
        assert looked == [FOLDER] * looks


def test_a_lease_counts_from_the_question_and_not_from_the_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that takes long to answer may have looked long before another attempt came."""
    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    looks_at(store, monkeypatch, lambda: clock.sleep(7.0))
    lease.renew()
    assert lease.valid_until == 1_000.0 + LEASE_S


@pytest.mark.parametrize(
    ("theirs", "number", "waits"),
    [([], 1, False), ([1], 2, True), ([1, 2], 3, True)],
    ids=["the answer was lost", "another was quicker", "others were quicker"],
)
def test_a_create_that_is_said_to_have_failed_may_be_our_own(
    store: Store, monkeypatch: pytest.MonkeyPatch, theirs: list[int], number: int, waits: bool
) -> None:
    """A store may answer that the file is there to the very writer whose first answer was lost."""
    clock, create = Time(), store.put_new
    tried: list[str] = []

    def put_new(path: str, data: bytes) -> bool:
        for other in theirs:
            monkeypatch.setattr(store, "put_new", create)
            holder(store, other, host="another.machine")
        monkeypatch.setattr(store, "put_new", lose)
        return lose(path, data)

    def lose(path: str, data: bytes) -> bool:
        tried.append(path)
        assert len(tried) < 9, "it tries for ever"
        create(path, data)
        return False

    monkeypatch.setattr(store, "put_new", put_new)
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    assert lease.number == number
    assert clock.slept == ([LEASE_S] if waits else [])
    assert [path for path in store.list(FOLDER) if not path.endswith("accepted.json")] == [
        f"{FOLDER}/{n:06}.json" for n in range(1, number + 1)
    ]


def test_a_round_that_was_committed_has_no_attempts_any_more(store: Store) -> None:
    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    for path in store.list("leases"):
        store.delete(path)
    clock.now += LEASE_S
    with pytest.raises(LeaseLost, match="the end of the round"):
        lease.check()


def test_a_store_that_does_not_answer_ends_the_attempt(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(prefix: str) -> list[str]:
        raise ConnectionError(prefix)

    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    monkeypatch.setattr(store, "list", refuse)
    lease.check()
    clock.now += LEASE_S
    with pytest.raises(StorageFailed, match="ConnectionError"):
        lease.check()


def test_a_store_that_fails_stops_nobody_and_keeps_nobody_from_ending(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, data: bytes = b"") -> bool:
        raise ConnectionError(path)

    clock = Time()
    lease, _ = take_over(store, TASK, clock.sleep, clock)
    assert lease.is_asked_to_stop() is False
    store.put(lease.stop_path, b"")
    assert lease.is_asked_to_stop() is True
    monkeypatch.setattr(store, "exists", refuse)
    monkeypatch.setattr(store, "put", refuse)
    assert lease.is_asked_to_stop() is False
    lease.release()
    assert [path for path in store.list(FOLDER) if path.endswith(".released")] == []


def test_what_a_zombie_seals_does_not_count(store: Store) -> None:
    """Stopped between its last look and the creation of the file, and woken after another attempt had taken over."""
    clock = Time()
    first, found = take_over(store, TASK, clock.sleep, clock)
    assert found == []
    in_time = seal(store, first)
    second, found = take_over(store, TASK, clock.sleep, clock)
    assert [one.outcomes for one in found] == [in_time]
    late = seal(store, replace(first, valid_until=clock.now + LEASE_S))
    own = seal(store, second)
    _, found = take_over(store, TASK, clock.sleep, clock)
    assert sorted(one.outcomes for one in found) == sorted([in_time, own])
    assert late not in {in_time, own}


def test_an_overtaken_attempt_seals_nothing(store: Store) -> None:
    clock = Time()
    first, _ = take_over(store, TASK, clock.sleep, clock)
    take_over(store, TASK, clock.sleep, clock)
    clock.now += LEASE_S
    with pytest.raises(LeaseLost):
        seal(store, first)
    assert [path for path in store.list("crawl-data") if "/outcomes/" in path] == []


def test_an_attempt_that_never_came_to_work_changes_nothing(store: Store) -> None:
    clock = Time()
    first, _ = take_over(store, TASK, clock.sleep, clock)
    sealed = seal(store, first)
    holder(store, 2, pid=4_194_305)
    third, found = take_over(store, TASK, clock.sleep, clock)
    assert third.number == 3
    assert [one.outcomes for one in found] == [sealed]


def test_a_partition_that_is_overtaken_asks_and_seals_no_more(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.3)
    run.fetch = {"delay_s": 0.2, "max_crawl_delay_s": 0.2}

    def overtake(asked: object) -> object:
        run.store.put_new("leases/1/0/000009.json", b"{}")
        return page()

    urls = [web.put("a.test", f"/{n}", overtake if n == 1 else page()) for n in range(9)]  # type: ignore[arg-type]  # an answer is given by a function
    run.plan(*urls)
    with pytest.raises(AttemptOver, match="was overtaken by 9"):
        run.go()
    assert 2 <= len([path for path in web.paths("a.test") if path != "/robots.txt"]) <= 4


def test_a_worker_whose_parent_ended_ends(web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.plan(*(web.put("a.test", f"/{n}", page()) for n in range(3)))
    parents = iter([1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents, 2))
    with pytest.raises(LeaseLost, match="the process that started this one has ended"):
        run.go()
    assert LeaseHolder.here().is_surely_over()
