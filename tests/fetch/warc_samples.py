"""Captures of every kind and a file of them with pinned ids and dates."""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace

from crawler.fetch.warc import CaptureRecord, Revisit, WarcFile, WarcInfo
from crawler.storage import ObjectWriter, Store
from tests.fetch.warc_reading import ReadRecord, assert_rules, read_file

START = 1_769_860_800.75  # 2026-01-31T12:00:00.75Z
INFO = WarcInfo(
    "ORB-TEST", "orbweaver (+https://x.org)", operator="Ada", contact="mailto:a@x.org", software="orbweaver/0"
)
CAPTURE = CaptureRecord(
    url="http://example.org/a?b=1",
    started_at=START,
    address="192.0.2.1",
    request_bytes=b"GET /a?b=1 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 11\r\n\r\n",
    body=b"<p>Grue\xc3\x9f!",
    http_version="1.1",
    metadata={"fetchTimeMs": "12", "charset-detected": "utf-8"},
    identified_mime="text/html",
)
GZIPPED = gzip.compress(b"<p>packed</p>" * 50, mtime=0)
CHUNKED_HEAD = (
    b"HTTP/1.1 200 OK\r\nX-A: 1\r\ntransfer-encoding:  chunked\r\nContent-Encoding: gzip\r\nX-B: \xe9\r\n\r\n"
)
CHUNKED = replace(CAPTURE, head=CHUNKED_HEAD, body=GZIPPED)
SAME = Revisit("identical-payload-digest", "<urn:uuid:1>", "http://example.org/old", "2026-01-01T00:00:00Z")
NOT_MODIFIED = replace(SAME, profile="server-not-modified")
HEAD_304 = b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'


def new_file(writer: ObjectWriter) -> WarcFile:
    numbers = itertools.count()
    return WarcFile(writer, INFO, lambda: START, lambda: f"<urn:uuid:00000000-0000-4000-8000-{next(numbers):012}>")


def write(store: Store, *captures: CaptureRecord) -> bytes:
    warc = new_file(store.open_writer("warc/X.warc.gz"))
    for capture in captures:
        warc.write_exchange(capture)
    warc.close()
    return store.read("warc/X.warc.gz")


def answer(store: Store, capture: CaptureRecord) -> ReadRecord:
    records = read_file(write(store, capture))
    assert_rules(records)
    return next(record for record in records if record.type in {"response", "revisit"})
