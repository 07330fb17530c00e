"""Which documents could cost their parser more than an event loop has to spare, told by their bytes.

A browser's way of reading HTML has three steps whose cost is a product, so that a page of some kilobytes can take
seconds and gigabytes. Each is bounded here by what can be counted without parsing, and by nothing that a page could
hide from us (comments, scripts and quoted values hold what looks like an end tag and is none):

- *Formatting elements that stay open* (`<b class=1><b class=2>...`) are opened again in every later block: open ones
  times tags, 1.2 µs and 400 bytes each. One whose own end tag follows before any other element but simple ones never
  stays open; that is how nearly all of them are written. An `<a>` closes the one before.
- *Depth*: many tags look through all open elements, 2 ns each. Start tags times tags.
- *Attributes* of one tag are compared with each other, 2 ns a pair. Words, slashes and quotes between two `>` are the
  most there can be; a `>` that could stand in a quoted value ends nothing.

What passes costs about 40 ms of CPU at the most. XML and text cost by their length and their tags alone.
"""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from crawler.page import mime

MAX_REOPENED = 30_000  # formatting elements that may stay open times start tags
MAX_WALKS = 24_000_000  # start tags times tags
MAX_TAGS = 12_000  # of XML
MAX_PAIRS = 16_000_000  # sum of the squares of attributes of a tag
_SAFE_BYTES = 512
_SHORT_TAG = 3_000  # bytes: so many attributes are compared at once
_TRIES = 8
_FORMATTING = rb"b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
_ATTRIBUTES = rb"""(?:[ \t\n\r\f]++[\w:.-]++(?:=(?:"[^"<>]*+"|'[^'<>]*+'|[\w./#:%-]++))?+)*+[ \t\n\r\f]*+"""
_INLINE = rb"(" + _FORMATTING + rb"|span|a|abbr|cite|kbd|q|samp|sub|sup|var)" + _ATTRIBUTES + rb">"
_EMPTY = rb"<(?:br|img|wbr)" + _ATTRIBUTES + rb"/?>"


def _nested(group: int, depth: int) -> bytes:
    """Text and simple elements inside each other; `group` is the number of the next group."""
    inner = rb"<" + _INLINE + _nested(group + 1, depth - 1) + rb"</\%d>|" % group if depth else b""
    return rb"(?:[^<]++|" + inner + _EMPTY + rb")*+"


_CLOSED = re.compile(rb"<(" + _FORMATTING + rb")" + _ATTRIBUTES + rb">" + _nested(2, 3) + rb"</\1>", re.IGNORECASE)
# How nine in ten of them are written, found in half the time.
_USUALLY_CLOSED = re.compile(
    rb'<([a-z]+)(?: class="[^"<>]*")?>(?:[^<]*|<(code|em|i|span|strong)(?: class="[^"<>]*")?>[^<]*</\2>)</\1>'
)
_LOWER = 0x20
_END = ord("/")


def _beginnings() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """How names of formatting elements begin, in lower case: the number of their first two letters, 0 for none, and by
    that number which third ones there are."""
    after = b"\t\n\r\f />"
    pairs, thirds = np.zeros(1 << 16, np.uint8), np.zeros((64, 256), np.bool_)
    for name in _FORMATTING.split(b"|"):
        for second in name[1:2] or after:
            pair = name[0] << 8 | second | _LOWER
            pairs[pair] = pairs[pair] or pairs.max() + 1
            thirds[pairs[pair], [letter | _LOWER for letter in name[2:3] or (after if name[1:] else range(256))]] = True
    return pairs, thirds


_PAIRS, _THIRDS = _beginnings()
_BETWEEN_ATTRIBUTES = b"\t\n\r\f />\"'"
_BEFORE_VALUE = b"\t\n\r\f ="


def is_suspicious(body: bytes, inline_bytes: int, mime_type: str = mime.HTML) -> bool:
    """Whether a document may cost a parser more than 50 ms, so that it is better read in a process that can be killed.

    True for all that are longer than `inline_bytes`.
    """
    if len(body) > inline_bytes:
        return True
    if len(body) <= _SAFE_BYTES or mime_type == mime.PLAIN:
        return False
    if mime_type not in (mime.HTML, mime.XHTML):
        return body.count(b"<") > MAX_TAGS
    if (
        b"\x00" in body or b"\x1b" in body
    ):  # UTF-16, ISO-2022-JP, or nonsense: `<` need not begin a tag, nor a tag with it
        return True
    return _is_deep(body) or _has_endless_tag(body)


def _is_deep(body: bytes) -> bool:
    """Whether open elements, or formatting ones to be opened again, could be too many."""
    if body.count(b"<") ** 2 <= 4 * MAX_REOPENED:
        return False
    data = np.frombuffer(body + b"   ", np.uint8)
    tags = np.flatnonzero(data == ord("<"))
    first = data[tags + 1]
    starts = len(tags) - int(np.count_nonzero(first == _END))
    if starts * len(tags) > MAX_WALKS:
        return True
    pairs = _PAIRS[(first | _LOWER).astype(np.uint16) << 8 | data[tags + 2] | _LOWER]
    maybe = np.flatnonzero(pairs)
    maybe = maybe[_THIRDS[pairs[maybe], data[tags[maybe] + 3] | _LOWER]]
    most = MAX_REOPENED // max(starts, 1)
    if len(maybe) <= most:
        return False
    usual, any_form = _USUALLY_CLOSED.match, _CLOSED.match
    open_ones = (at for at in tags[maybe].tolist() if not (usual(body, at) or any_form(body, at)))
    return next(islice(open_ones, most, None), None) is not None


def _has_endless_tag(body: bytes) -> bool:
    """Whether tags could have so many attributes that comparing them takes long."""
    at = 0
    while len(body) - at > _SHORT_TAG:
        at = _certain_end(body, at)
        if at < 0:
            return _has_many_attributes(body)
    return False


def _certain_end(body: bytes, start: int) -> int:
    """The place after a `>` that ends a tag, if it ends anything: one of the last in the next 3,000 bytes; else -1."""
    end = start + _SHORT_TAG
    for _ in range(_TRIES):
        end = body.rfind(b">", start, end)
        if end < 0:
            return -1
        quotes = body.rfind(b'"', start, end), body.rfind(b"'", start, end)
        if not any(quote > 0 and body[quote - 1] in _BEFORE_VALUE for quote in quotes):
            return end + 1
    return -1


def _has_many_attributes(body: bytes) -> bool:
    data = np.frombuffer(body, np.uint8)
    between = _table(_BETWEEN_ATTRIBUTES)[data]
    between[1:] &= ~between[:-1]
    borders = np.flatnonzero(between)
    ends = _certain(data, np.flatnonzero(data == ord(">")))
    counts = np.diff(np.searchsorted(borders, ends), prepend=0, append=len(borders))
    return int((counts * counts).sum()) > MAX_PAIRS


def _certain(data: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those places of `>` that cannot stand in a quoted value: no last quote before them may begin one, by what stands
    before it."""
    before_value = _table(_BEFORE_VALUE)
    for quote in b"\"'":
        places = np.flatnonzero(data == quote)
        if len(places):
            last = np.searchsorted(places, ends) - 1
            ends = ends[~(before_value[data[places[last] - 1]] & (last >= 0))]
    return ends


def _table(characters: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table
