"""Which contents a crawl wants, by MIME type.

A server says what it sends, and that is believed where it says something: a video is not read. Where it says nothing
of use (no type, `application/octet-stream`, a text that is none, a gzip file of whatever), the first bytes decide, as
they do when a page is parsed (`crawler.page.mime`). So `application/octet-stream` in a list means bytes that are no
text and have no signature we know, and a page, feed or sitemap that is sent under that name is read all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawler.page import mime
from crawler.page.coding import decode_content, gunzip

START_BYTES = 1_445
"""The first bytes of a body, which decide (WHATWG MIME Sniffing, 5.2)."""

SITEMAP_TYPES = frozenset({mime.XML, "text/xml", mime.PLAIN, mime.RSS, mime.ATOM, mime.GZIP, "application/x-gzip"})
"""What a sitemap is sent as."""


class MimeTypes:
    """A set of MIME types: names, `audio/*` for a kind, `*/*` for all, less those in `but`.

    >>> "audio/mpeg" in MimeTypes(["audio/*"])
    True
    """

    def __init__(self, patterns: Iterable[str], but: Iterable[str] = ()) -> None:
        lower = [pattern.lower() for pattern in patterns]
        self._names = frozenset(pattern for pattern in lower if not pattern.endswith("/*"))
        self._kinds = frozenset(pattern.partition("/")[0] for pattern in lower if pattern.endswith("/*"))
        self._but = frozenset(but)

    def __contains__(self, mime_type: str) -> bool:
        if mime_type in self._but:
            return False
        return mime_type in self._names or "*" in self._kinds or mime_type.partition("/")[0] in self._kinds

    def __bool__(self) -> bool:
        return bool(self._names or self._kinds)


def named_type(types: MimeTypes, content_type: str | None) -> str | None:
    """The type that a Content-Type names, when it is one of `types`; None for names that say nothing."""
    named = mime.essence(content_type)
    return named if named and not mime.is_generic(named) and named in types else None


def shown_type(types: MimeTypes, content_type: str | None, coding: str | None, start: bytes) -> str | None:
    """The type that the first bytes of a body show, when it is one of `types`, or when it is that of a gzip file which
    holds one of them. `coding` is the Content-Encoding; whatever the bytes are, a few KB are decoded of them at most.
    """
    if coding and mime.essence(content_type) in (mime.HTML, mime.XHTML):
        return None  # somebody took it for text, and most pages come like this: spare the decoding
    if coding:
        start = decode_content(start, coding, START_BYTES).body
    shown = mime.sniff(start, content_type)
    if shown in types:
        return shown
    if shown == mime.GZIP and mime.sniff(gunzip(start, START_BYTES).body, None) in types:
        return shown
    return None
