"""robots.txt (RFC 9309): Protego under a thin layer that reads the lines the standard's way.

What the layer does: byte order marks (UTF-8 and UTF-16); the first 512,000 bytes, without a last line that is cut;
lines end at CR, LF or CRLF only; a line with bytes that are no UTF-8 is passed over, the others count; product tokens
are compared whole and without case, `Foo/1.2` and `foo*` are `foo`; lines that are no records of ours neither end a
group nor stand in it; a crawl-delay counts as a rule.

`allow: /index.html` does not allow `/`, which Protego adds. Misspellings of disallow count, as in Google's parser: they
can only slow us.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

import can_ada
from protego import Protego

PARSED_BYTES = 512_000
_LINE_END = re.compile(r"\r\n|\r|\n")
_PRODUCT = re.compile(r"\*|[^\s/*]+")
# What `str.splitlines` takes for an end of line and RFC 9309 does not.
_FALSE_LINE_END = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FIELDS = {
    "user-agent": "user-agent",
    "useragent": "user-agent",
    "user agent": "user-agent",
    "disallow": "disallow",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
    "allow": "allow",
    "crawl-delay": "crawl-delay",
    "sitemap": "sitemap",
}
_INDEX_PAGE = re.compile(r"/index\.html$")
_US, _OTHERS = "us", "x-others"


class _Record(NamedTuple):
    field: str
    value: str


class Robots:
    """The rules of a robots.txt body."""

    def __init__(self, records: list[_Record]) -> None:
        self._records = records
        self._parsers: dict[str, tuple[Protego, ...]] = {}

    @classmethod
    def from_bytes(cls, body: bytes) -> Robots:
        """Read the body of a successful robots.txt. It never raises; what is no record is passed over."""
        return cls(list(_records(_text(body))))

    def allows(self, url: str, product_token: str) -> bool:
        """Whether `product_token` may fetch a canonical URL. The longest rule wins, allow in a tie; no rule: yes."""
        return all(parser.can_fetch(url, _US) for parser in self._parsers_for(product_token))

    def crawl_delay(self, product_token: str) -> float | None:
        """Seconds between requests that are asked of us; None where there is no finite number of them."""
        return self._parsers_for(product_token)[0].crawl_delay(_US)

    @property
    def sitemaps(self) -> list[str]:
        """The http(s) URLs of the sitemap lines, distinct, in their order."""
        found = [record.value for record in self._records if record.field == "sitemap"]
        return [url for url in dict.fromkeys(found) if _is_web_url(url)]

    def _parsers_for(self, product_token: str) -> tuple[Protego, ...]:
        token = product_token.lower()
        if token not in self._parsers:
            lines = [_line(record, token) for record in self._records]
            without_extras = [_INDEX_PAGE.sub("/index.html*", line) for line in lines]
            texts = [lines] if lines == without_extras else [lines, without_extras]
            self._parsers[token] = tuple(Protego.parse("\n".join(text)) for text in texts)
        return self._parsers[token]


def _text(body: bytes) -> str:
    is_cut = len(body) > PARSED_BYTES
    body = body[:PARSED_BYTES]
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if body.startswith(mark):
            text = body[2:].decode(codec, "replace")
            break
    else:
        text = _without_mark(body).decode("utf-8", "surrogateescape")
    if is_cut:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return text


def _without_mark(body: bytes) -> bytes:
    """Also without a part of the UTF-8 mark: some editors cut it."""
    for size in (3, 2, 1):
        if body.startswith(codecs.BOM_UTF8[:size]):
            return body[size:]
    return body


def _records(text: str) -> Iterator[_Record]:
    for line in _LINE_END.split(text):
        field, colon, value = line.partition("#")[0].partition(":")
        name = _FIELDS.get(field.strip().lower())
        if not colon or name is None or any("\udc80" <= char <= "\udcff" for char in value):
            continue
        value = value.strip().replace("\x00", "")
        if name == "user-agent":
            match = _PRODUCT.match(value)
            value = match[0].lower() if match else ""
        yield _Record(name, _FALSE_LINE_END.sub(_escaped, value))


def _line(record: _Record, token: str) -> str:
    """The record for Protego, with three kinds of user agents: us, all (`*`) and others."""
    if record.field != "user-agent":
        return f"{record.field}: {record.value}"
    if record.value == "*":
        return "user-agent: *"
    return f"user-agent: {_US if record.value == token else _OTHERS}"


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _is_web_url(text: str) -> bool:
    try:
        return can_ada.parse(text).protocol in ("http:", "https:")
    except (ValueError, TypeError):
        return False


ALLOW_ALL = Robots.from_bytes(b"")
DENY_ALL = Robots.from_bytes(b"user-agent: *\ndisallow: /")
