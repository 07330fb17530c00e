from __future__ import annotations

import time

import pytest

from crawler.page.mime import essence, sniff

XML = b'<?xml version="1.0"?>'
URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


@pytest.mark.parametrize(
    ("body", "content_type", "detected"),
    [
        (b"<p>a", "Text/HTML; charset=x", "text/html"),
        (b"", "text/html", "text/html"),
        (b"", None, "application/octet-stream"),
        (b"%PDF-1.4", "text/html", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "text/html", "image/png"),
        (b"BMX is a sport", "text/html", "text/html"),
        (b"BM\0\0\0\0", "text/html", "image/bmp"),
        (XML + b"<rss version='2.0'>", "text/html", "application/rss+xml"),
        (XML + b"<html xmlns='http://www.w3.org/1999/xhtml'>", "text/html", "text/html"),
        (b"<rss>", "text/html", "application/rss+xml"),
        (b"\xef\xbb\xbf" + XML + URLSET, "application/xml", "application/xml"),
        *(("\ufeff<urlset>".encode(codec), "text/plain", "application/xml") for codec in ("utf-16-le", "utf-16-be")),
        ("<urlset>".encode("utf-16-le"), "text/plain", "application/xml"),
        ("<urlset>".encode("utf-16-be"), None, "application/xml"),
        (b"see <urlset>", "text/plain", "text/plain"),
        (b"<urlsets>", "text/plain", "text/plain"),
        (b"<rdf:RDF>", "text/plain", "text/plain"),
        (XML + b"<html>", "text/plain", "text/plain"),
        (XML + b"<html>", None, "application/xhtml+xml"),
        (XML + b"<svg>", None, "application/xml"),
        (b"<!-- a --><html>", "text/html", "text/html"),
        (b"<urlset>", "image/png", "image/png"),
        (b"\x1f\x8b\x08\0", "text/html", "application/gzip"),
        (b"\x1f\x8b\x08\0", "text/csv", "application/gzip"),
        (URLSET, "text/xml; charset=utf-8", "application/xml"),
        (XML + b"<!-- a --><?b?> <!DOCTYPE rss SYSTEM 'x'>\n<rss>", "text/xml", "application/rss+xml"),
        (XML + b"<a:feed xmlns:a='http://www.w3.org/2005/Atom'>", "application/xml", "application/atom+xml"),
        (XML + b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", "application/rdf+xml", "application/rss+xml"),
        (XML + b"<rdf:RDF>", "application/rdf+xml", "application/xml"),
        (XML + b"<svg>", "application/xml", "application/xml"),
        (XML + b"<html>", "application/xml", "application/xhtml+xml"),
        ("\ufeff<?xml?><rss>".encode("utf-16-le"), "application/xml", "application/rss+xml"),
        (b"<html>", "application/xhtml+xml", "application/xhtml+xml"),
        (b"<html>", "text/plain", "text/plain"),
        (b"a\0b", "text/plain", "application/octet-stream"),
        (b"\x1f\x8b\x08\0", "text/plain", "application/gzip"),
        (b"\xff\xfea\0", "text/plain", "text/plain"),
        (b" \n<!DOCTYPE html>", None, "text/html"),
        (b"<!doctype HTML ", "application/octet-stream", "text/html"),
        (b"<a>", "nonsense", "text/html"),
        (b"<abbr>", None, "text/plain"),
        (XML + URLSET, None, "application/xml"),
        (b"words", None, "text/plain"),
        (b"\x00\x01", None, "application/octet-stream"),
        (b"\x1f\x8b\x08\0", "application/x-gzip", "application/gzip"),
        (b"{}", "application/json", "application/json"),
        (b"RIFF0000WEBPVP8", None, "image/webp"),
        (b"\0\0\0\x18ftypmp42", None, "video/mp4"),
    ],
)
def test_detected(body: bytes, content_type: str | None, detected: str) -> None:
    assert sniff(body, content_type) == detected


ROOTS = {
    b"<urlset>": "application/xml",
    b"<s:SitemapIndex a='b'>": "application/xml",
    b"<rss>": "application/rss+xml",
    b"<feed xmlns='http://www.w3.org/2005/Atom'/>": "application/atom+xml",
    b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>": "application/rss+xml",
}


@pytest.mark.parametrize(
    "content_type", ["text/plain", "text/html", "text/xml", "binary/octet-stream", None, "text/rss"]
)
def test_a_feed_or_sitemap_is_one_whatever_its_server_calls_it(content_type: str | None) -> None:
    for mark in (b"", b"\xef\xbb\xbf"):
        for prolog in (b"", b"\r\n ", XML, b"<!-- " + b"a " * 9_000 + b"-->"):
            for root, detected in ROOTS.items():
                assert sniff(mark + prolog + root, content_type) == detected, prolog[:20] + root


def test_the_url_is_the_last_witness() -> None:
    assert [sniff(b"a <b>", None, url) for url in ("http://h/a.html?b", "http://h/a")] == ["text/html", "text/plain"]


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [(None, ""), ("", ""), ("text", ""), (" a/b ;c", "a/b"), ("a/b c", ""), ("IMAGE/SVG+XML", "image/svg+xml")],
)
def test_essence(content_type: str | None, expected: str) -> None:
    assert essence(content_type) == expected


@pytest.mark.parametrize("part", [b"<!---->", b"<??>", b"<!doctype>", b" ", b"<!--"])
def test_no_prolog_is_slow(part: bytes) -> None:
    started = time.process_time()
    sniff(XML + part * 20_000, "text/xml")
    sniff(part * 20_000, "text/html")
    assert time.process_time() - started < 0.1
