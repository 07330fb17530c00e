"""What a body holds: its checksum, its page, the fingerprint of its text, its links; whatever the body is.

The same reader works in two places. In the fetch process it reads what surely costs an event loop less than 50 ms a
step, judged by sizes before a step and by the time of the step itself (`begin`, then `finish`). All else it reads where
it may be killed (`read`), and when that was necessary, it looks once more for what looks like a link (`scan`). So what
it gives is small in any case: hrefs up to the bound and the number of those left out, and no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import NamedTuple

from crawler.page import documents, mime
from crawler.page.coding import DecodedBody, decode_content, gunzip
from crawler.page.fingerprint import Fingerprint, Fingerprinter, payload_checksum
from crawler.page.model import FAILED, KILLED, NOT_PARSED, Page
from crawler.page.suspicion import is_suspicious
from crawler.page.wanted import MimeTypes

INLINE_S = 0.02
MAX_HREF_CHARS = 2_000_000  # of all hrefs of a page together
MAX_REASON_CHARS = 200
_PEEK_BYTES = 4_096
_UNLIMITED_S = float("inf")
_HREF = re.compile(rb"""\bhref\s{0,9}=\s{0,9}["']?([^"'\s<>]{1,4096})""", re.IGNORECASE)
_MARKUP = frozenset({mime.HTML, mime.XHTML})


@dataclass(frozen=True)
class Bounds:
    """How much of a document is read and kept, and for whom."""

    inline_bytes: int
    max_decoded_bytes: int
    max_links: int
    max_href_chars: int
    max_title_chars: int
    obey_nofollow: bool
    strip_fragment: bool
    html_module: str
    product_token: str
    unparsed_types: Sequence[str] = ()


class Document(NamedTuple):
    """A body as it was sent, and what its server says of it.

    `coding`: all Content-Encoding fields. `is_known`: we hold this very payload, so nobody needs to parse it.
    """

    body: bytes
    url: str
    content_type: str | None
    coding: str | None = None
    is_known: bool = False


@dataclass
class Content:
    """What a document holds. Of the page, text, metas and hrefs that may not be followed are gone.

    `page`: None where the body is empty or known; its `refused` counts hrefs beyond the bounds, too, as `too_many`.
    `forbidden`: those that the page marks with nofollow, where that is obeyed.
    """

    page: Page | None = None
    payload_checksum: int | None = None  # of the decoded body, where it is whole
    is_whole: bool = True
    coding_error: str | None = None
    fingerprint: Fingerprint | None = None
    forbidden: int = 0

    @property
    def refused(self) -> dict[str, int]:
        """Links that were found and not taken, by reason."""
        return self.page.refused if self.page is not None else {}


class Draft(NamedTuple):
    """A document between the two steps of its reading."""

    decoded: DecodedBody
    page: Page | None


class ContentReader:
    """Reads documents under the same bounds. It keeps nothing between them."""

    def __init__(self, bounds: Bounds, prints: Fingerprinter) -> None:
        self.bounds = bounds
        self.prints = prints
        self._unparsed = MimeTypes(bounds.unparsed_types)

    def begin(self, document: Document) -> Draft | None:
        """The first half of the work; None when it could take too long."""
        decoded = self._decoded_here(document)
        if decoded is None:
            return None
        if document.is_known or not decoded.body:
            return Draft(decoded, None)
        content_type = _content_type(decoded, document)
        detected = mime.sniff(decoded.body, content_type, document.url)
        if self._is_unread(detected, decoded.body):
            return Draft(decoded, Page(detected, NOT_PARSED, base=document.url))
        if not self._is_light(detected, decoded.body):
            return None
        return Draft(decoded, self._parsed(decoded, document))

    def finish(self, draft: Draft) -> Content:
        """The second half, which costs by the length of the text only."""
        decoded, page = draft
        content = Content(page, is_whole=decoded.is_whole, coding_error=decoded.error)
        if decoded.body and decoded.is_whole:
            content.payload_checksum = payload_checksum(decoded.body)
        if page is not None:
            self._settle(content, page)
        return content

    def read(self, document: Document) -> Content:
        """All of it, however long it takes. Raises MemoryError."""
        decoded = self._decoded(document)
        page = None if document.is_known or not decoded.body else self._parsed(decoded, document)
        return self.finish(Draft(decoded, page))

    def scan(self, document: Document) -> Content:
        """What can be said of a document that stops parsers, in linear time: its type, and what looks like a link."""
        decoded = self._decoded(document)
        detected = mime.sniff(decoded.body, _content_type(decoded, document), document.url)
        page = Page(detected, KILLED, base=document.url)
        content = self.finish(Draft(decoded, page))
        if detected in _MARKUP:
            self._bound(page, (unescape(match[1].decode("utf-8", "replace")) for match in _HREF.finditer(decoded.body)))
        return content

    def glance(self, document: Document) -> Content:
        """What the first bytes say of a document that nobody could read to its end."""
        decoded = decode_content(document.body, document.coding, _PEEK_BYTES, INLINE_S)
        detected = mime.sniff(decoded.body, _content_type(decoded, document), document.url)
        return Content(Page(detected, KILLED, base=document.url), is_whole=False)

    def _decoded_here(self, document: Document) -> DecodedBody | None:
        if not document.coding:
            return DecodedBody(document.body)
        room = min(self.bounds.inline_bytes, self.bounds.max_decoded_bytes)
        if len(document.body) > self.bounds.inline_bytes:
            return None
        decoded = decode_content(document.body, document.coding, room, INLINE_S)
        is_cut_by_us = decoded.truncated and room < self.bounds.max_decoded_bytes
        return None if is_cut_by_us or decoded.took_too_long else decoded

    def _decoded(self, document: Document) -> DecodedBody:
        if not document.coding:
            return DecodedBody(document.body)
        return decode_content(document.body, document.coding, self.bounds.max_decoded_bytes, _UNLIMITED_S)

    def _is_unread(self, detected: str, body: bytes) -> bool:
        """Whether no module will read it: that is told without sending megabytes anywhere."""
        if detected in self._unparsed:
            return True
        if detected == mime.GZIP and documents.is_built_in(detected):
            return mime.sniff(gunzip(body, _PEEK_BYTES, INLINE_S).body, None) == mime.UNKNOWN
        return documents.module_for(detected, self.bounds.html_module) is None

    def _is_light(self, detected: str, body: bytes) -> bool:
        """Whether it may be parsed in the event loop. What modules of others cost is not known."""
        if not documents.is_built_in(detected, self.bounds.html_module):
            return False
        if detected != mime.GZIP:
            return not is_suspicious(body, self.bounds.inline_bytes, detected)
        if len(body) > self.bounds.inline_bytes:
            return False
        inside = gunzip(body, self.bounds.inline_bytes, INLINE_S)
        is_all = not (inside.truncated or inside.took_too_long)
        return is_all and not is_suspicious(inside.body, self.bounds.inline_bytes, mime.XML)

    def _parsed(self, decoded: DecodedBody, document: Document) -> Page:
        content_type = _content_type(decoded, document)
        if self._unparsed:
            detected = mime.sniff(decoded.body, content_type, document.url)
            if detected in self._unparsed:
                return Page(detected, NOT_PARSED, base=document.url)
        return documents.parse(
            decoded.body, document.url, content_type, self.bounds.html_module, self.bounds.product_token
        )

    def _settle(self, content: Content, page: Page) -> None:
        """Bring the page to its bounds."""
        bounds = self.bounds
        if page.text and page.parse_status != FAILED:
            content.fingerprint = self.prints.of(page.text)
        hrefs = page.hrefs
        if bounds.obey_nofollow:
            content.forbidden = page.nofollow
        elif page.nofollow_hrefs:
            hrefs = [*hrefs, *page.nofollow_hrefs]
        self._bound(page, hrefs)
        page.text, page.nofollow_hrefs, page.robots_metas = "", [], []
        page.title = page.title[: bounds.max_title_chars] if page.title else None
        page.reason = printable(page.reason)

    def _bound(self, page: Page, hrefs: Iterable[str]) -> None:
        """Leave the page the first distinct hrefs, and count how many more there are."""
        bounds = self.bounds
        if isinstance(hrefs, list) and len(hrefs) <= bounds.max_links and sum(map(len, hrefs)) <= MAX_HREF_CHARS:
            page.hrefs = hrefs
            return
        distinct: dict[str, None] = {}
        chars = left_out = 0
        for raw in hrefs:
            href = (raw.partition("#")[0] if bounds.strip_fragment else raw)[: bounds.max_href_chars + 1]
            if href in distinct:
                continue
            if len(distinct) >= bounds.max_links or chars + len(href) > MAX_HREF_CHARS:
                left_out += 1
                continue
            distinct[href] = None
            chars += len(href)
        page.hrefs = list(distinct)
        if left_out:
            page.ends_open = False  # the last one is among those that are left out
            page.refused["too_many"] = page.refused.get("too_many", 0) + left_out


def printable(reason: str | None) -> str | None:
    """A reason for people: one line, bounded, without what terminals act on."""
    if not reason:
        return None
    text = " ".join(reason[: 2 * MAX_REASON_CHARS].split())[:MAX_REASON_CHARS]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _content_type(decoded: DecodedBody, document: Document) -> str | None:
    """What the server says a body is, unless the body is still in some coding and looks like nothing but bytes."""
    if decoded.is_as_sent and mime.sniff(decoded.body, None) not in (
        mime.PLAIN,
        *_MARKUP,
        mime.XML,
        mime.RSS,
        mime.ATOM,
    ):
        return None
    return document.content_type
