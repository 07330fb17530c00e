"""What a body is, by its first bytes and by what the server says (after the WHATWG MIME Sniffing Standard).

Deviations: a text that is a feed or a sitemap by its root element is what it is, whatever its server calls it, with or
without an XML declaration; other XML documents are told apart by their root element where they are sent as XML.
Sitemaps have no type of their own: they are application/xml.
"""

from __future__ import annotations

import re

HTML = "text/html"
XHTML = "application/xhtml+xml"
PLAIN = "text/plain"
XML = "application/xml"
RSS = "application/rss+xml"
ATOM = "application/atom+xml"
GZIP = "application/gzip"
UNKNOWN = "application/octet-stream"

_RESOURCE_HEADER = 1_445
_PROLOG_BYTES = 65_536  # in which a root element is looked for
_ESSENCE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+)\s*(?:;|$)", re.IGNORECASE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HTML_START = re.compile(
    rb"[\t\n\f\r ]*(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >])",
    re.IGNORECASE,
)
_XML_START = re.compile(rb"[\t\n\f\r ]*<\?xml[\t\n\r ]")
# Possessive, so that no row of comments makes it try all ways to cut them.
_ROOT = re.compile(
    rb"\s*+(?:(?:<\?.*?\?>|<!--.*?-->|<!doctype[^>\[]*>)\s*+)*+<(?:[\w.-]+:)?([\w.-]+)", re.IGNORECASE | re.DOTALL
)
_GZIP_START = b"\x1f\x8b\x08"
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (_GZIP_START, GZIP),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
_FEEDS = {b"rss": RSS, b"feed": ATOM, b"urlset": XML, b"sitemapindex": XML}
_RSS_1_NAMESPACES = (b"purl.org/rss/", b"netscape.com/rdf/")
_TEXTS = ("text/", "application/")
_XML_TYPES = (XML, "text/xml", RSS, ATOM, "application/rdf+xml")
_GENERIC = frozenset({"", UNKNOWN, "unknown/unknown", "application/unknown", "*/*", "binary/octet-stream"})


def essence(content_type: str | None) -> str:
    """Type and subtype of a Content-Type in lower case, empty when it has none.

    >>> essence('Text/HTML; charset=utf-8')
    'text/html'
    """
    match = _ESSENCE.match(content_type or "")
    return match[1].lower() if match else ""


def is_generic(essence: str) -> bool:
    """True of types that say nothing of a body."""
    return essence in _GENERIC


def sniff(body: bytes, content_type: str | None, url: str = "") -> str:
    """The MIME type of a body, decoded from any content coding. `url` is a witness of last resort."""
    declared = essence(content_type)
    head = body[:_RESOURCE_HEADER]
    if not head:
        return declared or UNKNOWN
    is_packed = declared.startswith("text/") and head.startswith(_GZIP_START)
    if declared.startswith(_TEXTS) or declared in _GENERIC:
        root, found = _root(body)
        if found:
            return found
        if declared in _XML_TYPES:
            return _signature(head) or (XHTML if root == b"html" else XML)
    if declared in (HTML, XHTML):
        return _signature(head) or declared
    if declared == PLAIN:
        return (_signature(head) or UNKNOWN) if _is_binary(head) else PLAIN
    if declared in _GENERIC:
        return _by_bytes(head, url)
    return GZIP if declared == "application/x-gzip" or is_packed else declared


def _by_bytes(head: bytes, url: str) -> str:
    if found := _signature(head):
        return found
    bare = head.removeprefix(_MARKS[0])
    if _XML_START.match(bare.replace(b"\x00", b"")):
        return XHTML if _root(head)[0] == b"html" else XML
    if _HTML_START.match(bare):
        return HTML
    if _is_binary(head):
        return UNKNOWN
    return HTML if re.search(r"\.x?html?$", url.partition("?")[0]) and b"<" in head else PLAIN


def _signature(head: bytes) -> str | None:
    for start, name in _SIGNATURES:
        if head.startswith(start):
            # Two letters prove nothing in a text.
            return name if len(start) > 3 or _is_binary(head) else None
    if head[:4] == b"RIFF" and head[8:14] == b"WEBPVP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return None


def _root(body: bytes) -> tuple[bytes, str | None]:
    """The name of the root element, and the type of the feed or sitemap that it makes of the body."""
    start = 3 if body.startswith(_MARKS[0]) else 0
    if body.startswith(_MARKS[1:]) or b"\x00" in body[:4]:  # UTF-16: names of elements are ASCII with NULs between
        start, body = 0, body[: 2 * _PROLOG_BYTES].lstrip(b"\xfe\xff").replace(b"\x00", b"")
    match = _ROOT.match(body, start, start + _PROLOG_BYTES)
    if not match:
        return b"", None
    root = match[1].lower()
    if root == b"rdf" and any(name in body[:_PROLOG_BYTES] for name in _RSS_1_NAMESPACES):
        return root, RSS
    return root, _FEEDS.get(root)


def _is_binary(head: bytes) -> bool:
    return not head.startswith(_MARKS) and _BINARY.search(head) is not None
