from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.charset import (
    HEAD_BYTES,
    PRESCAN_BYTES,
    decode,
    decode_as,
    encoding_of,
    encoding_of_xml,
    name_of,
)
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
        (b" " * 1_024 + META % b"koi8-r", None, "koi8-r", "meta"),
        (b" " * 1_000 + META % b"koi8-r", None, "koi8-r", "meta"),
        (b'<?xml version="1.0" encoding="koi8-r"?><a/>', None, "koi8-r", "meta"),
        (b'<?xml version="1.0" encoding="koi8-r"?>' + META % b"big5", None, "big5", "meta"),
        ("<?xml?>".encode("utf-16-le"), None, "utf-16le", "meta"),
        ("ä".encode(), None, "utf-8", "content"),
        (b"", None, "windows-1252", "default"),
    ],
)
def test_where_the_encoding_comes_from(body: bytes, content_type: str | None, charset: str, source: str) -> None:
    assert decode(body, content_type)[1:] == (charset, source)


LATE = b"<!doctype html><html><head>" + b" " * PRESCAN_BYTES
BIG5 = META % b"big5"


@pytest.mark.parametrize(
    ("body", "charset", "source"),
    [
        (LATE + BIG5, "big5", "meta"),
        (LATE + b"<link rel=x><base href=y><style>a<b</style><title>t</title>" + BIG5, "big5", "meta"),
        (LATE + b"<script>" + b"x" * 100_000 + b"</script >" + BIG5, "big5", "meta"),
        (LATE + b"<script/src=x>'" + META % b"koi8-r" + b"'</SCRIPT>" + BIG5, "big5", "meta"),
        (LATE + b"</head>" + BIG5, "windows-1252", "default"),
        (LATE + b"<body>" + BIG5, "windows-1252", "default"),
        (LATE + b"<p>" + BIG5, "windows-1252", "default"),
        (LATE + b"</p></title>" + BIG5, "big5", "meta"),
        (LATE + b"<header>" + BIG5, "windows-1252", "default"),
        (b"</head><body><p>" + BIG5 + b" " * PRESCAN_BYTES, "big5", "meta"),  # the standard's prescan looks there, too
        *(
            (LATE + b"<%s>%s</%s>" % (tag, BIG5, tag), "windows-1252", "default")
            for tag in b"script style title noscript template textarea xmp iframe noembed noframes".split()
        ),
        (LATE + b"<!-- " + BIG5 + b" -->", "windows-1252", "default"),
        (LATE + b"<!-- " + BIG5, "windows-1252", "default"),
        (LATE + b"<script>" + BIG5, "windows-1252", "default"),  # it does not end
        (LATE + b"<script><!-- </script>" + BIG5 + b"<script> --></script>", "big5", "meta"),
        (LATE + b"<link title='" + META.replace(b'"', b"") % b"koi8-r" + b"'>" + BIG5, "big5", "meta"),
        (LATE + b" " * HEAD_BYTES + BIG5, "windows-1252", "default"),
        # What only looks like a meta counts for less than one that is, and for less than the bytes.
        (b"<script>'" + META % b"koi8-r" + b"'</script>" + BIG5, "big5", "meta"),
        (b"<script>'" + META % b"koi8-r" + b"'</script>", "koi8-r", "meta"),
        (b"<script>'" + META % b"koi8-r" + b"'</script>\xc3\xa4", "utf-8", "content"),
        (b'<?xml version="1.0" encoding="koi8-r"?>' + b" " * PRESCAN_BYTES + BIG5, "big5", "meta"),
        (BIG5 + "ä".encode(), "big5", "meta"),
    ],
)
def test_metas_are_found_where_a_parser_meets_them(body: bytes, charset: str, source: str) -> None:
    assert decode(body, None)[1:] == (charset, source)


@pytest.mark.parametrize(
    ("body", "charset", "source"),
    [
        ("naïve 中 😀".encode(), "utf-8", "content"),
        ("naïve 中".encode()[:-1], "utf-8", "content"),
        ("naïve 中".encode()[:-2], "utf-8", "content"),
        (b"<p>na\xefve", "windows-1252", "default"),
        (b"<p>caf\xe9", "windows-1252", "default"),  # not the start of a character that was cut
        (b"caf\xc3\xa9 \xe9", "utf-8", "content"),
        (b"caf\xc3\xa9 \xe9.", "windows-1252", "default"),
        (b"\xed\xa0\x80", "windows-1252", "default"),  # a surrogate
        (b"\xc0\x80", "windows-1252", "default"),  # too long for what it says
        (b"plain", "windows-1252", "default"),
        ("é".encode() * 100_000, "utf-8", "content"),
        (b"x" + "é".encode() * 100_000, "utf-8", "content"),
        ("中".encode() * 100_000 + b"\xff", "windows-1252", "default"),
    ],
)
def test_undeclared_bytes_that_are_utf8(body: bytes, charset: str, source: str) -> None:
    assert decode(body, None)[1:] == (charset, source)
    assert encoding_of(body, "text/plain", is_markup=False)[:2] == (charset, source)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<\ufffd")), st.integers(0, 3))
def test_any_text_in_utf8_is_found_also_where_its_end_is_cut(text: str, cut: int) -> None:
    whole = f"<p>ä{text}"
    body = whole.encode()[: max(len("<p>ä".encode()), len(whole.encode()) - cut)]
    decoded = decode(body, None)
    assert decoded[1:] == ("utf-8", "content")
    assert whole.startswith(decoded.text.removesuffix("\ufffd"))


def test_a_plain_text_declares_nothing() -> None:
    assert encoding_of(BIG5 + b"\xe9", "text/plain", is_markup=False)[:2] == ("windows-1252", "default")


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "source"),
    [
        (b"<a/>", None, "utf-8", "default"),
        (b"<a/>", "text/xml; charset=koi8-r", "koi8-r", "header"),
        (b"\xef\xbb\xbf<a/>", "text/xml; charset=koi8-r", "utf-8", "bom"),
        (b"\xff\xfe<\0", "text/xml; charset=utf-16", "utf-16le", "bom"),
        (b"<\0a\0", None, "utf-16le", "content"),
        (b"\0<\0a", None, "utf-16be", "content"),
        (b"\0<\0a", "text/xml; charset=utf-16be", "utf-16be", "header"),
        (b"<?xml version='1.0' encoding='koi8-r'?><a/>", "text/xml; charset=utf-16", "koi8-r", "meta"),
        (b"\n <?xml version='1.0' encoding='koi8-r'?><a/>", None, "koi8-r", "meta"),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", None, "utf-8", "meta"),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", None, "utf-8", "default"),
    ],
)
def test_the_encoding_of_xml(body: bytes, content_type: str | None, charset: str, source: str) -> None:
    assert encoding_of_xml(body, content_type)[:2] == (charset, source)


SLOW = (
    b"<!-- <script> <title <meta_ <meta_charset= <meta_a=' <script></script> < </ <? <link> <meta_charset=x> \xc3\xa4"
)


@pytest.mark.parametrize("part", SLOW.replace(b"_", b"\n").split(b" "))
def test_no_head_is_slow(part: bytes) -> None:
    started = time.process_time()
    encoding_of(LATE + part * (1_000_000 // len(part)), None)
    encoding_of(LATE + b"<meta " + part * (250_000 // len(part)) + b"><meta a='" + part, None)
    assert time.process_time() - started < 1


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
