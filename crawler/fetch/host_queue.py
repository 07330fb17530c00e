"""The back queues: one host each, in a heap by the time at which the host may be asked next."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from itertools import count

from crawler.fetch.exchange import IdleConnection
from crawler.fetch.plan_file import Plan, PlannedHost
from crawler.fetch.politeness import Turn
from crawler.fetch.robots_cache import HeldCopy, RobotsQuest
from crawler.records import HostState, KnownAddress, Outcome, PlannedUrl

ROWS_AHEAD = 16


@dataclass(slots=True, eq=False)
class HostRun:
    """A host while its partition is fetched: what is left of its back queue, and what was learned on the way."""

    plan: Plan
    state: HostState
    turn: Turn
    row: int
    end: int
    addresses: tuple[KnownAddress, ...] = ()
    address_at: int = 0
    robots: tuple[HeldCopy, ...] = ()
    robots_hosts: tuple[str, ...] = ()
    rules: dict[str, tuple[HeldCopy | None, float]] = field(default_factory=dict)  # by scheme, with their end
    unreachable: dict[str, str] = field(default_factory=dict)  # schemes whose robots.txt is out of reach, and why
    quest: RobotsQuest | None = None
    faults: int = 0  # in a row
    lookups: int = 0  # failed ones
    is_out: bool = False
    is_asking: bool = False  # a request for the current URL is on its way
    is_repeated: bool = False  # the current URL was asked, and its server told us to come back
    connection: IdleConnection | None = None
    current: PlannedUrl | None = None
    _ahead: list[PlannedUrl] = field(default_factory=list)  # the next ones, last first

    @classmethod
    def of(cls, plan: Plan, planned: PlannedHost, turn: Turn, robots: tuple[HeldCopy, ...] = ()) -> HostRun:
        """The host at the start of its partition. `robots`: the copies of its state, which are on the shelf."""
        state = replace(planned.state, robots=())
        run = cls(plan, state, turn, planned.first, planned.end, addresses=state.addresses, robots=robots)
        run.robots_hosts = state.robots_hosts
        run.current = run._look_up(1)
        return run

    @property
    def host(self) -> str:
        return self.state.host

    @property
    def urls_left(self) -> int:
        return self.end - self.row

    @property
    def address(self) -> str:
        """The address to ask; there must be one."""
        return self.addresses[self.address_at % len(self.addresses)].address

    def advance(self) -> None:
        """Go on to the next URL."""
        self.row += 1
        self.is_repeated = False
        self.current = self._look_up()

    def _look_up(self, ahead: int = ROWS_AHEAD) -> PlannedUrl | None:
        """The URL at hand. The plan is read `ahead` rows at a time."""
        if not self._ahead:
            self._ahead = self.plan.urls_of(self.row, min(self.row + ahead, self.end))[::-1]
        return self._ahead.pop() if self._ahead else None

    def tries_next_address(self, failure: Outcome | None, reason: str | None) -> bool:
        """True, and the next address is the one to ask, when the last one took no connection and there is another."""
        is_dead = failure is Outcome.CONNECT_FAILED or (failure is Outcome.TIMEOUT and reason == "connect")
        if not is_dead or self.address_at + 1 >= len(self.addresses):
            return False
        self.address_at += 1
        return True

    def drop_connection(self) -> None:
        """Close the idle connection, if there is one."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def close(self) -> None:
        """Let go of everything that only a host with URLs needs."""
        self.drop_connection()
        self.rules.clear()
        self.quest = None


class HostQueue:
    """Hosts by the time at which they may be asked next."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, HostRun]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, host: HostRun, at: float) -> None:
        """Put a host back until `at`."""
        heapq.heappush(self._heap, (at, next(self._order), host))

    def next_at(self) -> float | None:
        """The earliest time in the queue."""
        return self._heap[0][0] if self._heap else None

    def is_due(self, now: float) -> bool:
        """True when a host is waiting for nothing but us."""
        return bool(self._heap) and self._heap[0][0] <= now

    def pop_due(self, now: float) -> HostRun | None:
        """The host that has been due for the longest time, None when none is."""
        if not self._heap or self._heap[0][0] > now:
            return None
        return heapq.heappop(self._heap)[2]

    def drain(self) -> list[HostRun]:
        """All hosts that are left."""
        hosts = [entry[2] for entry in self._heap]
        self._heap.clear()
        return hosts
