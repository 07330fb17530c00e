"""HTTP/1.1 for a crawler: one GET, one vetted address, hard limits, bytes as they came over the wire.

No proxies, no cookies, no authentication, no redirects followed, no name resolved. Nothing that a server does raises:
every exchange is a value.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable

from crawler.fetch.addresses import AddressPolicy, address_policy
from crawler.fetch.exchange import Exchange, IdleConnection, Request, TlsInfo
from crawler.fetch.headers import Origin, Prepared, prepare
from crawler.fetch.reader import ReadLimits, ResponseReader
from crawler.fetch.stream import READ_BYTES, Connection, Deadlines
from crawler.fetch.tls import TlsClient, TlsError, TlsLayer
from crawler.page.filters import BAD_PORTS
from crawler.records import Outcome
from crawler.settings import FetchSettings

__all__ = ["Exchange", "HttpProtocol", "IdleConnection", "Request", "TlsInfo"]

_CONNECT_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTUNREACH: "unreachable",
    errno.ECONNRESET: "reset",
    errno.EMFILE: "too_many_open_files",
}


class _NoConnectionError(Exception):
    """No connection came about: an outcome, a reason, and the verdict when it was the certificate."""

    def __init__(self, outcome: Outcome, reason: str, verdict: str | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.verdict = verdict


class HttpProtocol:
    """The protocol module of the schemes `http` and `https`. Belongs to one event loop.

    `tls_roots` is a PEM file of trusted roots; None takes the system's. Address and port of every request are vetted
    again.
    """

    def __init__(
        self,
        limits: FetchSettings,
        policy: AddressPolicy | None = None,
        clock: Callable[[], float] = time.time,
        tls_roots: str | None = None,
    ) -> None:
        self._limits = limits
        self._policy = policy or address_policy(limits)
        self._clock = clock
        self._tls = TlsClient(verify=limits.verify_tls, roots=tls_roots)
        self._buffer = memoryview(bytearray(READ_BYTES))

    async def fetch(self, request: Request, connection: IdleConnection | None = None) -> Exchange:
        """Ask once and return what came. `connection` is used when it fits the request and is closed when it does not;
        the exchange carries one for the next request when `request.keep_alive` and the server allow it."""
        loop = asyncio.get_running_loop()
        start, started_at = loop.time(), self._clock()
        prepared = prepare(request)
        if isinstance(prepared, str):
            exchange = _failed(request, started_at, b"", Outcome.PROTOCOL_ERROR, prepared)
        elif prepared.origin.port in BAD_PORTS:
            exchange = _failed(request, started_at, b"", Outcome.ADDRESS_REFUSED, "port")
        elif (refusal := self._policy.refuse(request.address)) is not None:
            exchange = _failed(request, started_at, b"", Outcome.ADDRESS_REFUSED, refusal)
        else:
            deadlines = self._deadlines(start)
            exchange = await self._exchange(request, prepared, deadlines, _fitting(connection, prepared, request))
            exchange.started_at = started_at
        if connection is not None and exchange.connection is not connection:
            connection.close()
        exchange.duration_s = loop.time() - start
        return exchange

    def _deadlines(self, start: float) -> Deadlines:
        limits = self._limits
        window_s = limits.rate_window_s
        ends_at = start + limits.exchange_timeout_s
        return Deadlines(limits.head_timeout_s, limits.idle_timeout_s, ends_at, window_s, limits.min_rate * window_s)

    async def _exchange(
        self, request: Request, prepared: Prepared, deadlines: Deadlines, idle: Connection | None
    ) -> Exchange:
        """Over the idle connection if there is one; when the server had closed it unanswered, over a new one."""
        if idle is not None:
            exchange, is_untouched = await self._ask(request, prepared, deadlines, idle)
            if not is_untouched or exchange.failure is Outcome.TIMEOUT:
                return exchange
        try:
            connection = await self._connect(prepared.origin, request.address, deadlines)
        except _NoConnectionError as failure:
            exchange = _failed(request, 0.0, b"", failure.outcome, failure.reason)
            exchange.tls = TlsInfo("", "", failure.verdict) if failure.verdict else None
            return exchange
        return (await self._ask(request, prepared, deadlines, connection))[0]

    async def _ask(
        self, request: Request, prepared: Prepared, deadlines: Deadlines, connection: Connection
    ) -> tuple[Exchange, bool]:
        limits = ReadLimits(
            self._limits.max_head_bytes, self._limits.max_header_fields, request.max_body_bytes, request.unread
        )
        reader = ResponseReader(limits)
        await connection.ask(prepared.head, reader, deadlines)
        exchange = _answered(request, prepared.head, reader)
        exchange.sent_at = self._clock() - (asyncio.get_running_loop().time() - connection.sent_at)
        exchange.tls = connection.tls.info() if connection.tls else None
        if reader.is_reusable and request.keep_alive and connection.is_open:
            exchange.connection = connection
        else:
            connection.close()
        return exchange, reader.is_untouched

    async def _connect(self, origin: Origin, address: str, deadlines: Deadlines) -> Connection:
        """A connection ready for a request; with TLS by a second handshake where the certificate does not verify."""
        if origin.scheme == "http":
            return await self._open(origin, address, deadlines, None)
        verdict = self._tls.known_verdict(origin)
        try:
            connection = await self._open(origin, address, deadlines, self._tls.session(origin, verdict))
        except _NoConnectionError as failure:
            if failure.verdict is None or self._tls.verify:
                raise
            verdict = failure.verdict
            connection = await self._open(origin, address, deadlines, self._tls.session(origin, verdict))
        if verdict is None or connection.tls is None:
            return connection
        if not self._tls.confirm(origin, connection.tls, verdict):
            connection.close()
            return await self._connect(origin, address, deadlines)
        return connection

    async def _open(self, origin: Origin, address: str, deadlines: Deadlines, tls: TlsLayer | None) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(origin, address, self._buffer, tls)
        phase = "connect"
        try:
            async with asyncio.timeout_at(min(loop.time() + self._limits.connect_timeout_s, deadlines.ends_at)):
                await loop.create_connection(lambda: connection, address, origin.port)
            if tls is not None:
                phase = "tls"
                async with asyncio.timeout_at(min(loop.time() + self._limits.tls_timeout_s, deadlines.ends_at)):
                    await connection.shake_hands()
        except TimeoutError:
            connection.close()
            raise _NoConnectionError(Outcome.TIMEOUT, phase) from None
        except TlsError as failure:
            connection.close()
            raise _NoConnectionError(Outcome.TLS_FAILED, failure.reason, failure.verdict) from None
        except OSError as error:
            connection.close()
            reason = _CONNECT_REASONS.get(error.errno or 0, "connect_error")
            raise _NoConnectionError(Outcome.CONNECT_FAILED, reason) from None
        except BaseException:
            connection.close()
            raise
        return connection


def _fitting(connection: IdleConnection | None, prepared: Prepared, request: Request) -> Connection | None:
    if isinstance(connection, Connection) and connection.serves(prepared.origin, request.address):
        return connection
    return None


def _failed(request: Request, started_at: float, sent: bytes, outcome: Outcome, reason: str) -> Exchange:
    return Exchange(sent, request.address, started_at, failure=outcome, failure_reason=reason)


def _answered(request: Request, sent: bytes, reader: ResponseReader) -> Exchange:
    exchange = Exchange(sent, request.address, 0.0, failure=reader.failure, failure_reason=reader.failure_reason)
    exchange.head = reader.head
    if reader.parsed is not None:
        exchange.status, exchange.reason = reader.parsed.status, reader.parsed.reason
        exchange.http_version, exchange.headers = reader.parsed.version, reader.parsed.headers
    exchange.body, exchange.body_size = reader.body.stream(), reader.body.size
    exchange.truncated, exchange.was_chunked = reader.truncated, reader.was_chunked
    exchange.unread_type = reader.unread_type
    return exchange
