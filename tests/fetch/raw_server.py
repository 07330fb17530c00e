"""A server that says exactly the bytes it is told, at the time it is told, and writes down what it was asked."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from crawler.fetch.http import Request

Step = bytes | float | Literal["close", "reset", "hang"]


@dataclass
class RawServer:
    """Plays `steps` after each request head: bytes are sent, a number sleeps, a word ends the connection."""

    steps: Iterable[Step] = field(repr=False)
    waits_for_request: bool = True
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    def request(self, path: str = "/", **fields: object) -> Request:
        options: dict[str, object] = {"user_agent": "orbweaver-test", "address": "127.0.0.1"} | fields
        return Request(url=f"http://site.example:{self.port}{path}", **options)  # type: ignore[arg-type]  # a table of cases is looser than the types

    async def play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not await self._play_once(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _play_once(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if self.waits_for_request:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        for step in self.steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, (int, float)):
                await asyncio.sleep(step)
            else:
                await _finish(step, writer)
                return True
        return False


async def _finish(step: str, writer: asyncio.StreamWriter) -> None:
    if step == "hang":
        await asyncio.sleep(3600)
    if step == "reset":
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await asyncio.sleep(0.02)
        writer.transport.abort()


@asynccontextmanager
async def serving(
    steps: Iterable[Step], tls: ssl.SSLContext | None = None, *, waits_for_request: bool = True
) -> AsyncIterator[RawServer]:
    """A running RawServer on 127.0.0.1; its connections are dropped at the end."""
    raw = RawServer(steps, waits_for_request)
    tasks: set[asyncio.Task[None]] = set()

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await raw.play(reader, writer)

    server = await asyncio.start_server(play, "127.0.0.1", 0, ssl=tls)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
