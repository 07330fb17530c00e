"""HTML by Beautiful Soup: slower by an order of magnitude, easier to extend, and the oracle of the fast module."""

from __future__ import annotations

from bs4 import BeautifulSoup, Comment, Tag

from crawler.page import charset
from crawler.page.html import Attributes, Findings, with_ends
from crawler.page.model import DEPTH_LIMITED, Page

_OF_INTEREST = ["a", "area", "base", "frame", "iframe", "link", "meta"]
_INVISIBLE = ["script", "style", "noscript", "template", "iframe", "noembed", "noframes"]


class BeautifulSoupModule:
    """The HTML module on Python's own html.parser. It takes no part in a browser's repairs of a broken tree."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        decoded = charset.decode(body, content_type)
        page = Page("text/html", charset=decoded.charset, charset_source=decoded.source)
        soup = BeautifulSoup(with_ends(decoded.text.encode()).decode().replace("\x00", ""), "html.parser")
        findings = Findings()
        for element in soup.find_all(_OF_INTEREST):
            if element.find_parent("template") is None:
                findings.add(element.name, _attributes(element))
        findings.fill(page, url)
        if soup.title is not None:
            page.title = " ".join(soup.title.get_text().split())
        try:
            page.text = _text(soup)
        except RecursionError:
            page.parse_status = DEPTH_LIMITED
        return page


def _attributes(element: Tag) -> Attributes:
    return {name: " ".join(value) if isinstance(value, list) else value for name, value in element.attrs.items()}


def _text(soup: BeautifulSoup) -> str:
    root = soup.body or soup
    for element in root.find_all(_INVISIBLE):
        element.decompose()
    for head in () if soup.body else root.find_all(["head", "title"]):
        head.decompose()
    return " ".join(str(part) for part in root.find_all(string=True) if type(part) is not Comment and part.strip())
