"""HTML by lexbor: the tree a browser builds, in one parse and two passes over it (elements of interest, then text)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import can_ada
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.page import charset
from crawler.page.directives import from_meta, is_robots_meta
from crawler.page.model import Page

# Without mutation events: the tree as it was written, and a little faster.
_WITHOUT_EVENTS = 1
_INVISIBLE = frozenset({"script", "style", "noscript", "iframe", "noembed", "noframes"})
_SELECTOR = "a[href],area[href],link[href],base[href],frame[src],meta,title," + ",".join(_INVISIBLE)
_FOLLOWED_RELATIONS = frozenset({"canonical", "next", "alternate"})
_REFRESH = re.compile(
    r"""\s*+[\d.]++(?:\s++[;,]?|[;,])\s*+(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(\S.*))""", re.IGNORECASE | re.DOTALL
)
MAX_BASE_CHARS = 4_096
Attributes = Mapping[str, str | None]


class Findings:
    """What the elements of a page say, gathered in document order by any HTML module."""

    def __init__(self) -> None:
        self.followed: dict[str, None] = {}
        self.forbidden: dict[str, None] = {}
        self.metas: list[tuple[str, str]] = []
        self.base: str | None = None

    def add(self, tag: str, attributes: Attributes) -> None:
        """Take in an element other than a, title and those without meaning for us."""
        if tag == "meta":
            self._add_meta(attributes)
        elif tag == "base":
            self.base = self.base if self.base is not None else attributes.get("href")
        elif tag == "link":
            relations = (attributes.get("rel") or "").lower().split()
            if not _FOLLOWED_RELATIONS.isdisjoint(relations) and "stylesheet" not in relations:
                self.add_link(attributes.get("href"), relations)
        elif tag in ("frame", "iframe"):
            self.add_link(attributes.get("src"), ())
        elif tag in ("a", "area"):
            self.add_link(attributes.get("href"), (attributes.get("rel") or "").lower().split())

    def add_link(self, href: str | None, relations: list[str] | tuple[str, ...]) -> None:
        if href:  # an empty one means the page itself
            (self.forbidden if "nofollow" in relations else self.followed)[href] = None

    def _add_meta(self, attributes: Attributes) -> None:
        content = attributes.get("content") or ""
        name = (attributes.get("name") or "").strip().lower()
        if name and is_robots_meta(content):
            self.metas.append((name, content.lower()))
        if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            match = _REFRESH.match(content)
            if match and (target := match[match.lastindex or 0]):
                self.add_link(target.strip(), ())

    def fill(self, page: Page, url: str) -> None:
        """Write all of it into the page. A link that is nofollow in one place and not in another may be followed."""
        page.hrefs = list(self.followed)
        page.nofollow_hrefs = [href for href in self.forbidden if href not in self.followed]
        page.robots_metas = self.metas
        page.directives = from_meta(self.metas, "robots")
        page.base = resolved_base(self.base, url)


def resolved_base(href: str | None, url: str) -> str:
    """The base of a page's hrefs: that of its first base element where it is http(s) and of a sensible length, else the
    page's own URL. Every relative href would otherwise cost a copy of an endless one."""
    if href is None:
        return url
    try:
        base = can_ada.parse(url) + href
    except (ValueError, TypeError):
        return url
    is_usable = base.protocol in ("http:", "https:") and len(base.href) <= MAX_BASE_CHARS
    return base.href if is_usable else url


class LexborModule:
    """The HTML module for everyday use."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        """The page of an HTML body. Hostile bodies can take long; see `crawler.page.suspicion`."""
        encoding = charset.encoding_of(body, content_type)
        body = body[encoding.mark :]
        # lexbor reads UTF-8 itself and replaces what is wrong in it, so most bodies need no decoding.
        html = body if encoding.charset == "utf-8" else charset.decode_as(body, encoding.charset)
        tree = LexborHTMLParser(html, options=_WITHOUT_EVENTS)
        page = Page("text/html", charset=encoding.charset, charset_source=encoding.source)
        findings = Findings()
        invisible = _sort_out(tree, page, findings)
        findings.fill(page, url)
        # Children come after their parents: backwards, no node is freed before one inside it.
        for node in reversed(invisible):
            node.decompose()
        if tree.body is not None:
            page.text = tree.body.text(separator=" ", skip_empty=True)
        return page


def _sort_out(tree: LexborHTMLParser, page: Page, findings: Findings) -> list[LexborNode]:
    """Read the elements of interest into `page` and `findings`; returns those whose text nobody sees."""
    invisible = []
    add_link = findings.add_link
    for node in tree.css(_SELECTOR):
        tag = node.tag or ""
        if tag == "a":
            attributes = node.attributes
            relations = attributes.get("rel")
            add_link(attributes.get("href"), relations.lower().split() if relations else ())
        elif tag == "title":
            if page.title is None and (node.parent is None or node.parent.tag != "svg"):
                page.title = " ".join(node.text().split())
        else:
            if tag in _INVISIBLE:
                invisible.append(node)
            if tag not in ("script", "style"):
                findings.add(tag, node.attributes)
    return invisible
