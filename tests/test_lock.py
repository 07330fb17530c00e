"""The lock of a lake: one driver at a time, the dead are taken over, and who was overtaken commits nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from crawler import schemas
from crawler.storage import Store
from crawler.tables import lock as locking
from crawler.tables.direct import Write, create_tables
from crawler.tables.ledger import Ledger, RoundRow, State
from crawler.tables.lock import Lock, LockHeld, LockLost, acquire, current_holder, hold_lock
from jobs.maintain_tables import forget_tokens
from jobs.stages.open_round import advance
from tests.lock_races import race_for, unfair

HOLD = """
import sys
from crawler.storage import Store
from crawler.tables.lock import hold_lock
with hold_lock(Store.open(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Held:
    """What `advance` and `forget_tokens` use of an open lake."""

    def __init__(self, lock: Lock) -> None:
        self.lock, self.store, self.ledger = lock, lock.store, Ledger(lock.store)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "lake"))


@contextmanager
def other_driver(store: Store) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, store.uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def make_look_dead(lock: Lock) -> None:
    """As if its process id had gone to another process."""
    dead = replace(lock.holder, process_started="1@another-boot")
    lock.store.put(f"lock/{lock.token:010d}.json", locking._encode(dead))


def test_a_second_driver_learns_who_holds_the_lock(store: Store) -> None:
    with other_driver(store) as process:
        with pytest.raises(LockHeld, match=rf":{process.pid}, since .* \(token 1\)"):
            acquire(store)
        process.communicate("")
        assert acquire(store).token == 2


def test_a_holder_that_was_killed_is_taken_over_at_once(store: Store) -> None:
    with other_driver(store) as process:
        process.kill()
        process.wait()
        holder = current_holder(store)
        assert holder is not None
        assert not holder.is_released
        with hold_lock(store) as lock:
            assert lock.token == 2


def test_a_reused_process_id_is_not_taken_for_the_holder(store: Store) -> None:
    make_look_dead(acquire(store))
    assert acquire(store).token == 2


@pytest.mark.parametrize(("later_s", "is_held"), [(locking.LEASE_S - 1, True), (locking.LEASE_S + 1, False)])
def test_a_holder_on_another_machine_lives_as_long_as_its_lease(store: Store, later_s: float, is_held: bool) -> None:
    lock = acquire(store, lambda: 1_000.0)
    store.put("lock/0000000001.json", locking._encode(replace(lock.holder, host="elsewhere")))
    if is_held:
        with pytest.raises(LockHeld, match="elsewhere"):
            acquire(store, lambda: 1_000.0 + later_s)
    else:
        assert acquire(store, lambda: 1_000.0 + later_s).token == 2


def test_an_overtaken_holder_commits_nothing_even_when_it_beats_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(store, [schemas.ROUNDS])
    sleeper = acquire(store)
    row = RoundRow(1, State.OPENED, now=1.0, segment_folder="s", versions={})
    advance(Held(sleeper), row)  # type: ignore[arg-type]  # the lock, store and ledger of a lake are enough here
    make_look_dead(sleeper)
    winner = acquire(store)
    monkeypatch.setattr(locking, "BEAT_S", 0.01)
    stop = threading.Event()
    beat = threading.Thread(target=sleeper.beat_until, args=(stop,))
    beat.start()
    forget_tokens(Held(winner))  # type: ignore[arg-type]  # the lock and store of a lake are enough here
    threading.Event().wait(0.1)
    stop.set()
    beat.join()
    with pytest.raises(LockLost, match="token 1 was overtaken by 2"):
        advance(Held(sleeper), replace(row, state=State.PLANNED))  # type: ignore[arg-type]  # the lock and store of a lake are enough here
    assert [kept.state for kept in Ledger(store).newest()] == [State.OPENED]
    sleeper.release()
    winner.check()
    with pytest.raises(LockHeld):
        acquire(store)


