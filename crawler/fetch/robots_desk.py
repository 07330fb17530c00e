"""Finding out what robots.txt says, hop by hop, at the pace of the servers that are asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from crawler.fetch.capture import record_of
from crawler.fetch.exchange import Exchange
from crawler.fetch.host_queue import HostRun
from crawler.fetch.network import Network
from crawler.fetch.outcomes import wait_asked_for
from crawler.fetch.politeness import Turn
from crawler.fetch.recorder import Recorder
from crawler.fetch.robots_cache import (
    MAX_RETRIES,
    HeldCopy,
    RobotsQuest,
    RobotsShelf,
    Verdict,
    has_rules,
    standing,
    tells,
    with_copy,
)
from crawler.page.filters import UrlFilters
from crawler.page.robots import Robots, sitemaps
from crawler.page.url import Refusal, UrlPolicy, host_name
from crawler.records import Outcome, RobotsCopy

SITEMAP_DEPTH = 1
MAX_ROBOTS_HOSTS = 8
_SITEMAPS_AT_ONCE = 200  # then the loop goes on
_LEAST_TTL_S = 600.0  # of a copy from this round, so that a TTL of 0 means "once a round" and not "before each page"


@dataclass
class RobotsDesk:
    """Keeps the rules of the hosts of a partition up to date."""

    network: Network
    recorder: Recorder
    policy: UrlPolicy
    filters: UrlFilters
    shelf: RobotsShelf
    partitions: int = 1  # of the round
    _turns: dict[str, Turn] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)  # theirs, without ports
    _strangers: dict[str, Turn] = field(default_factory=dict)  # hosts without URLs here

    def register(self, host: HostRun) -> None:
        """A redirect that leads to this host takes its turn like any other request."""
        self._turns[host.host] = host.turn
        self._names.add(host_name(host.host))

    async def rules(self, host: HostRun, scheme: str) -> Robots | None:
        """The rules that hold now, None when the server must be asked."""
        now = self.network.clock()
        known = host.rules.get(scheme)
        if known is not None and now < known[1]:
            return await self.shelf.rules(known[0])
        ttl_s = self.network.settings.robots_ttl_s
        held = standing(host.robots, scheme, now, ttl_s)
        if held.how != "fresh" or held.copy is None:
            return None
        return await self._obey(host, held.copy, held.copy.fetched_at + ttl_s)

    async def _obey(self, host: HostRun, copy: HeldCopy, until: float) -> Robots:
        """A copy has the say until then; the delay is the longest that any copy asks for."""
        host.rules[copy.scheme] = copy, until
        host.turn.crawl_delay_s = await self.shelf.crawl_delay(host.robots)
        return await self.shelf.rules(copy)

    async def ask(self, host: HostRun, scheme: str) -> float:
        """Ask for robots.txt, or for the next hop to it, when the time has come; returns when to come again."""
        if host.quest is None or host.quest.scheme != scheme:
            host.quest = RobotsQuest(scheme, host.host)
        quest, now = host.quest, self.network.clock()
        turn, address = await self._target(host, quest)
        if address is None:
            return self._fail(host, quest, None)
        if not self._is_ours(host, quest.target):
            return self._leave(host, quest)
        ready_at = self.network.politeness.ready_at(turn, address)
        if ready_at > now:
            return ready_at
        self.recorder.touch(host)
        request = self.network.robots_request(quest.url, address)
        exchange = await self.network.ask(turn, quest.url.partition(":")[0], request)
        try:
            return await self._take(host, turn, quest, exchange)
        finally:
            self.recorder.touch(host)
            exchange.close()

    def _is_ours(self, host: HostRun, target: str) -> bool:
        """True when no other partition of the round asks that host."""
        return self.partitions == 1 or host_name(target) in self._names or target in host.turn.grouped_by

    def _leave(self, host: HostRun, quest: RobotsQuest) -> float:
        """The rules are on a host that another partition may be asking. The next plan puts the two together; where it
        could not, because too many hosts lead there, nothing is allowed."""
        if quest.target in host.robots_hosts:
            return self._give_up(host, quest, f"{quest.target} has those of too many hosts")
        reason = f"robots.txt is on {quest.target}, which another partition may ask; the next plan puts them together"
        self.recorder.settle_rest(host, Outcome.NOT_REACHED, reason)
        host.robots_hosts = (quest.target, *host.robots_hosts)[:MAX_ROBOTS_HOSTS]
        self.recorder.touch(host)
        return self.network.clock()

    async def _target(self, host: HostRun, quest: RobotsQuest) -> tuple[Turn, str | None]:
        """The turn and the address of the server that the quest has come to."""
        if quest.target == host.host:
            return host.turn, host.address
        if self.filters.refuse_port(quest.target) is not None:
            return host.turn, None
        turn = self._turns.get(quest.target) or self._strangers.get(quest.target)
        if turn is None:
            turn = self.network.politeness.turn_of_stranger(quest.target, host.turn.grouped_by)
            self._strangers[quest.target] = turn
        resolved = await self.network.resolver.resolve(quest.target)
        return turn, resolved.addresses[0].address if resolved.addresses else None

    async def _take(self, host: HostRun, turn: Turn, quest: RobotsQuest, exchange: Exchange) -> float:
        if exchange.failure is None:
            self.recorder.keep_robots(record_of(exchange, quest.url))
        elif quest.target == host.host and host.tries_next_address(exchange.failure, exchange.failure_reason):
            return self.network.politeness.host_ready_at(host.turn)
        verdict = self._judge(quest, exchange)
        if isinstance(verdict, RobotsCopy):
            await self._learn(host, verdict)
            return self.network.politeness.host_ready_at(host.turn)
        if verdict == "follow":
            return self.network.clock()
        wait_s = wait_asked_for(exchange) if exchange.failure is None else None
        if wait_s is not None:
            self.network.politeness.ask_to_wait(turn, wait_s)
        return self._fail(host, quest, exchange)

    def _judge(self, quest: RobotsQuest, exchange: Exchange) -> Verdict:
        try:
            return quest.judge(exchange, self.policy, self.network.settings.robots_max_bytes)
        except Exception:  # noqa: BLE001 - what stops our own code must not open the door
            return "unreachable"

    async def _learn(self, host: HostRun, copy: RobotsCopy) -> None:
        held = self.shelf.hold(copy)
        host.robots = with_copy(host.robots, held)
        await self._obey(host, held, copy.fetched_at + max(self.network.settings.robots_ttl_s, _LEAST_TTL_S))
        host.turn.waits = 0
        host.quest, host.is_out = None, False
        links = sitemaps(copy.body) if has_rules(copy) else []
        for start in range(0, len(links), _SITEMAPS_AT_ONCE):
            found = [self.policy.canonical(link) for link in links[start : start + _SITEMAPS_AT_ONCE]]
            urls = [url for url in found if not isinstance(url, Refusal)]
            self.recorder.discover(
                [url for url in urls if self.filters.refuse(url, SITEMAP_DEPTH, "sitemap") is None], "sitemap"
            )
            await asyncio.sleep(0)

    def _fail(self, host: HostRun, quest: RobotsQuest, exchange: Exchange | None) -> float:
        """The server is unreachable: come back later, or give the scheme up for this round."""
        now, settings = self.network.clock(), self.network.settings
        status = exchange.status if exchange is not None and exchange.failure is None else 0
        failed = self.shelf.hold(RobotsCopy(quest.scheme, now, 0 if tells(status) else status))
        host.robots = with_copy(host.robots, failed)
        self.recorder.touch(host)
        held = standing(host.robots, quest.scheme, now, 0.0)
        if held.how == "outlived":
            host.rules[quest.scheme] = held.copy, now + max(settings.robots_ttl_s, _LEAST_TTL_S)
            host.quest = None
            return self.network.politeness.host_ready_at(host.turn)
        quest.failures += 1
        host.turn.not_before = max(host.turn.not_before, now + settings.robots_retry_s)
        if quest.failures > MAX_RETRIES or host.turn.not_before >= self.network.deadline_at:
            return self._give_up(host, quest, _why(exchange))
        quest.restart()
        return host.turn.not_before

    def _give_up(self, host: HostRun, quest: RobotsQuest, reason: str) -> float:
        host.unreachable[quest.scheme] = f"robots.txt: {reason}"
        host.is_out = not host.rules
        host.quest = None
        return self.network.clock()


def _why(exchange: Exchange | None) -> str:
    if exchange is None:
        return "no address, or a port that is not open, at the end of a redirect"
    if exchange.failure is not None:
        return f"{exchange.failure} {exchange.failure_reason or ''}".strip()
    return f"status {exchange.status}" if not tells(exchange.status) else f"body cut: {exchange.truncated or 'coding'}"
