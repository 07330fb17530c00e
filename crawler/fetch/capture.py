"""From an exchange to what is kept of it: the outcome row, the archive's record, and the links found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Literal, cast

from crawler.fetch.exchange import MEMORY_BYTES, Exchange
from crawler.fetch.outcomes import IS_REDIRECT, Row, answered_row, outcome_of
from crawler.fetch.parsing import Document, PageParser
from crawler.fetch.policies import fingerprinter, product_token, url_filters, url_policy
from crawler.fetch.warc import CaptureRecord, Revisit, Tls, payload_digest
from crawler.page.coding import DecodedBody, decode_content
from crawler.page.content import MimeTypes
from crawler.page.directives import from_headers
from crawler.page.filters import FoundAs, UrlFilters
from crawler.page.fingerprint import payload_checksum
from crawler.page.links import LinkReader
from crawler.page.mime import essence, sniff
from crawler.page.model import FAILED, NOT_PARSED, OK, Page
from crawler.page.url import Refusal, Url, UrlPolicy
from crawler.records import Outcome, PlannedUrl
from crawler.settings import Settings

__all__ = ["Capture", "Capturer", "url_filters", "url_policy"]

LONG_TEXT_CHARS = 1_000_000
_STORED = frozenset({Outcome.SUCCESS, Outcome.NOT_MODIFIED})


@dataclass(slots=True)
class Capture:
    """What one request came to."""

    outcome: Outcome
    row: Row
    record: CaptureRecord | None = None
    found: list[Url] = field(default_factory=list)
    source: str = "link"

    @property
    def subset(self) -> str:
        """The subset of the archive: pages and confirmations of pages are apart from all other answers."""
        return "warc" if self.outcome in _STORED else "crawldiagnostics"


class Capturer:
    """Makes captures by one set of policies. Belongs to one partition."""

    def __init__(self, settings: Settings, policy: UrlPolicy, filters: UrlFilters, parser: PageParser) -> None:
        self._settings = settings
        self._policy = policy
        self._filters = filters
        self._parser = parser
        self._links = LinkReader(policy, filters, settings.page.max_links)
        self._prints = fingerprinter(settings)
        self._token = product_token(settings.crawl)
        self._unparsed = MimeTypes(settings.content.unparsed_types)
        self._unstored = MimeTypes(settings.content.unstored_types)

    async def capture(self, exchange: Exchange, planned: PlannedUrl) -> Capture:
        """The capture of a request for `planned`."""
        outcome = outcome_of(exchange, planned)
        capture = Capture(outcome, answered_row(planned, outcome, exchange))
        if exchange.failure is not None:
            return capture
        row = capture.row
        row["content_mime_type"] = essence(exchange.header("content-type"))[:200] or None
        if not exchange.truncated and outcome is not Outcome.NOT_MODIFIED:
            row["content_digest"] = payload_digest(_payload(exchange))
        if outcome is Outcome.SUCCESS:
            page = await self._content(capture, exchange, planned)
            if page is not None:
                await self._read_page(capture, page, exchange, planned.depth + 1)
        elif outcome is Outcome.NOT_MODIFIED:
            row["content_digest"] = planned.content_digest
        elif outcome in IS_REDIRECT:
            self._read_redirect(capture, exchange, planned)
        if exchange.unread_type not in (None, row["content_mime_type"]):
            row["content_mime_detected"] = exchange.unread_type
        mime_type = row["content_mime_detected"] or row["content_mime_type"] or ""
        if capture.outcome is not Outcome.NOT_MODIFIED and mime_type in self._unstored:
            _leave_body_out(row, exchange)
        capture.record = _record(exchange, capture, planned)
        return capture

    async def _content(self, capture: Capture, exchange: Exchange, planned: PlannedUrl) -> Page | None:
        """The page in a body, None when there is none, or when it is the one we hold."""
        row, decoded = capture.row, self._decoded(exchange)
        is_whole = not (exchange.truncated or decoded.truncated or decoded.error)
        if decoded.error:
            row["reason"] = f"content coding: {decoded.error}"
        if not decoded.body:
            return None
        if is_whole:
            row["payload_checksum"] = payload_checksum(decoded.body)
        if row["content_digest"] is not None and row["content_digest"] == planned.content_digest:
            capture.outcome = Outcome.NOT_MODIFIED
            row["outcome"], row["reason"] = str(Outcome.NOT_MODIFIED), "same_payload"
            return None
        content_type = exchange.header("content-type")
        if self._unparsed and (detected := sniff(decoded.body, content_type, planned.url)) in self._unparsed:
            return Page(detected, NOT_PARSED, base=planned.url)
        page = self._parser.parse_here(Document(decoded.body, planned.url, content_type))
        if page is None:
            del decoded
            page = await self._parser.parse_apart(
                lambda: Document(self._decoded(exchange).body, planned.url, content_type)
            )
        if page.parse_status == OK and not is_whole:
            page.parse_status = "truncated"
        return page

    def _decoded(self, exchange: Exchange) -> DecodedBody:
        body, coding = exchange.body_bytes(), exchange.header("content-encoding")
        return decode_content(body, coding, self._settings.fetch.max_decoded_bytes) if coding else DecodedBody(body)

    async def _read_page(self, capture: Capture, page: Page, exchange: Exchange, depth: int) -> None:
        row = capture.row
        row["content_mime_detected"] = page.mime_detected
        row["content_charset"] = page.charset
        row["content_charset_source"] = page.charset_source
        row["parse_status"] = page.parse_status
        row["title"] = page.title[: self._settings.page.max_title_chars] if page.title else None
        directives = page.directives
        headers = [value for name, value in exchange.headers if name == "x-robots-tag"]
        if headers:
            directives |= from_headers(headers, self._token)
        row["directives"] = sorted(directives)
        if page.parse_status == FAILED:
            row["reason"] = page.text
        elif page.text:
            await self._read_text(row, page.text)
        self._read_links(capture, page, directives, depth)

    async def _read_text(self, row: Row, text: str) -> None:
        """Long texts in a thread: most of the work is numpy's, which lets the loop go on."""
        is_long = len(text) > LONG_TEXT_CHARS
        fingerprint = await asyncio.to_thread(self._prints.of, text) if is_long else self._prints.of(text)
        row["text_words"] = fingerprint.words
        row["text_checksum"] = fingerprint.text_checksum
        row["signature"] = fingerprint.signature
        row["bands"] = fingerprint.bands or None

    def _read_links(self, capture: Capture, page: Page, directives: frozenset[str], depth: int) -> None:
        row = capture.row
        if not page.hrefs and not page.nofollow:
            row["links"], row["links_found"], row["links_refused"] = [], 0, {}
            return
        obeys = self._settings.page.obey_nofollow
        hrefs = page.hrefs if obeys else [*page.hrefs, *page.nofollow_hrefs]
        links = self._links.read(hrefs, page.base, depth, "sitemap" if page.is_index else "link")
        refused, forbidden = links.refused, page.nofollow if obeys else 0
        if obeys and "nofollow" in directives:
            forbidden += len(links.urls)
        else:
            capture.found = links.urls
        if forbidden:
            refused["nofollow"] = forbidden
        capture.source = page.source
        row["links"] = [url.key for url in capture.found]
        row["links_found"] = links.found + (page.nofollow if obeys else 0)
        row["links_refused"] = refused

    def _read_redirect(self, capture: Capture, exchange: Exchange, planned: PlannedUrl) -> None:
        row = capture.row
        location = exchange.location
        if not location:
            row["reason"] = "no_location"
            return
        target = self._policy.canonical(location, planned.url)
        if isinstance(target, Refusal):
            row["reason"] = f"redirect_{target.reason}"
            return
        row["fetch_redirect"] = target.url
        hops = self._hops_to(planned)
        refusal: str | None = "to_itself"
        if target.key != planned.url_key:
            depth, found_as = _place_of(planned, hops)
            refusal = self._filters.refuse(target, depth, found_as)
        if refusal:
            row["reason"] = f"redirect_{refusal}"
            return
        row["redirect_key"], row["seed_hops"] = target.key, hops
        capture.found, capture.source = [target], "redirect"

    def _hops_to(self, planned: PlannedUrl) -> int | None:
        """By how many redirects a seed leads to what it redirects to; None when that is no seed."""
        hops = (planned.seed_hops or 0) + 1
        return hops if planned.is_seed and hops <= self._settings.scope.seed_redirects else None


