from __future__ import annotations

import gzip
import re
import time
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from crawler.page.documents import parse
from crawler.page.model import Page
from crawler.page.sitemap import MAX_URLS, SitemapModule
from crawler.page.xml_reader import XmlDocument

URL = "http://h.org/sitemap.xml"
HEAD = b'<?xml version="1.0" encoding="UTF-8"?>'
NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITEMAP = HEAD + b"<urlset %s>%%s</urlset>" % NAMESPACE


def read(body: bytes) -> Page:
    return SitemapModule().parse(body, URL, "application/xml")


@pytest.mark.parametrize(
    ("body", "hrefs"),
    [
        (SITEMAP % b"<url><loc> http://a/1\n</loc><lastmod>2026-01-01</lastmod></url>", ["http://a/1"]),
        (SITEMAP % b"<url><loc>http://a/?b=1&amp;c=%C3%A9</loc></url>", ["http://a/?b=1&c=%C3%A9"]),
        (SITEMAP % b"<url><loc><![CDATA[http://a/?b&c]]></loc></url><url><loc/></url>", ["http://a/?b&c"]),
        (SITEMAP % b"<url><loc>http://a/1</loc></url><url><loc>http://a/1</loc></url>", ["http://a/1"]),
        (b"<urlset><url><loc>http://a/1</loc></url></urlset>", ["http://a/1"]),
        (
            HEAD + b"<sitemapindex %s><sitemap><loc>http://a/s.xml.gz</loc></sitemap></sitemapindex>" % NAMESPACE,
            ["http://a/s.xml.gz"],
        ),
        (
            SITEMAP
            % b"<url><loc>http://a/1</loc><i:image xmlns:i='http://i'><i:loc>http://a/1.png</i:loc></i:image></url>",
            ["http://a/1"],
        ),
        ((HEAD + b"<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2</lo"), ["http://a/1"]),
        (
            SITEMAP % b"<url><loc>http://a/?b&c</loc></url><url><loc>http://a/2</loc></url>",
            ["http://a/?b&c", "http://a/2"],
        ),
        ("<urlset><url><loc>http://a/é</loc></url></urlset>".encode("utf-16"), ["http://a/é"]),
    ],
)
def test_locations(body: bytes, hrefs: list[str]) -> None:
    page = read(body)
    assert (page.hrefs, page.source, page.parse_status) == (hrefs, "sitemap", "ok")


WRITTEN = [  # what stands in a loc, and the address that it is without any guess
    (b"http://a/?b=1&amp;c=2", "http://a/?b=1&c=2"),
    (b"http://a/?b=1&c=2&d", "http://a/?b=1&c=2&d"),
    (b"http://a/?b=1&", "http://a/?b=1&"),
    (b"http://a/?b=1& c", "http://a/?b=1& c"),
    (b"http://a/?b&&c", "http://a/?b&&c"),
    (b"http://a/?b=1&copy=2&amp;lt=3", "http://a/?b=1&copy=2&lt=3"),
    (b"http://a/?b=1&#38;c=2&#x26;d&#X26;e", "http://a/?b=1&c=2&d&e"),
    (b"http://a/&quot;&apos;&lt;&gt;", "http://a/\"'<>"),
    (b"http://a/<!-- & --> ?b", "http://a/ ?b"),
    (b"http://a/<!-- </loc> -->1", "http://a/1"),
    (b"<?php &x; ?>http://a/1", "http://a/1"),
    (b"<![CDATA[http://a/?b=1&c=2&nbsp;]]>", "http://a/?b=1&c=2&nbsp;"),
    (b"http://a/<![CDATA[?b=1&]]>c=2&amp;<![CDATA[<d>]]>", "http://a/?b=1&c=2&<d>"),
    (b"\r\n\t <![CDATA[\n http://a/1 \n]]>\n", "http://a/1"),
    (b"http://a/my file.html", "http://a/my file.html"),
    (b"http://a/x>y", "http://a/x>y"),
    ("http://a/é中😀".encode(), "http://a/é中😀"),
    (b"http://a/&#233;&#x4e2d;&#x1F600;", "http://a/é中😀"),
    (b"/relative?b&c", "/relative?b&c"),
]
GUESSED = [
    b"http://a/?b=1&nbsp;c=2",
    b"http://a/?b=1&bogus;",
    b"http://a/&eacute;",
    b"http://a/?b=1&AMP;c=2",
    b"http://a/?b=1&#38c=2",
    b"http://a/&#0;",
    b"http://a/&#xD800;",
    b"http://a/&#x110000;",
    b"http://a/&#" + b"9" * 5_000 + b";",
    b"http://a/\x01",
    b"http://a/\x00",
    b"http://a/\xe9",
    b"http://a/\xef\xbf\xbd",
    b"http://a/<b>1</b>",
    b"http://a/<br/>1",
    b"http://a/</b>1",
    b"http://a/ <1",
    b"http://a/1\nhttp://a/2",
    b"http://a/1\n  /2",
    b"http://a/" + b"x" * 70_000,
]


