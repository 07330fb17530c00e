"""Where the CPU time of a page goes: every step of its path alone, over the same real pages."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TypeVar
from urllib.parse import urlsplit

import numpy as np

from crawler.fetch.exchange import Exchange, Request
from crawler.fetch.http import HttpProtocol
from crawler.fetch.warc import CaptureRecord, WarcFile, WarcInfo
from crawler.fetch.warc_payload import payload_digest
from crawler.page import documents, mime
from crawler.page.charset import decode
from crawler.page.coding import decode_content
from crawler.page.filters import Scope, UrlFilters
from crawler.page.fingerprint import Fingerprinter, payload_checksum
from crawler.page.links import LinkReader
from crawler.page.model import Page
from crawler.page.suspicion import is_suspicious
from crawler.page.url import UrlPolicy, host_key, registered_domain
from crawler.settings import Settings
from crawler.storage import Store
from tests.real_input.origin import Origin

T = TypeVar("T")
PASSES = 2


@dataclass(frozen=True)
class Steps:
    """CPU milliseconds a page of each step, and how many pages there were."""

    pages: int
    links: int
    bytes: int
    ms: dict[str, float]


def measure(origin: Origin, urls: Sequence[str], settings: Settings, folder: Path) -> Steps:
    """Fetch the pages, then run every step of their path over all of them."""
    ms: dict[str, float] = {}
    exchanges, ms["http"] = _timed(lambda: asyncio.run(_fetch_all(origin, urls, settings)), len(urls), passes=PASSES)
    count = len(exchanges)

    def step(name: str, work: Callable[[], T]) -> T:
        result, ms[name] = _timed(work, count, passes=PASSES)
        return result

    coded = [exchange.body_bytes() for exchange in exchanges]
    digests = step("digest", lambda: [payload_digest(body) for body in coded])
    limit = settings.fetch.max_decoded_bytes
    bodies = step(
        "content coding",
        lambda: [
            decode_content(b, e.header("content-encoding"), limit).body for b, e in zip(coded, exchanges, strict=True)
        ],
    )
    types = [exchange.header("content-type") for exchange in exchanges]
    triples = list(zip(bodies, urls, types, strict=True))
    step("mime", lambda: [mime.sniff(body, kind, url) for body, url, kind in triples])
    step("payload checksum", lambda: [payload_checksum(body) for body in bodies])
    step("(charset alone)", lambda: [decode(body, kind) for body, _, kind in triples])
    step("suspicion", lambda: [is_suspicious(body, settings.page.inline_bytes) for body in bodies])
    pages = step("parse", lambda: [documents.parse(body, url, kind) for body, url, kind in triples])
    links = step("links", lambda: _links(pages, urls, settings))
    near = settings.near_duplicates
    maker = Fingerprinter(near.permutations, near.bands, near.shingle_words, near.min_words, near.seed)
    step("fingerprint", lambda: [maker.of(page.text) for page in pages])
    step("record + gzip", lambda: _records(exchanges, urls, digests, folder))
    return Steps(count, links, sum(map(len, bodies)), ms)


def _timed(work: Callable[[], T], count: int, passes: int) -> tuple[T, float]:
    """The result, and the CPU milliseconds of the best pass for each of `count` pages."""
    best = float("inf")
    for _ in range(passes):
        gc.collect()
        start = process_time()
        result = work()
        best = min(best, process_time() - start)
    return result, 1000 * best / count


async def _fetch_all(origin: Origin, urls: Sequence[str], settings: Settings) -> list[Exchange]:
    """One page after the other over one connection a host, as a partition does it."""
    protocol = HttpProtocol(settings.fetch)
    idle: dict[str, object] = {}
    exchanges = []
    for url in urls:
        host = urlsplit(url).hostname or ""
        request = Request(url, origin.addresses[host], "bench", keep_alive=True)
        exchange = await protocol.fetch(request, idle.pop(host, None))  # type: ignore[arg-type]  # a table of cases is looser than the types
        if exchange.failure is not None:
            raise RuntimeError(f"{url}: {exchange.failure} {exchange.failure_reason}")
        if exchange.connection is not None:
            idle[host] = exchange.connection
        exchanges.append(exchange)
    for connection in idle.values():
        connection.close()  # type: ignore[attr-defined]  # a table of cases is looser than the types
    return exchanges


def _links(pages: Sequence[Page], urls: Sequence[str], settings: Settings) -> int:
    domains = {host_key(registered_domain(urlsplit(url).netloc)) for url in urls}
    scope = np.sort(np.array(list(domains), "<i8")).tobytes()
    reader = LinkReader(
        UrlPolicy(settings.url),
        UrlFilters(settings.filters, scope=Scope("domains", scope)),
        settings.page.max_links,
    )
    return sum(len(reader.read(page.hrefs, page.base, 1).urls) for page in pages)


def _records(exchanges: Sequence[Exchange], urls: Sequence[str], digests: Sequence[str], folder: Path) -> None:
    store = Store.open(str(folder))
    file = WarcFile(store.open_writer("steps.warc.gz"), WarcInfo("BENCH", "bench"))
    for exchange, url, digest in zip(exchanges, urls, digests, strict=True):
        file.write_exchange(
            CaptureRecord(
                url=url, started_at=exchange.started_at, address=exchange.address, request_bytes=exchange.request_bytes,
                head=exchange.head, body=exchange.body_bytes(), http_version=exchange.http_version,
                metadata={"fetchTimeMs": "1"}, payload_digest=digest,
            )
        )  # fmt: skip
    file.close()
