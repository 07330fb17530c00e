"""Documents made to cost whoever reads them far more than they cost their server: time, memory, or both."""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from typing import NamedTuple

import brotli

HTML, XML, RSS, GZIP, PLAIN = "text/html", "application/xml", "application/rss+xml", "application/gzip", "text/plain"
MEGABYTE = 1 << 20
MAX_BODY = 5 * MEGABYTE


class Killer(NamedTuple):
    """A body as it is sent."""

    body: bytes
    content_type: str = HTML
    coding: str | None = None


def formatting(opened: int, blocks: int, attribute: str = "a={}", after: bytes = b"") -> bytes:
    """Formatting elements that stay open and are opened again in every block."""
    opens = "".join(f"<b {attribute.format(number)}>" for number in range(opened)).encode()
    return b"<p>" + opens + after + b"<p>x" * blocks


def attributes(count: int, special: str = "", every: int = 500) -> bytes:
    """A tag with so many attributes; each of some is `special`."""
    names = (special.format(n) if special and n % every == 0 else f"a{n}" for n in range(count))
    return b"<p " + " ".join(names).encode() + b"><a href=/after>x</a>"


def links(count: int, form: str = "<a href={}>") -> bytes:
    return "".join(form.format(number) for number in range(count)).encode()


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0)


def gzipped_xml(body: bytes) -> bytes:
    return gzipped(b"<?xml version='1.0'?>" + body)


