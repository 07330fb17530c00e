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
_CONTENT_LENGTH = re.compile(rb"^content-length(?=[ \t]*:([^\r\n]*))", re.IGNORECASE | re.MULTILINE)
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
    """The head as received, made true for the `body_size` bytes that are stored behind it.

    A Transfer-Encoding is always kept as `X-Crawler-...`, since bodies are stored without; so is a Content-Length that
    is not the stored size, as of a body that was cut. Then a Content-Length says what is stored, unless the status
    allows no body. No other byte is touched. Readers trust that field: some refuse the record, others wait for bytes.
    """
    if not head.endswith((b"\n\r\n", b"\n\n")):
        raise ValueError(f"head of {len(head)} bytes does not end in an empty line: {head[-20:]!r}")
    coding, lengths = _TRANSFER_ENCODING.search(head), list(_CONTENT_LENGTH.finditer(head))
    if coding is None and all(_states(length[1], body_size) for length in lengths):
        return head
    line_end = b"\r\n" if head.endswith(b"\r\n") else b"\n"
    true = b"" if _NO_BODY.match(head) else b"Content-Length: %d" % body_size + line_end
    at = (coding or lengths[0]).start()
    before, after = _renamed(_CONTENT_LENGTH, head[:at]), _renamed(_CONTENT_LENGTH, head[at:])
    return before + true + _renamed(_TRANSFER_ENCODING, after)


def _states(value: bytes, size: int) -> bool:
    """True for the digits of the size; zeros may come before them. A hostile number may have any length."""
    digits = value.strip(b" \t")
    return digits.isdigit() and (digits.lstrip(b"0") or b"0") == b"%d" % size


def _renamed(name: re.Pattern[bytes], lines: bytes) -> bytes:
    return name.sub(rb"X-Crawler-\g<0>", lines)
