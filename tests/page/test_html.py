from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.documents import DocumentModule, module_for
from crawler.page.html import LexborModule, with_ends
from crawler.page.html_bs4 import BeautifulSoupModule
from crawler.page.model import Page

URL = "http://h.org/d/page"
BOTH: Sequence[DocumentModule] = (LexborModule(), BeautifulSoupModule())
both = pytest.mark.parametrize("module", BOTH, ids=["lexbor", "bs4"])


def read(html: str, module: DocumentModule = BOTH[0]) -> Page:
    return module.parse(html.encode(), URL, "text/html; charset=utf-8")


@both
@pytest.mark.parametrize(
    ("html", "hrefs"),
    [
        ("<a href=1>a</a><A HREF='2'>b</A><a>c</a><a href>d</a>", ["1", "2"]),
        ("<map><area href=1><area href=2></map>", ["1", "2"]),
        ("<iframe src=1></iframe><iframe></iframe>", ["1"]),
        ("<frameset><frame src=1><frame src=2></frameset>", ["1", "2"]),
        ("<link rel=canonical href=1><link rel='Next' href=2><link rel='alternate x' href=3>", ["1", "2", "3"]),
        ("<link rel=stylesheet href=1><link rel=icon href=2><link href=3><link rel='alternate stylesheet' href=4>", []),
        ("<meta http-equiv=Refresh content='5; url=1'>", ["1"]),
        ("<meta http-equiv=refresh content='0;URL=\"a b\"x'>", ["a b"]),
        ("<meta http-equiv=refresh content=\"0, url='1'\">", ["1"]),
        ("<meta http-equiv=refresh content='3;1'>", ["1"]),
        ("<meta http-equiv=refresh content='3'><meta http-equiv=refresh content=''><meta http-equiv=refresh>", []),
        ("<a href=1>a</a><a href=2>b</a><a href=1>c</a>", ["1", "2"]),
        ("<a href='a&amp;b&lt;&#x41;'>a</a>", ["a&b<A"]),
        ("<a href='ä\t'>a</a>", ["ä\t"]),
        ("<noscript><a href=1>a</a></noscript>", ["1"]),
        ("<template><a href=1>a</a></template>", []),
        ("<!-- <a href=1>a</a> --><script>'<a href=2>'</script>", []),
        ("<svg><a href=1><text>a</text></a></svg>", ["1"]),
        ("<svg><a xlink:href=1><text>a</text></a><a XLINK:HREF='2'/></svg><a href=3>x</a>", ["1", "2", "3"]),
        ("<svg><a xlink:href=1 href=2>x</a><use xlink:href=3 /><image href=4 /></svg>", ["2"]),
        ("<svg><a xlink:href=1 rel=nofollow>x</a><a xlink:href>y</a><a>z</a></svg>", []),
        ("<a href=1>unclosed <a href=2>tags <p><a href=3", ["1", "2"]),
    ],
)
def test_links(module: DocumentModule, html: str, hrefs: list[str]) -> None:
    assert read(html, module).hrefs == hrefs


@both
@pytest.mark.parametrize("tag", ["div", "b", "table><tr><td", "ul><li", "blockquote"])
def test_a_link_after_300_nested_tags_is_found(module: DocumentModule, tag: str) -> None:
    page = read(f"<{tag}>" * 300 + "<a href=1>deep words</a>", module)
    assert (page.hrefs, page.text.split()) == (["1"], ["deep", "words"])


@both
def test_nofollow_links_are_kept_apart(module: DocumentModule) -> None:
    page = read("<a rel='NoFollow x' href=1><a href=2 rel=nofollow><a href=2><area href=3 rel=nofollow>", module)
    assert (page.hrefs, page.nofollow_hrefs, page.nofollow) == (["2"], ["1", "3"], 2)


