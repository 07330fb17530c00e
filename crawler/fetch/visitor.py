"""One step of one host: find its address, learn its rules, or ask for its next URL. At most one request a step."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.fetch.capture import Capturer
from crawler.fetch.exchange import Exchange
from crawler.fetch.host_queue import HostRun
from crawler.fetch.network import WEB, Network
from crawler.fetch.outcomes import is_host_fault, outcome_of, wait_asked_for
from crawler.fetch.recorder import Recorder
from crawler.fetch.resolver import NEGATIVE_TTL_S
from crawler.fetch.robots_desk import RobotsDesk
from crawler.page.robots import ALLOW_ALL, Robots
from crawler.records import Outcome, PlannedUrl

MAX_LOOKUPS = 3
_LASTING = frozenset({"not_found", "invalid_name", "no_address"})  # asking again in a minute is no use


@dataclass
class Visitor:
    """Visits hosts. Whatever servers do becomes an outcome; bugs and failing storage raise."""

    network: Network
    capturer: Capturer
    recorder: Recorder
    robots: RobotsDesk

    async def step(self, host: HostRun) -> float | None:
        """Go on with the host; returns the time to come again, None when all its URLs have their outcome."""
        while host.current is not None:
            look_again_at = await self._find_address(host)
            planned = host.current
            if look_again_at is not None or planned is None:
                return look_again_at
            scheme = planned.url.partition(":")[0]
            rules = await self.robots.rules(host, scheme) if scheme in WEB else ALLOW_ALL
            if rules is None and scheme not in host.unreachable:
                return await self.robots.ask(host, scheme)
            if (refusal := self._refusal(host, planned, scheme, rules)) is not None:
                self.recorder.settle(host, *refusal)
                continue
            ready_at = self.network.politeness.ready_at(host.turn, host.address)
            if ready_at > self.network.clock():
                return ready_at
            await self._visit(host, planned, scheme)
            return self.network.politeness.host_ready_at(host.turn)
        return None

    def give_up(self, host: HostRun, outcome: Outcome, reason: str) -> None:
        """The host has failed: it is out of the round with all its URLs."""
        host.is_out = True
        self.recorder.touch(host)
        self.recorder.settle_rest(host, outcome, reason)

    async def _find_address(self, host: HostRun) -> float | None:
        """See to it that the host has an address, or no URLs left; returns when to look again if neither is so."""
        resolved = await self.network.resolver.resolve(host.host)
        if resolved.addresses:
            is_first = not host.addresses
            if host.addresses != resolved.addresses:
                host.addresses, host.address_at = resolved.addresses, 0
            return self.network.clock() if is_first else None  # its address may have no slot left
        if resolved.refused:
            self.give_up(host, Outcome.ADDRESS_REFUSED, resolved.refused)
            return None
        host.lookups += 1
        reason = resolved.error or "no_address"
        if reason in _LASTING or host.lookups >= MAX_LOOKUPS:
            self.give_up(host, Outcome.DNS_FAILED, reason)
            return None
        return self.network.clock() + NEGATIVE_TTL_S

    def _refusal(
        self, host: HostRun, planned: PlannedUrl, scheme: str, rules: Robots | None
    ) -> tuple[Outcome, str] | None:
        """Why the URL is not asked for, if so."""
        if self.network.module(scheme) is None:
            return Outcome.UNSUPPORTED_SCHEME, scheme
        if rules is None:
            return Outcome.ROBOTS_UNREACHABLE, host.unreachable[scheme]
        if not rules.allows(planned.url):
            return Outcome.ROBOTS_DENIED, "robots.txt"
        return None

    async def _visit(self, host: HostRun, planned: PlannedUrl, scheme: str) -> None:
        self.recorder.touch(host)
        exchange = await self.network.visit(host, planned, scheme)
        self.recorder.touch(host)
        try:
            if not self._comes_again(host, planned, exchange):
                await self._keep(host, planned, exchange)
        finally:
            exchange.close()

    def _comes_again(self, host: HostRun, planned: PlannedUrl, exchange: Exchange) -> bool:
        """Whether the same URL is asked for once more: at another address, or after the wait its server asked for."""
        if host.tries_next_address(exchange.failure, exchange.failure_reason):
            return True
        if outcome_of(exchange, planned) is not Outcome.ASKED_TO_WAIT:
            return False
        until = self.network.politeness.ask_to_wait(host.turn, wait_asked_for(exchange))
        if host.is_repeated or until >= self.network.deadline_at:
            return False
        host.is_repeated = True
        return True

    async def _keep(self, host: HostRun, planned: PlannedUrl, exchange: Exchange) -> None:
        capture = await self.capturer.capture(exchange, planned)
        if capture.outcome is Outcome.ASKED_TO_WAIT:
            capture.row["retry_at"] = host.turn.not_before
        self.recorder.keep(host, capture)
        self._count(host, capture.outcome, is_fault=is_host_fault(capture.outcome, exchange))

    def _count(self, host: HostRun, outcome: Outcome, *, is_fault: bool) -> None:
        """Failures and waits in a row; too many of them end the host's round."""
        limit = self.network.settings.max_host_failures
        if is_fault:
            host.faults += 1
            if host.faults >= limit:
                self.give_up(host, Outcome.HOST_FAILED, f"{host.faults} failures in a row, the last: {outcome}")
        elif outcome is Outcome.ASKED_TO_WAIT:
            if host.turn.waits >= limit:
                self.recorder.settle_rest(host, Outcome.NOT_REACHED, "host asks us to wait again and again")
        else:
            host.faults = host.turn.waits = 0
