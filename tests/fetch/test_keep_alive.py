from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch.http import HttpProtocol, Request
from crawler.fetch.stream import Connection
from crawler.records import Outcome
from crawler.settings import FetchSettings
from tests.fetch.raw_server import RawServer, Step, serving

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SHORT = FetchSettings(allow_addresses=("127.0.0.0/8",), head_timeout_s=0.4, idle_timeout_s=0.3, exchange_timeout_s=0.8)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def with_server(steps: list[Step], work: Callable[[RawServer, HttpProtocol], Coroutine[Any, Any, None]]) -> RawServer:
    async def run() -> RawServer:
        async with serving(steps) as server:
            await work(server, HttpProtocol(SHORT))
            return server

    return asyncio.run(run())


def test_a_clean_connection_is_handed_back_and_used_again() -> None:
    async def work(server: RawServer, protocol: HttpProtocol) -> None:
        exchange = await protocol.fetch(server.request("/1", keep_alive=True))
        for number in (2, 3):
            exchange = await protocol.fetch(server.request(f"/{number}", keep_alive=True), exchange.connection)
            assert exchange.body_bytes() == b"hello"
        last = await protocol.fetch(server.request("/4"), exchange.connection)
        assert last.connection is None

    server = with_server([HELLO], work)
    assert (server.connections, len(server.requests)) == (1, 4)


def test_a_connection_of_another_origin_or_address_is_closed_and_not_used() -> None:
    async def work(server: RawServer, protocol: HttpProtocol) -> None:
        first = await protocol.fetch(server.request(keep_alive=True))
        other = await protocol.fetch(
            Request(f"http://other.example:{server.port}/", "127.0.0.1", "agent", keep_alive=True), first.connection
        )
        moved = await protocol.fetch(server.request(address="127.0.0.2", keep_alive=True), other.connection)
        assert other.status == 200
        assert moved.failure is Outcome.CONNECT_FAILED

    assert with_server([HELLO], work).connections == 2


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_connection_that_the_server_closed_meanwhile_is_replaced(end: Any) -> None:
    async def work(server: RawServer, protocol: HttpProtocol) -> None:
        first = await protocol.fetch(server.request(keep_alive=True))
        await asyncio.sleep(0.1)
        second = await protocol.fetch(server.request(keep_alive=True), first.connection)
        assert second.status == 200

    server = with_server([HELLO, 0.03, end], work)
    assert (server.connections, len(server.requests)) == (2, 2)


def test_a_request_that_met_a_closing_connection_is_sent_once_more() -> None:
    """The first connection answers one request and ends on the second, as a server does whose patience is over."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HELLO)
        if len(heard) == 1:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async def run() -> int:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://site.example:{server.sockets[0].getsockname()[1]}/"
        protocol, request = HttpProtocol(SHORT), Request(url, "127.0.0.1", "agent", keep_alive=True)
        first = await protocol.fetch(request)
        second = await protocol.fetch(request, first.connection)
        server.close()
        return second.status

    assert asyncio.run(run()) == 200
    assert len(heard) == 3


def test_words_out_of_turn_end_a_connection() -> None:
    async def work(server: RawServer, protocol: HttpProtocol) -> None:
        first = await protocol.fetch(server.request(keep_alive=True))
        assert isinstance(first.connection, Connection)
        for _ in range(200):
            if not first.connection.is_open:
                break
            await asyncio.sleep(0.02)
        second = await protocol.fetch(server.request(keep_alive=True), first.connection)
        assert second.body_bytes() == b"hello"

    assert with_server([HELLO, 0.03, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"], work).connections == 2


def test_a_cancelled_fetch_leaves_no_connection() -> None:
    async def work(server: RawServer, protocol: HttpProtocol) -> None:
        task = asyncio.ensure_future(protocol.fetch(server.request()))
        await asyncio.sleep(0.05)
        before = open_files()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.02)
        assert open_files() < before

    with_server(["hang"], work)
