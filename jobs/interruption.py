"""Ctrl-C and SIGTERM: one sentence, no traceback, and nothing lost that was fetched.

Outside of the fetch stage a signal ends the command at once: whatever it was doing is done again, or recognised as
done, by the next run. In the fetch stage servers have been asked, and a partition may hold a minute of their answers
that is not sealed yet. There the first signal only asks the partitions to stop, through a file in the lake, which
reaches other machines as well (`crawler.fetch.lease`). They seal and return, and the stage ends by raising what the
signal meant; so its round is never taken for fetched. After `SEALING_S`, or at a second signal, nobody is waited for.

Spark catches Ctrl-C by a handler of its own, which kills the tasks, so ours is set again when a session has opened.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from jobs.exits import INTERRUPTED, TERMINATED
from jobs.output import say

if TYPE_CHECKING:
    from crawler.tables.lake import Lake
    from crawler.tables.ledger import RoundRow

SEALING_S = 8.0
CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
GOES_ON = "the same command goes on from here"


class Interrupted(BaseException):
    """The command was told to end. Not an Exception, so that nothing on the way takes it for a fault."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class _Interruption:
    """What a signal means now. One for the process, as signals are."""

    def __init__(self) -> None:
        self.ask_to_seal: Callable[[], None] | None = None
        self.received: signal.Signals | None = None

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """The handler of both signals, and of the alarm that ends the waiting."""
        if self.ask_to_seal is None or self.received is not None:
            raise self.verdict(signal.Signals(number))
        self.received = signal.Signals(number)
        say("orbweaver: stopping; what was fetched is being sealed", sys.stderr)
        signal.setitimer(signal.ITIMER_REAL, SEALING_S)
        self.ask_to_seal()

    def verdict(self, number: signal.Signals | None = None) -> Interrupted:
        """What ends the command."""
        first = self.received or number or signal.SIGINT
        if number is None:
            words = f"what was fetched is sealed, and {GOES_ON}"
        elif self.received is None:
            words = GOES_ON
        else:
            words = f"what was not sealed in time will be fetched again; {GOES_ON}"
        return Interrupted(CODES.get(first, INTERRUPTED), f"interrupted ({first.name}): {words}")


_STATE = _Interruption()


def listen() -> None:
    """Set our handlers; again after Spark has set its own. Outside the main thread signals are not ours to handle."""
    if threading.current_thread() is threading.main_thread():
        for number in (*CODES, signal.SIGALRM):
            signal.signal(number, _STATE.handle)


@contextmanager
def listening() -> Iterator[None]:
    """Handle both signals for the block; the handlers of before come back after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (*CODES, signal.SIGALRM)}
    listen()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def sealing(lake: Lake, rnd: RoundRow) -> Iterator[None]:
    """For the block, the fetch stage of a round, a signal asks its partitions to seal. Raises Interrupted after it."""
    from crawler.fetch.lease import stop_path  # late: Arrow comes with it, and most commands never fetch

    def ask() -> None:
        with suppress(Exception):  # then the alarm ends it
            lake.store.put(stop_path(rnd.round, lake.lock.token), b"")

    _STATE.ask_to_seal = ask
    try:
        yield
        if _STATE.received is not None:
            raise _STATE.verdict()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _STATE.ask_to_seal = _STATE.received = None
