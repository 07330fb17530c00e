"""A WARC file against its rows: everything that can be wrong with either is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore.store
import pytest

from crawler.fetch.verify import Finding, check_file, is_sampled
from crawler.fetch.warc_reader import PIECE_BYTES
from crawler.storage import Store
from crawler.storage_s3 import BucketStore
from tests.fetch.warc_reading import members
from tests.fetch.warc_rows import PATH, Row, Written, write_file
from tests.fetch.warc_samples import CAPTURE, CHUNKED, HEAD_304, NOT_MODIFIED, SAME

CAPTURES = (
    CAPTURE,
    replace(CHUNKED, url="http://example.org/chunked"),
    replace(CAPTURE, url="http://example.org/same", revisit=SAME),
    replace(CAPTURE, url="http://example.org/304", head=HEAD_304, body=b"", revisit=NOT_MODIFIED),
    replace(CAPTURE, url="http://example.org/cut", truncated="length"),
    replace(CAPTURE, url="http://example.org/long", body=bytes(range(256)) * 8_000),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


@pytest.fixture
def written(store: Store) -> Written:
    return write_file(store, *CAPTURES)


def found(store: Store, written: Written, rows: list[Row] | None = None, **more: Any) -> list[Finding]:
    return check_file(store, PATH, written.noted, written.rows if rows is None else rows, **more).findings


def test_a_good_file_gives_no_finding_and_is_read_once(store: Store, written: Written) -> None:
    asked = []

    class Counting(type(store)):  # type: ignore[misc]  # the class of a fixture
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            asked.append(offset)
            return bytes(super().read_range(path, offset, length))

    done = check_file(Counting(store.uri), PATH, written.noted, written.rows)
    assert done == (PATH, len(CAPTURES), len(written.data), [])
    assert asked == list(range(0, len(written.data), PIECE_BYTES))


ROW_FAULTS = {
    "offset": (0, {"warc_record_offset": lambda value: value + 1}, "not gzip", "one whole gzip member"),
    "other record": (0, {"warc_record_id": lambda value: "<urn:uuid:0>"}, "WARC-Record-ID <urn", "WARC-Record-ID <urn"),
    "short": (1, {"warc_record_length": lambda value: value - 1}, "a gzip member that is cut", "one whole gzip member"),
    "long": (1, {"warc_record_length": lambda value: value + 9}, "more bytes after", "one whole gzip member"),
    "beyond": (5, {"warc_record_length": lambda value: value + 9**9}, "the file ends at", "bytes from"),
    "no length": (5, {"warc_record_length": lambda value: 0}, "the file ends at", "0 bytes from"),
    "type": (0, {"warc_record_type": lambda value: "revisit"}, "WARC-Type response", "WARC-Type revisit"),
    "url": (1, {"url": lambda value: value + "x"}, "http://example.org/chunked", "http://example.org/chunkedx"),
    "payload": (1, {"content_digest": lambda value: "A" * 32}, "payload sha1:", f"payload sha1:{'A' * 32}"),
    "payload of a revisit": (2, {"content_digest": lambda value: "B" * 32}, "WARC-Payload-Digest sha1:", "BBBB"),
    "not cut": (4, {"content_truncated": lambda value: None}, "WARC-Truncated length", "WARC-Truncated None"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_FAULTS)
def test_a_row_that_is_wrong_is_the_one_finding(store: Store, written: Written, name: str) -> None:
    at, changes, seen, wanted = ROW_FAULTS[name]
    row = written.rows[at]
    wrong = {**row, **{column: change(row[column]) for column, change in changes.items()}}  # type: ignore[no-untyped-call]  # lambdas of a table
    (finding,) = found(store, written, [wrong])
    assert (finding.file, finding.offset, finding.url) == (PATH, wrong["warc_record_offset"], wrong["url"])
    assert seen in finding.found
    assert wanted in finding.expected


@pytest.fixture
def memory() -> Store:
    """A store that is quick to write to."""
    return BucketStore("s3://bucket/lake", obstore.store.MemoryStore())


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x10
    return bytes(changed)


def test_every_flipped_byte_of_a_file_is_found(memory: Store) -> None:
    written = write_file(memory, CAPTURE)
    for at in range(len(written.data)):
        memory.put(PATH, flipped(written.data, at))
        findings = found(memory, written)
        assert any(one.found.startswith("SHA-256 ") and one.offset is None for one in findings), at


def test_a_flipped_byte_in_a_record_is_found_by_its_row_alone(memory: Store) -> None:
    """All but those that say nothing: times in the gzip header, and what fills up the last byte of deflate."""
    written = write_file(memory, CAPTURE)
    row, silent = written.rows[0], []
    start, end = row["warc_record_offset"], row["warc_record_offset"] + row["warc_record_length"]
    for at in range(start, end):
        memory.put(PATH, flipped(written.data, at))
        urls = {one.url for one in found(memory, written, share=1.0)}
        assert urls <= {row["url"]}
        silent += [] if urls else [at - start]
    assert [at for at in silent if at >= 10] in ([], [end - start - 9])
    assert {at for at in silent if at < 10} == {4, 5, 6, 7, 8, 9}


FILE_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "cut": (lambda data: data[:-1], "{less} bytes", "{size} bytes"),
    "longer": (lambda data: data + b"\0", "{more} bytes", "{size} bytes"),
    "other bytes": (lambda data: data[:-8] + bytes(8), "SHA-256 ", "SHA-256 {sha256}"),
}


@pytest.mark.parametrize("name", FILE_FAULTS)
def test_a_file_that_is_not_as_noted_is_found(store: Store, written: Written, name: str) -> None:
    change, seen, wanted = FILE_FAULTS[name]
    store.put(PATH, change(written.data))
    size = written.noted.size
    words = {"less": size - 1, "more": size + 1, "size": size, "sha256": written.noted.sha256}
    (finding,) = found(store, written)
    assert (finding.offset, finding.url) == (None, None)
    assert finding.found.startswith(seen.format(**words))
    assert finding.expected == wanted.format(**words)


def test_a_file_that_is_not_there_is_one_finding(store: Store, written: Written) -> None:
    store.delete(PATH)
    wanted = f"{written.noted.size} bytes, {len(CAPTURES)} rows name it"
    assert found(store, written) == [(PATH, None, None, "no such file", wanted)]
    assert check_file(store, PATH, None, written.rows).findings[0].expected == f"a file, {len(CAPTURES)} rows name it"


def test_a_file_that_no_segment_names_is_found_and_its_rows_are_checked(store: Store, written: Written) -> None:
    wrong = {**written.rows[1], "warc_record_id": "<urn:uuid:0>"}
    findings = check_file(store, PATH, None, [written.rows[0], wrong]).findings
    assert [(one.offset, one.found[:28]) for one in findings] == [
        (None, "no row of segments names the"),
        (wrong["warc_record_offset"], "WARC-Record-ID <urn:uuid:000"),
    ]


def test_rows_that_share_bytes_are_found(store: Store, written: Written) -> None:
    first, second = written.rows[:2]
    twice = {**first, "url": "http://example.org/twice"}
    inside = {**second, "warc_record_offset": second["warc_record_offset"] + 4}
    findings = found(store, written, [*written.rows, twice, inside], share=1e-12)
    assert [(one.offset, one.url) for one in findings] == [
        (first["warc_record_offset"], "http://example.org/twice"),
        (inside["warc_record_offset"], inside["url"]),
    ]
    assert findings[0].found == f"shares bytes with {first['url']}"
    full = found(store, written, [*written.rows, twice])
    assert [one.found for one in full if one.url == twice["url"]] == [
        f"shares bytes with {first['url']}",
        f"WARC-Target-URI {first['url']}",
    ]


def test_a_row_inside_a_long_one_is_found_however_far_it_is(store: Store, written: Written) -> None:
    whole = {**written.rows[0], "warc_record_offset": 0, "warc_record_length": len(written.data)}
    findings = found(store, written, [whole, *written.rows], share=1e-12)
    assert [one.url for one in findings] == [row["url"] for row in written.rows]


def test_a_sample_is_a_share_of_the_rows_and_always_the_same(store: Store, written: Written) -> None:
    ids = [f"<urn:uuid:{number}>" for number in range(10_000)]
    samples = {share: {one for one in ids if is_sampled(one, share)} for share in (0.0, 0.01, 0.1, 1.0)}
    assert samples[0.0] == set()
    assert samples[0.01] < samples[0.1] < samples[1.0] == set(ids)
    assert 900 < len(samples[0.1]) < 1_100
    chosen = [row for row in written.rows if is_sampled(row["warc_record_id"], 0.5)]
    assert 0 < len(chosen) < len(written.rows)
    done = check_file(store, PATH, written.noted, written.rows, share=0.5)
    assert done == (PATH, len(chosen), sum(row["warc_record_length"] for row in chosen), [])


def test_a_sample_reads_no_other_rows_and_no_sha256(store: Store, written: Written) -> None:
    store.put(PATH, bytes(len(written.data)))
    chosen = [row["url"] for row in written.rows if is_sampled(row["warc_record_id"], 0.5)]
    assert [one.url for one in found(store, written, share=0.5)] == chosen


def test_the_slices_are_members_of_the_file(written: Written) -> None:
    """The tests' own reader sees the members where the rows say they are."""
    places = {(offset, length) for offset, length, _ in members(written.data)}
    assert {(row["warc_record_offset"], row["warc_record_length"]) for row in written.rows} <= places
