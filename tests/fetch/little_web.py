"""A little web in a thread of the test: hosts on loopback addresses that answer as told and log what they are asked."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the server saw it."""

    time: float
    host: str
    address: str
    path: str
    headers: dict[str, str]


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)
    delay_s: float = 0.0
    drip_s: float = 0.0  # between two bytes of the body
    is_cut: bool = False

    def head(self, connection: str) -> bytes:
        length = len(self.body) + (100 if self.is_cut else 0)
        lines = [f"HTTP/1.1 {self.status} Said", f"Content-Length: {length}", f"Connection: {connection}"]
        return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in self.headers), "\r\n"]).encode()


Handler = Callable[[Asked], Answer]


def page(*links: str, text: str = "") -> Answer:
    """An HTML page with links."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return Answer(f"<html><title>t</title><body>{text}{anchors}</body></html>".encode())


def redirect(target: str, status: int = 301) -> Answer:
    return Answer(b"", status, (("Location", target),))


@dataclass
class LittleWeb:
    """`answers` by `host/path`; what is not there is 404. Hosts are written with the port."""

    port: int = 0
    answers: dict[str, Answer | Handler] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    keeps_alive: bool = False
    connections: int = 0
    open_now: int = 0
    open_most: int = 0

    def put(self, host: str, path: str, answer: Answer | Handler) -> str:
        """Set an answer; returns the URL."""
        self.answers[f"{host}{path}"] = answer
        return f"http://{host}:{self.port}{path}"

    def asked(self, host: str | None = None) -> list[Asked]:
        return [one for one in self.log if host is None or one.host == host]

    def paths(self, host: str) -> list[str]:
        return [one.path for one in self.asked(host)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_now += 1
        self.open_most = max(self.open_most, self.open_now)
        try:
            while await self.answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_now -= 1
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; True when another may come."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        host = headers["host"].partition(":")[0]
        asked = Asked(time.time(), host, writer.get_extra_info("sockname")[0], head[0].split()[1], headers)
        self.log.append(asked)
        answer = self.answers.get(f"{host}{asked.path}", Answer(b"nothing", 404))
        answer = answer(asked) if callable(answer) else answer
        await asyncio.sleep(answer.delay_s)
        is_kept = self.keeps_alive and headers.get("connection") != "close"
        writer.write(answer.head("keep-alive" if is_kept else "close"))
        for part in [answer.body[n : n + 1] for n in range(len(answer.body))] if answer.drip_s else [answer.body]:
            await asyncio.sleep(answer.drip_s)
            writer.write(part)
            await writer.drain()
        return is_kept


@contextmanager
def little_web(*addresses: str) -> Iterator[LittleWeb]:
    """A web on these addresses (default 127.0.0.1), all at one port."""
    web = LittleWeb()
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def serve(until: asyncio.Event) -> None:
        servers = []
        for address in addresses or ("127.0.0.1",):
            servers.append(await asyncio.start_server(web.serve, address, web.port, family=socket.AF_INET))
            web.port = servers[0].sockets[0].getsockname()[1]
        ready.set()
        await until.wait()
        for server in servers:
            server.close()

    stop = asyncio.Event()

    def run() -> None:
        loop.run_until_complete(serve(stop))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(5)
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
