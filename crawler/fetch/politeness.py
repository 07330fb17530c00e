"""When a server may be asked next: gaps per host and per address, counted in real time from the start of a request.

Robots may slow us, never speed us. A gap is never shorter than the settings say, and the next request to a host never
begins before the last exchange has ended. To the people behind a server its ports are one host: all ports of a name
share one gap, the longest that any of them asks for, and one request at a time. A wait that one of them asks for is its
own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from crawler.page.url import host_name
from crawler.records import HostState
from crawler.settings import FetchSettings

FIRST_WAIT_S = 60.0
BUSY_S = 0.05
BUSY_SHARE = 0.25  # of the time that a host has been busy
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


@dataclass(slots=True)
class Turn:
    """What decides when one host may be asked: as remembered, then as it happens. Times are epoch seconds.

    `of_name`: the turns of all ports of the name, this one among them, when there are several.
    """

    last_request_at: float = 0.0
    last_fetch_s: float = 0.0
    not_before: float = 0.0
    free_at: float = 0.0  # end of the last exchange
    crawl_delay_s: float | None = None
    gap_factor: int = 1
    grouped_by: frozenset[str] = frozenset()  # the addresses by which the plan put the host into its partition
    waits: int = 0  # answers in a row that asked us to wait
    is_busy: bool = False
    of_name: list[Turn] | None = None


class Politeness:
    """Keeps the promises of one partition to hosts and addresses.

    `partitions` may ask an address that the plan did not know of, so each of them keeps that many times the gap to it.
    `resumed_at`: an earlier attempt may have asked anything just before that time. `earlier_until`: so may the round
    before, whose partitions asked hosts without a row of their own where robots.txt redirected to them.
    """

    def __init__(
        self,
        settings: FetchSettings,
        clock: Callable[[], float],
        partitions: int = 1,
        resumed_at: float | None = None,
        earlier_until: float = 0.0,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._partitions = max(partitions, 1)
        self._resumed_at = resumed_at
        self._floor = max(resumed_at or 0.0, earlier_until)
        self._asked_at: dict[str, float] = {}
        self._factors: dict[str, int] = {}
        self._first_of_name: dict[str, Turn] = {}

    def turn_of(self, state: HostState, grouped_by: frozenset[str], *, knows_robots: bool) -> Turn:
        """The turn of a host as it was left; its addresses count as asked with it. `grouped_by`: see `Turn`."""
        turn = Turn(
            last_request_at=max(state.last_request_at, self._floor),
            last_fetch_s=state.last_fetch_s,
            not_before=state.not_before,
            crawl_delay_s=state.crawl_delay_s,
            gap_factor=max(state.gap_factor, 1),
            grouped_by=grouped_by,
        )
        for address in {known.address for known in state.addresses}:
            self._asked_at[address] = max(self._asked_at.get(address, 0.0), state.last_request_at)
        if self._resumed_at is not None and not knows_robots:
            turn.not_before = max(turn.not_before, self._resumed_at + self._settings.max_crawl_delay_s)
        return self._among_ports(state.host, turn)

    def turn_of_stranger(self, host: str, grouped_by: frozenset[str]) -> Turn:
        """The turn of a host without URLs here; an earlier round may have asked it just now."""
        return self._among_ports(host, Turn(self._clock(), grouped_by=grouped_by))

    def _among_ports(self, host: str, turn: Turn) -> Turn:
        first = self._first_of_name.setdefault(host_name(host), turn)
        if first is not turn:
            first.of_name = first.of_name or [first]
            first.of_name.append(turn)
            turn.of_name = first.of_name
        return turn

    def delay_s(self, turn: Turn) -> float:
        """Seconds between the starts of two requests to the host."""
        if turn.of_name is not None:
            return max(map(self._own_delay_s, turn.of_name))
        return self._own_delay_s(turn)

    def _own_delay_s(self, turn: Turn) -> float:
        settings = self._settings
        return max(settings.delay_s, turn.crawl_delay_s or 0.0, settings.delay_factor * turn.last_fetch_s)

    def host_ready_at(self, turn: Turn) -> float:
        """The time from which the host may be asked, whatever its address."""
        last, free = turn.last_request_at, turn.free_at
        if turn.of_name is not None:
            last = max(one.last_request_at for one in turn.of_name)
            free = max(one.free_at for one in turn.of_name)
        return max(last + self.delay_s(turn), turn.not_before, free)

    def ready_at(self, turn: Turn, address: str) -> float:
        """The time from which the host may be asked at this address; a busy one is to be looked at again, the later the
        longer it has been busy."""
        ready_at = max(self.host_ready_at(turn), self._address_ready_at(turn, address))
        busy = [one for one in turn.of_name or (turn,) if one.is_busy]
        if not busy:
            return ready_at
        now = self._clock()
        return max(ready_at, now + max(BUSY_S, BUSY_SHARE * (now - busy[0].last_request_at)))

    def begin(self, turn: Turn, address: str) -> None:
        """A request begins now."""
        now = self._clock()
        turn.is_busy = True
        turn.last_request_at = now
        self._asked_at[address] = now
        self._factors[address] = self._factor(turn, address)

    def sent(self, turn: Turn, address: str, sent_at: float) -> None:
        """The request left at this time, some time after it began: gaps count from here."""
        turn.last_request_at = max(turn.last_request_at, sent_at)
        self._asked_at[address] = max(self._asked_at[address], sent_at)

    def end(self, turn: Turn) -> None:
        """The exchange is over."""
        now = self._clock()
        turn.is_busy = False
        turn.free_at = now
        turn.last_fetch_s = max(now - turn.last_request_at, 0.0)

    def ask_to_wait(self, turn: Turn, seconds: float | None) -> float:
        """The host asked us to wait, for a time it named or for 60 s, doubled each time; returns until when."""
        cap = self._settings.max_retry_after_s
        wait = min(FIRST_WAIT_S * 2.0 ** min(turn.waits, 20), cap) if seconds is None else min(seconds, cap)
        turn.waits += 1
        turn.not_before = max(turn.not_before, self._clock() + wait)
        return turn.not_before

    def _address_ready_at(self, turn: Turn, address: str) -> float:
        settings = self._settings
        gap = settings.delay_s * settings.address_delay_share * self._factor(turn, address)
        return max(self._asked_at.get(address, 0.0), self._floor) + gap

    def _factor(self, turn: Turn, address: str) -> int:
        own = turn.gap_factor if address in turn.grouped_by else max(turn.gap_factor, self._partitions)
        return max(own, self._factors.get(address, 1))


def retry_after_s(values: Iterable[str], now: float) -> float | None:
    """Seconds that a Retry-After field asks for (RFC 9110, 10.2.3), None when it says nothing sensible."""
    for value in values:
        text = value.strip()
        if _SECONDS.fullmatch(text):
            return float(text)
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None
