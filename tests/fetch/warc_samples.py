"""Captures of every kind and a file of them with pinned ids and dates."""

from __future__ import annotations

import gzip
import itertools
import random
from dataclasses import replace

from crawler.fetch.warc import CaptureRecord, Revisit, Tls, WarcFile, WarcInfo
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
    head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\r\n",
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
EVERY_KIND = (
    CAPTURE,
    CHUNKED,
    replace(CHUNKED, revisit=SAME),
    replace(CAPTURE, head=HEAD_304, body=b"", revisit=NOT_MODIFIED),
    replace(CAPTURE, body=b"<p>Gr", truncated="disconnect", tls=Tls("TLSv1.3", "TLS_AES_128_GCM_SHA256")),
    replace(CAPTURE, head=b"HTTP/1.1 200 OK\r\n\r\n", body=random.Random(3).randbytes(600_000)),
    replace(CAPTURE, head=b"HTTP/1.1 200 OK\nContent-Length: 10\nContent-Type: text/html\n\n"),
    replace(CAPTURE, head=b"HTTP/1.1 200 OK\nContent-Length: 9\nContent-Type: text/html\n\r\n"),
    replace(CAPTURE, head=b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: text/html\r\n\n"),
    replace(CAPTURE, address="::1", body=b"", head=b"HTTP/1.1 301 Moved\r\nLocation: /\xff\r\n\r\n"),
)
"""Captures of which all kinds of records come."""

HEADS = {
    "true": (
        b"HTTP/1.1 200\r\ncontent-length:7\r\nX: a\tb \r\n\r\n",
        b"HTTP/1.1 200\r\ncontent-length:7\r\nX: a\tb \r\n\r\n",
    ),
    "no length": (b"HTTP/1.1 200\r\nX: a\tb \r\n\r\n", b"HTTP/1.1 200\r\nX: a\tb \r\n\r\n"),
    "chunked": (
        CHUNKED_HEAD,
        (
            b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 7\r\nX-Crawler-transfer-encoding:  chunked\r\n"
            b"Content-Encoding: gzip\r\nX-B: \xe9\r\n\r\n"
        ),
    ),
    "length and chunked": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nContent-Length : 4\r\n\r\n",
        (
            b"HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 3\r\nContent-Length: 7\r\n"
            b"X-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Length : 4\r\n\r\n"
        ),
    ),
    "two codings": (
        b"HTTP/1.1 200 OK\nTransfer-Encoding: gzip\nTransfer-Encoding: chunked\n\n",
        (
            b"HTTP/1.1 200 OK\nContent-Length: 7\nX-Crawler-Transfer-Encoding: gzip\n"
            b"X-Crawler-Transfer-Encoding: chunked\n\n"
        ),
    ),
    "not the field": (
        b"HTTP/1.1 200 OK\r\nX-Transfer-Encoding: chunked\r\nA: content-length: 9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Transfer-Encoding: chunked\r\nA: content-length: 9\r\n\r\n",
    ),
    "ends of lines mixed, and folded": (
        b"HTTP/1.1 200 OK\nTransfer-Encoding:\r\n chunked\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 7\r\nX-Crawler-Transfer-Encoding:\r\n chunked\n\r\n",
    ),
    "no body": (
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nX-Crawler-Transfer-Encoding: chunked\r\n\r\n",
    ),
    "length of a body that never comes": (
        b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nX-Crawler-Content-Length: 9\r\n\r\n",
    ),
    "too long": (
        b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-Length:  99 \r\nC: d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 7\r\nX-Crawler-content-Length:  99 \r\nC: d\r\n\r\n",
    ),
    "too long, bare LF": (
        b"HTTP/1.0 404\nContent-Length: 99\n\n",
        b"HTTP/1.0 404\nContent-Length: 7\nX-Crawler-Content-Length: 99\n\n",
    ),
    "too long, mixed line ends": (
        b"HTTP/1.0 404\nContent-Length: 99\n\r\n",
        b"HTTP/1.0 404\nContent-Length: 7\r\nX-Crawler-Content-Length: 99\n\r\n",
    ),
    "without end": (
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Crawler-Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    ),
    "zeros before": (b"HTTP/1.1 200 OK\r\nContent-Length: 007\r\n\r\n",) * 2,
    "a list of one": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 7, 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Crawler-Content-Length: 7, 7\r\n\r\n",
    ),
    "twice": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nA: b\r\nContent-Length: 99\r\n\r\n",
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Crawler-Content-Length: 99\r\nA: b\r\n"
            b"X-Crawler-Content-Length: 99\r\n\r\n"
        ),
    ),
    "no number": (
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Crawler-Content-Length: -1\r\n\r\n",
    ),
    "empty": (
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Crawler-Content-Length:\r\n\r\n",
    ),
}
"""Heads as received, and as they are stored with a body of seven bytes."""


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
