"""Content codings of HTTP (RFC 9110, 8.4.1): gzip, deflate, br, identity. Output is bounded at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import brotli
from isal import isal_zlib

MAX_CODINGS = 2
_STEP = 256 * 1024
# isal's stub says of its exception class that it is an exception.
_ERRORS = (cast("type[Exception]", isal_zlib.IsalError), cast("type[Exception]", brotli.error), EOFError)


class DecodedBody(NamedTuple):
    """A body without its content codings.

    `truncated`: there was more than `max_bytes`. `error`: why decoding ended early; the body holds what came before.
    """

    body: bytes
    truncated: bool = False
    error: str | None = None


def decode_content(body: bytes, encoding_header: str | None, max_bytes: int) -> DecodedBody:
    """Undo the codings that Content-Encoding names, last one first, two at the most. It never raises."""
    names = [name for name in map(_name, (encoding_header or "").split(",")) if name not in ("", "identity")]
    unknown = [name for name in names if name not in _DECODERS]
    if unknown:
        return DecodedBody(body, error=f"unknown content coding {unknown[0][:40]}")
    if len(names) > MAX_CODINGS:
        return DecodedBody(body, error="too many content codings")
    decoded = DecodedBody(body)
    for name in reversed(names):
        decoded = _bounded(_DECODERS[name], decoded.body, max_bytes)
        if decoded.truncated or decoded.error:
            return decoded
    return decoded


def gunzip(body: bytes, max_bytes: int) -> DecodedBody:
    """A gzip file as it was, all its members, bounded in the same way."""
    return _bounded(_gzip, body, max_bytes)


def _name(text: str) -> str:
    return text.strip().lower()


def _bounded(decoder: Callable[[bytes], Iterator[bytes]], body: bytes, max_bytes: int) -> DecodedBody:
    if not body:  # a 304 or a HEAD says its coding and has no body
        return DecodedBody(b"")
    parts: list[bytes] = []
    size = 0
    try:
        for part in decoder(body):
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                return DecodedBody(b"".join(parts)[:max_bytes], truncated=True)
    except _ERRORS as error:
        return DecodedBody(b"".join(parts), error=str(error) or type(error).__name__)
    return DecodedBody(b"".join(parts))


def _gzip(body: bytes) -> Iterator[bytes]:
    """All members; what follows the last one and is none is ignored, as browsers do."""
    while body:
        decoder = isal_zlib.decompressobj(wbits=31)
        yield from _inflated(decoder, body)
        body = decoder.unused_data
        if not body.startswith(b"\x1f\x8b"):
            return


def _deflate(body: bytes) -> Iterator[bytes]:
    """zlib's format, or the bare one that some servers send instead."""
    is_zlib = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _inflated(isal_zlib.decompressobj(wbits=15 if is_zlib else -15), body)


def _inflated(decoder: isal_zlib.Decompress, body: bytes) -> Iterator[bytes]:
    while True:
        part = decoder.decompress(body, _STEP)
        if part:
            yield part
        body = decoder.unconsumed_tail
        if decoder.eof:
            return
        if not part and not body:
            raise EOFError("the coded body is cut short")


def _brotli(body: bytes) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    part = decoder.process(body, output_buffer_limit=_STEP)
    while part or not decoder.can_accept_more_data():
        yield part
        part = decoder.process(b"", output_buffer_limit=_STEP)
    if not decoder.is_finished():
        raise EOFError("the coded body is cut short")


_DECODERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
}
