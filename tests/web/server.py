"""The server of the demo web: HTTP/1.1 over asyncio, one socket an address, misbehaving where told to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable
from random import Random

from tests.web.answers import Answer, Step
from tests.web.request_log import Request, RequestLog
from tests.web.web import Web

MAX_HEAD_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)
_OVERFLOW = Answer(431, b"Too long.\n", "text/plain")
_WRONG_METHOD = Answer(405, b"Only GET and HEAD.\n", "text/plain", (("Allow", "GET, HEAD"),))
_BAD = Answer(400, b"No HTTP.\n", "text/plain")


class Server:
    """What the connections share."""

    def __init__(self, web: Web, log: RequestLog) -> None:
        self.web = web
        self.log = log
        self.busy: Counter[str] = Counter()
        self.connections = itertools.count(1)
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, sockets: list[socket.socket], until: asyncio.Event) -> None:
        """Serves on the sockets until the event is set; open connections are then dropped."""
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(lambda: Connection(self), sock=sock, backlog=512) for sock in sockets]
        await until.wait()
        for server in servers:
            server.close()
        for task in self.tasks:
            task.cancel()


class Connection(asyncio.Protocol):
    """One connection: requests one after the other, answered in order."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._arrived = 0.0
        self._flow = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address: str = transport.get_extra_info("sockname")[0]
        self._number = next(self._server.connections)
        self._flow.set()

    def data_received(self, data: bytes) -> None:
        if not self._buffer:
            self._arrived = time.time()
        self._buffer += data
        while self._task is None and not self._transport.is_closing():
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                break
            self._buffer = rest
            self._respond(head.decode("latin-1"))
        if len(self._buffer) > MAX_HEAD_BYTES:
            self._close(_OVERFLOW)

    def _respond(self, head: str) -> None:
        method, path, version, headers = _parse(head)
        host = headers.get("host", "").lower()
        answer = self._answer(method, path, host, headers)
        self._server.busy[host] += 1
        self._server.log.write(self._request(method, host, path, headers, answer.status))
        if answer.steps is not None:
            self._start(host, answer.steps())
            return
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        wire = answer.wire_head(keep=keep)
        self._transport.write(wire if method == "HEAD" else wire + answer.body)
        self._server.busy[host] -= 1
        if not keep:
            self._transport.close()

    def _answer(self, method: str, path: str, host: str, headers: dict[str, str]) -> Answer:
        if not path.startswith("/"):
            return _BAD
        if method not in ("GET", "HEAD"):
            return _WRONG_METHOD
        return self._server.web.answer(host.rpartition(":")[0] or host, self._address, path, headers)

    def _request(self, method: str, host: str, path: str, headers: dict[str, str], status: int) -> Request:
        return Request(
            time=round(self._arrived, 4),
            method=method,
            host=host,
            address=self._address,
            path=path,
            status=status,
            user_agent=headers.get("user-agent", ""),
            is_conditional="if-none-match" in headers or "if-modified-since" in headers,
            at_once=self._server.busy[host],
            connection=self._number,
        )

    def _start(self, host: str, steps: Iterable[Step]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._play(host, steps))
        self._server.tasks.add(self._task)
        self._task.add_done_callback(self._server.tasks.discard)

    async def _play(self, host: str, steps: Iterable[Step]) -> None:
        try:
            for step in steps:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                elif isinstance(step, bytes):
                    self._transport.write(step)
                    await self._flow.wait()
                else:
                    self._reset()
                if self._transport.is_closing():
                    break
        finally:
            self._server.busy[host] -= 1
            self._transport.close()

    def _reset(self) -> None:
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _close(self, answer: Answer) -> None:
        self._transport.write(answer.wire_head(keep=False) + answer.body)
        self._transport.close()

    def pause_writing(self) -> None:
        self._flow.clear()

    def resume_writing(self) -> None:
        self._flow.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()


def _parse(head: str) -> tuple[str, str, str, dict[str, str]]:
    """Method, path, version, header fields by lower-case name."""
    line, *fields = head.split("\r\n")
    method, _, rest = line.partition(" ")
    path, _, version = rest.rpartition(" ")
    pairs = (field.partition(":") for field in fields)
    return method, path, version, {name.strip().lower(): value.strip() for name, _, value in pairs}


def listen(addresses: list[str], port: int) -> tuple[list[socket.socket], int]:
    """A listening socket on each address, all on one port. Port 0 finds one that is free on all of them."""
    random = Random()
    for _ in range(50):
        wanted = port or random.randrange(18_000, 32_000)
        sockets: list[socket.socket] = []
        try:
            sockets.extend(_listener(address, wanted) for address in addresses)
        except OSError as error:
            _close_all(sockets)
            if port or error.errno != errno.EADDRINUSE:
                raise
        else:
            return sockets, wanted
    raise OSError(errno.EADDRINUSE, "no port is free on all addresses of the demo web")


def _listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind((address, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener


def _close_all(sockets: list[socket.socket]) -> None:
    for listener in sockets:
        with contextlib.suppress(OSError):
            listener.close()
