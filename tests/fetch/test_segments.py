"""Segments: rows find their records and keep their types, names are as promised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawler.fetch.segment_files import MANIFEST_KEY, SUBSETS, parquet_bytes, segment_name, storable
from crawler.fetch.segments import KeyMemory, SegmentWriter, read_host_states, read_outcomes
from crawler.schemas import DISCOVERIES, OUTCOMES, arrow_schema
from crawler.storage import Store
from crawler.storage_s3 import BucketStore
from tests.fetch.segment_samples import FOLDER, ROBOTS, TASK, Clock, capture, found, host, row, sealed, writer
from tests.fetch.warc_reading import assert_rules, read_at, read_file


@pytest.fixture(params=["local", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return Store.open(str(tmp_path))
    return BucketStore("s3://bucket/lake", obstore.store.MemoryStore())


def test_rows_name_the_bytes_of_their_records(store: Store) -> None:
    segments = writer(store)
    segments.add(row(1), capture(1), "warc")
    segments.add(row(2) | {"outcome": "gone", "fetch_status": 404}, capture(2), "crawldiagnostics")
    segments.add(row(3) | {"outcome": "not_reached", "links": None}, None)
    segments.add(row(4), capture(4), "warc")
    segments.add_robots(ROBOTS)
    segment = sealed(segments)
    rows = read_outcomes(store, segment).to_pylist()
    assert [each["url_key"] for each in rows] == [1, 2, 3, 4]
    for each in (rows[0], rows[1], rows[3]):
        data = store.read(each["warc_filename"])
        record = read_at(data, each["warc_record_offset"], each["warc_record_length"])
        assert record["WARC-Target-URI"] == each["url"]
        assert record["WARC-Record-ID"] == each["warc_record_id"]
        assert (record["WARC-Date"], record.type) == (each["warc_date"], each["warc_record_type"])
    assert rows[1]["warc_filename"] == segment.warcs["crawldiagnostics"]
    assert rows[2]["warc_filename"] is None
    assert set(segment.warcs) == {"warc", "crawldiagnostics", "robotstxt"}
    for subset, path in segment.warcs.items():
        data = store.read(path)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (
            segment.warc_bytes[subset],
            segment.warc_sha256[subset],
        )
        assert_rules(read_file(data))


def test_outcomes_keep_their_types(store: Store) -> None:
    segments = writer(store)
    segments.add(row(1) | {"title": "a\0b\ud800", "bands": np.array([5], dtype=np.int64)}, None)
    table = read_outcomes(store, sealed(segments))
    assert table.schema == arrow_schema(OUTCOMES.columns)
    [read] = table.to_pylist()
    assert read["fetch_time"].isoformat() == "2026-01-31T12:00:00.123456+00:00"
    assert read["links"] == [1, -(2**63), 2**63 - 1]
    assert read["links_refused"] == [("scheme", 2)]
    assert (read["directives"], read["signature"], read["bands"]) == (["noindex"], b"\0\xff", [5])
    assert (read["title"], read["partition"], read["etag"]) == ("a\ufffdb\ufffd", 7, None)


def test_names_and_folders(store: Store) -> None:
    segments = writer(store, attempt=2)
    names = []
    for _ in range(2):
        segments.add(row(1), capture(1))
        names.append(sealed(segments).name)
    stem = "ORB-TEST-20260131120000-r00003-p00007-a2-0000"
    assert [name[:-9] for name in names] == [stem + "0", stem + "1"]
    folders = {"warc": "-warc.warc.gz", "outcomes": ".parquet", "discoveries": ".parquet", "hosts": ".parquet"}
    wanted = [f"{FOLDER}/{folder}/{name}{end}" for folder, end in folders.items() for name in names]
    assert store.list("") == sorted(wanted)
    assert segment_name(TASK, "a/b c", "", (0, 0), "12345678").startswith("a-b-c-")


def test_no_two_warc_files_of_a_crawl_share_a_base_name(store: Store) -> None:
    """Indexes know files by it: CDXJ, WACZ, pywb's collections."""
    for attempt, task in ((0, TASK), (1, TASK), (0, replace(TASK, partition=8)), (0, replace(TASK, round=4))):
        segments = writer(store, attempt=attempt, task=task)
        for _ in range(2):
            for subset in SUBSETS:
                segments.add(row(1), capture(1), subset)
            sealed(segments)
    names = [path.rpartition("/")[2] for path in store.list("") if path.endswith(".warc.gz")]
    assert len(set(names)) == len(names) == 4 * 2 * len(SUBSETS)


