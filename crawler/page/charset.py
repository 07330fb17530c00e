"""From bytes to text as browsers do it, who follow the WHATWG standards and go a little further.

The encoding of a page comes from the first of these that says something: a byte order mark, the HTTP header, a meta of
the head, an XML declaration, the bytes themselves (not all ASCII, and all of it valid UTF-8), something that looks like
a meta in a script within the first 1,024 bytes (the standard's prescan takes it for one), windows-1252.

The standard looks for metas in the first 1,024 bytes, and lets the parser change the encoding when it meets a later
one. Here one scan does both: tag by tag, as the parser would read them, so that comments and texts such as those of
script and title are stepped over; in the first 1,024 bytes wherever it stands, from there to the end of the head. It
looks at no byte twice and stops after `HEAD_BYTES`.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import NamedTuple

from crawler.page.charset_labels import CODECS, ENCODINGS

PRESCAN_BYTES = 1_024
HEAD_BYTES = 256 * 1024
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
    rb"|<(?P<tag>/?[a-z][^\t\n\f\r >]*+)" + _ATTRIBUTES + rb">|</?[a-z].*|<[!/?][^>]*",
    re.IGNORECASE | re.DOTALL,
)
# Elements whose content is no markup, or none that counts, and the others that do not end the head (13.2.6.4.4).
_WITHOUT_MARKUP = {
    name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in b"script style title noscript template textarea xmp iframe noembed noframes".split()
}
_OF_HEAD = frozenset(b"html head meta link base basefont bgsound object script style title noscript template".split())
_STEP = 64 * 1024
_EACH_ATTRIBUTE = re.compile(_ATTRIBUTE)


class Encoding(NamedTuple):
    """The encoding of a body, by its WHATWG name, where it was found, and how many bytes of mark to skip."""

    charset: str
    source: str  # bom, header, meta, content, default
    mark: int = 0


class Decoded(NamedTuple):
    """A body as text."""

    text: str
    charset: str
    source: str


def encoding_of(body: bytes, content_type: str | None, *, is_markup: bool = True) -> Encoding:
    """The encoding to read a page with, or a plain text: that is no markup and declares nothing itself."""
    if found := _marked_or_in_header(body, content_type):
        return found
    if is_markup and (declared := _by_zeros(body) or _in_head(body) or _in_xml_declaration(body)):
        return Encoding(declared, "meta")
    if _is_utf8(body):
        return Encoding("utf-8", "content")
    if is_markup and (declared := _prescanned(body[:PRESCAN_BYTES])):
        return Encoding(declared, "meta")
    return Encoding(DEFAULT, "default")


def encoding_of_xml(body: bytes, content_type: str | None) -> Encoding:
    """The encoding to read an XML document with (RFC 7303, 3): mark, header, declaration, else UTF-8."""
    found = _marked_or_in_header(body, content_type)
    # A document that shows no zeros is not UTF-16, whatever its server says.
    if found and (found.mark or found.charset not in ("utf-16le", "utf-16be") or b"\x00" in body[:4]):
        return found
    for start, name in ((b"<\x00", "utf-16le"), (b"\x00<", "utf-16be")):
        if body.startswith(start):
            return Encoding(name, "content")
    if declared := _in_xml_declaration(body.lstrip(b"\t\n\r ") if body[:1].isspace() else body):
        return Encoding(declared, "meta")
    return Encoding("utf-8", "default")


def decode(body: bytes, content_type: str | None, *, is_markup: bool = True) -> Decoded:
    """The text of a body. It never raises: what cannot be read becomes U+FFFD."""
    encoding = encoding_of(body, content_type, is_markup=is_markup)
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


def _marked_or_in_header(body: bytes, content_type: str | None) -> Encoding | None:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return Encoding(name, "bom", len(mark))
    declared = _in_header(content_type) if content_type else None
    return Encoding(declared, "header") if declared else None


def _in_header(content_type: str) -> str | None:
    match = _IN_HEADER.search(content_type)
    return name_of(match[match.lastindex or 0]) if match else None


def _by_zeros(body: bytes) -> str | None:
    """The UTF-16 of an XML declaration that has no byte order mark before it."""
    if body.startswith(b"<\x00?\x00x\x00"):
        return "utf-16le"
    return "utf-16be" if body.startswith(b"\x00<\x00?\x00x") else None


def _in_head(body: bytes) -> str | None:
    """What the first meta says that a parser meets in the first 1,024 bytes or, after them, in the head."""
    place = 0
    while token := _TOKEN.search(body, place, HEAD_BYTES):
        place = token.end()
        if token["meta"] is not None:
            if declared := _in_meta(token["meta"]):
                return declared
        elif token["tag"] is not None:
            tag = token["tag"].lower()
            name = tag.partition(b"/")[0]
            if name in _WITHOUT_MARKUP:
                end = _WITHOUT_MARKUP[name].search(body, place, HEAD_BYTES)
                if end is None:
                    return None
                place = end.start()
            elif place > PRESCAN_BYTES and (tag == b"/head" if not name else name not in _OF_HEAD):
                return None
    return None


def _prescanned(head: bytes) -> str | None:
    """HTML Standard 13.2.3.2: prescan a byte stream to determine its encoding. It reads scripts as markup."""
    for token in _TOKEN.finditer(head):
        if token["meta"] is not None and (declared := _in_meta(token["meta"])):
            return declared
    return None


def _in_xml_declaration(body: bytes) -> str | None:
    match = _XML_ENCODING.match(body, 0, PRESCAN_BYTES)
    return _in_markup(match[match.lastindex or 0]) if match else None


def _is_utf8(body: bytes) -> bool:
    """Whether the bytes are UTF-8 and could not be ASCII. The last character may be cut."""
    if body.isascii():
        return False
    place, view, is_ascii = 0, memoryview(body), True
    try:
        while place < len(body):
            text, size = codecs.utf_8_decode(view[place : place + _STEP], "strict", False)
            is_ascii = is_ascii and text.isascii()
            place += size
            if size == 0:
                break
    except UnicodeDecodeError:
        return False
    return not is_ascii


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
