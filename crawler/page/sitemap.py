"""Sitemaps and sitemap indexes (sitemaps.org 0.9), also as gzip files: at most 50 MB and 50,000 URLs are read."""

from __future__ import annotations

from lxml import etree

from crawler.page import mime
from crawler.page.coding import gunzip
from crawler.page.feed import FeedModule
from crawler.page.model import FAILED, NOT_PARSED, Page
from crawler.page.xml_reader import XmlError, elements, forget, is_cut, text_of

MAX_BYTES = 50 * 1024 * 1024
MAX_URLS = 50_000
_PEEK_BYTES = 4_096
_SITEMAP_ROOTS = ("urlset", "sitemapindex")


class SitemapModule:
    """The module of application/xml. XML of another kind is not parsed."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        page = Page(mime.XML, base=url, source="sitemap")
        hrefs: dict[str, None] = {}
        root = ""
        try:
            for name, element in elements(body[:MAX_BYTES]):
                root = name
                if name == "loc" and (loc := text_of(element)) and _is_entry(element):
                    hrefs[loc] = None
                elif name in ("url", "sitemap"):
                    forget(element)
                if len(hrefs) >= MAX_URLS:
                    root = _SITEMAP_ROOTS[0]
                    break
        except XmlError as error:
            page.parse_status, page.reason = FAILED, str(error)[:200]
        else:
            if root not in _SITEMAP_ROOTS:
                page.parse_status = NOT_PARSED
                return page
        page.is_index = root == _SITEMAP_ROOTS[1]
        page.hrefs = list(hrefs)[: -1 if is_cut(body) else None]
        return page


class GzipModule:
    """The module of application/gzip: a gzip file is read when a sitemap or a feed is in it."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        inside = mime.sniff(gunzip(body, _PEEK_BYTES).body, None)
        if inside == mime.XML:
            return SitemapModule().parse(gunzip(body, MAX_BYTES).body, url, inside)
        if inside in (mime.RSS, mime.ATOM):
            return FeedModule().parse(gunzip(body, MAX_BYTES).body, url, inside)
        return Page(mime.GZIP, NOT_PARSED, base=url)


def _is_entry(loc: etree._Element) -> bool:
    """Whether a `loc` is that of a page or sitemap, not of an image or a video."""
    parent = loc.getparent()
    return parent is not None and parent.tag.rpartition("}")[2].lower() in ("url", "sitemap")
