"""Reads WARC records back as strangers would: one gzip member, one record, every digest computed anew.

Shares nothing with the writer: zlib unpacks what isal packed. Memory is bounded: bytes come and go in pieces.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from base64 import b32encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crawler.fetch.headers import head_end
from crawler.storage import Store

PIECE_BYTES = 1024 * 1024
MOST_HEADER_BYTES = 1024 * 1024  # of a WARC header, and of the HTTP head in a block
GZIP_WINDOW = 31  # a deflate window of 32 KiB, in a gzip frame
RECORD_END = b"\r\n\r\n"

_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_EVERY_RECORD = ("warc-record-id", "warc-type", "warc-date", "content-length")


class Difference(NamedTuple):
    """What a record says, and what it should say."""

    found: str
    expected: str


class Broken(Exception):
    """A slice is not one whole record; carries the difference."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.difference = Difference(found, expected)


@dataclass(frozen=True)
class ReadRecord:
    """A record that was read to its end: fields by lower-case name, and the digests of its bytes (`sha1:...`).

    `payload` is the digest of what follows the HTTP head; None where the block holds no such head.
    """

    fields: Mapping[str, str]
    block: str
    payload: str | None


def read_record(pieces: Iterable[bytes]) -> ReadRecord:
    """Read a slice as one gzip member with one WARC/1.1 record. Raises Broken where it is not."""
    content = unpacked(pieces)
    start = bytearray()
    while (end := start.find(RECORD_END)) < 0:
        piece = next(content, None)
        if piece is None or len(start) > MOST_HEADER_BYTES:
            raise Broken(f"no empty line in the first {len(start)} bytes", "a WARC header")
        start += piece
    fields = parse_fields(bytes(start[:end]))
    block = _Block(int(fields["content-length"]))
    block.add(bytes(start[end + len(RECORD_END) :]))
    for piece in content:
        block.add(piece)
    return block.record(fields)


def unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The content of exactly one whole gzip member, in pieces. Raises Broken for anything else."""
    unpacker, wanted = zlib.decompressobj(GZIP_WINDOW), "one whole gzip member"
    try:
        for packed in pieces:
            while packed and not unpacker.eof:
                yield unpacker.decompress(packed, PIECE_BYTES)
                packed = unpacker.unconsumed_tail
            if packed or unpacker.unused_data:
                raise Broken("more bytes after the gzip member", wanted)
        if not unpacker.eof:  # zlib takes a member's last bytes when it has given out all before them
            raise Broken("a gzip member that is cut", wanted)
    except zlib.error as error:
        raise Broken(f"not gzip: {error}", wanted) from error


def parse_fields(header: bytes) -> dict[str, str]:
    """The named fields of a WARC/1.1 header, by lower-case name. Raises Broken for any other header."""
    version, *lines = header.decode("utf-8", "replace").split("\r\n")
    if version != "WARC/1.1":
        raise Broken(repr(version[:40]), "WARC/1.1")
    pairs = [_FIELD.fullmatch(line) for line in lines]
    if not all(pairs):
        raise Broken(repr(lines[pairs.index(None)][:80]), "a named field")
    named = [(pair[1].lower(), pair[2]) for pair in pairs if pair]
    counts = Counter(name for name, _ in named if name != "warc-concurrent-to")
    if wrong := [name for name in {*_EVERY_RECORD, *counts} if counts[name] != 1]:
        raise Broken(f"{min(wrong)} {counts[min(wrong)]} times", "once")
    fields = dict(named)
    if not re.fullmatch(r"[0-9]{1,18}", fields["content-length"]):
        raise Broken(f"Content-Length {fields['content-length'][:40]}", "a number")
    return fields


@dataclass
class _Block:
    """The block of a record as it goes by."""

    length: int
    size: int = 0
    tail: bytes = b""
    sha1: Any = field(default_factory=hashlib.sha1)
    payload: Any = None
    head: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        room = self.length - self.size
        inside, behind = data[:room], data[room:]
        self.size += len(inside)
        self.tail += behind[: len(RECORD_END) + 1]
        if len(self.tail) > len(RECORD_END):
            raise Broken("more bytes than Content-Length says", f"Content-Length {self.length}, then two line ends")
        self.sha1.update(inside)
        if self.payload is not None:
            self.payload.update(inside)
        elif inside and len(self.head) <= MOST_HEADER_BYTES:
            self._find_payload(inside)

    def _find_payload(self, data: bytes) -> None:
        scanned = max(0, len(self.head) - 3)
        self.head += data
        end = head_end(self.head, scanned)
        if end >= 0:
            self.payload = hashlib.sha1(self.head[end:])
            self.head.clear()

    def record(self, fields: Mapping[str, str]) -> ReadRecord:
        if self.size < self.length or self.tail != RECORD_END:
            raise Broken(f"a block of {self.size} bytes, then {self.tail!r}", f"{self.length}, then two line ends")
        return ReadRecord(fields, _label(self.sha1), None if self.payload is None else _label(self.payload))


def _label(sha1: Any) -> str:
    return f"sha1:{b32encode(sha1.digest()).decode()}"


def ranges(store: Store, path: str, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file between two offsets, in pieces."""
    while start < end:
        piece = store.read_range(path, start, min(PIECE_BYTES, end - start))
        if not piece:
            return
        yield piece
        start += len(piece)
