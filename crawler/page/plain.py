"""Plain text. A text of nothing but URLs, one a line, is a sitemap (sitemaps.org, other formats)."""

from __future__ import annotations

import re

from crawler.page import charset
from crawler.page.model import Addresses, Page

_URL_LINE = re.compile(r"https?://\S+", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n]+")
MAX_URLS = 50_000


class PlainModule:
    """The module of text/plain."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        decoded = charset.decode(body, content_type, is_markup=False)
        page = Page("text/plain", text=decoded.text.replace("\x00", " "), base=url)
        page.charset, page.charset_source = decoded.charset, decoded.source
        if may_be_list(page.text):
            _read_list(page)
        return page


def may_be_list(text: str) -> bool:
    """Whether a text starts as a list of URLs does."""
    return _URL_LINE.match(text.lstrip()[:9]) is not None


def _read_list(page: Page) -> None:
    """Take the URLs of a text in which every line is one."""
    addresses = Addresses(MAX_URLS)
    for match in _LINE.finditer(page.text):
        line = match[0].strip()
        if line and not _URL_LINE.fullmatch(line):
            return
        addresses.add(line, is_sure="\ufffd" not in line)
    addresses.fill(page)
    page.source = "sitemap"
    page.ends_open = not page.text.endswith(("\n", "\r"))
