from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.charset import decode, decode_as, name_of
from crawler.page.charset_labels import CODECS, ENCODINGS

META = b'<meta charset="%s">'


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "source"),
    [
        (b"\xef\xbb\xbfa", "text/html; charset=koi8-r", "utf-8", "bom"),
        (b"\xff\xfea\0", "text/html; charset=koi8-r", "utf-16le", "bom"),
        (b"\xfe\xff\0a", None, "utf-16be", "bom"),
        (b"a", "text/html;charset=UTF8", "utf-8", "header"),
        (b"a", 'text/html; x=y; Charset = "koi8-r"', "koi8-r", "header"),
        (b"a", "text/html; charset='latin1'", "windows-1252", "header"),
        (b"a", "text/html; charset=utf-16", "utf-16le", "header"),
        (META % b"koi8-r", "text/html; charset=nonsense", "koi8-r", "meta"),
        (META % b"koi8-r", "text/html; charset=utf-8", "utf-8", "header"),
        (META % b" GB2312 ", None, "gbk", "meta"),
        (META % b"utf-16", None, "utf-8", "meta"),
        (META % b"x-user-defined", None, "windows-1252", "meta"),
        (META % b"nonsense" + META % b"koi8-r", None, "koi8-r", "meta"),
        (b"<META charset=koi8-r>", None, "koi8-r", "meta"),
        (b"<meta charset=koi8-r charset=big5>", None, "koi8-r", "meta"),
        (b"<meta/charset=koi8-r/>", None, "windows-1252", "default"),  # the label is `koi8-r/`
        (b"<meta\ncharset = 'koi8-r' >", None, "koi8-r", "meta"),
        (b'<meta content="text/html; charset=koi8-r" http-equiv="Content-Type">', None, "koi8-r", "meta"),
        (b'<meta content="text/html; charset=koi8-r">', None, "windows-1252", "default"),
        (b"<!-- " + META % b"koi8-r" + b" -->" + META % b"big5", None, "big5", "meta"),
        (b"<!-->" + META % b"big5", None, "big5", "meta"),
        (b'<a title="' + META.replace(b'"', b"'") % b"koi8-r" + b'">' + META % b"big5", None, "big5", "meta"),
        (b'<meta http-equiv="Content-Type content="text/html; charset=koi8-r">', None, "windows-1252", "default"),
        (b'<a title=a"b>' + META % b"koi8-r" + b'"', None, "koi8-r", "meta"),  # a quote inside a bare value
        (b'<a title="a>' + META.replace(b'"', b"'") % b"koi8-r", None, "windows-1252", "default"),  # it does not end
        (b"<!-- " + META % b"koi8-r", None, "windows-1252", "default"),
        (b"<meta charset=koi8-r", None, "windows-1252", "default"),
        (b"<metadata charset=koi8-r>", None, "windows-1252", "default"),
        (b" " * 1_024 + META % b"koi8-r", None, "windows-1252", "default"),
        (b" " * 1_000 + META % b"koi8-r", None, "koi8-r", "meta"),
        (b'<?xml version="1.0" encoding="koi8-r"?><a/>', None, "koi8-r", "meta"),
        (b'<?xml version="1.0" encoding="koi8-r"?>' + META % b"big5", None, "big5", "meta"),
        ("<?xml?>".encode("utf-16-le"), None, "utf-16le", "meta"),
        ("ä".encode(), None, "windows-1252", "default"),
        (b"", None, "windows-1252", "default"),
    ],
)
def test_where_the_encoding_comes_from(body: bytes, content_type: str | None, charset: str, source: str) -> None:
    assert decode(body, content_type)[1:] == (charset, source)


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("windows-1252", b"\x80\x81\xe4", "€\x81ä"),
        ("windows-1251", b"\xcf\xf0\xe8\x98", "При\x98"),
        ("windows-1253", b"\xaa\xd2", "\ufffd\ufffd"),
        ("windows-874", b"\xa1\xdb", "ก\ufffd"),
        ("utf-8", b"a\xff\xc3b", "a\ufffd\ufffdb"),
        ("shift_jis", b"\x82\xa0\x87\x40", "あ①"),
        ("gbk", b"\xd6\xd0\x81\x30\x81\x30", "中\x80"),
        ("euc-kr", b"\xb0\xa1\x81\x41", "가갂"),
        ("big5", b"\xa4\xa4\x87\x40", "中䏰"),
        ("utf-16le", b"a\0\0\xd8", "a\ufffd"),
        ("iso-8859-8-i", b"\xe0", "א"),
        ("replacement", b"abc", "\ufffd"),
        ("replacement", b"", ""),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
    ],
)
def test_decoding(charset: str, body: bytes, text: str) -> None:
    assert decode_as(body, charset).startswith(text)


def test_all_labels_of_the_standard() -> None:
    assert (len(ENCODINGS), len(set(ENCODINGS.values()))) == (228, 40)
    assert all(name_of(f" {label.upper()}\t") == name for label, name in ENCODINGS.items())
    for name in set(ENCODINGS.values()) - {"replacement", "x-user-defined"}:
        assert codecs.lookup(CODECS.get(name, name))


@given(st.binary(max_size=60), st.sampled_from(sorted(set(ENCODINGS.values()))))
def test_it_never_raises_and_gives_valid_text(body: bytes, charset: str) -> None:
    assert decode(body, f"text/html; charset={charset}").text.encode() is not None