def _place_of(planned: PlannedUrl, hops: int | None) -> tuple[int, FoundAs]:
    """The depth and the kind of what a URL redirects to: that of a seed is one (`hops`), that of a sitemap may be."""
    if hops is not None:
        return 0, "seed"
    return planned.depth + 1, "sitemap" if planned.source == "sitemap" else "link"


def record_of(exchange: Exchange, url: str) -> CaptureRecord:
    """The archive's record of any answer, whole."""
    return CaptureRecord(
        url=url,
        started_at=exchange.started_at,
        address=exchange.address,
        request_bytes=exchange.request_bytes,
        head=exchange.head,
        body=_payload(exchange),
        truncated=exchange.truncated,
        http_version=exchange.http_version,
        tls=Tls(exchange.tls.protocol, exchange.tls.cipher) if exchange.tls else None,
        metadata={"fetchTimeMs": str(round(exchange.duration_s * 1_000))},
    )


def _leave_body_out(row: Row, exchange: Exchange) -> None:
    """Of the exchange only the head is stored, so that no later visit may refer to its body."""
    exchange.drop_body()
    row["content_truncated"], row["content_length"], row["content_digest"] = exchange.truncated, 0, None


def _payload(exchange: Exchange) -> bytes | BinaryIO:
    """The body: bytes while it is small, else its spool file."""
    is_small = exchange.body_size <= MEMORY_BYTES
    return exchange.body_bytes() if is_small else cast(BinaryIO, exchange.body)


def _record(exchange: Exchange, capture: Capture, planned: PlannedUrl) -> CaptureRecord:
    row = capture.row
    metadata = {"fetchTimeMs": str(round(exchange.duration_s * 1_000))}
    if row["content_charset"]:
        metadata["charset-detected"] = row["content_charset"]
    is_unstored = capture.outcome is Outcome.NOT_MODIFIED
    return replace(
        record_of(exchange, planned.url),
        metadata=metadata,
        identified_mime=row["content_mime_detected"],
        payload_digest=None if is_unstored and exchange.status == 304 else row["content_digest"],
        revisit=_revisit(exchange, planned) if is_unstored else None,
    )


def _revisit(exchange: Exchange, planned: PlannedUrl) -> Revisit | None:
    """What the revisit refers to; None when the record that holds the payload is not known."""
    if planned.digest_date is None:
        return None
    profile: Literal["server-not-modified", "identical-payload-digest"]
    profile = "server-not-modified" if exchange.status == 304 else "identical-payload-digest"
    return Revisit(profile, planned.digest_record_id, planned.url, planned.digest_date)
