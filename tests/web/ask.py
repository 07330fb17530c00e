"""Asking the demo web one question over a raw socket: what a test sees of an answer, whole or broken."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tests.web.demo import DemoWeb

Fields = Mapping[str, str]
NO_FIELDS: Fields = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reply:
    """What came until the connection ended, the body was complete, or the patience was over."""

    wire: bytes
    ending: str  # complete, closed, reset, refused, waiting
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def status(self) -> int:
        """0 when there is no status line."""
        found = re.match(rb"HTTP/1\.1 (\d{3}) ", self.wire)
        return int(found[1]) if found else 0

    @property
    def has_head(self) -> bool:
        return b"\r\n\r\n" in self.wire


def ask(
    web: DemoWeb, host: str, path: str = "/", patience_s: float = 12.0, fields: Fields = MappingProxyType({})
) -> Reply:
    """One GET by a new connection to the host's address. Fields are more header fields."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{web.port}", "User-Agent: tester", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return send(web.web.addresses[host], web.port, "\r\n".join([*lines, "", ""]).encode(), patience_s)


def send(address: str, port: int, request: bytes, patience_s: float = 12.0) -> Reply:
    """Sends the bytes and reads to the end of the connection."""
    ends_at = time.monotonic() + patience_s
    wire, ending = b"", "closed"
    try:
        with socket.create_connection((address, port), timeout=patience_s) as connection:
            connection.sendall(request)
            while data := _receive(connection, ends_at):
                wire += data
    except TimeoutError:
        ending = "waiting"
    except ConnectionRefusedError:
        ending = "refused"
    except ConnectionResetError:
        ending = "reset"
    return _reply(wire, ending)


def _receive(connection: socket.socket, ends_at: float) -> bytes:
    connection.settimeout(max(0.001, ends_at - time.monotonic()))
    return connection.recv(1 << 16)


def _reply(wire: bytes, ending: str) -> Reply:
    head, found, body = wire.partition(b"\r\n\r\n")
    if not (found and wire.startswith(b"HTTP/")):
        return Reply(wire, ending)
    pairs = (line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:])
    headers = {name.lower(): value for name, _, value in pairs}
    is_complete = headers.get("content-length") == str(len(body)) or body.endswith(b"0\r\n\r\n")
    return Reply(wire, "complete" if is_complete else ending, headers, body)


def joined(body: bytes) -> bytes:
    """The body out of its chunks."""
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        parts.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return b"".join(parts)
