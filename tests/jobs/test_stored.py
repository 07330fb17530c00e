"""Records read back for `show`: heads of every kind, of this form and of older ones, whole and damaged."""

from __future__ import annotations

import gzip
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch.warc import CaptureRecord, WarcFile
from crawler.storage import Store
from crawler.tables.manifest import TableError
from jobs.stored import http_headers, read_record
from tests.fetch.warc_samples import CAPTURE, HEAD_304, HEADS, INFO, NOT_MODIFIED, SAME

BODY = b"1234567"
LONG_HEAD = b"HTTP/1.1 304 X\r\nETag: " + b"\xff" * 65_000 + b"\r\n\r\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def kept(store: Store, *captures: CaptureRecord) -> list[dict[str, Any]]:
    """The rows of captures, as far as a reader of records needs them."""
    warc = WarcFile(store.open_writer("x.warc.gz"), INFO)
    places = [warc.write_exchange(capture) for capture in captures]
    warc.close()
    named = {"url": CAPTURE.url, "warc_filename": "x.warc.gz"}
    return [named | {"warc_record_offset": one.offset, "warc_record_length": one.length} for one in places]


@pytest.mark.parametrize(("received", "stored"), HEADS.values(), ids=HEADS.keys())
def test_head_and_body_part_where_the_fetch_parts_them(store: Store, received: bytes, stored: bytes) -> None:
    """The body begins with empty lines of both kinds, of which none ends a head."""
    body = b"\n\r\n\r\n\n\n"
    [row] = kept(store, replace(CAPTURE, head=received, body=body))
    record = read_record(store, row)
    assert (record.head, record.body) == (stored, body)


def test_fields_end_with_either_line_end() -> None:
    from jobs.stored import Record

    head = b"HTTP/1.1 200\nContent-Encoding: gzip\nContent-Type: text/html\r\nX: a:b\n\n"
    assert http_headers(Record({}, head, b"")) == {"content-encoding": "gzip", "content-type": "text/html", "x": "a:b"}


@pytest.mark.parametrize("head", [HEAD_304, b"HTTP/1.0 304\nA: \xe9\n\n", LONG_HEAD], ids=["plain", "LF", "long"])
def test_the_head_of_a_304_is_found_behind_its_revisit(store: Store, head: bytes) -> None:
    not_modified = replace(CAPTURE, head=head, body=b"", revisit=NOT_MODIFIED)
    for row in kept(store, not_modified, not_modified):
        assert read_record(store, row)[1:] == (head, b"")


def test_the_head_of_another_revisit_is_its_own(store: Store) -> None:
    [row] = kept(store, replace(CAPTURE, revisit=SAME))
    assert read_record(store, row)[1:] == (CAPTURE.head, b"")


def test_revisits_of_older_lakes_have_the_head_of_the_304_in_themselves(store: Store) -> None:
    fields = b"WARC/1.1\r\nWARC-Type: revisit\r\nContent-Type: application/http;msgtype=response\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(HEAD_304)
    store.put("old.warc.gz", packed := gzip.compress(fields + length + HEAD_304 + b"\r\n\r\n"))
    place = {"warc_filename": "old.warc.gz", "warc_record_offset": 0, "warc_record_length": len(packed)}
    assert read_record(store, {"url": CAPTURE.url, **place})[1:] == (HEAD_304, b"")


def test_a_revisit_whose_metadata_is_damaged_or_another_ones_has_no_head(store: Store) -> None:
    first, second = kept(store, *[replace(CAPTURE, head=HEAD_304, body=b"", revisit=NOT_MODIFIED)] * 2)
    data = store.read("x.warc.gz")
    end = first["warc_record_offset"] + first["warc_record_length"]
    others = data[second["warc_record_offset"] + second["warc_record_length"] :]
    for behind in (b"", b"\x1f\x8b", data[end : end + 99], b"no gzip", others, gzip.compress(b"WARC/1.1\r\n\r\n")):
        store.put("x.warc.gz", data[:end] + behind)
        assert read_record(store, first)[1:] == (b"", b"")


def test_every_cut_and_flipped_byte_is_a_message(store: Store) -> None:
    [row] = kept(store, CAPTURE)
    data = store.read("x.warc.gz")
    start, end = row["warc_record_offset"], row["warc_record_offset"] + row["warc_record_length"]
    damaged = [data[:at] for at in range(start, end)]
    damaged += [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(start, end)]
    for content in damaged:
        store.put("x.warc.gz", content)
        with suppress(TableError):  # and nothing else; a flip of what gzip does not look at changes nothing
            read_record(store, row)
