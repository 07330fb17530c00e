"""Who may be visited: the order of hosts, and the slots that a domain, an address and the slow may hold."""

from __future__ import annotations

import math
import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.host_queue import HostQueue, HostRun, Room, pair_of
from crawler.fetch.politeness import Turn
from crawler.records import HostState, KnownAddress, Outcome


def host(name: str, address: str | None = None, *, is_slow: bool = False) -> HostRun:
    known = (KnownAddress(address, 0.0),) if address else ()
    plan: Any = None  # a queue never reads it
    run = HostRun(plan, HostState(name), Turn(), 0, 1, addresses=known)
    run.is_slow = is_slow
    return run


def popped(queue: HostQueue, now: float = 100.0) -> list[str]:
    """The hosts that may be visited now, all of them."""
    found = []
    while (one := queue.pop_due(now)) is not None:
        found.append(one.host)
    return found


@pytest.mark.parametrize(
    ("name", "address", "pair"),
    [
        ("www.a.test", None, ("a.test",)),
        ("www.a.test:8080", "192.0.2.1", ("a.test", "192.0.2.1")),
        ("192.0.2.1:81", "192.0.2.1", ("192.0.2.1",)),
        ("a.co.uk", "2001:db8:1:2:3:4:5:6", ("a.co.uk", "2001:db8:1:2::/64")),
        ("b.co.uk", "2001:db8:1:2:ffff::1", ("b.co.uk", "2001:db8:1:2::/64")),
    ],
)
def test_what_slots_are_counted_under(name: str, address: str | None, pair: tuple[str, ...]) -> None:
    assert pair_of(host(name, address)) == pair


@pytest.mark.parametrize(
    ("addresses", "failure", "reason", "tried"),
    [
        (1, Outcome.CONNECT_FAILED, None, 0),
        (2, Outcome.CONNECT_FAILED, None, 1),
        (3, Outcome.CONNECT_FAILED, "refused", 2),
        (3, Outcome.TIMEOUT, "connect", 2),
        (3, Outcome.TIMEOUT, "body", 0),
        (3, Outcome.TLS_FAILED, "connect", 0),
        (3, None, None, 0),
    ],
)
def test_every_address_that_takes_no_connection_is_followed_by_the_next(
    addresses: int, failure: Outcome | None, reason: str | None, tried: int
) -> None:
    one = host("a.test")
    one.addresses = tuple(KnownAddress(f"192.0.2.{n}", 0.0) for n in range(addresses))
    asked = [one.address]
    while one.tries_next_address(failure, reason):
        asked.append(one.address)
    assert asked == [f"192.0.2.{n}" for n in range(tried + 1)]


SHARED = {
    "one domain": [(f"h{n}.a.test", f"192.0.2.{n}") for n in range(9)],
    "one address": [(f"h{n}.test", "192.0.2.1") for n in range(9)],
    "one /64": [(f"h{n}.test", f"2001:db8::{n + 1}") for n in range(9)],
    "both": [(f"h{n}.a.test", "192.0.2.1") for n in range(9)],
}


