"""Content codings of HTTP (RFC 9110, 8.4.1): gzip, deflate, br, identity. Decoding is linear and bounded.

A body is fed to its decoder in slices: what a decoder copies when it comes to the end of a gzip member or of its room
for output is then at most a slice, however many members there are. Between two slices the bounds are looked at: of the
output, and of the CPU time of this thread. Output comes in steps of 256 KiB.

The frames of gzip and zlib are read here and their checksums are passed over, as browsers do: a server that sends a
bad one has sent a page all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import NamedTuple, cast

import brotli
from isal import isal_zlib

MAX_CODINGS = 2
LIMIT_S = 0.04
_STEP = 256 * 1024
_SLICE = 16 * 1024
_MAGIC = b"\x1f\x8b"
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 2, 4, 8, 16  # flags of a gzip header (RFC 1952, 2.3.1)
# isal's stub says of its exception class that it is an exception.
_ERRORS = (cast("type[Exception]", isal_zlib.IsalError), cast("type[Exception]", brotli.error), EOFError)
# What servers name in Content-Encoding though it is no coding: the body is as it was.
_NO_CODINGS = frozenset({"", "identity", "none", "utf-8", "utf8", "binary", "7bit", "8bit", "aws-chunked"})
_NOT_UNDONE = ("unknown content coding", "too many content codings", "not in the coding")
_TOO_LONG = "decoding takes too long"
_CUT = "the coded body is cut short"


class DecodedBody(NamedTuple):
    """A body without its content codings.

    `truncated`: there was more than `max_bytes`. `error`: why decoding ended early; the body holds what came before, or
    the bytes as they are where the coding is unknown or is not the one that was named.
    """

    body: bytes
    truncated: bool = False
    error: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing; a coding that was not undone takes nothing away."""
        return not self.truncated and (self.error is None or self.is_as_sent)

    @property
    def is_as_sent(self) -> bool:
        """Whether a coding was named that was not undone."""
        return self.error is not None and self.error.startswith(_NOT_UNDONE)

    @property
    def took_too_long(self) -> bool:
        """Whether the time was used up."""
        return self.error == _TOO_LONG


class _TooLong(Exception):
    """The time is used up."""


Check = Callable[[], None]
_Decoder = Callable[[bytes, Check], Iterator[bytes]]


def decode_content(body: bytes, encoding_header: str | None, max_bytes: int, limit_s: float = LIMIT_S) -> DecodedBody:
    """Undo the codings that Content-Encoding names (all of its fields, joined by commas), last one first, two at the
    most, in `limit_s` seconds of CPU. It never raises.

    The limit is that of an event loop, which real bodies of a megabyte keep; where time is no matter, give more.
    """
    names = [name for name in map(_name, (encoding_header or "").split(",")) if name not in _NO_CODINGS]
    if len(names) > MAX_CODINGS:
        return DecodedBody(body, error="too many content codings")
    decoded = DecodedBody(body)
    ends_at = time.thread_time() + limit_s
    for name in reversed(names):
        decoder = _DECODERS.get(name)
        if decoder is None:
            return decoded._replace(error=decoded.error or f"unknown content coding {_printable(name)}")
        if decoder is _gzip and decoded.body and not decoded.body.startswith(_MAGIC):
            return decoded._replace(error=decoded.error or f"not in the coding {name}")
        inner = _bounded(decoder, decoded.body, max_bytes, ends_at)
        decoded = DecodedBody(inner.body, decoded.truncated or inner.truncated, decoded.error or inner.error)
    return decoded


def gunzip(body: bytes, max_bytes: int, limit_s: float = float("inf")) -> DecodedBody:
    """A gzip file as it was, all its members, bounded in the same way."""
    return _bounded(_gzip, body, max_bytes, time.thread_time() + limit_s)


def _name(text: str) -> str:
    return text.strip().lower()


def _printable(name: str) -> str:
    return "".join(char if " " < char <= "~" else "?" for char in name[:40])


