"""Checks a WARC file against what the tables say of it: bytes and rows in, findings out.

Memory is bounded: a file is read in pieces, once, and no record is ever held whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crawler.fetch.warc_reader import PIECE_BYTES, Broken, Difference, ReadRecord, ranges, read_record
from crawler.storage import Store

ROW_COLUMNS = (
    *("url", "warc_filename", "warc_record_offset", "warc_record_length", "warc_record_id", "warc_record_type"),
    *("content_digest", "content_truncated"),
)
"""The columns of `captures` that a check reads."""

Row = Mapping[str, Any]


class Noted(NamedTuple):
    """What `segments` notes of a WARC file: its path in the lake, its bytes, and its SHA-256 in hexadecimal."""

    path: str
    size: int
    sha256: str


class Finding(NamedTuple):
    """Something that is not as it should be. Without offset and URL it is about the file as a whole."""

    file: str
    offset: int | None
    url: str | None
    found: str
    expected: str


class FileCheck(NamedTuple):
    """What came of a file: how many rows and bytes were looked at, and what was found."""

    file: str
    rows: int
    bytes: int
    findings: list[Finding]


def check_file(
    store: Store, path: str, noted: Noted | None, rows: Sequence[Row], share: float | None = None
) -> FileCheck:
    """Check a WARC file and the rows of `captures` that name it.

    With `share` (0 to 1) only that share of the rows is read, chosen by their record ids, and the SHA-256 is not looked
    at; sizes and shared bytes always are.
    """
    try:
        size = store.size(path)
    except FileNotFoundError:
        wanted = f"{noted.size} bytes" if noted else "a file"
        return FileCheck(path, 0, 0, [Finding(path, None, None, "no such file", f"{wanted}, {len(rows)} rows name it")])
    faults = [Difference("no row of segments names the file", f"one, as {len(rows)} captures do")] if not noted else []
    if noted and noted.size != size:
        faults.append(Difference(f"{size} bytes", f"{noted.size} bytes"))
    ordered = sorted(rows, key=lambda row: (row["warc_record_offset"], row["warc_record_length"]))
    findings = [Finding(path, None, None, *fault) for fault in faults] + list(shared_bytes(path, ordered))
    sweep = Sweep(store, path, size)
    chosen = [row for row in ordered if share is None or is_sampled(row["warc_record_id"], share)]
    for row in chosen:
        read = sweep.pieces if share is None else sweep.range
        found = check_row(read(row["warc_record_offset"], row["warc_record_length"]), row, size)
        findings += [Finding(path, row["warc_record_offset"], row["url"], *fault) for fault in found]
    if share is not None:
        return FileCheck(path, len(chosen), sum(row["warc_record_length"] for row in chosen), findings)
    sha256 = sweep.finish()
    if noted and noted.size == size and noted.sha256 != sha256:
        findings.append(Finding(path, None, None, f"SHA-256 {sha256}", f"SHA-256 {noted.sha256}"))
    return FileCheck(path, len(chosen), size, findings)


def is_sampled(record_id: str, share: float) -> bool:
    """True for about that share of all record ids, always for the same ones; a larger share has those of a smaller."""
    hashed = hashlib.blake2b(record_id.encode(), digest_size=8).digest()
    return int.from_bytes(hashed) < share * 2**64


def shared_bytes(path: str, ordered: Sequence[Row]) -> Iterator[Finding]:
    """Rows, sorted by offset, that begin inside one before them."""
    end, holder = 0, ""
    for row in ordered:
        start = row["warc_record_offset"]
        if start < end:
            yield Finding(path, start, row["url"], f"shares bytes with {holder}", f"no row begins before {end}")
        if start + row["warc_record_length"] > end:
            end, holder = start + row["warc_record_length"], row["url"]


def check_row(pieces: Iterable[bytes], row: Row, file_size: int) -> list[Difference]:
    """What is wrong with the slice of a row, given as its bytes in pieces; empty when it is the record of the row."""
    start, length = row["warc_record_offset"], row["warc_record_length"]
    if start < 0 or length <= 0 or start + length > file_size:
        return [Difference(f"the file ends at {file_size}", f"{length} bytes from {start} on")]
    try:
        record = read_record(pieces)
    except Broken as broken:
        return [broken.difference]
    return [Difference(f"{name} {found}", f"{name} {wanted}") for name, found, wanted in _compared(record, row)
            if found != wanted]  # fmt: skip


def _compared(record: ReadRecord, row: Row) -> Iterator[tuple[str, str | None, str | None]]:
    """Name, what was found, what is right."""
    fields = record.fields
    yield "WARC-Record-ID", fields["warc-record-id"], row["warc_record_id"]
    yield "WARC-Type", fields["warc-type"], row["warc_record_type"]
    yield "WARC-Target-URI", fields.get("warc-target-uri"), row["url"]
    yield "WARC-Block-Digest", fields.get("warc-block-digest"), record.block
    stated = fields.get("warc-payload-digest")
    noted = None if row["content_digest"] is None else f"sha1:{row['content_digest']}"
    if row["warc_record_type"] != "response":
        if stated and noted:  # of a revisit: the payload that is stored elsewhere
            yield "WARC-Payload-Digest", stated, noted
        return
    yield "WARC-Payload-Digest", stated, record.payload or "of an HTTP response"
    yield "WARC-Truncated", fields.get("warc-truncated"), row["content_truncated"]
    if noted:  # none for a body that was cut
        yield "payload", record.payload, noted


class Sweep:
    """Reads a file once, from its start to its end, for its SHA-256 and for the slices on the way."""

    def __init__(self, store: Store, path: str, size: int) -> None:
        self._store, self._path, self._size = store, path, size
        self._start, self._block, self._sha256 = 0, b"", hashlib.sha256()

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of a slice; slices are asked for in the order of their offsets."""
        end = min(offset + length, self._size)
        if offset < self._start:  # inside a slice that was read already
            yield from self.range(offset, length)
            return
        while offset < end:
            while offset >= self._start + len(self._block):
                self._advance()
            piece = self._block[offset - self._start : end - self._start]
            yield piece
            offset += len(piece)

    def range(self, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of a slice, read for themselves."""
        return ranges(self._store, self._path, offset, min(offset + length, self._size))

    def finish(self) -> str:
        """The SHA-256 of the whole file, hexadecimal."""
        while self._start + len(self._block) < self._size:
            self._advance()
        return self._sha256.hexdigest()

    def _advance(self) -> None:
        self._start += len(self._block)
        self._block = self._store.read_range(self._path, self._start, min(PIECE_BYTES, self._size - self._start))
        if not self._block:
            raise OSError(f"{self._path} ends at {self._start}, and had {self._size} bytes a moment ago")
        self._sha256.update(self._block)