RELATIONS = (
    "nofollow_noopener|nofollow,noopener|noopener,_NOFOLLOW|a;nofollow|a+nofollow|ugc/nofollow|'nofollow'|a\xa0nofollow"
)


@both
@pytest.mark.parametrize("rel", [*RELATIONS.replace("_", " ").split("|"), "a|nofollow", "nofollow\n", "“nofollow”"])
def test_relations_may_be_separated_by_anything(module: DocumentModule, rel: str) -> None:
    page = read(
        f'<a href=1 rel="{rel}">a</a><area href=2 rel="{rel}"><a href=3 rel="no-follow nofollows">a</a>', module
    )
    assert (page.hrefs, page.nofollow_hrefs) == (["3"], ["1", "2"])
    page = read(
        '<link href=1 rel="next,prefetch"><link href=2 rel="alternate;stylesheet"><link href=3 rel=nexts>', module
    )
    assert page.hrefs == ["1"]


SWALLOWING = ["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "template"]


SWALLOWED = [
    "<body><{0}><p>words <a href=1>x</a>",
    "<body><{0}><{0}><p>words <a href=1>x</a>",
    "<body><p>words <{0}><a href=1>x</a><{1}>a < b</{1}>",
    "<body><{1}>a < b</{1}><{0}><p>words <a href=1>x</a>",
    "<body><!-- <{1}> --><{0}><p>words <a href=1>x</a><!-- </{1}> -->",
]


@both
@pytest.mark.parametrize("name", SWALLOWING)
@pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml"])
def test_an_element_that_is_closed_in_its_own_tag_swallows_nothing(
    module: DocumentModule, name: str, kind: str
) -> None:
    for slash in ("/", " /", " a='b'/", ' a="b>" c /', "\n/"):
        for template in SWALLOWED:
            page = module.parse(template.format(name + slash, name).encode(), URL, f"{kind}; charset=utf-8")
            assert page.hrefs == ["1"], template
            assert {"words", "x"} <= set(page.text.split()), template


@both
@pytest.mark.parametrize(
    ("html", "hrefs", "words"),
    [
        # The end tag that follows is the element's: in HTML the slash means nothing.
        ("<script src=a />var b = '<a href=1>';</script><a href=2>b</a>", ["2"], "b"),
        ("<SCRIPT SRC='a'/></script><a href=2>b</a>", ["2"], "b"),
        ("<script src=a /><script src=b>'<a href=1>'</script><a href=2>b</a>", ["2"], "b"),
        ("<iframe src='1'/><a href=2>b</a>", ["1", "2"], "b"),
        ("<iframe src='1'/></iframe><a href=2>b</a>", ["1", "2"], "b"),
        ("<iframe src=http://a/></iframe><a href=2>b</a>", ["http://a/", "2"], "b"),
        # What a script holds is no tag.
        ("<script>'<script/>' + '<style/>' + '<title/>'</script><a href=2>b</a>", ["2"], "b"),
        ("<style>a::after {content: '<title/>'}</style><a href=2>b</a>", ["2"], "b"),
        ("<!-- <script/> --><a href=2>b</a><script></script>", ["2"], "b"),
        ("<a title='<script/>' href=2>b</a>", ["2"], "b"),
        ("<br/><img src=x /><scripted/><a href=2>b</a>", ["2"], "b"),
    ],
)
def test_slashes_that_end_nothing(module: DocumentModule, html: str, hrefs: list[str], words: str) -> None:
    page = read(f"<body>{html}</body>", module)
    assert (page.hrefs, page.text.split()) == (hrefs, words.split())


def test_the_title_of_a_page_that_was_swallowed() -> None:
    html = "<head><title/><script src='a'/><title>T</title><script src='b'/></head><body><a href=1>b</a>"
    assert [(page.hrefs, page.text) for page in (read(html, module) for module in BOTH)] == [(["1"], "b")] * 2


SLOW = "<script/>|<script |<script '|<script a=\"|<!--|<title>|<template/>|/>|<script></script>|<iframe/></iframe>"


@pytest.mark.parametrize("part", SLOW.split("|"))
def test_mending_is_never_slow(part: str) -> None:
    started = time.process_time()
    with_ends((part * (300_000 // len(part)) + "<script/>").encode())
    with_ends(("<script/>" + part * (300_000 // len(part))).encode())
    assert time.process_time() - started < 1


@both
@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("", URL),
        ("<base href=/x/>", "http://h.org/x/"),
        ("<base target=_top><base href=a><base href=b>", "http://h.org/d/a"),
        ("<base href=//o.org>", "http://o.org/"),
        ("<base href='javascript:x'>", URL),
        ("<base href='data:text/html,x'>", URL),
        ("<base href='http://['>", URL),
        ("<base href=''>", URL),
        (f"<base href='/{'x' * 4_096}/'>", URL),
    ],
)
def test_base(module: DocumentModule, html: str, base: str) -> None:
    assert read(html, module).base == base


@both
@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n &amp; B </title><title>C</title>", "A & B"),
        ("<title></title>", ""),
        ("<p>a", None),
        ("<body><title>late</title>", "late"),
    ],
)
def test_title(module: DocumentModule, html: str, title: str | None) -> None:
    assert read(html, module).title == title


def test_what_is_typed_into_a_form_is_no_link() -> None:
    assert read("<textarea><a href=1></textarea><xmp><a href=2></xmp>").hrefs == []


def test_the_title_of_a_picture_is_not_the_pages() -> None:
    assert read("<body><svg><title>picture</title></svg>").title is None


@both
@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<title>t</title><p>one<p>two<br>three<ul><li>four</li><li>five</ul>", "one two three four five"),
        ("<p>a<script>b</script><style>c</style><noscript>d</noscript><template>e</template>f", "a f"),
        ("<p><noscript>a<style>b</style><noscript>c</noscript></noscript>d", "d"),
        ("<iframe>a</iframe><!-- b -->c", "c"),
        ("<p>&lt;a&gt; &nbsp; &eacute;&#8217;", "<a> é’"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("<button>a</button><textarea>b</textarea><select><option>c</select>", "a b c"),
        ("just text", "just text"),
        ("", ""),
        ("<frameset><frame src=a></frameset>", ""),
    ],
)
def test_text(module: DocumentModule, html: str, words: str) -> None:
    assert read(html, module).text.split() == words.split()


@both
def test_directives(module: DocumentModule) -> None:
    html = "<meta name=Robots content='NoIndex, noarchive'><meta name=otherbot content=none><meta name=a content=b>"
    page = read(html, module)
    assert page.directives == {"noindex", "noarchive"}
    assert page.robots_metas == [("robots", "noindex, noarchive"), ("otherbot", "none")]


@both
@pytest.mark.parametrize(
    "content", ["noindex nofollow", "noindex;nofollow", "unavailable_after: Fri, 25 Jun 10 15:00 UTC; none"]
)
def test_directives_by_whatever_they_are_separated(module: DocumentModule, content: str) -> None:
    assert read(f"<meta name=robots content='{content}'>", module).directives >= {"noindex", "nofollow"}


@both
@pytest.mark.parametrize(
    ("body", "content_type", "title", "charset"),
    [
        ("<title>Привет".encode("koi8-r"), "text/html; charset=koi8-r", "Привет", ("koi8-r", "header")),
        ("\ufeff<title>Привет".encode("utf-16-be"), "text/html", "Привет", ("utf-16be", "bom")),
        (b"\xef\xbb\xbf<title>\xc3\xa9", None, "é", ("utf-8", "bom")),
        (b"<title>\xe9\x80\x81", None, "\u9001", ("utf-8", "content")),
        (b"<title>\xe9\x81.", None, "é\x81.", ("windows-1252", "default")),
        (b"<meta charset=utf8><title>\xe9\xff.", None, "\ufffd\ufffd.", ("utf-8", "meta")),
    ],
)
def test_charsets(
    module: DocumentModule, body: bytes, content_type: str | None, title: str, charset: tuple[str, str]
) -> None:
    page = module.parse(body, URL, content_type)
    assert (page.title, (page.charset, page.charset_source)) == (title, charset)
    assert "\ufeff" not in page.text


@both
@given(st.binary(max_size=100), st.sampled_from(["", "utf-8", "utf-16", "gbk", "iso-2022-jp"]))
def test_any_bytes_give_texts_that_can_be_stored(module: DocumentModule, body: bytes, charset: str) -> None:
    page = module.parse(b"<title>" + body + b"</title><a href='" + body + b"'>" + body, URL, f"a/b; charset={charset}")
    for text in (page.title or "", page.text, *page.hrefs):
        assert "\x00" not in text
        assert text.encode().decode() == text


TEXTS = st.sampled_from(["x", "1 2", "&amp;", "é", "'", "/a?b=c&d", "../e"])


@st.composite
def pages(draw: st.DrawFn) -> str:
    """Pages without errors, on which a browser's tree and the plain sequence of tags agree."""
    parts = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["a", "area", "iframe", "p", "div", "noscript", "script", "template", "h1", "svg"]))
        address = draw(TEXTS).replace("'", "&#39;")
        rel = draw(st.sampled_from(["", " rel=nofollow", " rel='me'", " rel='me,nofollow'"]))
        attribute = "src" if kind == "iframe" else "href"
        inner = draw(TEXTS) if kind not in ("area", "iframe") else ""
        close = "" if kind == "area" else f"</{kind}>"
        if kind == "svg":
            parts.append(f"<svg><a xlink:href='{address}'{rel}>{inner}</a></svg>")
        elif kind in ("script", "iframe", "template") and draw(st.booleans()):
            parts.append(f"<{kind} {attribute}='{address}'{rel}/>")
        else:
            parts.append(f"<{kind} {attribute}='{address}'{rel}>{inner}{close}")
    return f"<!doctype html><html><head><title>{draw(TEXTS)}</title></head><body>{''.join(parts)}</body></html>"


