"""Corners about the body: codings, sizes, charsets and kinds of documents."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tests.web.answers import Answer, Step, Visit, at, fixed, gzipped, page, with_headers

PACKED = "packed.test"
BIG_BYTES = 6 * 1024 * 1024
BOMB_BYTES = 48 * 1024 * 1024
_BLOCK = (b"<p>" + b"a big page has many words " * 40 + b"</p>\n") * 61
_CHUNKED = ("Transfer-Encoding", "chunked")


@lru_cache(maxsize=1)
def bomb() -> bytes:
    """Zeros under gzip, about a thousandth of their size. Made once, since it takes a moment."""
    return gzip.compress(bytes(BOMB_BYTES), 6, mtime=0)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _in_chunks(answer: Answer, size: int = 700) -> Answer:
    """The same answer in chunks, by which its connection may be kept."""
    pieces = [answer.body[start : start + size] for start in range(0, len(answer.body), size)]
    head = with_headers(answer, _CHUNKED).wire_head(keep=False, length=None)
    return replace(answer, steps=lambda: [head, *map(_chunk, pieces), b"0\r\n\r\n"])


@at(PACKED, "/gzip")
def _gzip(visit: Visit) -> Answer:
    return gzipped(page(visit, "/linked/gzip", words=800))


@at(PACKED, "/chunked")
def _chunks(visit: Visit) -> Answer:
    return _in_chunks(page(visit, "/linked/chunked", words=800))


@at(PACKED, "/gzip-chunked")
def _both(visit: Visit) -> Answer:
    return _in_chunks(gzipped(page(visit, "/linked/gzip-chunked", words=800)))


@at(PACKED, "/deflate")
def _deflate(visit: Visit) -> Answer:
    plain = page(visit, "/linked/deflate", words=800)
    return with_headers(replace(plain, body=zlib.compress(plain.body)), ("Content-Encoding", "deflate"))


@at(PACKED, "/not-gzip")
def _not_gzip(visit: Visit) -> Answer:
    return with_headers(page(visit), ("Content-Encoding", "gzip"))


@at(PACKED, "/to-close")
def _to_close(visit: Visit) -> Answer:
    answer = page(visit, "/linked/to-close")
    return replace(answer, steps=lambda: [answer.wire_head(keep=False, length=None), answer.body])


@at(PACKED, "/linked/*")
def _linked(visit: Visit) -> Answer:
    return page(visit, "/")


@at(PACKED, "/bomb")
def _bomb(visit: Visit) -> Answer:
    return Answer(body=bomb(), headers=(("Content-Encoding", "gzip"),))


def _blocks(*, in_chunks: bool) -> Iterator[Step]:
    for start in range(0, BIG_BYTES, len(_BLOCK)):
        block = _BLOCK[: BIG_BYTES - start]
        yield _chunk(block) if in_chunks else block
    if in_chunks:
        yield b"0\r\n\r\n"


def _big(head: bytes, *, in_chunks: bool = False) -> Answer:
    def steps() -> Iterator[Step]:
        yield head
        yield from _blocks(in_chunks=in_chunks)

    return Answer(steps=steps)


fixed(PACKED, "/big", _big(Answer().wire_head(keep=False, length=BIG_BYTES)))
fixed(PACKED, "/big-chunked", _big(Answer(headers=(_CHUNKED,)).wire_head(keep=False, length=None), in_chunks=True))
fixed(PACKED, "/big-to-close", _big(Answer().wire_head(keep=False, length=None)))


@dataclass(frozen=True, slots=True)
class Tongue:
    """A page of babel.test: how it is labelled and coded, and a phrase that a right reading finds in its text."""

    path: str
    content_type: str | None
    label: str  # in a meta element, empty when there is none
    codec: str
    phrase: str
    lead: bytes = b""

    def answer(self) -> Answer:
        meta = f'<meta charset="{self.label}">' if self.label else ""
        text = f"<!DOCTYPE html><html><head>{meta}<title>Babel</title></head><body><p>{self.phrase}</p></body></html>"
        return Answer(body=self.lead + text.encode(self.codec), content_type=self.content_type)


_QUOTED = "“Crème brûlée” costs 5 €"
TONGUES = (
    Tongue("/unlabelled", "text/html", "", "cp1252", _QUOTED),
    Tongue("/latin1-is-1252", "text/html; charset=ISO-8859-1", "", "cp1252", _QUOTED),
    Tongue("/header-beats-meta", "text/html; charset=windows-1251", "utf-8", "cp1251", "Мы читаем заголовок"),
    Tongue("/bom-beats-header", "text/html; charset=windows-1252", "", "utf-8", "Größe überall", b"\xef\xbb\xbf"),
    Tongue("/utf-16-bom", "text/html", "", "utf-16-le", "Größe und Κόσμος", b"\xff\xfe"),
    Tongue("/utf-16be-bom", "text/html", "", "utf-16-be", "Größe und Κόσμος", b"\xfe\xff"),
    Tongue("/meta-gbk", "text/html", "gb2312", "gbk", "蜘蛛在织网"),
    Tongue("/meta-sjis", "text/html", "x-sjis", "cp932", "蜘蛛の巣"),
    Tongue("/meta-utf-8", "text/html", "UTF8", "utf-8", "naïve façade"),
    Tongue("/meta-says-utf-16", "text/html", "utf-16", "utf-8", "déjà vu"),
    Tongue("/unknown-label", "text/html; charset=klingon", "utf-8", "utf-8", "wieder fünf Räder"),
    Tongue("/koi8", 'text/html; charset="koi8-r"', "", "koi8-r", "паук плетёт сеть"),
)
for _tongue in TONGUES:
    fixed("babel.test", _tongue.path, _tongue.answer())
fixed("babel.test", "/broken-utf-8", Answer(body=b"<html><body><p>good \xff\xfe\xc3 words \x00 here</p></body></html>"))


@at("babel.test", "/")
def _babel(visit: Visit) -> Answer:
    return page(visit, *(tongue.path for tongue in TONGUES), "/broken-utf-8")


_XHTML = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title></head>'
    b'<body><p>An XHTML page.</p><a href="/from-xhtml">on</a><br/></body></html>\n'
)
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
fixed("cabinet.test", "/notes.txt", Answer(200, b"Plain words about spiders and their webs.\n" * 8, "text/plain"))
fixed("cabinet.test", "/paper.pdf", Answer(200, b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n", "application/pdf"))
fixed("cabinet.test", "/picture.png", Answer(200, _PNG))
fixed("cabinet.test", "/page.xhtml", Answer(200, _XHTML, "application/xhtml+xml"))


@at("cabinet.test", "/untyped")
def _untyped(visit: Visit) -> Answer:
    return replace(page(visit, "/from-untyped"), content_type=None)


@at("cabinet.test", "/from-xhtml", "/from-untyped")
def _from(visit: Visit) -> Answer:
    return page(visit, "/")
