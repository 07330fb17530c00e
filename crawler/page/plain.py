"""Plain text. A text of nothing but URLs, one a line, is a sitemap (sitemaps.org, other formats)."""

from __future__ import annotations

import re

from crawler.page import charset
from crawler.page.model import Page

_URL_LINE = re.compile(r"https?://\S+")
MAX_URLS = 50_000


class PlainModule:
    """The module of text/plain."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        decoded = charset.decode(body, content_type, is_markup=False)
        page = Page("text/plain", text=decoded.text.replace("\x00", " "), base=url)
        page.charset, page.charset_source = decoded.charset, decoded.source
        if page.text.lstrip()[:8].startswith(("http://", "https://")):
            lines = [line for line in map(str.strip, page.text.splitlines()) if line]
            if all(map(_URL_LINE.fullmatch, lines)):
                page.hrefs, page.source = list(dict.fromkeys(lines[:MAX_URLS])), "sitemap"
        return page
