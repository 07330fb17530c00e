"""The seam for protocols: a module by URL scheme, built in or found by the entry point group `orbweaver.protocols`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol

from crawler.fetch.exchange import Exchange, IdleConnection, Request
from crawler.fetch.http import HttpProtocol
from crawler.settings import FetchSettings

GROUP = "orbweaver.protocols"


class ProtocolModule(Protocol):
    """Fetches URLs of its schemes. Whatever a server does comes back as an `Exchange`; only bugs raise. It connects to
    `request.address` and to nothing else, keeps the limits and deadlines of the settings it was made with, and never
    returns more than `request.max_body_bytes` of body."""

    async def fetch(self, request: Request, connection: IdleConnection | None = None) -> Exchange: ...


Factory = Callable[[FetchSettings], ProtocolModule]
BUILT_IN: dict[str, Factory] = {"http": HttpProtocol, "https": HttpProtocol}


def protocol_for(scheme: str) -> Factory | None:
    """What makes the module for a scheme, or None. An installed entry point named after the scheme wins."""
    for found in entry_points(group=GROUP, name=scheme):
        factory: Factory = found.load()
        return factory
    return BUILT_IN.get(scheme)
