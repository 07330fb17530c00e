"""Rows and captures to fill segments with, and a clock that stands."""

from __future__ import annotations

from typing import Any

from crawler.fetch.segments import SegmentWriter
from crawler.fetch.warc import CaptureRecord, WarcInfo
from crawler.records import PartitionTask, SealedSegment
from crawler.settings import SegmentSettings
from crawler.storage import Store

FOLDER = "crawl-data/ORB-TEST/segments/20260131120000-r00003"
TASK = PartitionTask("lake", 3, 7, FOLDER, (), 0.0, started14="20260131120000")
INFO = WarcInfo("ORB-TEST", "orbweaver")
ROBOTS = CaptureRecord("http://a.example/robots.txt", 1e9, "192.0.2.1", b"GET", b"HTTP/1.1 404 Not Found\r\n\r\n")


class Clock:
    """Time that stands still."""

    now = 1_769_860_800.0

    def __init__(self, after: float = 0.0) -> None:
        self.now = Clock.now + after

    def __call__(self) -> float:
        return self.now


def writer(
    store: Store, attempt: int = 0, task: PartitionTask = TASK, after: float = 0.0, **settings: Any
) -> SegmentWriter:
    return SegmentWriter(store, task, SegmentSettings(**settings), INFO, attempt, Clock(after))


def row(key: int) -> dict[str, Any]:
    return {
        "url_key": key,
        "url": f"http://a.example/{key}",
        "host": "a.example",
        "outcome": "success",
        "fetch_time": 1_769_860_800.123456,
        "fetch_status": 200,
        "links": [1, -(2**63), 2**63 - 1],
        "links_refused": {"scheme": 2},
        "directives": ["noindex"],
        "signature": b"\0\xff",
    }


def capture(key: int, body: bytes = b"<p>hello") -> CaptureRecord:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    return CaptureRecord(f"http://a.example/{key}", 1e9 + key, "192.0.2.1", b"GET", head, body)


def found(key: int) -> dict[str, Any]:
    url = f"http://b.example/{key}"
    return {"url_key": key, "url": url, "host": "b.example", "host_key": 5, "registered_domain": "b.example"}


def host(key: int, last: float) -> dict[str, Any]:
    robots = [{"scheme": "http", "fetched_at": 1.5, "status": 404, "body": b""}]
    addresses = [{"address": "192.0.2.1", "expires_at": 2.5}]
    return {"host_key": key, "host": "a", "addresses": addresses, "robots": robots, "last_request_at": last}


def sealed(written: SegmentWriter) -> SealedSegment:
    segment = written.seal()
    assert segment
    return segment
