"""One attempt at a time on a partition, also when Spark takes a running one for dead.

An attempt takes the next number of the partition's lease by creating a file, and with it the right to ask servers for
`LEASE_S` seconds. It renews by looking whether its number is still the highest. An attempt that was stopped and wakes
up finds its time over, looks, and ends. The next attempt asks nobody until the time of those before it is surely over,
so no clocks are compared between machines.

A late seal is harmless too. Each attempt notes which segments it found when it took over; what an earlier one seals
after that is in no list, and nobody ever reads it.

The driver of a round may ask all attempts to stop, with a file that is named after its lock token
(`leases/ROUND/stop/TOKEN`): they finish or drop what they have begun, seal, and end within seconds. The round stays
open. The next driver has another token, so what was said to the attempts of one is never heard by those of another.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field

from crawler.fetch.attempt import LeaseLost, StorageFailed
from crawler.fetch.segment_files import sealed_segments
from crawler.processes import process_started
from crawler.records import PartitionTask, SealedSegment
from crawler.storage import Store

LEASE_S = 20.0
RENEW_S = 4.0

Clock = Callable[[], float]


def since_boot() -> float:
    """Seconds, counted also while this process or the whole machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True)
class LeaseHolder:
    """The process of an attempt."""

    host: str
    pid: int
    process_started: str

    @classmethod
    def here(cls) -> LeaseHolder:
        return cls(socket.gethostname(), os.getpid(), process_started(os.getpid()))

    def is_surely_over(self) -> bool:
        """True when the process is gone, or is this one, which runs one attempt at a time."""
        if self.host != socket.gethostname():
            return False
        return self == LeaseHolder.here() or process_started(self.pid) != self.process_started


@dataclass
class Lease:
    """The right of one attempt to ask and to seal."""

    store: Store
    folder: str
    number: int
    clock: Clock = since_boot
    stop_path: str = ""
    parent: int = field(default_factory=os.getppid)
    valid_until: float = 0.0

    def check(self) -> None:
        """Return when the lease is held, after a look if need be. Raises LeaseLost or StorageFailed."""
        if self.clock() >= self.valid_until:
            self.renew()

    async def hold(self) -> None:
        """`check` without stopping the loop while the store is asked."""
        if self.clock() >= self.valid_until:
            await asyncio.to_thread(self.renew)

    async def renew_if_due(self) -> None:
        """Renew in good time, and end when the process that started this one is gone: nobody waits for us then."""
        if os.getppid() != self.parent:
            raise LeaseLost("the process that started this one has ended")
        if self.clock() >= self.valid_until - LEASE_S + RENEW_S:
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Hold the lease for `LEASE_S` from now. Raises LeaseLost or StorageFailed."""
        asked_at = self.clock()
        try:
            highest = max(_numbers(self.store.list(self.folder)), default=0)
        except Exception as error:
            raise StorageFailed(f"{type(error).__name__}: {error}") from error
        if highest != self.number:
            winner = highest or "the end of the round"
            raise LeaseLost(f"attempt {self.number} at {self.folder} was overtaken by {winner}")
        self.valid_until = asked_at + LEASE_S

    def is_asked_to_stop(self) -> bool:
        """True when the driver wants no more requests made. A store that does not say changes nothing."""
        try:
            return bool(self.stop_path) and self.store.exists(self.stop_path)
        except Exception:  # noqa: BLE001 - stores of all kinds have exceptions of their own
            return False

    def release(self) -> None:
        """Let the next attempt begin at once. A store that fails costs that attempt the wait, and nothing else."""
        try:
            self.store.put(f"{self.folder}/{self.number:06}.released", b"")
        except Exception:  # noqa: BLE001 - stores of all kinds have exceptions of their own
            return


def take_over(
    store: Store, task: PartitionTask, sleep: Callable[[float], None] = time.sleep, clock: Clock = since_boot
) -> tuple[Lease, list[SealedSegment]]:
    """The partition's lease, and the segments that count: those sealed by earlier attempts while they held it.

    Waits for the earlier attempts' time to be over.
    """
    folder = lease_folder(task.round, task.partition)
    lease = _take_number(store, folder, clock)
    lease.stop_path = stop_path(task.round, task.driver)
    taken_at = clock()
    if not _are_surely_over(store, folder, lease.number):
        sleep(max(0.0, taken_at + LEASE_S - clock()))
    segments = _that_count(store, task, folder, lease.number)
    store.put_new(_accepted_path(folder, lease.number), json.dumps([one.outcomes for one in segments]).encode())
    lease.renew()
    return lease, segments


def lease_folder(round_number: int, partition: int) -> str:
    """Where the lease of a partition is, relative to the lake."""
    return f"leases/{round_number}/{partition}"


def stop_path(round_number: int, driver: int) -> str:
    """Where a driver, by its lock token, asks the attempts of its round to stop, relative to the lake."""
    return f"leases/{round_number}/stop/{driver}"


def _take_number(store: Store, folder: str, clock: Clock) -> Lease:
    mine = json.dumps(asdict(LeaseHolder.here())).encode()
    number = max(_numbers(store.list(folder)), default=0) + 1
    # A store may answer that the file is there to the very writer whose first answer was lost.
    while not store.put_new(_path(folder, number), mine) and store.read(_path(folder, number)) != mine:
        number += 1
    return Lease(store, folder, number, clock)


def _are_surely_over(store: Store, folder: str, number: int) -> bool:
    names = set(store.list(folder))
    earlier = [n for n in _numbers(names) if n < number and f"{folder}/{n:06}.released" not in names]
    return all(LeaseHolder(**json.loads(store.read(_path(folder, n)))).is_surely_over() for n in earlier)


def _that_count(store: Store, task: PartitionTask, folder: str, number: int) -> list[SealedSegment]:
    """What the last attempt that came so far had found, and what it sealed itself; later ones did nothing."""
    names = set(store.list(folder))
    came_far = [n for n in _numbers(names) if n < number and _accepted_path(folder, n) in names]
    if not came_far:
        return []
    last = max(came_far)
    found = set(json.loads(store.read(_accepted_path(folder, last))))
    return [one for one in sealed_segments(store, task) if one.outcomes in found or one.attempt == last]


def _path(folder: str, number: int) -> str:
    return f"{folder}/{number:06}.json"


def _accepted_path(folder: str, number: int) -> str:
    return f"{folder}/{number:06}.accepted.json"


def _numbers(paths: Iterable[str]) -> list[int]:
    stems = (path.rsplit("/", 1)[-1].removesuffix(".json") for path in paths if path.endswith(".json"))
    return [int(stem) for stem in stems if stem.isdigit()]
