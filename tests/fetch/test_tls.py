from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crawler.fetch.exchange import Exchange
from crawler.fetch.http import HttpProtocol, Request
from crawler.fetch.tls import checking_context
from crawler.records import Outcome
from crawler.settings import FetchSettings
from tests.fetch.certificates import Authority
from tests.fetch.raw_server import RawServer, serving

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls")).create()


@pytest.fixture(scope="module")
def contexts(authority: Authority) -> dict[str, ssl.SSLContext]:
    return {
        "ok": authority.leaf("ok"),
        "expired": authority.leaf("expired", days=-1),
        "wrong_host": authority.leaf("wrong", name="other.example"),
        "self_signed": authority.self_signed(),
        "untrusted": Authority(authority.folder, "stranger").create().leaf("ok"),
    }


def settings(**values: Any) -> FetchSettings:
    return FetchSettings(allow_addresses=("127.0.0.0/8",), **values)


def secure(server: RawServer, name: str = "site.example", **fields: Any) -> Request:
    return Request(f"https://{name}:{server.port}/", "127.0.0.1", "agent", **fields)


def run_with(context: ssl.SSLContext, protocol: HttpProtocol, requests: int = 1) -> tuple[list[Exchange], RawServer]:
    async def run() -> tuple[list[Exchange], RawServer]:
        async with serving([HELLO], context) as server:
            return [await protocol.fetch(secure(server)) for _ in range(requests)], server

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["ok", "expired", "wrong_host", "self_signed", "untrusted"])
def test_any_certificate_is_accepted_and_its_verdict_kept(
    kind: str, contexts: dict[str, ssl.SSLContext], authority: Authority
) -> None:
    exchanges, server = run_with(contexts[kind], HttpProtocol(settings(), tls_roots=authority.roots), requests=3)
    for exchange in exchanges:
        assert exchange.body_bytes() == b"hello"
        assert exchange.tls is not None
        assert (exchange.tls.protocol, exchange.tls.verdict) == ("TLSv1.3", kind)
        assert exchange.tls.cipher.startswith("TLS_")
    assert len(server.requests) == 3


@pytest.mark.parametrize("kind", ["ok", "expired", "wrong_host", "self_signed", "untrusted"])
def test_with_verification_only_a_good_certificate_gets_a_request(
    kind: str, contexts: dict[str, ssl.SSLContext], authority: Authority
) -> None:
    (exchange,), server = run_with(contexts[kind], HttpProtocol(settings(verify_tls=True), tls_roots=authority.roots))
    assert exchange.tls is not None
    assert exchange.tls.verdict == kind
    assert exchange.failure is (None if kind == "ok" else Outcome.TLS_FAILED)
    assert len(server.requests) == (1 if kind == "ok" else 0)


