"""One writer at a time: a lock with a holder and a fencing token, next to the tables.

The lock is a row of files `lock/<token>.json`. Whoever creates the next token, atomically, holds the lock; the highest
token counts. A holder that died is recognised by its process (same machine) or by its lease, and is taken over; if it
wakes up, its token is no longer the highest and it can commit nothing.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from crawler.processes import process_started
from crawler.storage import Store

LEASE_S = 120.0
BEAT_S = 20.0


class LockHeld(Exception):
    """Another driver works on this lake."""


class LockLost(Exception):
    """Another driver took the lock over; this one must not write."""


@dataclass(frozen=True)
class Holder:
    """Who holds the lock, and until when without a sign of life."""

    token: int
    host: str
    pid: int
    process_started: str
    since: float
    expires_at: float
    is_released: bool = False

    @property
    def name(self) -> str:
        return f"{self.host}:{self.pid}"


@contextmanager
def hold_lock(store: Store, clock: Callable[[], float] = time.time) -> Iterator[Lock]:
    """Hold the lake's lock for the block, renewing it in the background. Raises LockHeld when another driver has it."""
    lock = acquire(store, clock)
    stop = threading.Event()
    beat = threading.Thread(target=lock.beat_until, args=(stop,), daemon=True, name="lock-beat")
    beat.start()
    try:
        yield lock
    finally:
        stop.set()
        beat.join()
        lock.release()


def acquire(store: Store, clock: Callable[[], float] = time.time) -> Lock:
    """Take the lock, or say who holds it."""
    current = current_holder(store)
    if current is not None and is_alive(current, clock()):
        raise LockHeld(
            f"another driver works on {store.uri}: {current.name}, since "
            f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(current.since))} (token {current.token}). "
            f"Wait for it to end; if it is dead, its lease ends {max(0, current.expires_at - clock()):.0f} s from now."
        )
    now = clock()
    token = 1 if current is None else current.token + 1
    mine = Holder(token, socket.gethostname(), os.getpid(), process_started(os.getpid()), now, now + LEASE_S)
    # A store may answer that the file is there to the very writer whose first answer was lost.
    if not store.put_new(_path(token), _encode(mine)) and store.read(_path(token)) != _encode(mine):
        winner = current_holder(store)
        raise LockHeld(f"another driver took the lock of {store.uri} just now: {winner.name if winner else 'unknown'}.")
    return Lock(store, mine, clock)


@dataclass
class Lock:
    """A held lock."""

    store: Store
    holder: Holder
    clock: Callable[[], float] = time.time

    @property
    def token(self) -> int:
        return self.holder.token

    def check(self) -> None:
        """Raise LockLost unless this token is still the highest. Called before every write that others would see."""
        highest = max(_tokens(self.store), default=0)
        if highest != self.token:
            raise LockLost(f"token {self.token} was overtaken by {highest}: another driver took over {self.store.uri}.")

    def beat_until(self, stop: threading.Event) -> None:
        while not stop.wait(BEAT_S):
            self.holder = replace(self.holder, expires_at=self.clock() + LEASE_S)
            self.store.put(_path(self.token), _encode(self.holder))

    def release(self) -> None:
        self.store.put(_path(self.token), _encode(replace(self.holder, is_released=True)))


def current_holder(store: Store) -> Holder | None:
    """The owner of the highest token, alive or not; None when nobody ever held the lock."""
    tokens = _tokens(store)
    return Holder(**json.loads(store.read(_path(max(tokens))))) if tokens else None


def is_alive(holder: Holder, now: float) -> bool:
    """False when the holder let go, when its process on this machine is gone, or when its lease ran out."""
    if holder.is_released:
        return False
    if holder.host == socket.gethostname():
        return process_started(holder.pid) == holder.process_started
    return now < holder.expires_at


def _tokens(store: Store) -> list[int]:
    return [int(path.rsplit("/", 1)[-1].removesuffix(".json")) for path in store.list("lock") if path.endswith(".json")]


def _path(token: int) -> str:
    return f"lock/{token:010d}.json"


def _encode(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()
