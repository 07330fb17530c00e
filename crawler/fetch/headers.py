"""The head of a request as bytes, and the head of a response as values (RFC 9112, sections 2 to 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from crawler.fetch.exchange import Request

ACCEPT_ENCODING = "gzip, deflate"
"""Only codings whose decoder here has an output limit on every call."""

DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]+")
_SAFE_URL = re.compile(r"[\x21-\x7e]+")
_STATUS_LINE = re.compile(rb"HTTP/(1\.[01]) +([1-9][0-9][0-9])(?:[ \t:]+(.*)|)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_START = b"HTTP/"


class Origin(NamedTuple):
    """Where a request goes: name or literal without brackets, and the port as a number."""

    scheme: str
    name: str
    port: int


class Prepared(NamedTuple):
    origin: Origin
    head: bytes


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A parsed response head. `is_odd` marks heads that broke the grammar without being refused."""

    status: int
    reason: str
    version: str
    headers: list[tuple[str, str]]
    is_odd: bool

    def first(self, name: str) -> str | None:
        """The first value of a field, named in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    def members(self, name: str) -> list[str]:
        """The members of a list field, in order, lower case."""
        joined = [value for key, value in self.headers if key == name]
        return [member.strip().lower() for value in joined for member in value.split(",")]


class BadHead(NamedTuple):
    """Why a head was refused: `headers_too_large`, or a kind of `protocol_error`."""

    reason: str


def prepare(request: Request) -> Prepared | str:
    """The bytes of a request and where they go, or why no request can be made of it. A fixed set of fields, built anew
    each time: no cookies, no credentials; user information and fragment of the URL are not sent."""
    if not _SAFE_URL.fullmatch(request.url):
        return "bad_url"
    try:
        parts = urlsplit(request.url)
        port = DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError):
        return "bad_url"
    if not parts.hostname:
        return "bad_url"
    origin = Origin(parts.scheme, parts.hostname, port)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Prepared(origin, _request_head(request, _authority(origin), target))


def _authority(origin: Origin) -> str:
    name = f"[{origin.name}]" if ":" in origin.name else origin.name
    return name if origin.port == DEFAULT_PORTS[origin.scheme] else f"{name}:{origin.port}"


def _request_head(request: Request, authority: str, target: str) -> bytes:
    lines = [f"GET {target} HTTP/1.1", f"Host: {authority}"]
    lines += _line("User-Agent", request.user_agent)
    lines += _line("Accept", request.accept)
    lines.append(f"Accept-Encoding: {ACCEPT_ENCODING}")
    lines += _line("If-None-Match", request.etag)
    lines += _line("If-Modified-Since", request.last_modified)
    if not request.keep_alive:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


def _line(name: str, value: str | None) -> list[str]:
    """A field, or none when the value could not be sent as it is."""
    return [f"{name}: {value}"] if value and _SAFE_VALUE.fullmatch(value) else []


def head_end(buffer: bytes | bytearray | memoryview, start: int) -> int:
    """The offset behind the empty line that ends a head, looked for from `start`; -1 when it is not there yet."""
    found = _HEAD_END.search(buffer, start)
    return found.end() if found else -1


def may_be_response(buffer: bytes | bytearray | memoryview) -> bool:
    """False as soon as the first bytes cannot be those of a status line (HTTP/0.9 and other protocols)."""
    return buffer[: len(_STATUS_START)] == _STATUS_START[: len(buffer)]


def parse_head(head: bytes, max_fields: int) -> ResponseHead | BadHead:
    """The values of a complete head. Lone LF ends a line (RFC 9112, 2.2); bare CR and NUL are refused. A folded line
    goes on with the field before it, after a space (5.2). A line without a name is left out, and so are folded ones
    after it or after the status line (2.2). All of these mark the head as odd."""
    if b"\0" in head:
        return BadHead("nul_in_head")
    lines = head.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    status_line = _STATUS_LINE.fullmatch(lines[0])
    if status_line is None:
        return BadHead("bad_status_line")
    if len(lines) - 1 > max_fields:
        return BadHead("headers_too_large")
    if b"\r" in b"".join(lines):
        return BadHead("bare_cr")
    version, status, reason = status_line.groups(b"")
    headers: list[tuple[str, str]] = []
    is_odd = b"\r\n" not in head
    fields: list[bytes] = []
    for line in lines[1:]:
        if line[0] not in b" \t":
            fields.append(line)
            continue
        is_odd = True
        if fields and b":" in fields[-1]:
            fields[-1] = fields[-1].rstrip(b" \t") + b" " + line.strip(b" \t")
    for line in fields:
        name, colon, value = line.decode("latin-1").partition(":")
        stripped = name.rstrip(" \t")
        is_odd = is_odd or stripped != name
        if not colon or not stripped:
            is_odd = True
            continue
        headers.append((stripped.lower(), value.strip(" \t")))
    return ResponseHead(int(status), reason.decode("latin-1").strip(), version.decode(), headers, is_odd)
