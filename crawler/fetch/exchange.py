"""What goes into a fetch and what comes out of it, the same for every protocol module."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Protocol, cast

from crawler.page.wanted import MimeTypes
from crawler.records import Outcome

MEMORY_BYTES = 65_536
LEFT_OUT = "unspecified"
"""WARC-Truncated of a body that we do not want: neither too long, nor too slow, nor broken off (WARC 1.1, 5.13)."""


class IdleConnection(Protocol):
    """A connection that its owner may hand to the next fetch of the same origin, or close."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One GET. `address` is the vetted IP literal to connect to; the host name in `url` is never resolved here.

    Bodies of the types in `unread` are not read.
    """

    url: str
    address: str
    user_agent: str
    etag: str | None = None
    last_modified: str | None = None
    accept: str = "*/*"
    max_body_bytes: int = 5 * 1024 * 1024
    keep_alive: bool = False
    unread: MimeTypes | None = None


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """`protocol` as `TLSv1.3`; `verdict` on the certificate: ok, expired, wrong_host, self_signed, untrusted, other."""

    protocol: str
    cipher: str
    verdict: str


@dataclass(slots=True)
class Exchange:
    """One request and what came of it. Head and body are the bytes as received, the body without chunk framing and
    with its content coding. `failure` is set when there is no usable response; then `failure_reason` says why. An
    `unread_type` is the one for which the body was not read: it is empty then, and truncated."""

    request_bytes: bytes
    address: str
    started_at: float
    sent_at: float = 0.0  # when the request went out, after connecting; 0 when it did not
    duration_s: float = 0.0
    head: bytes = b""
    status: int = 0
    reason: str = ""
    http_version: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: IO[bytes] = field(default_factory=io.BytesIO)
    body_size: int = 0
    truncated: str | None = None
    unread_type: str | None = None
    was_chunked: bool = False
    tls: TlsInfo | None = None
    failure: Outcome | None = None
    failure_reason: str | None = None
    connection: IdleConnection | None = None

    def header(self, name: str) -> str | None:
        """The first value of a field, named in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def content_encoding(self) -> str:
        """All Content-Encoding fields as the one list that they are (RFC 9110, 5.3), in their order; empty for none."""
        return ", ".join(value for key, value in self.headers if key == "content-encoding")

    @property
    def location(self) -> str | None:
        """The Location field as browsers read it: raw bytes that are UTF-8 are that, others Latin-1."""
        value = self.header("location")
        try:
            return value and value.encode("latin-1").decode()
        except UnicodeError:
            return value

    def body_bytes(self) -> bytes:
        """The whole body; the stream stands at its start afterwards."""
        if isinstance(self.body, io.BytesIO):
            return self.body.getvalue()
        self.body.seek(0)
        content = self.body.read()
        self.body.seek(0)
        return content

    def drop_body(self) -> None:
        """Keep nothing of the body: it is truncated from here on."""
        self.body.close()
        self.body, self.body_size, self.truncated = io.BytesIO(), 0, LEFT_OUT

    def close(self) -> None:
        """Give back the spool file, if there is one."""
        self.body.close()


class Spool:
    """A body while it arrives: the first 64 KiB in memory, a longer one in a nameless temporary file."""

    __slots__ = ("_file", "size")

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        if self._file is None:
            self._file = io.BytesIO()
        if self.size > MEMORY_BYTES and isinstance(self._file, io.BytesIO):
            start, self._file = self._file, cast(IO[bytes], TemporaryFile(buffering=0))  # noqa: SIM115 - closed by whoever reads the body
            self._file.write(start.getbuffer())
        self._file.write(data)

    def start(self) -> bytes:
        """All of the body, while it is in memory."""
        return self._file.getvalue() if isinstance(self._file, io.BytesIO) else b""

    def stream(self) -> IO[bytes]:
        """The body for reading, from its start."""
        if self._file is None:
            return io.BytesIO()
        self._file.seek(0)
        return self._file
