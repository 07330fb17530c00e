"""What a body is, by its first bytes and by what the server says (after the WHATWG MIME Sniffing Standard).

Deviations: a body that declares itself HTML but is a feed or a sitemap is what it is; XML documents are told apart by
their root element. Sitemaps have no type of their own: they are application/xml.
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
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x1f\x8b\x08", GZIP),
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
_ROOTS = {b"rss": RSS, b"feed": ATOM, b"html": XHTML, b"urlset": XML, b"sitemapindex": XML}
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
    if declared in (HTML, XHTML):
        return _signature(head) or (_xml_root(head, declared) if _XML_START.match(head) else declared)
    if declared in (XML, "text/xml", RSS, ATOM, "application/rdf+xml"):
        return _signature(head) or _xml_root(head, XML)
    if declared == PLAIN:
        return (_signature(head) or UNKNOWN) if _is_binary(head) else PLAIN
    if declared in _GENERIC:
        return _by_bytes(head, url)
    return GZIP if declared == "application/x-gzip" else declared


def _by_bytes(head: bytes, url: str) -> str:
    if found := _signature(head):
        return found
    bare = head[3:] if head.startswith(_MARKS[0]) else head
    if _XML_START.match(bare):
        return _xml_root(bare, XML)
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


def _xml_root(head: bytes, otherwise: str) -> str:
    """The type by the root element: HTML that says so stays HTML."""
    if head.startswith(_MARKS[1:]):  # UTF-16: names of elements are ASCII with NULs between
        head = head[2:]
    match = _ROOT.match(head.removeprefix(_MARKS[0]).replace(b"\x00", b""))
    if not match:
        return otherwise
    root = match[1].lower()
    if root == b"rdf":
        return RSS if b"purl.org/rss/" in head else otherwise
    if root == b"html" and otherwise == HTML:
        return HTML
    return _ROOTS.get(root, otherwise)


def _is_binary(head: bytes) -> bool:
    return not head.startswith(_MARKS) and _BINARY.search(head) is not None
