"""Sitemaps and sitemap indexes (sitemaps.org 0.9), also as gzip files: at most 50 MB and 50,000 URLs are read."""

from __future__ import annotations

from crawler.page import charset, feed, mime, plain
from crawler.page.coding import gunzip
from crawler.page.model import FAILED, NOT_PARSED, Addresses, Page
from crawler.page.xml_reader import XmlDocument, XmlError

MAX_BYTES = 50 * 1024 * 1024
MAX_URLS = 50_000
_PEEK_BYTES = 65_536
_INDEX = "sitemapindex"
_ROOTS = ("urlset", _INDEX)
_WANTED = frozenset({"loc"})


class SitemapModule:
    """The module of application/xml. XML that is neither a sitemap nor a feed is not parsed."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        page = Page(mime.XML, base=url, source="sitemap")
        addresses = Addresses(MAX_URLS)
        try:
            document = XmlDocument(body[:MAX_BYTES], content_type, url)
            if document.root in feed.ROOTS:
                return feed.FeedModule().parse(body, url, content_type)
            if document.root not in _ROOTS:
                page.parse_status = NOT_PARSED
                return page
            page.is_index = document.root == _INDEX
            page.charset, page.charset_source, _ = document.encoding
            for element in document.elements(_WANTED):
                if element.parent in ("url", "sitemap"):  # others are images and videos
                    found = element.address(element.text)
                    addresses.add(found.value, is_sure=found.is_sure)
        except XmlError as error:
            page.parse_status, page.reason = FAILED, str(error)
        addresses.fill(page)
        return page


class GzipModule:
    """The module of application/gzip: a gzip file is read when a sitemap, a list of URLs or a feed is in it."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        start = gunzip(body, _PEEK_BYTES).body
        inside = mime.sniff(start, None)
        if inside == mime.PLAIN and plain.may_be_list(charset.decode(start, None, is_markup=False).text):
            return _list_of_urls(body, url)
        if inside == mime.XML:
            return SitemapModule().parse(gunzip(body, MAX_BYTES).body, url, inside)
        if inside in (mime.RSS, mime.ATOM):
            return feed.FeedModule().parse(gunzip(body, MAX_BYTES).body, url, inside)
        return Page(mime.GZIP, NOT_PARSED, base=url)


def _list_of_urls(body: bytes, url: str) -> Page:
    """The page of a text file in a gzip file; a text that is no list is not read."""
    text = gunzip(body, MAX_BYTES)
    page = plain.PlainModule().parse(text.body, url, mime.PLAIN)
    if page.source != "sitemap":
        return Page(mime.GZIP, NOT_PARSED, base=url)
    page.text = ""
    if text.truncated or text.error:
        page.cut()
    return page
