"""RSS (0.9x, 1.0, 2.0) and Atom (RFC 4287) feeds: their links, their title, the titles of their entries as text."""

from __future__ import annotations

from lxml import etree

from crawler.page import mime
from crawler.page.model import FAILED, Page
from crawler.page.xml_reader import XmlError, elements, forget, is_cut, text_of

MAX_LINKS = 50_000
_FOLLOWED_RELATIONS = ("alternate", "next", "previous", "first", "last", "prev-archive", "next-archive")


class FeedModule:
    """The module of RSS and Atom. Enclosures and comments are not followed."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        page = Page(mime.RSS, base=url, source="feed")
        hrefs: dict[str, None] = {}
        titles: list[str] = []
        try:
            for name, element in elements(body):
                if name == "link" and (href := _link(element)):
                    hrefs[href] = None
                elif name == "title" and text_of(element):
                    titles.append(text_of(element))
                elif name in ("item", "entry"):
                    forget(element)
                if len(hrefs) >= MAX_LINKS:
                    break
        except XmlError as error:
            page.parse_status, page.reason = FAILED, str(error)[:200]
        page.hrefs = list(hrefs)[: -1 if is_cut(body) else None]
        page.title, page.text = titles[0] if titles else None, "\n".join(titles)
        return page


def _link(element: etree._Element) -> str:
    """The target of an Atom link by its relation, or the text of an RSS one."""
    href = element.get("href")
    if href is None:
        return text_of(element)
    return href.strip() if element.get("rel", "alternate").lower() in _FOLLOWED_RELATIONS else ""
