"""The bytes of a response as an archive keeps them: the head, the body in pieces, and their digests."""

from __future__ import annotations

import hashlib
import os
import re
from base64 import b32encode
from collections.abc import Iterable, Iterator
from typing import BinaryIO

CHUNK_BYTES = 256 * 1024

Payload = bytes | BinaryIO

_TRANSFER_ENCODING = re.compile(rb"^transfer-encoding(?=[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_CONTENT_LENGTH = re.compile(rb"^content-length(?=[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_NO_BODY = re.compile(rb"\S+ (1\d\d|204|304)\b")


def payload_digest(body: Payload) -> str:
    """SHA-1 of the entity, base32 without label: no transfer coding, content coding kept (warc-specifications #22)."""
    return digest(chunks(body))


def digest(parts: Iterable[bytes]) -> str:
    """SHA-1 of the parts, base32 in upper case, without label."""
    sha1 = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        sha1.update(part)
    return b32encode(sha1.digest()).decode()


def chunks(body: Payload) -> Iterator[bytes]:
    """The whole body from its start, in pieces."""
    if isinstance(body, bytes):
        yield body
        return
    body.seek(0)
    while piece := body.read(CHUNK_BYTES):
        yield piece


def size(body: Payload) -> int:
    """Bytes of the body."""
    return len(body) if isinstance(body, bytes) else body.seek(0, os.SEEK_END)


def stored_head(head: bytes, body_size: int) -> bytes:
    """The head as received, made true for a body without transfer coding.

    Only a head that announces a transfer coding changes: its Transfer-Encoding (and a Content-Length, which then meant
    nothing) is kept as `X-Crawler-...`, and a Content-Length says what is stored. No other byte is touched.
    """
    if not head.endswith((b"\n\r\n", b"\n\n")):
        raise ValueError(f"head of {len(head)} bytes does not end in an empty line: {head[-20:]!r}")
    coding = _TRANSFER_ENCODING.search(head)
    if coding is None:
        return head
    line_end = b"\r\n" if head.endswith(b"\r\n") else b"\n"
    length = b"" if _NO_BODY.match(head) else b"Content-Length: %d" % body_size + line_end
    before, after = _renamed(_CONTENT_LENGTH, head[: coding.start()]), _renamed(_CONTENT_LENGTH, head[coding.start() :])
    return before + length + _renamed(_TRANSFER_ENCODING, after)


def _renamed(name: re.Pattern[bytes], lines: bytes) -> bytes:
    return name.sub(rb"X-Crawler-\g<0>", lines)
