"""Records as a stranger reads them: what is wrong with one is found, however well it is packed."""

from __future__ import annotations

import gzip
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.fetch.verify import check_file
from crawler.fetch.warc_reader import PIECE_BYTES, Broken, read_record, unpacked
from crawler.storage import Store
from tests.fetch.warc_rows import PATH, noted_of, write_file
from tests.fetch.warc_samples import CAPTURE


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def in_record(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """A change of the record's bytes, packed again as a good gzip member."""

    def change(member: bytes) -> bytes:
        content = gzip.decompress(member)
        assert old in content
        return gzip.compress(content.replace(old, new, 1), mtime=0)

    return change


RECORD_FAULTS = {
    "version": (in_record(b"WARC/1.1", b"WARC/1.0"), "'WARC/1.0'", "WARC/1.1"),
    "body": (in_record(b"Grue", b"Blue"), "WARC-Block-Digest sha1:", "WARC-Block-Digest sha1:"),
    "block digest": (in_record(b"WARC-Block-Digest", b"X-Block-Digest"), "WARC-Block-Digest None", "sha1:"),
    "payload digest": (in_record(b"WARC-Payload-Digest: sha1:", b"WARC-Payload-Digest: sha1:A"), "sha1:A", "sha1:"),
    "no payload digest": (in_record(b"WARC-Payload-Digest", b"X-Payload"), "WARC-Payload-Digest None", "sha1:"),
    "length too small": (in_record(b"\r\nContent-Length: ", b"\r\nContent-Length: 1 \r\nX: "), "Content-Length 1 ", ""),
    "length too large": (in_record(b"\r\n\r\nHTTP", b"0\r\n\r\nHTTP"), "a block of", "then two line ends"),
    "more after the block": (
        in_record(b"!\r\n\r\n", b"!\r\n\r\n\r\n"),
        "more bytes than Content-Length",
        "then two line",
    ),
    "no end": (in_record(b"!\r\n\r\n", b"!\r\n"), "b'\\r\\n'", "then two line ends"),
    "no date": (in_record(b"WARC-Date", b"X-Date"), "warc-date 0 times", "once"),
    "two types": (in_record(b"WARC-Date", b"WARC-Type: response\r\nWARC-Date"), "warc-type 2 times", "once"),
    "not a field": (in_record(b"WARC-Date: ", b"WARC Date: "), "'WARC Date: ", "a named field"),
    "no header": (lambda member: gzip.compress(b"x" * 99), "no empty line in the first 99 bytes", "a WARC header"),
    "endless header": (lambda member: gzip.compress(b"x" * 3_000_000), "the first 2097152 bytes", "a WARC header"),
    "a second member": (lambda member: member + member, "more bytes after the gzip member", "one whole gzip member"),
}


@pytest.mark.parametrize("name", RECORD_FAULTS)
def test_a_record_that_is_wrong_is_found(store: Store, name: str) -> None:
    written = write_file(store, CAPTURE)
    change, seen, wanted = RECORD_FAULTS[name]
    row = written.rows[0]
    start, length = row["warc_record_offset"], row["warc_record_length"]
    member = change(written.data[start : start + length])
    data = written.data[:start] + member + written.data[start + length :]
    store.put(PATH, data)
    wrong = {**row, "warc_record_length": len(member)}
    findings = check_file(store, PATH, noted_of(data), [wrong]).findings
    assert {(one.offset, one.url) for one in findings} == {(start, row["url"])}
    assert any(seen in one.found and wanted in one.expected for one in findings), findings


@pytest.mark.parametrize("more", [-PIECE_BYTES, -1, 0, 1, PIECE_BYTES - 1, PIECE_BYTES])
def test_a_member_is_read_to_its_end_however_its_bytes_come(more: int) -> None:
    content = bytes(PIECE_BYTES + more)
    packed = gzip.compress(content)
    for step in (1, 7, len(packed)):
        pieces = [packed[at : at + step] for at in range(0, len(packed), step)]
        assert b"".join(unpacked(pieces)) == content
        with pytest.raises(Broken, match="cut"):
            list(unpacked([*pieces[:-1], pieces[-1][:-1]]))


def test_a_record_is_the_same_however_its_bytes_come(store: Store) -> None:
    written = write_file(store, CAPTURE)
    start, length = written.rows[0]["warc_record_offset"], written.rows[0]["warc_record_length"]
    stored = gzip.compress(gzip.decompress(written.data[start : start + length]), 0)  # comes out as it goes in
    whole = read_record([stored])
    assert whole.payload == whole.fields["warc-payload-digest"]
    for step in (1, 2, 3, 50):
        assert read_record(stored[at : at + step] for at in range(0, len(stored), step)) == whole


def test_a_response_without_http_head_has_no_payload(store: Store) -> None:
    fields = b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    data = gzip.compress(fields + b"WARC-Target-URI: http://a.test/\r\nContent-Length: 4\r\n\r\nHTTP\r\n\r\n")
    store.put(PATH, data)
    row = {"url": "http://a.test/", "warc_record_id": "<urn:uuid:1>", "warc_record_type": "response",
           "warc_record_offset": 0, "warc_record_length": len(data), "content_digest": None,
           "content_truncated": None}  # fmt: skip
    expected = {one.expected for one in check_file(store, PATH, noted_of(data), [row]).findings}
    assert "WARC-Payload-Digest of an HTTP response" in expected


def test_a_long_record_takes_little_memory(store: Store) -> None:
    with tempfile.TemporaryFile() as body:
        body.write(bytes(60_000_000))
        written = write_file(store, replace(CAPTURE, body=body))
    tracemalloc.start()
    try:
        assert check_file(store, PATH, written.noted, written.rows).findings == []
        assert tracemalloc.get_traced_memory()[1] < 8 * PIECE_BYTES
    finally:
        tracemalloc.stop()
