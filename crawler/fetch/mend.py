"""Finds what is whole in a damaged WARC file, and rewrites the file to end there.

A file is a row of gzip members, one a record. What follows the first member that is not whole cannot be read from the
start of the file any more, so the file ends before it. Memory is bounded: files are read in pieces.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from crawler.fetch.verify import Noted
from crawler.fetch.warc_reader import GZIP_WINDOW, ranges
from crawler.storage import OPEN_SUFFIX, Store

STEP_BYTES = 64 * 1024  # unpacked at a time: small, since what follows a member is copied


@dataclass(frozen=True)
class Scan:
    """What a file holds. `kept` bytes from its start are whole members, with the SHA-256 `kept_sha256`.

    `size` is None for a file that is not there.
    """

    path: str
    size: int | None
    is_as_noted: bool
    kept: int
    kept_sha256: str


class Whole(NamedTuple):
    """The whole members from the start of a file: where the last one ends, and the SHA-256 up to there."""

    end: int
    sha256: str


def scan(store: Store, noted: Noted) -> Scan:
    """Compare a file with what is noted of it, and where they differ find what is whole."""
    try:
        size = store.size(noted.path)
    except FileNotFoundError:
        return Scan(noted.path, None, is_as_noted=False, kept=0, kept_sha256=hashlib.sha256().hexdigest())
    if size >= noted.size and sha256_of(store, noted.path, noted.size) == noted.sha256:
        # What was written is all there; bytes that came behind it are none of ours.
        return Scan(noted.path, size, is_as_noted=size == noted.size, kept=noted.size, kept_sha256=noted.sha256)
    whole = whole_members(ranges(store, noted.path, 0, size))
    return Scan(noted.path, size, is_as_noted=False, kept=whole.end, kept_sha256=whole.sha256)


def sha256_of(store: Store, path: str, end: int) -> str:
    """The SHA-256 of the first bytes of a file, hexadecimal."""
    hashed = hashlib.sha256()
    for piece in ranges(store, path, 0, end):
        hashed.update(piece)
    return hashed.hexdigest()


def whole_members(pieces: Iterator[bytes]) -> Whole:
    """Unpack members until one is cut or damaged; checksums and lengths of all before it are right."""
    at, running, whole = 0, hashlib.sha256(), Whole(0, hashlib.sha256().hexdigest())
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    for piece in pieces:
        for start in range(0, len(piece), STEP_BYTES):
            packed = piece[start : start + STEP_BYTES]
            while packed:
                try:
                    unpacker.decompress(packed, STEP_BYTES)
                except zlib.error:
                    return whole
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
                running.update(packed[: len(packed) - len(rest)])
                at += len(packed) - len(rest)
                if unpacker.eof:
                    whole, unpacker = Whole(at, running.hexdigest()), zlib.decompressobj(GZIP_WINDOW)
                packed = rest
    return whole


def cut(store: Store, path: str, kept: int) -> None:
    """Make the file end after its first `kept` bytes; one of which nothing is kept is removed.

    The new file takes the old one's place whole, or not at all: a writer shows a file when it is closed.
    """
    if kept == 0:
        store.delete(path)
        return
    if (size := store.size(path)) < kept:
        raise OSError(f"{path} has {size} bytes, and had {kept} a moment ago")
    store.delete(path + OPEN_SUFFIX)  # of an earlier attempt that was killed
    writer = store.open_writer(path)
    try:
        for piece in ranges(store, path, 0, kept):
            writer.write(piece)
    except BaseException:
        writer.abort()
        raise
    writer.close()