@pytest.fixture
def python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the default context of an interpreter from 3.13 on asks of certificates."""
    make = ssl.create_default_context

    def stricter(**values: Any) -> ssl.SSLContext:
        context = make(**values)
        context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    monkeypatch.setattr(ssl, "create_default_context", stricter)


@pytest.mark.usefixtures("python_3_13")
@pytest.mark.parametrize("verify_tls", [False, True])
@pytest.mark.parametrize("kind", ["ok", "expired", "wrong_host", "self_signed", "untrusted"])
def test_a_verdict_is_the_same_with_every_interpreter(
    kind: str, verify_tls: bool, contexts: dict[str, ssl.SSLContext], authority: Authority
) -> None:
    protocol = HttpProtocol(settings(verify_tls=verify_tls), tls_roots=authority.roots)
    (exchange,), _ = run_with(contexts[kind], protocol)
    assert exchange.tls is not None
    assert exchange.tls.verdict == kind


@pytest.mark.usefixtures("python_3_13")
@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_asked_of_certificates_is_said_here_and_nowhere_else(lenient: bool, authority: Authority) -> None:
    for roots in (authority.roots, None):
        context = checking_context(roots, lenient=lenient)
        assert context.verify_flags == ssl.VERIFY_X509_TRUSTED_FIRST
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_the_systems_roots_do_not_know_ours(contexts: dict[str, ssl.SSLContext]) -> None:
    (exchange,), _ = run_with(contexts["ok"], HttpProtocol(settings()))
    assert exchange.tls is not None
    assert exchange.tls.verdict == "untrusted"


def test_an_address_as_host_is_checked_as_an_address(contexts: dict[str, ssl.SSLContext], authority: Authority) -> None:
    async def run() -> Exchange:
        async with serving([HELLO], contexts["ok"]) as server:
            protocol = HttpProtocol(settings(), tls_roots=authority.roots)
            return await protocol.fetch(secure(server, name="127.0.0.1"))

    exchange = asyncio.run(run())
    assert exchange.tls is not None
    assert (exchange.status, exchange.tls.verdict) == (200, "wrong_host")


def test_a_bad_certificate_that_changes_is_judged_anew(authority: Authority) -> None:
    """The second certificate of one server is a good one: its verdict must not be that of the first."""
    context = authority.leaf("first", days=-1)
    authority.leaf("second")
    second_chain = str(authority.folder / "root-second.pem"), str(authority.folder / "root-second.key")

    async def run() -> list[str]:
        async with serving([HELLO], context) as server:
            protocol = HttpProtocol(settings(), tls_roots=authority.roots)
            first = await protocol.fetch(secure(server))
            context.load_cert_chain(*second_chain)
            second = await protocol.fetch(secure(server))
            return [exchange.tls.verdict for exchange in (first, second) if exchange.tls]

    assert asyncio.run(run()) == ["expired", "ok"]


def test_the_server_hears_the_name_of_the_url(contexts: dict[str, ssl.SSLContext], authority: Authority) -> None:
    heard: list[str | None] = []
    context = contexts["ok"]
    context.sni_callback = lambda _, name, __: heard.append(name)
    try:
        run_with(context, HttpProtocol(settings(), tls_roots=authority.roots))
    finally:
        context.sni_callback = None
    assert heard == ["site.example"]


def test_a_secure_connection_is_used_again(contexts: dict[str, ssl.SSLContext], authority: Authority) -> None:
    async def run() -> RawServer:
        async with serving([HELLO], contexts["ok"]) as server:
            protocol = HttpProtocol(settings(), tls_roots=authority.roots)
            exchange = await protocol.fetch(secure(server, keep_alive=True))
            await asyncio.sleep(0.05)
            for _ in range(3):
                exchange = await protocol.fetch(secure(server, keep_alive=True), exchange.connection)
                assert exchange.tls is not None
                assert (exchange.body_bytes(), exchange.tls.verdict) == (b"hello", "ok")
            assert exchange.connection is not None
            exchange.connection.close()
            return server

    server = asyncio.run(run())
    assert (server.connections, len(server.requests)) == (1, 4)


def test_a_large_body_comes_whole_through_tls(contexts: dict[str, ssl.SSLContext], authority: Authority) -> None:
    body = bytes(range(256)) * 4096

    async def run() -> Exchange:
        async with serving([b"HTTP/1.1 200 OK\r\n\r\n", body, "close"], contexts["ok"]) as server:
            return await HttpProtocol(settings(), tls_roots=authority.roots).fetch(secure(server))

    exchange = asyncio.run(run())
    assert (exchange.body_bytes() == body, exchange.truncated) == (True, None)
    exchange.close()


def test_old_protocol_versions_are_good_enough_for_an_archive(authority: Authority) -> None:
    context = authority.leaf("old")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    (exchange,), _ = run_with(context, HttpProtocol(settings(), tls_roots=authority.roots))
    assert exchange.tls is not None
    assert (exchange.status, exchange.tls.protocol, exchange.tls.verdict) == (200, "TLSv1.1", "ok")
    (exchange,), _ = run_with(context, HttpProtocol(settings(verify_tls=True), tls_roots=authority.roots))
    assert exchange.failure is Outcome.TLS_FAILED


def test_a_certificate_chain_over_64_kib_is_refused(authority: Authority) -> None:
    for padding, outcome in ((600, None), (1100, Outcome.TLS_FAILED)):
        context = authority.leaf(f"large{padding}", padding=padding)
        (exchange,), server = run_with(context, HttpProtocol(settings(), tls_roots=authority.roots))
        assert exchange.failure is outcome
        assert len(server.requests) == (0 if outcome else 1)


@contextlib.asynccontextmanager
async def plain(*steps: Any) -> AsyncIterator[RawServer]:
    async with serving(steps, waits_for_request=False) as server:
        yield server


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([HELLO, "close"], ("tls_failed", "wrong_version_number")),
        ([0.05, "close"], ("tls_failed", "closed_in_handshake")),
        (["reset"], ("tls_failed", "reset_in_handshake")),
        ([0.01, "hang"], ("timeout", "tls")),
        ([b"\x16\x03\x03\x40\x00\x02", *[step for _ in range(99) for step in (b"\0", 0.05)]], ("timeout", "tls")),
        ([b"\x16\x03\x03\x40\x00" + b"\x0b\x00\xff\xff" + bytes(16_380)] * 50 + ["hang"], ("tls_failed", None)),
    ],
    ids=["plain http", "closed", "reset", "silence", "drip", "flood"],
)
def test_a_handshake_that_fails(steps: list[Any], expected: tuple[str, str | None]) -> None:
    async def run() -> Exchange:
        async with plain(*steps) as server:
            return await HttpProtocol(settings(tls_timeout_s=0.3)).fetch(secure(server))

    exchange = asyncio.run(run())
    assert exchange.failure == expected[0]
    assert expected[1] in (None, exchange.failure_reason)
    assert exchange.duration_s < 0.8
    assert exchange.request_bytes == b""
