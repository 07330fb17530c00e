"""One connection to a server: bytes from the socket, through TLS where there is one, into a reader, under deadlines.

Deadlines are wall-clock (the loop's monotonic time): bytes that drip in do not move the one for the head nor the one
for the whole exchange, only the idle one. So a body has a least rate, too: bytes of the body itself, without the chunks
or TLS records around them, counted over one window after the other.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

from crawler.fetch.headers import Origin
from crawler.fetch.reader import ResponseReader
from crawler.fetch.tls import TlsError, TlsLayer
from crawler.records import Outcome

READ_BYTES = 65_536
LATE_S = 1.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for the head and between two reads of a body, and the loop time at which the exchange must be over; the
    bytes that each `window_s` of a body must bring, 0 for no limit."""

    head_s: float
    idle_s: float
    ends_at: float
    window_s: float = 20.0
    window_bytes: float = 0.0


class Connection(asyncio.BufferedProtocol):
    """A connection to one origin at one address, for one exchange at a time."""

    def __init__(self, origin: Origin, address: str, buffer: memoryview, tls: TlsLayer | None = None) -> None:
        self.origin = origin
        self.address = address
        self.tls = tls
        self.was_used = False
        self.sent_at = 0.0  # of the last request, by the clock of the loop
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._handshake: asyncio.Future[TlsError | None] | None = None
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadlines = Deadlines(0, 0, 0)
        self._head_by = 0.0
        self._last_read = 0.0
        self._window_began: float | None = None  # None while the head comes
        self._window_from = 0  # bytes of the body by then

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def serves(self, origin: Origin, address: str) -> bool:
        """True when a request to this origin at this address can go over this connection now."""
        return self.is_open and self._answer is None and (self.origin, self.address) == (origin, address)

    def close(self) -> None:
        """Drop the connection at once, without waiting for the server."""
        if self._transport is not None:
            self._transport.abort()

    async def shake_hands(self) -> None:
        """Complete the TLS handshake; TlsError says why not."""
        assert self.tls is not None
        self._handshake = self._loop.create_future()
        self._step_handshake()
        failure = await self._handshake
        if failure is not None:
            raise failure

    async def ask(self, request: bytes, reader: ResponseReader, deadlines: Deadlines) -> None:
        """Send a request and read until the reader is done, which it always is when this returns."""
        now = self._loop.time()
        self._reader, self._deadlines = reader, deadlines
        self._head_by = now + deadlines.head_s
        self._last_read = now
        self._window_began = None
        self._answer = self._loop.create_future()
        first_check = min(now + min(deadlines.head_s, deadlines.idle_s, deadlines.window_s), deadlines.ends_at)
        self._timer = self._loop.call_at(first_check, self._check)
        self._send(request)
        self.sent_at = self._loop.time()
        try:
            await self._answer
        finally:
            self._timer.cancel()
            self._answer = self._reader = None
            self.was_used = True
            if not reader.is_reusable:
                self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._last_read = self._loop.time()
        data = self._buffer[:nbytes]
        if self.tls is None:
            self._take(data)
        else:
            self._take_coded(self.tls, data)

    def eof_received(self) -> bool:
        self._over("closed")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._over("reset" if exc else "closed")

    def _take(self, data: memoryview | bytes) -> None:
        reader = self._reader
        if reader is None:
            self.close()
            return
        reader.feed(data)
        if reader.is_done:
            self._wake()
        elif self._window_began is None and reader.parsed is not None:
            self._window_began, self._window_from = self._last_read, 0

    def _take_coded(self, tls: TlsLayer, data: memoryview) -> None:
        try:
            if not tls.is_ready:
                tls.receive(data)
                self._step_handshake()
                return
            tls.receive(data)
            is_open = tls.read(self._take_plain)
        except TlsError as failure:
            self._fail_tls(failure)
            return
        self._flush(tls)
        if not is_open:
            self._over("closed")

    def _take_plain(self, data: bytes) -> None:
        if self._reader is None:
            self.close()
        elif not self._reader.is_done:
            self._take(data)

    def _step_handshake(self) -> None:
        tls, handshake = self.tls, self._handshake
        assert tls is not None
        try:
            if not tls.is_ready:
                tls.shake_hands()
        except TlsError as failure:
            self._fail_tls(failure)
            return
        self._flush(tls)
        if tls.is_ready and handshake is not None and not handshake.done():
            handshake.set_result(None)

    def _fail_tls(self, failure: TlsError) -> None:
        if self.tls is not None:
            self._flush(self.tls)
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_result(failure)
        elif self._reader is not None:
            self._reader.fail(Outcome.TLS_FAILED, failure.reason)
            self._wake()
        self.close()

    def _flush(self, tls: TlsLayer) -> None:
        data = tls.pending()
        if data and self._transport is not None:
            self._transport.write(data)

    def _send(self, request: bytes) -> None:
        if self._transport is None:
            return
        if self.tls is None:
            self._transport.write(request)
        else:
            self.tls.write(request)
            self._flush(self.tls)

    def _over(self, reason: str) -> None:
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_result(TlsError(f"{reason}_in_handshake"))
        if self._reader is not None and not self._reader.is_done:
            self._reader.end(reason)
            self._wake()

    def _wake(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    def _check(self) -> None:
        """Time out, or look again when the deadline that is next has come."""
        reader, deadlines = self._reader, self._deadlines
        if reader is None or reader.is_done:
            return
        now = self._loop.time()
        phase_by = self._head_by if reader.parsed is None else self._last_read + deadlines.idle_s
        due = min(phase_by, deadlines.ends_at)
        if now >= due:
            reader.time_out("exchange" if due == deadlines.ends_at else "head")
        elif self._is_too_slow(reader, now):
            reader.time_out("rate")
        if reader.is_done:
            self._wake()
            return
        if self._window_began is not None:
            due = min(due, self._window_began + deadlines.window_s)
        self._timer = self._loop.call_at(due, self._check)

    def _is_too_slow(self, reader: ResponseReader, now: float) -> bool:
        """Whether a window is over that brought too little. A check that comes late itself blames nobody."""
        if self._window_began is None:
            return False
        late_s = now - (self._window_began + self._deadlines.window_s)
        if late_s < 0:
            return False
        brought = reader.body.size - self._window_from
        self._window_began, self._window_from = now, reader.body.size
        return brought < self._deadlines.window_bytes and late_s < LATE_S
