"""Processes that race for the locks of many lakes, and what must be true of the end, on any kind of store."""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from crawler.storage import Store
from crawler.tables.lock import LockHeld, acquire

WAIT_S = 60.0


class End(NamedTuple):
    """How a race ended for one process: the holder it became, or what it was told."""

    uri: str
    holder: str
    told: str


def race_for(uris: Sequence[str], racers: int) -> list[End]:
    """Let all processes reach for the lock of each lake at the same moment, lake after lake."""
    spawn = multiprocessing.get_context("spawn")
    barrier, ends = spawn.Barrier(racers), spawn.SimpleQueue()
    processes = [spawn.Process(target=_race, args=(uris, barrier, ends), daemon=True) for _ in range(racers)]
    for process in processes:
        process.start()
    found = [ends.get() for _ in range(racers * len(uris))]
    for process in processes:
        process.join(WAIT_S)
        assert process.exitcode == 0
    return found


def _race(uris: Sequence[str], barrier: Barrier, ends: SimpleQueue[End]) -> None:
    for uri in uris:
        store = Store.open(uri)
        store.list("lock")  # the client is made before the race
        barrier.wait(WAIT_S)
        try:
            ends.put(End(uri, acquire(store).holder.name, ""))
        except LockHeld as held:
            ends.put(End(uri, "", str(held)))
    barrier.wait(WAIT_S)  # holders live until the last race is over


def unfair(ends: Sequence[End], racers: int) -> list[tuple[str, list[End]]]:
    """The races in which not exactly one won, or a loser was not told who did."""
    by_lake = defaultdict(list)
    for end in ends:
        by_lake[end.uri].append(end)
    return [(uri, of_lake) for uri, of_lake in by_lake.items() if not _is_fair(of_lake, racers)]


def _is_fair(ends: Sequence[End], racers: int) -> bool:
    winners = [end.holder for end in ends if end.holder]
    losers = [end for end in ends if not end.holder]
    return len(winners) == 1 and len(losers) == racers - 1 and all(winners[0] in end.told for end in losers)
