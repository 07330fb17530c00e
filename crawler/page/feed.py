"""RSS (0.9x, 1.0, 2.0) and Atom (RFC 4287) feeds: their links, their title, the titles of their entries as text."""

from __future__ import annotations

import re

from crawler.page import mime
from crawler.page.model import FAILED, Addresses, Page
from crawler.page.xml_reader import Element, Text, XmlDocument, XmlError

ROOTS = ("rss", "feed")  # RSS 1.0 is RDF, as other things are
MAX_LINKS = 50_000
MAX_TITLES = 50_000
_WANTED = frozenset({"link", "guid", "title"})
_FOLLOWED_RELATIONS = ("alternate", "next", "previous", "first", "last", "prev-archive", "next-archive")
_WEB = re.compile("https?://", re.IGNORECASE)
_NOTHING = Text("")


class FeedModule:
    """The module of RSS and Atom. Enclosures and comments are not followed."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        page = Page(mime.RSS, base=url, source="feed")
        addresses = Addresses(MAX_LINKS)
        titles: list[str] = []
        try:
            document = XmlDocument(body, content_type, url)
            page.charset, page.charset_source, _ = document.encoding
            for element in document.elements(_WANTED):
                if element.name != "title":
                    found = element.address(_link(element) if element.name == "link" else _permalink(element))
                    addresses.add(found.value, is_sure=found.is_sure)
                elif element.text.value and len(titles) < MAX_TITLES:
                    titles.append(" ".join(element.text.value.split()))
        except XmlError as error:
            page.parse_status, page.reason = FAILED, str(error)
        addresses.fill(page)
        page.title, page.text = titles[0] if titles else None, "\n".join(titles)
        return page


def _link(element: Element) -> Text:
    """The target of an Atom link by its relation, whose registered names may be URLs; or the text of an RSS one."""
    href = element.attributes.get("href")
    if href is None:
        return element.text
    relation = element.attributes.get("rel", Text("alternate")).value
    return href if relation.lower().rpartition("/")[2] in _FOLLOWED_RELATIONS else _NOTHING


def _permalink(guid: Element) -> Text:
    """The text of a guid where it is the address of its item, which it is unless it says otherwise (RSS 2.0)."""
    says = guid.attributes.get("ispermalink", Text("true")).value
    return guid.text if says.lower() != "false" and _WEB.match(guid.text.value) else _NOTHING