@pytest.mark.parametrize(("written", "address"), WRITTEN)
@pytest.mark.parametrize("around", [b"%s", HEAD + b"<!-- & --><urlset a='&'><b>&nbsp; & </c></b>%s</urlset>"])
def test_an_address_is_what_its_author_meant(written: bytes, address: str, around: bytes) -> None:
    inside = b"<url><loc>%s</loc></url><url><loc>http://a/2</loc></url>" % written
    page = read(SITEMAP % inside if around == b"%s" else around % inside)
    assert (page.hrefs, page.refused, page.parse_status) == ([address, "http://a/2"], {}, "ok")


@pytest.mark.parametrize("written", GUESSED)
def test_what_would_have_to_be_guessed_is_counted(written: bytes) -> None:
    page = read(SITEMAP % b"<url><loc>%s</loc></url><url><loc>http://a/2</loc></url>" % written)
    assert (page.hrefs, page.refused, page.parse_status) == (["http://a/2"], {"guessed": 1}, "ok")


@pytest.mark.parametrize(
    ("inside", "hrefs", "guessed"),
    [
        (b"<URL><LOC>http://a/1</loc></Url>", ["http://a/1"], 0),
        (b"<s:url xmlns:s='x'><s:loc>http://a/1</s:loc></s:url>", ["http://a/1"], 0),
        (b"<s:url><s:loc>http://a/1</loc></url>", ["http://a/1"], 0),  # a prefix that nobody declared
        (b"<url><loc a='>' b=c d>http://a/1</loc ></url >", ["http://a/1"], 0),
        (b"<url><loc a='1>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"<url><loc>http://a/1</url><url><loc>http://a/2</loc></url>", ["http://a/1", "http://a/2"], 0),
        (b"<url><loc>http://a/1<loc>http://a/2</loc></url>", ["http://a/2"], 1),
        (b"<url><loc>http://a/1<loc></url><url><loc>http://a/2</loc></url>", ["http://a/2"], 1),
        (b"<url></x><x><loc>http://a/1</loc></x><loc>http://a/2</loc></url>", ["http://a/2"], 0),
        (b"</urlset><url><loc>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"<1><url><loc>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"< a < b <url><loc>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"<x><![CDATA[</x><url><loc>http://a/0</loc></url>]]></x><url><loc>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"<!-- <url><loc>http://a/0</loc></url> --><url><loc>http://a/1</loc></url>", ["http://a/1"], 0),
        (b"<url xml:base='http://b/d/'><loc>1</loc></url><url><loc>2</loc></url>", ["http://b/d/1", "2"], 0),
        (b"<url><loc>http://a/1</loc></url><url><loc>http://a/2<loc/></url>", ["http://a/1"], 1),
    ],
)
def test_faults_of_the_markup_are_stepped_over(inside: bytes, hrefs: list[str], guessed: int) -> None:
    page = read(SITEMAP % inside)
    assert (page.hrefs, page.refused.get("guessed", 0), page.parse_status) == (hrefs, guessed, "ok")


def test_a_cut_at_every_byte_makes_no_address_up() -> None:
    one, two, three = "http://a/?x=1&y=2", "http://a/é&", "http://a/3"
    body = (
        SITEMAP % f"<url><loc>{one.replace('&', '&amp;')}</loc></url>\n<url><loc>{two}</loc></url>".encode()
    ).replace(b"</urlset>", b"<url><loc><![CDATA[%s]]></loc></url></urlset>" % three.encode())
    for size in range(len(body)):
        page = read(body[:size])
        assert page.hrefs == [one, two, three][: body[:size].count(b"</loc>")]
        assert page.refused in ({}, {"guessed": 1})


TEXTS = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"], exclude_characters="<\ufffd"), max_size=20
)
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#x27;"}


@given(
    st.lists(st.tuples(TEXTS, st.sampled_from(["escaped", "numbers", "cdata", "raw", "comment"])), max_size=6),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-15", "koi8-r"]),
    st.sampled_from(["declared", "header", "silent"]),
    st.sampled_from(["application/xml", "text/xml", "text/plain", "text/html", "application/octet-stream"]),
)
def test_what_was_written_is_read_or_counted(
    texts: list[tuple[str, str]], codec: str, says: str, content_type: str
) -> None:
    urls, locations = [], []
    for text, how in texts:
        url = f"http://a/{text}".strip()
        with suppress(UnicodeEncodeError):
            url.encode(codec)
            escaped = "".join(ESCAPES.get(letter, letter) for letter in url)
            written = {
                "escaped": escaped,
                "numbers": "".join(f"&#{ord(letter)};" for letter in url),
                "cdata": f"<![CDATA[{url}]]>" if "]]>" not in url else escaped,
                "raw": url,
                "comment": escaped[:4] + "<!--&-->" + escaped[4:],
            }[how]
            urls.append(url)
            locations.append(f"<url>\n<loc>{written}</loc></url>")
    is_unicode = codec.startswith("utf")
    declared = f"<?xml version='1.0' encoding='{codec.removesuffix('-sig')}'?>"
    document = (
        (declared if says == "declared" or not is_unicode else "") + "<urlset>" + "".join(locations) + "</urlset>"
    )
    kind = f"{content_type}; charset={codec.removesuffix('-sig')}" if says == "header" else content_type
    page = parse(document.encode(codec), URL, kind)
    assert page.source == "sitemap"
    assert set(page.hrefs) <= set(urls)
    missing = set(urls) - set(page.hrefs)
    assert page.refused.get("guessed", 0) == len(missing)
    assert all(re.search(r"&(#|[^&]*;)", url) for url in missing)


NAMES = st.sampled_from(["urlset", "url", "loc", "n:loc", "x"])


@st.composite
def well_formed(draw: st.DrawFn, depth: int = 3) -> str:
    """Well-formed documents."""
    name = "urlset" if depth == 3 else draw(NAMES)
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["text", "cdata", "comment", "element" if depth else "text"]))
        text = draw(st.text("ab&<>\"' \n;#", max_size=5))
        if kind == "element":
            parts.append(draw(well_formed(depth=depth - 1)))
        elif kind == "cdata":
            parts.append(f"<![CDATA[{text}]]>".replace("]]>]]>", "]]>"))
        elif kind == "comment":
            parts.append(f"<!--{text}-->")
        else:
            parts.append("".join(ESCAPES.get(letter, letter) for letter in text))
    attribute = "".join(ESCAPES.get(letter, letter) for letter in draw(st.text("ab&<>\"' ", max_size=5)))
    namespace = " xmlns:n='http://n/'" if depth == 3 else ""
    return f'<{name}{namespace} a="{attribute}">{"".join(parts)}</{name}>'


@given(well_formed())
def test_well_formed_documents_are_read_as_lxml_reads_them(document: str) -> None:
    root = etree.fromstring(document, etree.XMLParser(remove_comments=True))
    expected = {
        (element.get("a", "").strip(), element.xpath("string()").strip())
        for element in root.iter("{*}loc")
        if not list(element.iter("{*}loc"))[1:]
    }
    found = XmlDocument(document.encode(), None, URL).elements(frozenset({"loc"}))
    assert expected <= {(element.attributes["a"].value, element.text.value) for element in found}


MANY = (
    b"<x/> <x%d/> <x%d></x%d> <x>t</y></x> <loc> <loc>t</loc> text <!----> <![CDATA[]]> <?p?> </z> <x\na='1'/>".split(
        b" "
    )
)


@pytest.mark.parametrize("part", MANY)
def test_memory_does_not_grow_with_the_document(part: bytes) -> None:
    parts = [part.replace(b"%d", b"%d" % number) for number in range(20_000)]
    body = b"<urlset>" + (b"<url>".join(parts[:900]) + b"</url>" * 900 if part == b"<loc>" else b"".join(parts))
    tracemalloc.start()
    read(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000


SLOW = (
    b"<!--_<![CDATA[_<_<a_<a '_<a \"_<a b='_</_</a_<?_&_&#_&a_<!doctype_<!doctype a [_<a><!--_<loc>&_<loc></_<a b='>'"
)


@pytest.mark.parametrize("part", SLOW.split(b"_"))
def test_no_document_is_slow(part: bytes) -> None:
    started = time.process_time()
    read(b"<urlset><url><loc>" + part * (200_000 // len(part)))
    read(part * (200_000 // len(part)))
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "part", [b"a", b"a=", b"a ", b" ", b"a='b'", b"a=b ", b"=", b"/", b"&", b"&a", b"xml:base='/a' "]
)
def test_no_tag_is_slow(part: bytes) -> None:
    started = time.process_time()
    for end in (b">", b"'>", b"/>", b""):
        read(b"<urlset><url><loc " + part * (500_000 // len(part)) + end)
        read(b"<urlset><x xml:base='" + part * (500_000 // len(part)) + end)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("body", [b"<svg><loc>http://a/</loc></svg>", b"", b"no xml", b"<a>", HEAD])
def test_other_xml_is_not_parsed(body: bytes) -> None:
    page = read(body)
    assert (page.hrefs, page.parse_status in ("not_parsed", "failed")) == ([], True)


TYPES = [
    "application/xml",
    "text/xml",
    "text/plain",
    "text/html; charset=utf-8",
    "application/octet-stream",
    "text/x",
    None,
]
PROLOGS = ["", "<?xml version='1.0'?>", "\n\n <?xml version='1.0'?>\n<?xml-stylesheet href='x.xsl'?><!-- > -->\n"]
PROLOGS += ["<!-- " + "long " * 2_000 + "-->", "<!DOCTYPE urlset SYSTEM 'x.dtd'>"]


@pytest.mark.parametrize("content_type", TYPES)
@pytest.mark.parametrize("prolog", PROLOGS, ids=range(len(PROLOGS)))
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_sitemap_is_one_however_it_is_sent(
    content_type: str | None, prolog: str, codec: str, is_packed: bool
) -> None:
    kind = content_type if "utf-16" not in codec else (content_type or "").partition(";")[0]
    for root, url in (("urlset", "url"), ("n:urlset", "url"), ("sitemapindex", "sitemap")):
        xml = f"{prolog}<{root}><{url}><loc>http://a/é?b&c</loc></{url}></{root}>".encode(codec)
        page = parse(gzip.compress(xml) if is_packed else xml, URL, kind)
        assert (page.hrefs, page.source) == (["http://a/é?b&c"], "sitemap")


@pytest.mark.parametrize("content_type", ["application/gzip", "application/x-gzip", "application/octet-stream", None])
@pytest.mark.parametrize(
    ("inside", "source"),
    [
        (SITEMAP % b"<url><loc>http://a/1</loc></url>", "sitemap"),
        (b"http://a/1\n", "sitemap"),
        (b"\xef\xbb\xbf\r\nhttp://a/1", "sitemap"),
        ("\ufeffhttp://a/1\r\n".encode("utf-16-le"), "sitemap"),
        (b"<rss><channel><link>http://a/1</link></channel></rss>", "feed"),
        (b"<!--" + b"x" * 5_000 + b"--><rss><channel><link>http://a/1</link></channel></rss>", "feed"),
    ],
)
def test_gzip_files(content_type: str | None, inside: bytes, source: str) -> None:
    page = parse(gzip.compress(inside), URL + ".gz", content_type)
    assert (page.mime_detected, page.hrefs, page.source) == ("application/gzip", ["http://a/1"], source)


def test_a_long_list_in_a_gzip_file() -> None:
    urls = [f"http://a/{number}" for number in range(2_000)]
    packed = gzip.compress("\n".join(urls).encode())
    assert parse(packed, URL, "application/gzip").hrefs == urls
    cut = parse(packed[:-100], URL, "application/gzip")
    assert cut.hrefs == urls[: len(cut.hrefs)]
    assert (len(cut.hrefs) > 100, cut.refused, cut.parse_status) == (True, {"guessed": 1}, "truncated")


@pytest.mark.parametrize(
    "inside", [b"a tar file", b"<html><a href=x>", b"", b"http://a/ is a page", b"http://a/\n" * 500 + b"x"]
)
def test_other_gzip_files_are_not_parsed(inside: bytes) -> None:
    assert parse(gzip.compress(inside), URL, "application/gzip").parse_status == "not_parsed"


def test_no_more_than_50_000() -> None:
    body = SITEMAP % b"".join(b"<url><loc>http://a/%d</loc></url>" % n for n in range(MAX_URLS + 10))
    page = read(body)
    assert (len(page.hrefs), page.refused, page.parse_status) == (MAX_URLS, {"too_many": 10}, "ok")


LAUGHS = b"<!DOCTYPE urlset [<!ENTITY a 'ha'>%s]>" % b"".join(
    b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
)


@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS,
        b"<!DOCTYPE urlset [<!ENTITY j SYSTEM 'file:///etc/passwd'>]>",
        b"<!DOCTYPE urlset [<!ENTITY % j SYSTEM 'http://127.0.0.1/'> %j;]>",
    ],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_documents_that_declare_entities_are_not_read(doctype: bytes, codec: str) -> None:
    text = "<?xml version='1.0'?>" + doctype.decode() + "<urlset><url><loc>http://a/&j;</loc></url></urlset>"
    started = time.process_time()
    page = read(text.encode(codec))
    assert (page.parse_status, page.reason) == ("failed", "the document has an internal DTD subset")
    assert time.process_time() - started < 1


def test_an_external_dtd_is_not_fetched() -> None:
    page = read(b"<!DOCTYPE urlset SYSTEM 'http://127.0.0.1:1/x.dtd'><urlset><url><loc>http://a/</loc></url></urlset>")
    assert page.hrefs == ["http://a/"]


def test_depth_is_bounded() -> None:
    started = time.process_time()
    assert read(b"<a>" * 100_000).hrefs == []
    assert time.process_time() - started < 5
