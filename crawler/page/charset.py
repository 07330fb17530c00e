"""From bytes to text as the WHATWG standards say: byte order mark, HTTP header, meta, else windows-1252."""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import NamedTuple

from crawler.page.charset_labels import CODECS, ENCODINGS

PRESCAN_BYTES = 1_024
DEFAULT = "windows-1252"
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))
_IN_HEADER = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))""", re.IGNORECASE)
_IN_CONTENT = re.compile(
    rb"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;"']+))""", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"""\A<\?xml[^>]*?[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*(?:"([^"]*)"|'([^']*)')""")
# An attribute, and what of a tag follows its name: quotes mean something after `=` only, and what does not end is none.
_VALUE = rb"""(?:"([^"]*+)"|'([^']*+)'|((?!["'])[^\t\n\f\r >]*+))"""
_ATTRIBUTE = rb"([^\t\n\f\r />][^\t\n\f\r /=>]*+)[\t\n\f\r ]*+(?:=[\t\n\f\r ]*+" + _VALUE + rb"|(?!=))"
_ATTRIBUTES = rb"(?>[\t\n\f\r /]++|" + _ATTRIBUTE + rb")*+"
# What the prescan steps over or looks into, in the order of the standard: comment, meta, other tag, declaration. A
# comment or tag without an end takes the rest with it.
_TOKEN = re.compile(
    rb"<!--(?:>|->|.*?-->|.*)|<meta(?=[\t\n\f\r /])(?P<meta>" + _ATTRIBUTES + rb")>"
    rb"|</?[a-z][^\t\n\f\r >]*+" + _ATTRIBUTES + rb">|</?[a-z].*|<[!/?][^>]*",
    re.IGNORECASE | re.DOTALL,
)
_EACH_ATTRIBUTE = re.compile(_ATTRIBUTE)


class Encoding(NamedTuple):
    """The encoding of a body, by its WHATWG name, where it was found, and how many bytes of mark to skip."""

    charset: str
    source: str  # bom, header, meta, default
    mark: int = 0


class Decoded(NamedTuple):
    """A body as text."""

    text: str
    charset: str
    source: str


def encoding_of(body: bytes, content_type: str | None) -> Encoding:
    """The encoding to read a body with."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return Encoding(name, "bom", len(mark))
    if content_type and (declared := _in_header(content_type)):
        return Encoding(declared, "header")
    if declared := _prescanned(body[:PRESCAN_BYTES]):
        return Encoding(declared, "meta")
    return Encoding(DEFAULT, "default")


def decode(body: bytes, content_type: str | None) -> Decoded:
    """The text of a body. It never raises: what cannot be read becomes U+FFFD."""
    encoding = encoding_of(body, content_type)
    return Decoded(decode_as(body[encoding.mark :], encoding.charset), encoding.charset, encoding.source)


def decode_as(body: bytes, charset: str) -> str:
    """A body without its mark as text."""
    if charset == "replacement":
        return "\ufffd" if body else ""
    if charset == "x-user-defined":
        return body.decode("latin-1").translate(_USER_DEFINED)
    if charset.startswith("windows-"):
        return codecs.charmap_decode(body, "strict", _code_page(charset))[0]
    try:
        return body.decode(CODECS.get(charset, charset), "replace")
    except UnicodeError:
        return body.decode("utf-8", "replace")


def name_of(label: str) -> str | None:
    """The encoding that a label means, None for an unknown one."""
    return ENCODINGS.get(label.strip("\t\n\f\r ").lower())


def _in_header(content_type: str) -> str | None:
    match = _IN_HEADER.search(content_type)
    return name_of(match[match.lastindex or 0]) if match else None


def _prescanned(head: bytes) -> str | None:
    """HTML Standard 13.2.3.2: prescan a byte stream to determine its encoding."""
    for start, name in ((b"<\x00?\x00x\x00", "utf-16le"), (b"\x00<\x00?\x00x", "utf-16be")):
        if head.startswith(start):
            return name
    for token in _TOKEN.finditer(head):
        if token["meta"] is not None and (declared := _in_meta(token["meta"])):
            return declared
    match = _XML_ENCODING.match(head)
    return _in_markup(match[match.lastindex or 0]) if match else None


def _in_meta(attributes: bytes) -> str | None:
    values: dict[bytes, bytes] = {}
    for name, *quoted in _EACH_ATTRIBUTE.findall(attributes):
        values.setdefault(name.lower(), b"".join(quoted))
    if b"charset" in values:
        return _in_markup(values[b"charset"])
    if values.get(b"http-equiv", b"").lower() == b"content-type":
        match = _IN_CONTENT.search(values.get(b"content", b""))
        return _in_markup(match[match.lastindex or 0]) if match else None
    return None


def _in_markup(label: bytes) -> str | None:
    """Markup that could be read byte by byte is not UTF-16, whatever it says."""
    name = name_of(label.decode("latin-1"))
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


@cache
def _code_page(charset: str) -> str:
    """The characters of a windows code page. Bytes that Python's leaves out are control characters in 0x80..0x9F, else
    U+FFFD. In a table and not in an error handler: that would be called once for each of them."""
    name, characters = CODECS.get(charset, charset), []
    for byte in range(256):
        try:
            characters.append(bytes([byte]).decode(name))
        except UnicodeDecodeError:
            characters.append(chr(byte) if byte < 0xA0 else "\ufffd")
    return "".join(characters)


_USER_DEFINED = {byte: 0xF700 + byte for byte in range(0x80, 0x100)}
