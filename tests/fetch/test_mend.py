"""What is whole in a damaged file: found for every cut, and kept byte for byte."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import obstore.store
import pytest

from crawler.fetch.mend import STEP_BYTES, Scan, cut, scan, whole_members
from crawler.fetch.verify import check_file
from crawler.fetch.warc_reader import PIECE_BYTES
from crawler.storage import OPEN_SUFFIX, Store
from crawler.storage_s3 import BucketStore
from tests.fetch.warc_reading import members, read_file
from tests.fetch.warc_rows import PATH, Written, noted_of, write_file
from tests.fetch.warc_samples import CAPTURE, CHUNKED

CAPTURES = (CAPTURE, replace(CHUNKED, url="http://example.org/b"), replace(CAPTURE, url="http://example.org/c"))


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store.open(str(tmp_path))
    return BucketStore("s3://bucket/lake", obstore.store.MemoryStore())


@pytest.fixture
def written(store: Store) -> Written:
    return write_file(store, *CAPTURES)


def starts(data: bytes) -> list[int]:
    """Where the members begin, and where the last one ends."""
    places = [(offset, length) for offset, length, _ in members(data)]
    return [*(offset for offset, _ in places), sum(places[-1])]


def test_a_file_as_it_was_written_is_kept_whole(store: Store, written: Written) -> None:
    size = len(written.data)
    assert scan(store, written.noted) == Scan(PATH, size, is_as_noted=True, kept=size, kept_sha256=written.noted.sha256)


def test_a_cut_at_every_byte_of_the_last_member_is_mended(store: Store, written: Written) -> None:
    *_, start, end = starts(written.data)
    kept = written.data[:start]
    for size in range(start, end):
        store.put(PATH, written.data[:size])
        assert check_file(store, PATH, written.noted, written.rows).findings, size
        seen = scan(store, written.noted)
        assert seen == Scan(PATH, size, is_as_noted=False, kept=start, kept_sha256=noted_of(kept).sha256), size
        cut(store, PATH, seen.kept)
        assert store.read(PATH) == kept
        assert scan(store, noted_of(kept)).is_as_noted
    assert read_file(kept) == read_file(written.data)[:-1]


@pytest.mark.parametrize("piece", [1, 7, 4_096])
def test_the_pieces_of_a_file_make_no_difference(written: Written, piece: int) -> None:
    for size in (0, 1, *starts(written.data), len(written.data) - 1):
        data = written.data[:size]
        pieces = (data[at : at + piece] for at in range(0, size, piece))
        end = max([0, *(start for start in starts(written.data) if start <= size)])
        assert whole_members(pieces) == (end, noted_of(data[:end]).sha256)


Damage = Callable[[bytes, list[int]], bytes]
DAMAGES: dict[str, tuple[Damage, int]] = {
    "emptied": (lambda data, starts: b"", 0),
    "cut in the warcinfo": (lambda data, starts: data[:20], 0),
    "first byte": (lambda data, starts: b"\0" + data[1:], 0),
    "flipped in the third": (lambda data, starts: flip(data, starts[2] + 40), 2),
    "checksum of the third": (lambda data, starts: flip(data, starts[3] - 8), 2),
    "length of the third": (lambda data, starts: flip(data, starts[3] - 1), 2),
    "zeros from the fourth on": (lambda data, starts: data[: starts[3]] + bytes(len(data) - starts[3]), 3),
    "a member taken out": (lambda data, starts: data[: starts[1]] + data[starts[2] :], -1),
}
"""Where a file is damaged, and how many members are whole; -1: all that is there."""


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_keeps_what_is_whole_before_the_damage(store: Store, written: Written, name: str) -> None:
    damage, whole = DAMAGES[name]
    places = starts(written.data)
    data = damage(written.data, places)
    store.put(PATH, data)
    kept = len(data) if whole < 0 else places[whole]
    seen = scan(store, written.noted)
    assert (seen.size, seen.is_as_noted, seen.kept) == (len(data), False, kept)
    assert seen.kept_sha256 == noted_of(data[:kept]).sha256
    cut(store, PATH, seen.kept)
    assert (store.read(PATH) if kept else b"") == data[:kept]
    assert store.exists(PATH) is bool(kept)


@pytest.mark.parametrize("more", [b"\0" * 100, gzip.compress(b"not ours", mtime=0), b"x"])
def test_bytes_that_came_behind_the_file_are_cut_off_and_nothing_else(
    store: Store, written: Written, more: bytes
) -> None:
    store.put(PATH, written.data + more)
    seen = scan(store, written.noted)
    assert (seen.is_as_noted, seen.kept, seen.kept_sha256) == (False, len(written.data), written.noted.sha256)
    cut(store, PATH, seen.kept)
    assert store.read(PATH) == written.data


def test_a_file_that_is_not_there_keeps_nothing(store: Store, written: Written) -> None:
    store.delete(PATH)
    assert scan(store, written.noted) == Scan(PATH, None, is_as_noted=False, kept=0, kept_sha256=noted_of(b"").sha256)
    cut(store, PATH, 0)
    assert not store.exists(PATH)


def test_a_cut_that_was_killed_is_made_again(store: Store, written: Written) -> None:
    store.put(PATH + OPEN_SUFFIX, b"half of it")
    cut(store, PATH, 100)
    assert store.read(PATH) == written.data[:100]
    assert store.unfinished("") == []


def test_a_cut_behind_the_end_changes_nothing(store: Store, written: Written) -> None:
    with pytest.raises(OSError, match="a moment ago"):
        cut(store, PATH, len(written.data) + 1)
    assert store.read(PATH) == written.data
    assert store.unfinished("") == []


def test_a_long_member_takes_little_memory(store: Store) -> None:
    """Packed it is much smaller: what counts is what is unpacked at a time."""
    packed = gzip.compress(bytes(60_000_000), 1)
    store.put(PATH, packed + packed[:-1])
    tracemalloc.start()
    try:
        seen = scan(store, noted_of(packed + packed))
        assert tracemalloc.get_traced_memory()[1] < 4 * (PIECE_BYTES + STEP_BYTES)
    finally:
        tracemalloc.stop()
    assert seen.kept == len(packed)
