"""Gaps are kept: on paper with a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.fetch.politeness import Politeness, Turn, retry_after_s
from crawler.records import HostState, KnownAddress
from crawler.settings import FetchSettings

A, B = "192.0.2.1", "192.0.2.2"
SETTINGS = FetchSettings(delay_s=2.0, address_delay_share=0.5, delay_factor=3.0, max_retry_after_s=1_000.0)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def politeness(clock: Clock, **fields: object) -> Politeness:
    return Politeness(SETTINGS, clock, **fields)  # type: ignore[arg-type]  # a table of cases is looser than the types


@pytest.mark.parametrize(
    ("crawl_delay", "last_fetch_s", "delay"),
    [(None, 0.0, 2.0), (0.5, 0.0, 2.0), (7.0, 0.0, 7.0), (500.0, 0.0, 500.0), (None, 1.5, 4.5), (3.0, 2.0, 6.0)],
)
def test_the_delay_is_the_longest_of_all(crawl_delay: float | None, last_fetch_s: float, delay: float) -> None:
    turn = Turn(crawl_delay_s=crawl_delay, last_fetch_s=last_fetch_s)
    assert politeness(Clock()).delay_s(turn) == delay


def test_the_delay_counts_from_the_start_and_never_before_the_end() -> None:
    clock = Clock()
    polite, turn = politeness(clock), Turn()
    polite.begin(turn, A)
    assert turn.is_busy
    clock.now += 0.1
    polite.end(turn)
    assert polite.ready_at(turn, A) == 1_002.0
    clock.now = 1_002.0
    polite.begin(turn, A)
    clock.now += 9.0
    polite.end(turn)
    assert polite.ready_at(turn, A) == 1_002.0 + 3.0 * 9.0
    assert polite.host_ready_at(replace(turn, last_fetch_s=0.0)) == 1_011.0


@pytest.mark.parametrize(("sent_at", "counts_from"), [(1_003.0, 1_003.0), (1_000.0, 1_000.0), (997.0, 1_000.0)])
def test_gaps_count_from_the_later_of_beginning_and_sending(sent_at: float, counts_from: float) -> None:
    """What is connected to slowly leaves later than it began; a clock that was set back hurries nobody."""
    polite, turn = politeness(Clock()), Turn()
    polite.begin(turn, A)
    polite.sent(turn, A, sent_at)
    assert turn.last_request_at == counts_from
    assert polite.host_ready_at(turn) == counts_from + 2.0
    assert polite.ready_at(Turn(), A) == counts_from + 1.0


@pytest.mark.parametrize(
    ("factor", "grouped_by", "partitions", "gap"),
    [(1, {A}, 1, 1.0), (1, set(), 1, 1.0), (4, {A}, 1, 4.0), (1, {A}, 8, 1.0), (1, set(), 8, 8.0), (4, {B}, 2, 4.0)],
)
def test_the_gap_to_an_address_is_shared_by_its_hosts(
    factor: int, grouped_by: set[str], partitions: int, gap: float
) -> None:
    clock = Clock()
    polite = politeness(clock, partitions=partitions)
    one, other = (Turn(gap_factor=factor, grouped_by=frozenset(grouped_by)) for _ in range(2))
    polite.begin(one, A)
    assert polite.ready_at(other, A) == clock.now + gap
    assert polite.ready_at(other, B) <= clock.now


def test_the_largest_factor_of_an_address_counts_for_all_its_hosts() -> None:
    clock = Clock()
    polite = politeness(clock)
    polite.begin(Turn(gap_factor=5), A)
    assert polite.ready_at(Turn(), A) == clock.now + 5.0


def test_a_busy_host_is_looked_at_again() -> None:
    clock = Clock()
    polite, turn = politeness(clock), Turn()
    polite.begin(turn, A)
    clock.now += 60.0
    assert polite.ready_at(turn, A) > clock.now


def test_what_an_earlier_round_did_is_remembered() -> None:
    clock = Clock()
    polite = politeness(clock)
    known = (KnownAddress(A, 2_000.0),)
    state = HostState("a.test", known, last_request_at=999.0, not_before=1_500.0, crawl_delay_s=40.0, last_fetch_s=0.1)
    turn = polite.turn_of(state, frozenset({A}), knows_robots=True)
    assert polite.host_ready_at(turn) == 1_500.0
    assert polite.ready_at(Turn(grouped_by=frozenset({A})), A) == 1_000.0


@pytest.mark.parametrize(("knows_robots", "ready_at"), [(True, 1_005.0), (False, 1_030.0)])
def test_after_a_resume_every_host_counts_as_asked_just_now(knows_robots: bool, ready_at: float) -> None:
    polite = politeness(Clock(), resumed_at=1_000.0)
    turn = polite.turn_of(HostState("a.test", crawl_delay_s=5.0), frozenset(), knows_robots=knows_robots)
    assert polite.host_ready_at(turn) == ready_at
    assert polite.ready_at(Turn(), B) >= 1_001.0


@pytest.mark.parametrize(("last_request_at", "ready_at"), [(0.0, 995.0), (994.0, 999.0)])
def test_a_host_may_have_been_asked_until_the_round_before_was_over(last_request_at: float, ready_at: float) -> None:
    polite = politeness(Clock(), earlier_until=990.0)
    state = HostState("a.test", last_request_at=last_request_at, crawl_delay_s=5.0)
    assert polite.host_ready_at(polite.turn_of(state, frozenset(), knows_robots=False)) == ready_at
    assert polite.ready_at(Turn(), B) == 991.0


def test_waits_double_are_capped_and_named_ones_are_kept() -> None:
    clock = Clock()
    polite, turn = politeness(clock), Turn()
    assert [polite.ask_to_wait(turn, None) - clock.now for _ in range(6)] == [60, 120, 240, 480, 960, 1_000]
    other = Turn()
    assert polite.ask_to_wait(other, 30.0) == 1_030.0
    assert polite.ask_to_wait(other, 1e12) == 2_000.0
    assert polite.host_ready_at(other) == 2_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0), ("0", 0.0), (" 7 ", 7.0), ("1.5", 1.5),
        ("Thu, 01 Jan 1970 00:17:10 GMT", 30.0), ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("-5", None), ("nan", None), ("inf", None), ("1e309", None), ("soon", None), ("", None), ("9" * 30, None),
        ("Thu, 99 Jan 1970 00:17:10 GMT", None), ("\u0663", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_with_suspicion(value: str, seconds: float | None) -> None:
    assert retry_after_s([value], 1_000.0) == seconds
