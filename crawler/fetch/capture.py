"""From an exchange to what is kept of it: the outcome row, the archive's record, and the links found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Literal, cast

from crawler.fetch.exchange import MEMORY_BYTES, Exchange
from crawler.fetch.outcomes import IS_REDIRECT, Row, answered_row, outcome_of
from crawler.fetch.parsing import PageParser
from crawler.fetch.policies import product_token, url_filters, url_policy
from crawler.fetch.warc import CaptureRecord, Revisit, Tls, payload_digest
from crawler.page.content import Content, Document
from crawler.page.directives import from_headers
from crawler.page.filters import FoundAs, UrlFilters
from crawler.page.links import HREFS_A_STEP, LinkReader, Links
from crawler.page.mime import essence
from crawler.page.model import FAILED, KILLED, NOT_PARSED, Page
from crawler.page.url import Refusal, Url, UrlPolicy, registered_domain
from crawler.page.wanted import MimeTypes
from crawler.records import Outcome, PlannedUrl
from crawler.settings import Settings

__all__ = ["Capture", "Capturer", "url_filters", "url_policy"]

_STORED = frozenset({Outcome.SUCCESS, Outcome.NOT_MODIFIED})
_READ = frozenset({Outcome.SUCCESS, Outcome.TIMEOUT})  # of the page that was not sent in time, as far as it came


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
        self._token = product_token(settings.crawl)
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
        if outcome in _READ:
            content = await self._content(capture, exchange, planned)
            if content is not None and content.page is not None:
                await self._read_page(capture, content, content.page, exchange, planned.depth + 1)
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

    async def _content(self, capture: Capture, exchange: Exchange, planned: PlannedUrl) -> Content | None:
        """What is in a body, None when there is nothing to read, or when it is the payload we hold."""
        row = capture.row
        if not exchange.body_size:
            return None
        is_known = row["content_digest"] is not None and row["content_digest"] == planned.content_digest
        content_type, coding = exchange.header("content-type"), exchange.content_encoding
        content = await self._parser.read(
            lambda: Document(exchange.body_bytes(), planned.url, content_type, coding, is_known)
        )
        if content.coding_error:
            row["reason"] = f"content coding: {content.coding_error}"
        if not exchange.truncated:
            row["payload_checksum"] = content.payload_checksum
        if is_known:
            capture.outcome = Outcome.NOT_MODIFIED
            row["outcome"], row["reason"] = str(Outcome.NOT_MODIFIED), "same_payload"
            return None
        if content.page is not None and (exchange.truncated or not content.is_whole):
            content.page.cut()
        return content

    async def _read_page(self, capture: Capture, content: Content, page: Page, exchange: Exchange, depth: int) -> None:
        row = capture.row
        row["content_mime_detected"] = page.mime_detected
        row["content_charset"] = page.charset
        row["content_charset_source"] = page.charset_source
        row["parse_status"] = page.parse_status
        row["title"] = page.title
        directives = page.directives
        headers = [value for name, value in exchange.headers if name == "x-robots-tag"]
        if headers:
            directives |= from_headers(headers, self._token)
        row["directives"] = sorted(directives)
        if page.reason and page.parse_status in (FAILED, KILLED, NOT_PARSED):
            row["reason"] = "; ".join(filter(None, (page.reason, row["reason"])))
        if content.fingerprint is not None and capture.outcome is not Outcome.TIMEOUT:
            row["text_words"] = content.fingerprint.words  # half a text is no original of others
            row["text_checksum"] = content.fingerprint.text_checksum
            row["signature"] = content.fingerprint.signature
            row["bands"] = content.fingerprint.bands or None
        found_as: FoundAs = "sitemap" if page.is_index else "link"
        for links in self._links.steps(page.hrefs, page.base, depth, found_as):
            if links is None:
                await asyncio.sleep(0)
            else:
                self._keep_links(capture, content, links, directives)
        capture.source = page.source
        for at in range(HREFS_A_STEP, len(capture.found), HREFS_A_STEP):
            for url in capture.found[at - HREFS_A_STEP : at]:
                registered_domain(url.host)  # remembered, so that recording them all at once is quick
            await asyncio.sleep(0)

    def _keep_links(self, capture: Capture, content: Content, links: Links, directives: frozenset[str]) -> None:
        row, refused, forbidden = capture.row, links.refused, content.forbidden
        for reason, count in content.refused.items():
            refused[reason] = refused.get(reason, 0) + count
        if self._settings.page.obey_nofollow and "nofollow" in directives:
            forbidden += len(links.urls)
        else:
            capture.found = links.urls
        if forbidden:
            refused["nofollow"] = forbidden
        row["links"] = [url.key for url in capture.found]
        row["links_found"] = links.found + sum(content.refused.values()) + content.forbidden
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
