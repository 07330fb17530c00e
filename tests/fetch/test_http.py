from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from typing import Any

import pytest

from crawler.fetch.exchange import Exchange
from crawler.fetch.http import HttpProtocol, Request
from crawler.records import Outcome
from crawler.settings import FetchSettings
from tests.fetch.raw_server import RawServer, Step, serving
from tests.fetch.response_vectors import CHUNKED, OK, VECTORS, Seen, Vector

HELLO = OK + b"Content-Length: 5\r\n\r\nhello"


def settings(**values: Any) -> FetchSettings:
    return FetchSettings(allow_addresses=("127.0.0.0/8",), **values)


def fetch(steps: list[Step], limits: FetchSettings | None = None, **fields: Any) -> tuple[Exchange, RawServer]:
    async def run() -> tuple[Exchange, RawServer]:
        async with serving(steps) as server:
            return await HttpProtocol(limits or settings()).fetch(server.request(**fields)), server

    return asyncio.run(run())


def seen(exchange: Exchange) -> Seen:
    if exchange.failure is not None:
        return Seen(failure=f"{exchange.failure}: {exchange.failure_reason}")
    return Seen(exchange.status, exchange.body_bytes(), exchange.truncated)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_every_vector_has_its_outcome_over_a_socket(vector: Vector) -> None:
    exchange, server = fetch([vector.raw, "reset" if vector.end == "reset" else "close"])
    assert seen(exchange) == vector.seen
    assert server.connections == 1
    assert exchange.connection is None


def test_an_exchange_is_the_bytes_of_the_wire() -> None:
    head = b"HTTP/1.1 203 Odd \xe4\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nX: a\r\nx: b\r\n\r\n"
    before = time.time()
    exchange, server = fetch([head + b"3\r\nabc\r\n0\r\n\r\n", "close"], path="/a?b=c")
    assert exchange.request_bytes == server.requests[0]
    assert (exchange.head, exchange.status, exchange.reason, exchange.http_version) == (head, 203, "Odd ä", "1.1")
    assert [value for name, value in exchange.headers if name == "x"] == ["a", "b"]
    assert exchange.header("content-encoding") == "gzip"
    assert (exchange.body_bytes(), exchange.body_size, exchange.was_chunked, exchange.tls) == (b"abc", 3, True, None)
    assert before <= exchange.started_at <= exchange.started_at + exchange.duration_s <= time.time() + 0.01


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/a b",
        "http://a.example/\r\nX: y",
        "http://a.example/ä",
        "ftp://a.example/",
        "http:///x",
        "x",
        "",
    ],
)
def test_a_url_that_is_none_is_not_asked_for(url: str) -> None:
    exchange = asyncio.run(HttpProtocol(settings()).fetch(Request(url, "127.0.0.1", "agent")))
    assert (exchange.failure, exchange.failure_reason) == (Outcome.PROTOCOL_ERROR, "bad_url")


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "localhost", "0.0.0.0", "2130706433"])
def test_no_packet_goes_to_an_address_that_is_not_public(address: str) -> None:
    async def run() -> tuple[Exchange, int]:
        async with serving([HELLO]) as server:
            exchange = await HttpProtocol(FetchSettings()).fetch(server.request(address=address))
            return exchange, server.connections

    exchange, connections = asyncio.run(run())
    assert exchange.failure is Outcome.ADDRESS_REFUSED
    assert (connections, exchange.request_bytes) == (0, b"")


def test_proxies_and_netrc_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    exchange, server = fetch([HELLO])
    assert exchange.status == 200
    assert b"Authorization" not in server.requests[0]


SHORT = settings(connect_timeout_s=1, head_timeout_s=0.4, idle_timeout_s=0.3, exchange_timeout_s=0.8)
DRIP: list[Step] = [step for _ in range(200) for step in (b"x", 0.02)]


@pytest.mark.parametrize(
    ("name", "steps", "expected", "due_s"),
    [
        ("silence", ["hang"], ("timeout", "head", None), 0.4),
        ("head drips", [OK, b"X: ", *DRIP], ("timeout", "head", None), 0.4),
        ("interim heads drip", [b"HTTP/1.1 102 P\r\n\r\n", 0.1] * 20, ("timeout", "head", None), 0.4),
        ("no body", [OK + b"Content-Length: 9\r\n\r\n", "hang"], (None, None, "time"), 0.3),
        ("body stops", [OK + b"Content-Length: 9\r\n\r\nabc", "hang"], (None, None, "time"), 0.3),
        ("open body stops", [OK + b"\r\nabc", "hang"], (None, None, "time"), 0.3),
        ("chunks stop", [CHUNKED + b"3\r\nabc\r\n", "hang"], (None, None, "time"), 0.3),
        ("body drips", [OK + b"Content-Length: 900\r\n\r\n", *DRIP], (None, None, "time"), 0.8),
        ("chunks drip", [CHUNKED, *[s for _ in range(99) for s in (b"1\r\nx\r\n", 0.02)]], (None, None, "time"), 0.8),
        ("trailer drips", [CHUNKED + b"1\r\nx\r\n0\r\nX: ", *DRIP], (None, None, "time"), 0.8),
    ],
)
def test_deadlines_are_by_the_wall_clock(
    name: str, steps: list[Step], expected: tuple[str | None, str | None, str | None], due_s: float
) -> None:
    exchange, _ = fetch(steps, SHORT)
    assert (exchange.failure, exchange.failure_reason, exchange.truncated) == expected
    assert due_s <= exchange.duration_s + 0.02 <= due_s + 0.3