@given(pages())
def test_both_modules_agree(html: str) -> None:
    fast, plain = (read(html, module) for module in BOTH)
    assert (fast.hrefs, fast.nofollow_hrefs, fast.title) == (plain.hrefs, plain.nofollow_hrefs, plain.title)
    assert fast.text.split() == plain.text.split()


def test_the_modules_are_chosen_by_name() -> None:
    assert isinstance(module_for("text/html"), LexborModule)
    assert isinstance(module_for("application/xhtml+xml", "bs4"), BeautifulSoupModule)
    with pytest.raises(ValueError, match=r"page\.html_module: 'x' is not known; allowed: lexbor, bs4"):
        module_for("text/html", "x")


@pytest.mark.parametrize(("length", "is_taken"), [(100, True), (4_000, True), (5_000, False), (100_000, False)])
def test_an_endless_base_is_none(length: int, is_taken: bool) -> None:
    href = "/" + "a" * length + "/"
    page = LexborModule().parse(f"<base href='{href}'>".encode(), "http://h.org/d/", "text/html")
    assert page.base == (f"http://h.org{href}" if is_taken else "http://h.org/d/")


@pytest.mark.parametrize(
    ("content", "target"),
    [("0;url=/a", "/a"), ("5 ; URL = '/a'", "/a"), ("1.5 /a", "/a"), ("0,/a", "/a"), ("0" + " " * 50_000, None)],
)
def test_a_refresh_is_read_in_linear_time(content: str, target: str | None) -> None:
    page = LexborModule().parse(f'<meta http-equiv=refresh content="{content}">'.encode(), "http://h.org/", None)
    assert page.hrefs == ([target] if target else [])