@pytest.mark.parametrize("hosts", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("is_slow", [False, True])
def test_no_domain_and_no_address_has_more_than_its_share(hosts: list[tuple[str, str]], is_slow: bool) -> None:
    queue = HostQueue(Room(8, 8, 0.25))
    greedy = [host(name, address, is_slow=is_slow) for name, address in hosts]
    for one in greedy:
        queue.push(one, 1.0)
    queue.push(host("other.test", "198.51.100.1", is_slow=is_slow), 2.0)
    assert popped(queue) == ["h0." + hosts[0][0][3:], "h1." + hosts[1][0][3:], "other.test"]
    assert (len(queue), queue.next_at()) == (7, None)
    queue.release(greedy[0])
    assert popped(queue) == [hosts[2][0]]


def test_of_those_who_may_look_again_the_earliest_counts() -> None:
    queue = HostQueue(Room(8, 8, 0.25))
    times = {"a": (1.0, 1.0, 5.0), "b": (1.0, 1.0, 3.0)}
    hosts = {f"h{n}.{name}.test": (host(f"h{n}.{name}.test"), at) for name in times for n, at in enumerate(times[name])}
    for one, at in hosts.values():
        queue.push(one, at)
    assert len(popped(queue)) == 4
    for name in ("h0.a.test", "h0.b.test"):
        queue.release(hosts[name][0])
    assert queue.next_at() == 3.0
    assert popped(queue) == ["h2.b.test", "h2.a.test"]


def test_a_share_is_one_slot_at_least() -> None:
    queue = HostQueue(Room(1, 1, 0.01))
    queue.push(host("a.test"), 1.0)
    assert popped(queue) == ["a.test"]


def test_a_visit_that_lasts_gives_its_slot_to_others() -> None:
    queue = HostQueue(Room(2, 2, 1.0))
    pits = [host(f"drip-{n}.test") for n in range(5)]
    for pit in pits:
        queue.push(pit, 1.0)
    queue.push(host("good.test"), 2.0)
    assert popped(queue) == ["drip-0.test", "drip-1.test"]
    assert [queue.park(pits[0]), queue.park(pits[1])] == [True, True]
    assert popped(queue) == ["drip-2.test", "drip-3.test"]
    assert queue.park(pits[2]) is False  # no slow slot is left
    queue.release(pits[0])
    assert queue.park(pits[2]) is True
    assert popped(queue) == ["drip-4.test"]
    queue.release(pits[3])
    assert popped(queue) == ["good.test"]


def test_of_the_slow_slots_a_domain_has_its_share_too() -> None:
    queue = HostQueue(Room(4, 4, 0.5))
    pits = [host(f"h{n}.pit.test") for n in range(9)]
    for pit in pits:
        queue.push(pit, 1.0)
    assert len(popped(queue)) == 2
    assert [queue.park(pit) for pit in pits[:2]] == [True, True]
    assert len(popped(queue)) == 2
    assert [queue.park(pit) for pit in pits[2:4]] == [False, False]
    assert popped(queue) == []


def test_who_was_slow_waits_behind_who_was_not() -> None:
    queue = HostQueue(Room(4, 4, 1.0))
    for n in range(6):
        queue.push(host(f"slow-{n}.test", is_slow=True), 1.0)
        queue.push(host(f"quick-{n}.test"), 2.0)
    assert popped(queue) == [*(f"quick-{n}.test" for n in range(4)), *(f"slow-{n}.test" for n in range(3))]


def test_a_visit_in_the_wrong_slot_knows_it() -> None:
    queue = HostQueue()
    one = host("a.test")
    queue.push(one, 1.0)
    queue.pop_due(1.0)
    assert queue.is_misplaced(one) is False
    one.addresses = (KnownAddress("192.0.2.1", 0.0),)
    assert queue.is_misplaced(one) is True
    queue.release(one)
    queue.push(one, 1.0)
    queue.pop_due(1.0)
    assert queue.is_misplaced(one) is False
    queue.park(one)
    assert queue.is_misplaced(one) is True
    one.is_slow = True
    assert queue.is_misplaced(one) is False


@given(st.integers(), st.integers(1, 9), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
@settings(max_examples=150, deadline=None)
def test_nobody_is_forgotten_and_no_share_is_passed(seed: int, slots: int, share: float) -> None:
    """Any order of visits, ends and slow ones: whoever is due and has a slot left is given out, and all are at last."""
    random = Random(seed)
    queue = HostQueue(Room(slots, slots, share))
    most = max(1, int(slots * share))
    waiting = {
        host(
            f"h{n:02}.d{random.randrange(4)}.test", f"192.0.2.{random.randrange(4)}", is_slow=random.random() < 0.3
        ): random.random() * 20
        for n in range(40)
    }
    for one, at in waiting.items():
        queue.push(one, at)
    first: set[HostRun] = set()
    slow: set[HostRun] = set()
    now = 0.0
    for _ in range(2_000):
        now += random.random()
        while (new := queue.pop_due(now)) is not None:
            del waiting[new]
            (slow if new.is_slow else first).add(new)
        for held in (first, slow):
            names = [name for one in held for name in pair_of(one)]
            assert len(held) <= slots
            assert all(names.count(name) <= most for name in names)
        for line, held in ((False, first), (True, slow)):
            taken = [name for one in held for name in pair_of(one)]
            due = [one for one, at in waiting.items() if at <= now and one.is_slow is line]
            if len(held) < (math.ceil(slots * 0.75) if line else slots):
                assert all(any(taken.count(name) >= most for name in pair_of(one)) for one in due)
        if first and random.random() < 0.3:
            one = random.choice(sorted(first, key=lambda run: run.host))
            if queue.park(one):
                first.remove(one)
                slow.add(one)
        if (first or slow) and random.random() < 0.7:
            one = random.choice(sorted(first | slow, key=lambda run: run.host))
            queue.release(one)
            first.discard(one)
            slow.discard(one)
        assert len(queue) == len(waiting)
        if not (waiting or first or slow):
            break
    assert not waiting


@pytest.mark.parametrize("kind", ["one domain", "a few domains on a few addresses"])
def test_a_step_costs_the_same_with_a_hundred_thousand_hosts(kind: str) -> None:
    def place(n: int) -> tuple[str, str]:
        if kind == "one domain":
            return f"h{n}.d.test", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"
        return f"h{n}.d{n % 9}.test", f"10.0.0.{n % 7}"

    def step_s(hosts: int) -> float:
        queue = HostQueue(Room(40, 40, 0.25))
        for n in range(hosts):
            queue.push(host(*place(n)), n / hosts)
        held = [one for _ in range(40) if (one := queue.pop_due(2.0)) is not None]  # most stand aside from here on
        began = time.perf_counter()
        for n in range(2_000):
            one = held.pop(n * 7 % len(held))
            queue.release(one)
            queue.push(one, 3.0)
            held += [more for _ in range(2) if (more := queue.pop_due(3.0)) is not None]
        return (time.perf_counter() - began) / 2_000

    few, many = step_s(1_000), step_s(100_000)
    assert many < max(8 * few, 0.000_3)