WINDOW_S, RATE = 0.6, 300  # 180 bytes in a window


def dripped(pause_s: float, piece: bytes, count: int, head: bytes = OK) -> list[Step]:
    return [head + b"\r\n", *[step for _ in range(count) for step in (pause_s, piece)], "close"]


@pytest.mark.parametrize(
    ("steps", "truncated", "lasts_s"),
    [
        pytest.param(dripped(0.05, b"x", 99), "time", 0.6, id="one byte after the other"),
        pytest.param(dripped(0.05, b"x", 7), None, 0.35, id="a short body that ends within its grace"),
        pytest.param(dripped(0.05, b"x" * 50, 24), None, 1.2, id="slow and honest"),
        pytest.param(dripped(0.35, b"x" * 300, 4), None, 1.4, id="honest, with pauses"),
        pytest.param(
            [OK + b"\r\n" + b"x" * 9_000, *[step for _ in range(99) for step in (b"x", 0.05)]], "time", 1.2,
            id="quick at first",
        ),
        pytest.param(
            [CHUNKED, *[s for _ in range(99) for s in (b"1;" + b"e" * 90 + b"\r\nx\r\n", 0.05)]], "time", 0.6,
            id="chunks that are all frame",
        ),
        pytest.param(dripped(0.05, b"x", 99, OK.replace(b"200 OK", b"404 No")), "time", 0.6, id="whatever the status"),
    ],
)  # fmt: skip
def test_a_body_has_a_least_rate(steps: list[Step], truncated: str | None, lasts_s: float) -> None:
    exchange, _ = fetch(steps, settings(min_rate=RATE, rate_window_s=WINDOW_S))
    assert (exchange.failure, exchange.truncated) == (None, truncated)
    assert exchange.body_size > 0
    assert lasts_s <= exchange.duration_s + 0.02 <= lasts_s + 0.3


def test_without_a_least_rate_there_is_none() -> None:
    exchange, _ = fetch(dripped(0.05, b"x", 12), settings(min_rate=0, rate_window_s=0.1))
    assert (exchange.truncated, exchange.body_size) == (None, 12)


def test_a_check_that_comes_late_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped has not read what has come."""
    monkeypatch.setattr("crawler.fetch.stream.LATE_S", 0.0)
    exchange, _ = fetch(dripped(0.05, b"x", 12), settings(min_rate=RATE, rate_window_s=0.2))
    assert (exchange.truncated, exchange.body_size) == (None, 12)


def test_the_default_rate_leaves_slow_lines_alone() -> None:
    """A page that could be whole before the limit of the exchange, at a rate that modems had in 1985, is not cut."""
    limits = settings()
    assert limits.min_rate * limits.rate_window_s <= 4_800
    assert limits.min_rate <= 2_400 / 8
    assert limits.rate_window_s >= limits.idle_timeout_s


def test_a_tarpit_does_not_slow_other_fetches() -> None:
    async def run() -> float:
        protocol = HttpProtocol(SHORT)
        async with serving(["hang"]) as tarpit, serving([HELLO, "close"]) as quick:
            stuck = [asyncio.ensure_future(protocol.fetch(tarpit.request())) for _ in range(50)]
            await asyncio.sleep(0.05)
            slowest = max([(await protocol.fetch(quick.request())).duration_s for _ in range(20)])
            assert all(exchange.failure is Outcome.TIMEOUT for exchange in await asyncio.gather(*stuck))
            return slowest

    assert asyncio.run(run()) < 0.2


def test_a_port_nobody_listens_on() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://a.example:{closed.getsockname()[1]}/"
        exchange = asyncio.run(HttpProtocol(settings()).fetch(Request(url, "127.0.0.1", "agent")))
    assert (exchange.failure, exchange.failure_reason) == (Outcome.CONNECT_FAILED, "refused")


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 1073741824\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n"]
)
def test_memory_is_flat_whatever_the_body_claims(framing: bytes) -> None:
    """64 MiB are sent, 5 MiB kept; the connection is dropped and hardly more than a socket buffer is sent in vain."""
    block = b"x" * 65_536
    piece = b"10000\r\n" + block + b"\r\n" if b"chunked" in framing else block
    fetch([HELLO, "close"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exchange, _ = fetch([OK + framing, *[piece] * 1024, "close"])
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (exchange.body_size, exchange.truncated) == (5 * 1024 * 1024, "length")
    assert growth < 4 * 1024
    exchange.close()


def test_a_long_body_is_spooled_and_read_as_often_as_wanted() -> None:
    body = os.urandom(300_000)
    exchange, _ = fetch([OK + b"\r\n" + body, "close"])
    assert exchange.body_bytes() == exchange.body.read() == exchange.body_bytes() == body
    exchange.close()


def test_a_server_that_does_not_take_connections() -> None:
    """Linux drops the SYN of a listener whose queue is full."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        limits = settings(connect_timeout_s=0.3)
        exchange = asyncio.run(HttpProtocol(limits).fetch(Request(f"http://a.example:{port}/", "127.0.0.1", "agent")))
    assert (exchange.failure, exchange.failure_reason) == (Outcome.TIMEOUT, "connect")
    assert 0.25 < exchange.duration_s < 0.6
