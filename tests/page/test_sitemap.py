from __future__ import annotations

import gzip
import time

import pytest

from crawler.page.documents import parse
from crawler.page.model import Page
from crawler.page.sitemap import MAX_URLS, SitemapModule

URL = "http://h.org/sitemap.xml"
HEAD = b'<?xml version="1.0" encoding="UTF-8"?>'
NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITEMAP = HEAD + b"<urlset %s>%%s</urlset>" % NAMESPACE


def read(body: bytes) -> Page:
    return SitemapModule().parse(body, URL, "application/xml")


@pytest.mark.parametrize(
    ("body", "hrefs"),
    [
        (SITEMAP % b"<url><loc> http://a/1\n</loc><lastmod>2026-01-01</lastmod></url>", ["http://a/1"]),
        (SITEMAP % b"<url><loc>http://a/?b=1&amp;c=%C3%A9</loc></url>", ["http://a/?b=1&c=%C3%A9"]),
        (SITEMAP % b"<url><loc><![CDATA[http://a/?b&c]]></loc></url><url><loc/></url>", ["http://a/?b&c"]),
        (SITEMAP % b"<url><loc>http://a/1</loc></url><url><loc>http://a/1</loc></url>", ["http://a/1"]),
        (b"<urlset><url><loc>http://a/1</loc></url></urlset>", ["http://a/1"]),
        (
            HEAD + b"<sitemapindex %s><sitemap><loc>http://a/s.xml.gz</loc></sitemap></sitemapindex>" % NAMESPACE,
            ["http://a/s.xml.gz"],
        ),
        (
            SITEMAP
            % b"<url><loc>http://a/1</loc><i:image xmlns:i='http://i'><i:loc>http://a/1.png</i:loc></i:image></url>",
            ["http://a/1"],
        ),
        ((HEAD + b"<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2</lo"), ["http://a/1"]),
        (
            SITEMAP % b"<url><loc>http://a/?b&c</loc></url><url><loc>http://a/2</loc></url>",
            ["http://a/?b", "http://a/2"],
        ),
        ("<urlset><url><loc>http://a/é</loc></url></urlset>".encode("utf-16"), ["http://a/é"]),
    ],
)
def test_locations(body: bytes, hrefs: list[str]) -> None:
    page = read(body)
    assert (page.hrefs, page.source, page.parse_status) == (hrefs, "sitemap", "ok")


@pytest.mark.parametrize("body", [b"<svg><loc>http://a/</loc></svg>", b"", b"no xml", b"<a>", HEAD])
def test_other_xml_is_not_parsed(body: bytes) -> None:
    page = read(body)
    assert (page.hrefs, page.parse_status in ("not_parsed", "failed")) == ([], True)


@pytest.mark.parametrize("content_type", ["application/gzip", "application/x-gzip", "application/octet-stream", None])
def test_gzip_files(content_type: str | None) -> None:
    page = parse(gzip.compress(SITEMAP % b"<url><loc>http://a/1</loc></url>"), URL + ".gz", content_type)
    assert (page.mime_detected, page.hrefs, page.source) == ("application/gzip", ["http://a/1"], "sitemap")


@pytest.mark.parametrize("inside", [b"a tar file", b"<html><a href=x>", b""])
def test_other_gzip_files_are_not_parsed(inside: bytes) -> None:
    assert parse(gzip.compress(inside), URL, "application/gzip").parse_status == "not_parsed"


def test_no_more_than_50_000() -> None:
    body = SITEMAP % b"".join(b"<url><loc>http://a/%d</loc></url>" % n for n in range(MAX_URLS + 10))
    page = read(body)
    assert (len(page.hrefs), page.parse_status) == (MAX_URLS, "ok")


LAUGHS = b"<!DOCTYPE urlset [<!ENTITY a 'ha'>%s]>" % b"".join(
    b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
)


@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS,
        b"<!DOCTYPE urlset [<!ENTITY j SYSTEM 'file:///etc/passwd'>]>",
        b"<!DOCTYPE urlset [<!ENTITY % j SYSTEM 'http://127.0.0.1/'> %j;]>",
    ],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_documents_that_declare_entities_are_not_read(doctype: bytes, codec: str) -> None:
    text = "<?xml version='1.0'?>" + doctype.decode() + "<urlset><url><loc>http://a/&j;</loc></url></urlset>"
    started = time.process_time()
    page = read(text.encode(codec))
    assert (page.parse_status, page.reason) == ("failed", "the document has an internal DTD subset")
    assert time.process_time() - started < 1


def test_an_external_dtd_is_not_fetched() -> None:
    page = read(b"<!DOCTYPE urlset SYSTEM 'http://127.0.0.1:1/x.dtd'><urlset><url><loc>http://a/</loc></url></urlset>")
    assert page.hrefs == ["http://a/"]


def test_depth_is_bounded() -> None:
    started = time.process_time()
    assert read(b"<a>" * 100_000).hrefs == []
    assert time.process_time() - started < 5
