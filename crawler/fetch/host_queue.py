"""The back queues: one host each, in a heap by the time at which the host may be asked next; and who may be visited.

A visit holds a slot for as long as its server takes, and a server may take minutes on purpose. Three rules keep a few
of them from holding all slots:

- A visit that has lasted a while moves to the *slow slots*, of which there are others, and its first slot is free again
  for somebody else. Nothing is cut off by that, so a server that is slow and honest loses nothing; and a hundred
  tarpits cost the other hosts a second each time they fill the slots, not a minute.
- A host whose last visit was slow waits in a line of its own and begins in the slow slots. A quarter of those it may
  not have, so there is room for hosts that turn out to be slow.
- Of both kinds of slots one registered domain, and one address (of IPv6 one /64, which is what one customer gets), may
  hold a share and no more.

So the rest fails only when more tarpits than there are slow slots, each of its own domain and address, answer at the
same time; then the limits of an exchange decide how fast they make room.

Each line is a heap by time. A host that is due while its domain or address has no slot left stands aside with all
others of the same pair of them, and the pair waits for the one that was full. When that gives a slot back, the pair
that has waited longest for it is called, and looks again. Only some 1 / share domains and as many addresses can be full
at once, so a call passes over few pairs: every step is O(log n) in the number of hosts.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_network
from itertools import count

from crawler.fetch.exchange import IdleConnection
from crawler.fetch.plan_file import Plan, PlannedHost
from crawler.fetch.politeness import Turn
from crawler.fetch.robots_cache import HeldCopy, RobotsQuest
from crawler.page.url import registered_domain
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
    is_slow: bool = False  # the last visit held its slot for long
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


@dataclass(frozen=True, slots=True)
class Room:
    """How many visits may be under way: first ones, those that have lasted a while, and the share of either that one
    registered domain or one address may have."""

    slots: int = 200
    slow_slots: int = 200
    share: float = 0.25


Pair = tuple[str, ...]
"""The registered domain and the address of a host, as far as it has one; what its slots are counted under."""


class HostQueue:
    """Hosts by the time at which they may be asked next, and the slots of those that are visited."""

    def __init__(self, room: Room | None = None) -> None:
        room = room or Room()
        self._first = _Slots(room.slots, room.share)
        self._slow = _Slots(room.slow_slots, room.share)
        self._most_late = math.ceil(room.slow_slots * 0.75)
        self._late = 0  # visits that began in the slow slots
        self._line, self._slow_line = _Line(self._first), _Line(self._slow)
        self._holds: dict[HostRun, _Hold] = {}

    def __len__(self) -> int:
        return self._line.hosts + self._slow_line.hosts

    def push(self, host: HostRun, at: float) -> None:
        """Put a host back until `at`."""
        (self._slow_line if host.is_slow else self._line).push(host, at)

    def next_at(self) -> float | None:
        """The earliest time at which a host can be visited, as long as no slot is given back."""
        times = [line.next_at() for line in self._open_lines()]
        return min((at for at in times if at is not None), default=None)

    def is_due(self, now: float) -> bool:
        """True when a host is waiting for nothing but us."""
        return self._line.is_due(now) or self._slow_line.is_due(now)

    def pop_due(self, now: float) -> HostRun | None:
        """A host to be visited, None when none is due or has a slot. The slot is its own until `release`."""
        for line in self._open_lines():
            found = line.pop_due(now)
            if found is not None:
                host, pair = found
                is_late = line is self._slow_line
                self._holds[host] = _Hold(pair, line.slots, is_late)
                line.slots.take(pair)
                self._late += is_late
                return host
        return None

    def park(self, host: HostRun) -> bool:
        """The visit of the host takes long: true when it has a slow slot now, or had one before."""
        hold = self._holds[host]
        if hold.slots is self._slow:
            return True
        if not self._slow.is_open or self._slow.full_of(hold.pair) is not None:
            return False
        self._give_back(hold)
        hold.slots = self._slow
        hold.slots.take(hold.pair)
        return True

    def is_misplaced(self, host: HostRun) -> bool:
        """True when the host would have another slot now: it was slow or is no more, or has another address."""
        hold = self._holds[host]
        return (hold.slots is self._slow) != host.is_slow or hold.pair != pair_of(host)

    def release(self, host: HostRun) -> None:
        """The visit of the host is over."""
        hold = self._holds.pop(host)
        self._late -= hold.is_late
        self._give_back(hold)

    def drain(self) -> list[HostRun]:
        """All hosts that are left."""
        return [*self._line.drain(), *self._slow_line.drain()]

    def _open_lines(self) -> Iterable[_Line]:
        """The lines whose hosts can have a slot, the one that comes first first."""
        if self._first.is_open:
            yield self._line
        if self._slow.is_open and self._late < self._most_late:
            yield self._slow_line

    def _give_back(self, hold: _Hold) -> None:
        hold.slots.give(hold.pair)
        line = self._line if hold.slots is self._first else self._slow_line
        for name in hold.pair:
            line.call(name)


@dataclass(slots=True)
class _Hold:
    """The slot of a visit."""

    pair: Pair
    slots: _Slots
    is_late: bool


class _Slots:
    """Slots of one kind: how many are taken, in all and under each domain and address."""

    def __init__(self, most: int, share: float) -> None:
        self._most = most
        self._most_of_one = max(1, int(most * share))
        self._taken = 0
        self._taken_of: dict[str, int] = {}

    @property
    def is_open(self) -> bool:
        return self._taken < self._most

    def full_of(self, pair: Pair) -> str | None:
        """The domain or the address that has its share already."""
        for name in pair:
            if self._taken_of.get(name, 0) >= self._most_of_one:
                return name
        return None

    def take(self, pair: Pair) -> None:
        self._taken += 1
        for name in pair:
            self._taken_of[name] = self._taken_of.get(name, 0) + 1

    def give(self, pair: Pair) -> None:
        self._taken -= 1
        for name in pair:
            left = self._taken_of.pop(name) - 1
            if left:
                self._taken_of[name] = left


class _Line:
    """Hosts that wait for slots of one kind. Each pair that stands aside is in `_called`, or waits for one name."""

    def __init__(self, slots: _Slots) -> None:
        self.slots = slots
        self.hosts = 0
        self._order = count()
        self._heap: list[tuple[float, int, HostRun]] = []
        self._aside: dict[Pair, list[tuple[float, int, HostRun]]] = {}
        self._waiting_for: dict[str, list[tuple[float, int, Pair]]] = {}
        self._called: list[tuple[float, int, Pair]] = []

    def push(self, host: HostRun, at: float) -> None:
        self.hosts += 1
        heapq.heappush(self._heap, (at, next(self._order), host))

    def next_at(self) -> float | None:
        if self._called:
            return self._called[0][0]
        return self._heap[0][0] if self._heap else None

    def is_due(self, now: float) -> bool:
        return bool(self._called) or (bool(self._heap) and self._heap[0][0] <= now)

    def pop_due(self, now: float) -> tuple[HostRun, Pair] | None:
        """The host that has been due for the longest time of those whose domain and address have a slot left."""
        while self._called:
            at, order, pair = heapq.heappop(self._called)
            if (name := self.slots.full_of(pair)) is None:
                return self._from_aside(pair), pair
            self._wait(name, (at, order, pair))
            for other in pair:  # was called for a slot of that one, perhaps, and does not take it
                if other != name:
                    self.call(other)
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            pair = pair_of(entry[2])
            if pair in self._aside:
                heapq.heappush(self._aside[pair], entry)
            elif (name := self.slots.full_of(pair)) is not None:
                self._aside[pair] = [entry]
                self._wait(name, (entry[0], entry[1], pair))
            else:
                self.hosts -= 1
                return entry[2], pair
        return None

    def call(self, name: str) -> None:
        """There is a slot under this domain or address, perhaps: the pair that has waited for it longest may look."""
        waiting = self._waiting_for.get(name)
        if waiting and self.slots.full_of((name,)) is None:
            heapq.heappush(self._called, heapq.heappop(waiting))
            if not waiting:
                del self._waiting_for[name]

    def drain(self) -> list[HostRun]:
        hosts = [host for entries in (self._heap, *self._aside.values()) for _, _, host in entries]
        for container in (self._heap, self._aside, self._waiting_for, self._called):
            container.clear()
        self.hosts = 0
        return hosts

    def _wait(self, name: str, entry: tuple[float, int, Pair]) -> None:
        heapq.heappush(self._waiting_for.setdefault(name, []), entry)

    def _from_aside(self, pair: Pair) -> HostRun:
        entries = self._aside[pair]
        host = heapq.heappop(entries)[2]
        if entries:
            heapq.heappush(self._called, (entries[0][0], entries[0][1], pair))
        else:
            del self._aside[pair]
        self.hosts -= 1
        return host


def pair_of(host: HostRun) -> Pair:
    """What the slots of a host are counted under: its registered domain, and the address that is asked next."""
    domain = registered_domain(host.host)
    if not host.addresses:
        return (domain,)
    address = host.address
    if ":" in address:
        address = _network(address)
    return (domain, address) if address != domain else (domain,)


@lru_cache(maxsize=4_096)
def _network(address: str) -> str:
    """The /64 of an IPv6 address."""
    return str(ip_network(f"{address.partition('%')[0]}/64", strict=False))
