"""Segments as the fetch stage would have left them, written without a request: 10,000 pages with 500,000 links."""

from __future__ import annotations

import hashlib
import time
from base64 import b32encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xxhash import xxh64_intdigest

from crawler.fetch.segment_files import parquet_bytes
from crawler.page.url import SEED, host_key, url_key
from crawler.records import SealedSegment
from crawler.schemas import DISCOVERIES, HOST_STATES, OUTCOMES, Table
from crawler.storage import Store
from tests.benchmarks.known_urls import BANDS, DAY_S, URLS_PER_HOST, KnownUrl, host_name, known_url

PAGES = 10_000
LINKS = 500_000
NEW_LINKS = 100_000
KNOWN_LINKS_AMONG = 1_000_000
PAGES_PER_SEGMENT = 2_000
DUPLICATES = 500


@dataclass(frozen=True)
class Batch:
    """The pages of a round and their links, the same whatever else the lake knows."""

    number: int
    pages: list[KnownUrl]
    links: list[KnownUrl]


def batch_of(number: int) -> Batch:
    """Page `number` of each of the first 10,000 hosts; of the distinct links a fifth is new."""
    pages = [known_url(host * URLS_PER_HOST + number) for host in range(PAGES)]
    random = np.random.default_rng(number)
    known = random.choice(KNOWN_LINKS_AMONG, LINKS - NEW_LINKS, replace=False)
    links = [known_url(int(n)) for n in known] + [_new_url(number, n) for n in range(NEW_LINKS)]
    order = random.permutation(len(links))
    return Batch(number, pages, [links[at] for at in order])


def write_segments(store: Store, batch: Batch, folder: str) -> list[SealedSegment]:
    """Outcomes, discoveries and host states of the batch, in segments of 2,000 pages."""
    return [_write(store, batch, folder, start) for start in range(0, PAGES, PAGES_PER_SEGMENT)]


def _new_url(batch: int, number: int) -> KnownUrl:
    host = host_name(number % PAGES)
    url = f"https://{host}/new/{batch}/{number}"
    return KnownUrl(url, host, url_key(url, host))


def _write(store: Store, batch: Batch, folder: str, start: int) -> SealedSegment:
    name = f"BENCH-b{batch.number}-{start:05d}"
    paths = {kind: f"{folder}/{kind}/{name}.parquet" for kind in ("outcomes", "discoveries", "hosts")}
    at = range(start, start + PAGES_PER_SEGMENT)
    per_page = LINKS // PAGES
    links = batch.links[start * per_page : (start + PAGES_PER_SEGMENT) * per_page]
    store.put_new(paths["discoveries"], _discoveries(links))
    store.put_new(paths["hosts"], _rows([_host_state(batch.pages[n].host) for n in at], HOST_STATES))
    store.put_new(paths["outcomes"], _rows(list(_outcomes(batch, at, links)), OUTCOMES))
    sealed = SealedSegment(name, 0, 0, paths["outcomes"], paths["discoveries"], paths["hosts"], rows=PAGES_PER_SEGMENT)
    return replace(
        sealed, warcs={"warc": f"{folder}/warc/{name}.warc.gz"}, warc_bytes={"warc": 1}, warc_sha256={"warc": "0"}
    )


def _rows(rows: Sequence[dict[str, object]], table: Table) -> bytes:
    return parquet_bytes(list(rows), table)


def _discoveries(links: Sequence[KnownUrl]) -> bytes:
    rows = [
        {"url_key": link.key, "url": link.url, "host": link.host, "host_key": host_key(link.host),
         "registered_domain": link.host, "source": "link"}
        for link in links
    ]  # fmt: skip
    return _rows(rows, DISCOVERIES)


def _host_state(host: str) -> dict[str, object]:
    now = time.time()
    long_ago = now - DAY_S  # the benchmark's delay is a day, and the next batch comes at once
    return {
        "host_key": host_key(host), "host": host, "registered_domain": host, "is_out": False,
        "addresses": [{"address": "127.0.0.1", "expires_at": now + 3_600}],
        "robots": [{"scheme": "https", "fetched_at": now, "status": 200, "body": b"User-agent: *\nDisallow:\n"}],
        "crawl_delay_s": None, "not_before": 0.0, "last_request_at": long_ago, "last_fetch_s": 0.1, "failures": 0,
    }  # fmt: skip


def _outcomes(batch: Batch, at: range, links: Sequence[KnownUrl]) -> Iterator[dict[str, object]]:
    per_page = LINKS // PAGES
    for place, number in enumerate(at):
        page = batch.pages[number]
        body = hashlib.sha1(f"{batch.number} {number}".encode()).digest()
        yield {
            "url_key": page.key, "url": page.url, "host": page.host, "outcome": "success", "fetch_time": time.time(),
            "fetch_s": 0.1, "fetch_status": 200, "address": "127.0.0.1", "http_version": "1.1",
            "content_mime_type": "text/html", "content_mime_detected": "text/html", "content_charset": "utf-8",
            "content_charset_source": "header", "content_length": 30_000, "content_digest": b32encode(body).decode(),
            "title": f"Page {number}", "text_words": 1_000, "directives": [],
            "links": np.array([link.key for link in links[place * per_page : (place + 1) * per_page]], np.int64),
            "links_found": per_page, "links_refused": {}, "etag": f'"{body.hex()[:16]}"', "parse_status": "ok",
            "warc_filename": f"crawl-data/BENCH/warc/{batch.number}.warc.gz", "warc_record_offset": number * 9_000,
            "warc_record_length": 9_000, "warc_record_id": f"<urn:uuid:{body.hex()[:32]}>",
            "warc_record_type": "response", "warc_date": "2026-01-01T00:00:00Z", "partition": 0,
            **_content(batch.number, number),
        }  # fmt: skip


def _content(batch: int, number: int) -> dict[str, object]:
    """Checksums and signature: 500 payloads and 500 near-duplicates of known documents, the others new."""
    known = 20 * (batch * 2 * DUPLICATES + number)
    is_payload, is_near = number < DUPLICATES, DUPLICATES <= number < 2 * DUPLICATES
    name = str(known) if is_payload else f"new {batch} {number}"
    document = str(known) if is_near else f"document {batch} {number}"
    return {
        "payload_checksum": checksum(f"payload{name}"),
        "text_checksum": checksum(f"text{name}"),
        "signature": hashlib.sha512(document.encode()).digest() + hashlib.sha512(f"-{document}".encode()).digest(),
        "bands": np.array([checksum(f"band{document}-{band}") for band in range(BANDS)], np.int64),
    }


def checksum(text: str) -> int:
    """Spark's xxhash64 of a text."""
    return int(np.uint64(xxh64_intdigest(text.encode(), SEED)).astype(np.int64))