def test_a_found_url_leaves_once(store: Store) -> None:
    segments = writer(store)
    for key in (1, 2, 1):
        segments.add_discovery(found(key))
    first = sealed(segments)
    assert segments.knows(1)
    assert not segments.knows(3)
    for key in (2, 3):
        segments.add_discovery(found(key))
    second = sealed(segments)
    tables = [pq.read_table(pa.BufferReader(store.read(each.discoveries))) for each in (first, second)]
    assert [table["url_key"].to_pylist() for table in tables] == [[1, 2], [3]]
    assert tables[0].schema.equals(arrow_schema(DISCOVERIES.columns))


def test_the_memory_of_keys_is_bounded() -> None:
    memory = KeyMemory(capacity=10)
    for key in range(100):
        memory.add(key)
        assert all(late in memory for late in range(max(0, key - 4), key + 1))
    assert sum(key in memory for key in range(100)) <= 10


def test_the_last_note_of_a_host_counts(store: Store) -> None:
    segments = writer(store)
    segments.note_host(host(1, last=1.0))
    segments.note_host(host(2, last=2.0))
    segments.note_host(host(1, last=3.0))
    segment = sealed(segments)
    states = read_host_states(store, segment)
    assert {state["host_key"]: state["last_request_at"] for state in states} == {1: 3.0, 2: 2.0}
    assert states[0]["robots"] == [{"scheme": "http", "fetched_at": 1.5, "status": 404, "body": b""}]
    assert states[0]["addresses"] == [{"address": "192.0.2.1", "expires_at": 2.5}]
    assert (segment.rows, segment.warcs) == (0, {})
    assert read_outcomes(store, segment).num_rows == 0


@pytest.mark.parametrize(
    ("settings", "fill", "is_due"),
    [
        ({"max_urls": 2}, lambda s: s.add(row(1), None), False),
        ({"max_urls": 2}, lambda s: [s.add(row(key), None) for key in (1, 2)], True),
        ({"max_bytes": 2_000}, lambda s: s.add(row(1), capture(1)), False),
        ({"max_bytes": 2_000}, lambda s: s.add(row(1), capture(1, np.random.default_rng(0).bytes(2_000))), True),
        (
            {"max_bytes": 2_000},  # its largest file counts
            lambda s: (s.add_robots(capture(2)), s.add(row(1), capture(1, np.random.default_rng(0).bytes(2_000)))),
            True,
        ),
        ({"max_seconds": 10.0}, lambda s: s.note_host(host(1, 1.0)), True),
        ({"max_seconds": 60.0}, lambda s: s.note_host(host(1, 1.0)), False),
        ({"max_seconds": 5.0}, lambda s: s.note_host(host(1, 1.0)), True),
        ({"max_seconds": 5.0}, lambda s: None, False),
    ],
)
def test_when_a_segment_is_due(
    store: Store, settings: dict[str, Any], fill: Callable[[SegmentWriter], None], is_due: bool
) -> None:
    segments = writer(store, **settings)
    fill(segments)
    assert segments.is_due(Clock.now + 10) is is_due
    segments.seal()
    assert not segments.is_due(Clock.now + 1e6)


def test_the_outcomes_file_says_what_the_segment_is(store: Store) -> None:
    segments = writer(store)
    segments.add(row(1), capture(1))
    segment = sealed(segments)
    metadata = pq.read_schema(pa.BufferReader(store.read(segment.outcomes))).metadata
    manifest = json.loads(metadata[MANIFEST_KEY])
    assert manifest["warcs"] == {"warc": f"{FOLDER}/warc/{segment.name}-warc.warc.gz"}
    assert (manifest["rows"], manifest["sealed_at"]) == (1, Clock.now)


@pytest.mark.parametrize("wrong", [{"fetch_stauts": 200}, {"robots": []}])
def test_a_column_that_no_table_has_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="outcomes has no column"):
        writer(store).add(row(1) | wrong, None)


def test_an_unknown_subset_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="warc, crawldiagnostics, robotstxt"):
        writer(store).add(row(1), capture(1), "pages")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a", "a"),
        ("ü😀", "ü😀"),
        ("\0a\0", "\ufffda\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("x\udc80y", "x\ufffdy"),
        ("", ""),
    ],
)
def test_every_text_can_be_stored(text: str, kept: str) -> None:
    assert storable(text) == kept
    parquet_bytes([row(1) | {"directives": [text], "links_refused": {text: 1}, "url": text}], OUTCOMES)