def test_of_several_tokens_the_highest_holds_the_lock(store: Store) -> None:
    for token in (1, 2, 3):
        lock = acquire(store, lambda: 1_000.0)
        assert (lock.token, current_holder(store)) == (token, lock.holder)
        if token < 3:
            make_look_dead(lock)
    for later_s, left_s in ((0.0, locking.LEASE_S), (locking.LEASE_S + 9.0, 0.0)):
        with pytest.raises(LockHeld, match=rf"\(token 3\)\. .* its lease ends {left_s:.0f} s from now"):
            acquire(store, lambda: 1_000.0 + later_s)  # noqa: B023 - it is called at once


def test_a_lock_whose_file_was_removed_is_lost(store: Store) -> None:
    lock = acquire(store)
    lock.check()
    store.delete("lock/0000000001.json")
    with pytest.raises(LockLost, match="token 1 was overtaken by 0"):
        lock.check()


def test_the_lease_is_renewed_while_the_lock_is_held(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "BEAT_S", 0.01)
    clock = iter(range(1_000, 1_000_000))
    with hold_lock(store, lambda: float(next(clock))) as lock:
        first = current_holder(store)
        threading.Event().wait(0.2)
        second = current_holder(store)
        lock.check()
    assert first is not None
    assert second is not None
    assert second.expires_at > first.expires_at
    released = current_holder(store)
    assert released is not None
    assert released.is_released


def test_of_drivers_that_race_one_wins_and_the_others_learn_its_name(tmp_path: Path) -> None:
    ends = race_for([str(tmp_path / f"lake-{race}") for race in range(100)], 3)
    assert len(ends) == 300
    assert unfair(ends, 3) == []


def test_a_state_recorded_twice_is_there_once(store: Store) -> None:
    create_tables(store, [schemas.ROUNDS])
    ledger = Ledger(store)
    for number in (1, 2):
        row = RoundRow(number, State.OPENED, now=1.0, segment_folder="s", versions={"plans": number})
        for _ in range(2):
            ledger.record(row)
    maintained = replace(row, state=State.COMMITTED)
    for _ in range(2):
        ledger.record(maintained, Write("maintain/rounds", 7))
    assert [(row.round, row.state, row.versions) for row in ledger.newest(2)] == [
        (1, State.OPENED, {"plans": 1}),
        (2, State.OPENED, {"plans": 2}),
        (2, State.COMMITTED, {"plans": 2}),
    ]


def test_the_ledger_says_which_rounds_are_the_newest_and_what_readers_may_see(store: Store) -> None:
    ledger = Ledger(store)
    assert (ledger.newest(), ledger.committed()) == ([], None)  # no lake
    create_tables(store, [schemas.ROUNDS])
    assert (ledger.newest(), ledger.committed()) == ([], None)  # no round
    row = RoundRow(1, State.OPENED, 1_000.5, "crawl-data/1", {"plans": 3, "hosts": 0})
    bare = replace(row, inbox=(), counts={}, settings_hash="", holder="", token=0, recorded=0.0, settings="")
    assert row == bare
    row = replace(row, inbox=("a", "b"), counts={"urls": 2}, settings_hash="s", holder="h:1", token=4, settings="{}")
    rows: list[RoundRow] = []
    for number in (1, 2, 3):
        for state in State:
            rows.append(replace(row, round=number, state=state, recorded=1_000.0 * number + len(rows)))
            ledger.record(rows[-1])
            committed = [one for one in rows if one.state is State.COMMITTED]
            assert ledger.newest(9) == rows
            assert ledger.newest(2) == [one for one in rows if one.round > number - 2]
            assert ledger.newest() == [one for one in rows if one.round == number]
            assert ledger.committed() == (committed[-1] if committed else None)
    maintained = replace(rows[-1], versions={"plans": 9}, recorded=9_000.0)
    ledger.record(maintained, Write("maintain/rounds", 1))
    assert ledger.committed() == ledger.newest()[-1] == maintained
    assert ledger.newest()[:-1] == rows[-4:]