def _bounded(decoder: _Decoder, body: bytes, max_bytes: int, ends_at: float) -> DecodedBody:
    if not body:  # a 304 or a HEAD says its coding and has no body
        return DecodedBody(b"")
    whole = BytesIO()  # its value is handed over without a copy
    error = None

    def check() -> None:
        if time.thread_time() > ends_at:
            raise _TooLong

    try:
        for part in decoder(body, check):
            if whole.tell() + len(part) > max_bytes:
                whole.write(part[: max_bytes - whole.tell()])
                return DecodedBody(whole.getvalue(), truncated=True)
            whole.write(part)
    except _TooLong:
        error = _TOO_LONG
    except _ERRORS as failure:
        error = str(failure) or type(failure).__name__
    return DecodedBody(whole.getvalue(), error=error)


def _gzip(body: bytes, check: Check) -> Iterator[bytes]:
    """All members (RFC 1952); what follows the last one and is none is ignored, as browsers do."""
    at = 0
    while at == 0 or body.startswith(_MAGIC, at):
        at = yield from _fed(_Inflater, body, _start_of_data(body, at), check)
        at += 8  # checksum and length


def _start_of_data(body: bytes, at: int) -> int:
    """The place after a gzip header."""
    header = body[at : at + 10]
    if not header.startswith(_MAGIC + b"\x08"):
        raise EOFError("no gzip header")
    if len(header) < 10:
        raise EOFError(_CUT)
    flags, at = header[3], at + 10
    if flags & _EXTRA:
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = body.find(b"\0", at)
            at = end + 1 if end >= 0 else len(body)
    return at + 2 if flags & _HEADER_CRC else at


def _deflate(body: bytes, check: Check) -> Iterator[bytes]:
    """zlib's format (RFC 1950), or the bare one (RFC 1951) that some servers send instead."""
    is_zlib = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    if is_zlib and body[1] & 0x20:
        raise EOFError("the dictionary is not known")
    yield from _fed(_Inflater, body, 2 if is_zlib else 0, check)


class _Inflater:
    """A decoder of a bare stream of deflate."""

    def __init__(self) -> None:
        self._stream = isal_zlib.decompressobj(wbits=-15)
        self._is_full = False

    def feed(self, data: bytes) -> bytes:
        part = self._stream.decompress(data or self._stream.unconsumed_tail, _STEP)
        self._is_full = len(part) == _STEP
        return part

    @property
    def is_hungry(self) -> bool:
        return not self._is_full and not self._stream.unconsumed_tail

    @property
    def is_done(self) -> bool:
        return self._stream.eof

    @property
    def unused(self) -> int:
        return len(self._stream.unused_data)


class _Unbrotli:
    """A decoder of a stream of brotli (RFC 7932)."""

    unused = 0  # it refuses what follows its end

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes) -> bytes:
        part: bytes = self._stream.process(data, output_buffer_limit=_STEP)
        return part

    @property
    def is_hungry(self) -> bool:
        return bool(self._stream.can_accept_more_data())

    @property
    def is_done(self) -> bool:
        return bool(self._stream.is_finished())


def _fed(make: type[_Inflater | _Unbrotli], body: bytes, at: int, check: Check) -> Generator[bytes, None, int]:
    """What a stream that begins at `at` holds, a part at a time; returns the place after it.

    A decoder that meets a fault keeps to itself what it made of the slice before it. So the stream is read once more,
    that slice byte by byte.
    """
    start = slice_at = at
    fine_from: int | None = None
    given = skipped = 0
    decoder = make()
    while not decoder.is_done:
        data = b""
        if decoder.is_hungry:
            size = _SLICE
            if fine_from is not None:
                size = 1 if at >= fine_from else min(size, fine_from - at)
            data = body[at : at + size]
            if not data:
                raise EOFError(_CUT)
            slice_at, at = at, at + len(data)
        check()
        try:
            part = decoder.feed(data)
        except _ERRORS:
            if fine_from is not None:
                raise
            fine_from, at, skipped, decoder = slice_at, start, given, make()
            continue
        fresh = part[skipped:] if skipped else part
        skipped = max(0, skipped - len(part))
        given += len(fresh)
        if fresh:
            yield fresh
    return at - decoder.unused


def _brotli(body: bytes, check: Check) -> Iterator[bytes]:
    yield from _fed(_Unbrotli, body, 0, check)


_DECODERS: dict[str, _Decoder] = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli}
