"""HTML by lexbor: the tree a browser builds, in one parse and two passes over it (elements of interest, then text).

The tree differs from a browser's in one thing. `<script/>` and its like swallow what follows them there. A link found
is worth more than one lost, so such a page is mended and parsed once more. Only the first tree shows which one that is,
at no cost to the others: an element without markup holds some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.page import charset
from crawler.page.directives import from_meta, is_robots_meta
from crawler.page.model import Page
from crawler.page.url import resolved_base

# Without mutation events: the tree as it was written, and a little faster.
_WITHOUT_EVENTS = 1
_INVISIBLE = frozenset({"script", "style", "noscript", "iframe", "noembed", "noframes"})
# Elements in which a browser reads no markup, or, of a template, none that counts.
_SWALLOWING = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "template"})
_SELECTOR = "a,area[href],link[href],base[href],frame[src],meta," + ",".join(sorted(_INVISIBLE | _SWALLOWING))
_TAG = re.compile(
    rb"<!--(?:>|->|.*?-->|.*)|<(?P<end>/?)(?P<name>" + "|".join(sorted(_SWALLOWING)).encode() + rb")(?=[\t\n\f\r />])"
    rb"""(?P<attributes>(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+)>""",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP = re.compile(r"</[a-z]|<(?:a|area|base|i?frame|link|meta)[\s/]", re.IGNORECASE)
_ENDS = {name.encode(): re.compile(rb"</%s(?=[\t\n\f\r />])" % name.encode(), re.IGNORECASE) for name in _SWALLOWING}
_RELATION = re.compile(r"[\w-]+")  # separated by spaces, says the standard; by commas and the like, say some pages
_FOLLOWED_RELATIONS = frozenset({"canonical", "next", "alternate"})
_REFRESH = re.compile(
    r"""\s*+[\d.]++(?:\s++[;,]?|[;,])\s*+(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(\S.*))""", re.IGNORECASE | re.DOTALL
)
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
            relations = relations_of(attributes)
            if not _FOLLOWED_RELATIONS.isdisjoint(relations) and "stylesheet" not in relations:
                self.add_link(attributes.get("href"), relations)
        elif tag in ("frame", "iframe"):
            self.add_link(attributes.get("src"), ())
        elif tag in ("a", "area"):
            self.add_link(href_of(attributes), relations_of(attributes))

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


def href_of(attributes: Attributes) -> str | None:
    """Where an `a` leads, also one of SVG 1.1."""
    href = attributes.get("href")
    return attributes.get("xlink:href") if href is None else href


def relations_of(attributes: Attributes) -> list[str]:
    """The words of `rel`, in lower case."""
    relations = attributes.get("rel")
    return _RELATION.findall(relations.lower()) if relations else []


def with_ends(html: bytes) -> bytes:
    """UTF-8 HTML in which `<script/>`, `<title/>` and their like are empty, as XHTML has it and their authors meant it.

    To a browser the slash means nothing in HTML, so that the page is swallowed up to the next end tag of that name, or
    whole. Where an end tag follows before another start tag of the name, it is the element's, and the slash goes; else
    there is none, and it is put right behind the start tag.
    """
    if b"/>" not in html:
        return html
    edits: list[tuple[int, int, bytes]] = []
    unsettled: dict[bytes, re.Match[bytes]] = {}
    place = 0
    while token := _TAG.search(html, place):
        place = token.end()
        if token["name"] is None:
            continue
        name = token["name"].lower()
        if name in unsettled:
            edits += _settled(unsettled.pop(name), has_end=bool(token["end"]))
        if token["end"]:
            continue
        if token["attributes"].endswith(b"/"):
            unsettled[name] = token
        elif name != b"template":
            end = _ENDS[name].search(html, place)
            if end is None:
                break
            place = end.start()
    for token in unsettled.values():
        edits += _settled(token, has_end=False)
    if not edits:
        return html
    parts, place = [], 0
    for start, end_of, replacement in sorted(edits):
        parts += [html[place:start], replacement]
        place = end_of
    return b"".join([*parts, html[place:]])


def _settled(token: re.Match[bytes], *, has_end: bool) -> list[tuple[int, int, bytes]]:
    """What to do about a start tag with a slash at its end: where from, where to, and what stands there instead."""
    behind = token.end()
    if not has_end:
        return [(behind, behind, b"</" + token["name"] + b">")]
    is_in_value = token["attributes"][-2:-1] not in (b"", b" ", b"\t", b"\n", b"\r", b'"', b"'")
    return [] if is_in_value else [(behind - 2, behind, b">")]


class LexborModule:
    """The HTML module for everyday use."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        """The page of an HTML body. Hostile bodies can take long; see `crawler.page.suspicion`."""
        encoding = charset.encoding_of(body, content_type)
        html = body[encoding.mark :]
        # lexbor reads UTF-8 itself and replaces what is wrong in it, so most bodies need no decoding.
        if encoding.charset != "utf-8":
            html = charset.decode_as(html, encoding.charset).encode()
        page = Page("text/html", charset=encoding.charset, charset_source=encoding.source)
        tree, findings, invisible = _read(html, page)
        findings.fill(page, url)
        # Children come after their parents: backwards, no node is freed before one inside it.
        for node in reversed(invisible):
            node.decompose()
        if tree.body is not None:
            page.text = tree.body.text(separator=" ", skip_empty=True)
        return page


def _read(html: bytes, page: Page) -> tuple[LexborHTMLParser, Findings, list[LexborNode]]:
    """The tree, what its elements say, and those whose text nobody sees; the title goes into the page."""
    tree, findings = LexborHTMLParser(html, options=_WITHOUT_EVENTS), Findings()
    invisible, has_swallowed = _sort_out(tree, page, findings)
    if has_swallowed and (mended := with_ends(html)) is not html:
        tree, findings, page.title = LexborHTMLParser(mended, options=_WITHOUT_EVENTS), Findings(), None
        invisible, _ = _sort_out(tree, page, findings)
    return tree, findings, invisible


def _sort_out(tree: LexborHTMLParser, page: Page, findings: Findings) -> tuple[list[LexborNode], bool]:
    """Read the elements of interest into `page` and `findings`; returns those whose text nobody sees, and whether one
    may have swallowed markup."""
    invisible = []
    has_swallowed = False
    followed = findings.followed
    for node in tree.css(_SELECTOR):
        tag = node.tag or ""
        if tag == "a":
            attributes = node.attributes
            if (href := attributes.get("href")) is None:
                href = attributes.get("xlink:href")
            if relations := attributes.get("rel"):
                findings.add_link(href, _RELATION.findall(relations.lower()))
            elif href:
                followed[href] = None
            continue
        if tag in _SWALLOWING and (node.child is not None or tag == "template"):
            text = node.text()
            has_swallowed = has_swallowed or tag == "template" or ("<" in text and _MARKUP.search(text) is not None)
        if tag == "title":
            if page.title is None and (node.parent is None or node.parent.tag != "svg"):
                page.title = " ".join(node.text().split())
            continue
        if tag in _INVISIBLE:
            invisible.append(node)
        if tag not in ("script", "style"):
            findings.add(tag, node.attributes)
    return invisible, has_swallowed
