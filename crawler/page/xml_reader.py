"""Sitemaps and feeds from strangers, tag by tag: faults are stepped over, and no address is guessed.

A document is one row of tokens (comments, CDATA sections, instructions, tags) with text between them, found by one
regular expression over its UTF-8 bytes. Only the names of open elements are kept, and the text of the one wanted
element that is being read, so a document takes no more memory than its bytes. No token is looked at twice: none
extends over a `<`, or else it takes the rest.

No declaration of a DTD is read and no entity expanded, there is nothing to expand. What is not well-formed is read as
its author must have meant it where there is one way to: a bare `&` is an ampersand, an end tag ends what was forgotten
inside, upper case does not matter. Where something is lost or could mean two things (an unknown entity, a character
that XML forbids, an element inside an address, a document that ends within a text) the text says that it `is_sure` no
more. A title is taken as it is; an address is counted as `guessed` and not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import html5
from typing import NamedTuple

import can_ada

from crawler.page import charset
from crawler.page.url import resolved_base

MAX_DEPTH = 1_000
MAX_TEXT_BYTES = 65_536  # of an element, and of the attributes in a tag
_TOKEN = re.compile(
    rb"""<(?:
      !--(?:.*?-->|.*)
    | !\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    | !doctype[^<>\[]*+(?:(?P<subset>\[)|>)
    | \?(?:.*?\?>|.*)
    | /[\t\n\r ]*+(?P<end>[^\t\n\r /<>]*+)[^<>]*+>
    | (?P<name>[a-z_:\x80-\xff][^\t\n\r /<>]*+)(?P<attributes>(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+(?=>)|[^<>]*+)>
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""(?<![^\s=/"'<>])([^\s=/"'<>]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++))""")
# A reference, or what can only be meant as one. Any other `&` is one.
_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9A-Fa-f]{1,8})|([0-9]{1,8}));|(#)|([A-Za-z_:][\w:.-]*+;))")
_OF_XML = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'"}
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_IN_PIECES = re.compile("[\t\n\r\ufffd]")


class XmlError(Exception):
    """The document holds what we do not read."""


class Text(NamedTuple):
    """A text or a value without white space around it; `is_sure`: nothing of it was lost, or had to be guessed."""

    value: str
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """An element with all text inside it. Names are local and in lower case."""

    name: str
    parent: str
    text: Text
    attributes: dict[str, Text]
    base: str | None  # what xml:base says, resolved; None where nothing does

    def address(self, text: Text) -> Text:
        """An address that stands in the element, resolved where there is an xml:base, and sure where it is in one
        piece."""
        if not text.value:
            return text
        is_sure = text.is_sure and not _IN_PIECES.search(text.value)
        return Text(_joined(self.base, text.value) if self.base is not None and is_sure else text.value, is_sure)


class XmlDocument:
    """A document, read as the element of its `root` asks for. Raises XmlError where there is none."""

    def __init__(self, body: bytes, content_type: str | None, url: str) -> None:
        self.encoding = charset.encoding_of_xml(body, content_type)
        body = body[self.encoding.mark :] if self.encoding.mark else body
        if self.encoding.charset != "utf-8":
            body = charset.decode_as(body, self.encoding.charset).encode()
        self._body, self._url = body, url
        self.root = self._root()

    def _root(self) -> str:
        for token in _TOKEN.finditer(self._body):
            if token["subset"]:
                raise XmlError("the document has an internal DTD subset")
            if token["name"] is not None:
                return _local(token["name"]).decode("utf-8", "replace")
        raise XmlError("there is no element in it")

    def elements(self, wanted: frozenset[str]) -> Iterator[Element]:
        """The elements of these names, each where it ends. One with a wanted element inside ends before that.

        Raises XmlError where elements are nested deeper than 1,000.
        """
        body, place = self._body, 0
        walk = _Walk(frozenset(name.encode() for name in wanted), self._url)
        for token in _TOKEN.finditer(body):
            if walk.reading is not None and token.start() > place:
                walk.reading.add(body[place : token.start()])
            place, kind = token.end(), token.lastgroup
            if kind == "attributes":
                walk.start(_local(token["name"]), token["attributes"])
            elif kind == "end":
                walk.end(_local(token["end"]))
            elif kind == "cdata" and walk.reading is not None:
                walk.reading.add(token["cdata"], is_literal=True)
            if walk.ended:
                yield from walk.ended
                walk.ended = []
        if walk.reading is not None:
            walk.reading.is_sure = False
            yield walk.reading.element()


class _Walk:
    """Where in a document we are: what is open, what is being read, and what of it has `ended`."""

    def __init__(self, wanted: frozenset[bytes], url: str) -> None:
        self.reading: _Reading | None = None
        self.ended: list[Element] = []
        self._wanted, self._url = wanted, url
        self._open: list[bytes] = []
        self._how_often: dict[bytes, int] = {}
        self._bases: list[tuple[int, str]] = []  # by how many elements each is in

    def start(self, name: bytes, attributes: bytes) -> None:
        is_empty = attributes.endswith(b"/")
        if self.reading is not None:
            self.reading.is_sure = False
        if is_empty and name not in self._wanted:
            return
        base = self._bases[-1][1] if self._bases else None
        if attributes and b"xml:base" in attributes and (declared := _attributes(attributes).get("xml:base")):
            base = resolved_base(declared.value if declared.is_sure else None, base or self._url)
            if not is_empty:
                self._bases.append((len(self._open), base))
        if name in self._wanted:
            if self.reading is not None:
                self.end(self.reading.name)
            parent = self._open[-1] if self._open else b""
            self.reading = _Reading(name, parent, attributes, base, len(self._open))
            if is_empty:
                self._end_reading()
        if not is_empty:
            if len(self._open) >= MAX_DEPTH:
                raise XmlError(f"elements are nested deeper than {MAX_DEPTH:,}")
            self._open.append(name)
            self._how_often[name] = self._how_often.get(name, 0) + 1

    def end(self, name: bytes) -> None:
        """End the innermost open element of that name and what is open in it; where there is none, nothing."""
        if name not in self._how_often:
            if self.reading is not None:
                self.reading.is_sure = False
            return
        ended = None
        while ended != name:
            ended = self._open.pop()
            self._how_often[ended] -= 1
            if not self._how_often[ended]:
                del self._how_often[ended]
        if self.reading is not None and len(self._open) <= self.reading.depth:
            self._end_reading()
        while self._bases and self._bases[-1][0] >= len(self._open):
            self._bases.pop()

    def _end_reading(self) -> None:
        if self.reading is not None:
            self.ended.append(self.reading.element())
            self.reading = None


class _Reading:
    """An element whose end has not come yet."""

    def __init__(self, name: bytes, parent: bytes, attributes: bytes, base: str | None, depth: int) -> None:
        self.name = name
        self._of = (parent, attributes, base)
        self.depth = depth  # how many elements it is in
        self.is_sure = True
        self._parts: list[str] = []
        self._size = 0

    def add(self, raw: bytes, *, is_literal: bool = False) -> None:
        room = MAX_TEXT_BYTES - self._size
        if len(raw) > room:
            self.is_sure, raw = False, raw[:room]
        self._size += len(raw)
        text = raw.decode("utf-8", "replace")
        if not is_literal:
            self.is_sure = self.is_sure and b"<" not in raw
            if "&" in text:
                text, is_sure = _resolved(text)
                self.is_sure = self.is_sure and is_sure
        self._parts.append(text)

    def element(self) -> Element:
        parent, attributes, base = self._of
        text = _clean("".join(self._parts), is_sure=self.is_sure)
        names = (self.name.decode("utf-8", "replace"), parent.decode("utf-8", "replace"))
        return Element(*names, text, _attributes(attributes) if attributes else {}, base)


def _local(name: bytes) -> bytes:
    return name.rpartition(b":")[2].lower()


def _attributes(raw: bytes) -> dict[str, Text]:
    """Values by name; of two of a name the first. One without quotes could have ended elsewhere, and one that ends too
    far away is not read."""
    found: dict[str, Text] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(raw[:MAX_TEXT_BYTES].decode("utf-8", "replace")):
        value, is_sure = _resolved(double or single or bare)
        found.setdefault(name.lower(), _clean(value, is_sure=is_sure and not bare))
    return found


def _clean(text: str, *, is_sure: bool) -> Text:
    if _FORBIDDEN.search(text):
        return Text(_FORBIDDEN.sub("", text).strip(), is_sure=False)
    return Text(text.strip(), is_sure)


def _resolved(text: str) -> tuple[str, bool]:
    """A text with its references resolved, and whether they all are XML's own."""
    is_sure = True

    def meant(match: re.Match[str]) -> str:
        nonlocal is_sure
        hexadecimal, decimal, _, name = match.groups()
        if hexadecimal or decimal:
            number = int(hexadecimal, 16) if hexadecimal else int(decimal)
            if number in (9, 10, 13) or 0x20 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF:
                return chr(number)
        elif name in _OF_XML:
            return _OF_XML[name]
        is_sure = False
        return html5.get(name, match[0]) if name else ""

    return (_REFERENCE.sub(meant, text), is_sure) if "&" in text else (text, True)


def _joined(base: str, address: str) -> str:
    try:
        return (can_ada.parse(base) + address).href
    except (ValueError, TypeError):
        return address  # it is refused with a reason where all are read
