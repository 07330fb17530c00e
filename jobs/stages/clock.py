"""The scheduling clock of a lake: it may be ahead of the real one, and it never goes back."""

from __future__ import annotations

import time

from jobs.exits import BAD_USE, Stop
from jobs.words import instant


def not_before(last: int, last_now: float, at: float | None) -> float | None:
    """The time to schedule the next round at, epoch seconds: `at`, or else now and never before the last round.

    None stands for now. Raises Stop when `at` lies before the round `last`, which was scheduled at `last_now`.
    """
    if at is None:
        return last_now if last_now > time.time() else None
    if at < last_now:
        raise Stop(
            BAD_USE,
            f"--at {instant(at)} lies before round {last}, which was scheduled at {instant(last_now)}: what is due and "
            "what was seen would contradict each other. Give that time or a later one, or leave --at out.",
        )
    return at
