from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint

import pytest

from crawler.fetch import protocols
from crawler.fetch.exchange import Exchange, IdleConnection, Request
from crawler.fetch.http import HttpProtocol
from crawler.fetch.protocols import ProtocolModule, protocol_for
from crawler.settings import FetchSettings


class Gopher:
    """A protocol module of somebody else."""

    def __init__(self, limits: FetchSettings) -> None:
        self.limits = limits

    async def fetch(self, request: Request, connection: IdleConnection | None = None) -> Exchange:
        return Exchange(b"/\r\n", request.address, 0.0, status=200)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_http_is_built_in(scheme: str) -> None:
    factory = protocol_for(scheme)
    assert factory is not None
    assert isinstance(factory(FetchSettings()), HttpProtocol)


def test_a_scheme_nobody_knows_has_no_module() -> None:
    assert protocol_for("file") is None


def test_an_installed_entry_point_is_found_by_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(*, group: str, name: str) -> list[EntryPoint]:
        known = EntryPoint("gopher", "tests.fetch.test_protocols:Gopher", "orbweaver.protocols")
        return [known] if (group, name) == (known.group, known.name) else []

    monkeypatch.setattr(protocols, "entry_points", installed)
    factory = protocol_for("gopher")
    assert factory is not None
    module: ProtocolModule = factory(FetchSettings())
    exchange = asyncio.run(module.fetch(Request("gopher://a.example/", "8.8.8.8", "agent")))
    assert exchange.status == 200
