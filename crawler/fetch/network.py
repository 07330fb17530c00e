"""How a partition reaches the web: protocol modules by scheme, one request at a time for a host, idle connections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from crawler.fetch.exchange import Exchange, Request
from crawler.fetch.host_queue import HostRun
from crawler.fetch.lease import Lease
from crawler.fetch.politeness import Politeness, Turn
from crawler.fetch.protocols import ProtocolModule, protocol_for
from crawler.fetch.resolver import Resolver
from crawler.page.wanted import SITEMAP_TYPES, MimeTypes
from crawler.records import PlannedUrl
from crawler.settings import FetchSettings

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
WEB = frozenset({"http", "https"})


@dataclass
class Network:
    """What all requests of a partition have in common."""

    settings: FetchSettings
    clock: Callable[[], float]
    resolver: Resolver
    politeness: Politeness
    user_agent: str
    deadline_at: float
    lease: Lease
    unread: tuple[str, ...] = ()  # MIME types whose bodies are not read, but those of sitemaps and robots files
    requests: int = 0
    _modules: dict[str, ProtocolModule | None] = field(default_factory=dict)
    _idle: dict[HostRun, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._unread = MimeTypes(self.unread)
        self._unread_where_sitemaps_are = MimeTypes(self.unread, but=SITEMAP_TYPES)

    def module(self, scheme: str) -> ProtocolModule | None:
        """The module that fetches URLs of the scheme; made when the scheme first comes."""
        if scheme not in self._modules:
            factory = protocol_for(scheme)
            self._modules[scheme] = factory(self.settings) if factory else None
        return self._modules[scheme]

    async def ask(self, turn: Turn, scheme: str, request: Request) -> Exchange:
        """Make a request for which the time has come, without keeping the connection."""
        module = self.module(scheme)
        assert module is not None
        self.politeness.begin(turn, request.address)  # before anything is waited for: nobody else may, from now on
        try:
            await self.lease.hold()
            self.requests += 1
            exchange = await module.fetch(request)
            self.politeness.sent(turn, request.address, exchange.sent_at)
            return exchange
        finally:
            self.politeness.end(turn)

    async def visit(self, host: HostRun, planned: PlannedUrl, scheme: str) -> Exchange:
        """Ask the host for a URL of its own, conditionally when we hold it.

        Connections are kept only where no delay is: a kept one may turn out to be closed, and the second try on a new
        one would come without a gap.
        """
        module = self.module(scheme)
        assert module is not None
        is_kept = self.politeness.delay_s(host.turn) == 0 and host.turn.of_name is None
        request = self._request(host, planned, is_kept)
        connection, host.connection = host.connection, None
        self.politeness.begin(host.turn, request.address)
        try:
            await self.lease.hold()
            self.requests += 1
            host.is_asking = True
            exchange = await module.fetch(request, connection)
            self.politeness.sent(host.turn, request.address, exchange.sent_at)
            host.is_asking = False
        except Exception:
            host.is_asking = False
            raise
        finally:
            self.politeness.end(host.turn)
        if is_kept:
            self._keep(host, exchange)
        return exchange

    def robots_request(self, url: str, address: str) -> Request:
        """The request for a robots.txt; one byte more than is parsed shows that it was cut."""
        size = self.settings.robots_max_bytes + 1
        return Request(url, address, self.user_agent, accept="text/plain,*/*;q=0.8", max_body_bytes=size)

    def _request(self, host: HostRun, planned: PlannedUrl, is_kept: bool) -> Request:
        return Request(
            planned.url,
            host.address,
            self.user_agent,
            planned.etag,
            planned.last_modified,
            ACCEPT,
            self.settings.max_body_bytes,
            is_kept,
            self._unread_where_sitemaps_are if planned.source == "sitemap" else self._unread,
        )

    def _keep(self, host: HostRun, exchange: Exchange) -> None:
        """No more connections idle than may be in use."""
        self._idle.pop(host, None)
        host.connection = exchange.connection
        if host.connection is None:
            return
        self._idle[host] = None
        if len(self._idle) > self.settings.connections:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.drop_connection()