def members(size: int) -> bytes:
    """A gzip file of empty members."""
    empty = gzipped(b"")
    return empty * (size // len(empty))


def blocks(size: int) -> bytes:
    """A gzip file of blocks that hold a table and nothing else."""
    # HLIT 257, HDIST 1, HCLEN 18; lengths of 1 for the codes of 1 and of 18; 138 and 118 zeros, one, one; end of block.
    fields = [(0, 1), (2, 2), (0, 5), (0, 5), (14, 4)]
    fields += [({2: 1, 17: 1}.get(place, 0), 3) for place in range(18)]
    fields += [(1, 1), (127, 7), (1, 1), (107, 7), (0, 1), (0, 1), (0, 1)]
    value = bits = 0
    for field, width in fields * 8:
        value |= field << bits
        bits += width
    unit = value.to_bytes(bits // 8, "little")
    return b"\x1f\x8b\x08" + bytes(7) + unit * (size // len(unit))


PLAIN_FORMATTING = b"".join(b"<%b>" % name for name in b"b big code em font i nobr s small strike strong tt u".split())

SMALL: dict[str, bytes] = {
    "deep": b"<div>" * 20_000,
    "lists": b"<ul><li>" * 10_000,
    "closed once more": b"<div>" * 6_000 + b"</x>" * 20_000,
    "adopted": b"<b>" + b"<div>" * 8_000 + b"</b>" * 8_000,
    "links around blocks": b"<a><div>" * 10_000,
    "formatting": formatting(2_000, 2_000),
    "formatting in six kilobytes": formatting(500, 500),
    "formatting in upper case": formatting(500, 500).upper(),
    "formatting without attributes": b"<p>" + PLAIN_FORMATTING * 3 + b"<p>x" * 5_000,
    "formatting closed in a comment": formatting(300, 300, after=b"<!--" + b"</b>" * 300 + b"-->"),
    "formatting closed in a value": formatting(300, 300, "a={} title='x</b>'"),
    "formatting closed in a value with >": formatting(300, 300, 'a={} title=">x</b>"'),
    "formatting closed in an odd value": formatting(300, 300, 't=a"b y{}=">x</b>"'),
    "formatting closed out of scope": formatting(300, 300, after=b"<object>" + b"</b>" * 300 + b"</object>"),
    "formatting closed with a NUL": b"<p>" + b"".join(b"<b a=%d>x<\0/b>" % n for n in range(800)) + b"<p>x" * 800,
    "formatting closed in ISO-2022-JP": b"<meta charset=iso-2022-jp><p>"
    + b"".join(b"<b a=%d>\x1b$B</b>\x1b(B" % n for n in range(800))
    + b"<p>x" * 800,
    "formatting in UTF-16": b"\xff\xfe" + formatting(300, 300).decode().encode("utf-16le"),
    "formatting after /": formatting(300, 300, "/a={}"),
    "formatting in tables": b"<table><tr><td>" + formatting(300, 300),
    "nobr": formatting(300, 300).replace(b"<b ", b"<nobr "),
    "attributes": attributes(20_000),
    "attributes with > in values": attributes(20_000, "q{}='>'"),
    "attributes with > in two kinds of quotes": attributes(20_000, 'q{}="a\'>"'),
    "attributes with > after a false quote": attributes(20_000, 'x=y=" q{}=">"'),
    "attributes with > after a space": attributes(20_000, "q{}= '>'"),
    "attributes without spaces": b"<p " + b"".join(b'a%d=""' % n for n in range(16_000)) + b">",
    "attributes without quotes": b"<p" + b"".join(b"/a%d" % n for n in range(18_000)) + b">",
    "a little tag": attributes(4_000)[:20_000] + b">",
    "twenty-five large tags": (b"<p " + b" ".join(b"a%d" % n for n in range(900)) + b">") * 25,
    "refresh": b"<meta http-equiv=refresh content='0" + b" " * 100_000 + b"'>",
    "long base": b"<base href='/" + b"a" * 90_000 + b"/'>" + links(2_000),
    "links": links(9_000),
    "links of queries": links(9_000, "<a href=?{}>"),
    "links abroad": links(4_000, "<a href=//h{0}.d{0}.example/>"),
    "words of a letter": b"<p>" + b"a " * 64_000,
    "characters that are words": "好".encode() * 43_000,
    "bytes that no code page has": b"<p>" + b"\x81" * 120_000,
    "characters that do not end": b"<p>" + b"\xf0\x9f" * 60_000,
    "entities": b"<p>" + b"&amp" * 30_000,
    "one link of a hundred kilobytes": b"<a href=" + b"a" * 120_000 + b">x</a>",
    "robots": b"<meta name=robots content='" + b"noindex," * 15_000 + b"'>",
    "titles": b"<title>x</title>" * 8_000,
    "frames": b"<iframe src=a>" * 9_000,
    "comments": b"<!-->" * 25_000,
    "declarations": b"<!doctype " * 12_000,
    "templates": b"<template>" * 11_000,
    "selects": b"<select><option>" * 8_000,
    "foreign": b"<svg><desc><b a=1>" * 7_000,
    "nothing but <": b"<" * 130_000,
}
"""Of HTML, so short that an event loop might be trusted with it."""


@cache
def large() -> dict[str, Killer]:
    """Those whose size is the point, and those in a coding."""
    many_links = gzipped(links(662_304))
    empty_elements = gzipped_xml(b"<urlset>" + b"<x/>" * (50 * MEGABYTE // 4))
    return {
        "gzip of empty members": Killer(members(MAX_BODY), coding="gzip"),
        "gzip of empty members, as a file": Killer(members(MAX_BODY), GZIP),
        "gzip of empty members, short": Killer(members(120_000), coding="gzip"),
        "gzip of empty blocks": Killer(blocks(MAX_BODY), coding="gzip"),
        "gzip of gzip of empty members": Killer(gzipped(members(9 * MEGABYTE)), coding="gzip, gzip"),
        "bomb": Killer(gzipped(bytes(100 * MEGABYTE)), coding="gzip"),
        "bomb of text": Killer(gzipped(b"word " * (20 * MEGABYTE)), coding="gzip"),
        "bomb of one word": Killer(gzipped(b"w" * (100 * MEGABYTE)), coding="gzip"),
        "bomb of deflate": Killer(zlib.compress(bytes(100 * MEGABYTE), 9), coding="deflate"),
        "bomb of brotli": Killer(brotli.compress(b"<p>x" * (25 * MEGABYTE), quality=5), coding="br"),
        "sitemap of empty elements": Killer(empty_elements, GZIP),
        "sitemap of empty elements in a coding": Killer(empty_elements, XML, "gzip"),
        "feed of empty elements": Killer(gzipped_xml(b"<rss>" + b"<x/>" * (12 * MEGABYTE)), GZIP),
        "deep XML": Killer(gzipped_xml(b"<urlset>" + b"<x>" * (10 * MEGABYTE)), GZIP),
        "XML of one attribute": Killer(gzipped_xml(b"<urlset a='" + b"x" * (50 * MEGABYTE) + b"'></urlset>"), GZIP),
        "XML of many attributes": Killer(
            gzipped_xml(b"<urlset><url " + b" ".join(b"a%d='1'" % n for n in range(200_000)) + b"/></urlset>"), GZIP
        ),
        "sitemap of a million": Killer(
            gzipped_xml(b"<urlset>" + links(1_000_000, "<url><loc>http://a.test/{}</loc></url>") + b"</urlset>"), GZIP
        ),
        "many links": Killer(many_links, coding="gzip"),
        "links of nothing else": Killer(links(400_000)[:MAX_BODY]),
        "many long links": Killer(gzipped(links(2_500, "<a href=" + "y" * 4_000 + "{}>")), coding="gzip"),
        "list of links": Killer(gzipped(links(300_000, "http://a.test/{}\n")), PLAIN, "gzip"),
        "ten megabytes of deep elements": Killer(gzipped(b"<div>" * (2 * MEGABYTE)), coding="gzip"),
        "ten megabytes of short elements": Killer(gzipped(b"<p>x" * (2_600_000)), coding="gzip"),
        "five megabytes of text": Killer(b"one two three " * (MAX_BODY // 14), PLAIN),
        "five megabytes of characters": Killer("好".encode() * (MAX_BODY // 3), PLAIN),
        "a huge attribute": Killer(b"<a href='" + b"x" * (MAX_BODY - 20) + b"'>"),
        "five megabytes of attributes": Killer(attributes(500_000)),
        "five megabytes of bytes": Killer(bytes(range(256)) * (MAX_BODY // 256), "application/octet-stream"),
        "five megabytes of hrefs": Killer(b"<a " + b"href=" * MEGABYTE),
    }  # fmt: skip
