"""A proxy on loopback between a client and an S3 server that spoils some of the answers.

The signature covers the Host header, which passes as the client sent it, so requests stay valid.

It also lets conditional creates of a name pass one after the other. S3 promises that one of them wins; versitygw looks
first and renames then, so that of a hundred races some had two winners. What is tried here is our side of the promise.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from enum import StrEnum
from random import Random
from typing import NamedTuple

LATE_S = 0.5
HEAD_BYTES = 256 * 1024


class Fault(StrEnum):
    ERROR_500 = "500 Internal Server Error"
    ERROR_503 = "503 Slow Down"
    GONE_404 = "404 Not Found"
    LATE = "answered late"
    UNHEARD = "done, its answer cut off"
    UNSEEN = "cut off before the server saw it"


class Asked(NamedTuple):
    """A request: its method, its path with query, its headers by lower-case name."""

    method: str
    path: str
    headers: dict[str, str]


Decide = Callable[[Asked], Fault | None]


def no_faults(_: Asked) -> None:
    """Spoil nothing."""


def random_faults(seed: int, share: float, faults: tuple[Fault, ...]) -> Decide:
    """Spoil this share of the PUT requests with one of the faults, by a seeded generator."""
    generator = Random(seed)

    def decide(asked: Asked) -> Fault | None:
        if asked.method != "PUT" or generator.random() >= share:
            return None
        return generator.choice(faults)

    return decide


class FaultProxy:
    """A running proxy: `with FaultProxy(server.port, decide) as proxy: ...`. `given` counts what was spoiled."""

    def __init__(self, server_port: int, decide: Decide) -> None:
        self._server_port, self.decide = server_port, decide
        self.given: Counter[Fault] = Counter()
        self.asked: list[Asked] = []
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="fault-proxy")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES)
        self._listener = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._listener.close()
        await asyncio.sleep(0)  # what was accepted just now becomes a task
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """The requests of one connection, one after the other."""
        server, forth = await asyncio.open_connection("127.0.0.1", self._server_port, limit=HEAD_BYTES)
        try:
            while await self._one(client, back, server, forth):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # one of the two hung up, or the proxy ends
        finally:
            back.close()
            forth.close()

    async def _one(
        self, client: asyncio.StreamReader, back: asyncio.StreamWriter,
        server: asyncio.StreamReader, forth: asyncio.StreamWriter,
    ) -> bool:  # fmt: skip
        """One request and its answer; False when the connection is to be cut."""
        head = await client.readuntil(b"\r\n\r\n")
        line, headers = _parsed(head)
        body = await _body(client, headers)
        method, path, _ = line.split(" ", 2)
        asked = Asked(method, path, headers)
        self.asked.append(asked)
        fault = self.decide(asked)
        if fault is not None:
            self.given[fault] += 1
        if fault is Fault.UNSEEN:
            return False
        if fault in {Fault.ERROR_500, Fault.ERROR_503, Fault.GONE_404}:
            back.write(f"HTTP/1.1 {fault}\r\nContent-Length: 0\r\n\r\n".encode())
            await back.drain()
            return True
        async with self._turns[path] if "if-none-match" in headers else nullcontext():
            forth.write(head + body)
            await forth.drain()
            answer = await server.readuntil(b"\r\n\r\n")
            said, answered = _parsed(answer)
            has_body = method != "HEAD" and said.split(" ")[1] not in {"204", "304"}
            content = await _body(server, answered) if has_body else b""
        if fault is Fault.UNHEARD:
            return False
        if fault is Fault.LATE:
            await asyncio.sleep(LATE_S)
        back.write(answer + content)
        await back.drain()
        return answered.get("connection", "").lower() != "close"


def _parsed(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return first, {name.strip().lower(): value.strip() for name, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """The body as it came over the wire, its chunks kept as they are."""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while True:
        size = await reader.readuntil(b"\r\n")
        rest = await reader.readexactly(int(size, 16) + 2)
        parts += [size, rest]
        if int(size, 16) == 0:
            return b"".join(parts)
