from __future__ import annotations

import pytest

from crawler.page.documents import parse
from crawler.page.feed import FeedModule

URL = "http://h.org/feed"
RSS = (
    "<rss version='2.0'><channel><title>T</title><link>http://h/</link><item><title>One</title>"
    "<link> /1 </link><comments>/c</comments><enclosure url='/e'/></item></channel></rss>"
)
RSS_1 = (
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
    "<channel><title>T</title><link>/</link></channel><item><link>/1</link></item></rdf:RDF>"
)
ATOM = (
    "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><link href='/' rel='self'/><link href='/h'/>"
    "<entry><title>E</title><link rel='alternate' href=' /1 '/><link rel='enclosure' href='/e'/></entry>"
    "<link rel='next' href='?p=2'/></feed>"
)


@pytest.mark.parametrize(
    ("xml", "hrefs", "title", "text"),
    [
        (RSS, ["http://h/", "/1"], "T", "T\nOne"),
        (RSS_1, ["/", "/1"], "T", "T"),
        (ATOM, ["/h", "/1", "?p=2"], "T", "T\nE"),
        ("<rss><channel><item><title>a &nbsp; b</title><link>/1</link></item>", ["/1"], "a b", "a b"),
        ("<rss><channel><link>/1</link><item><link>/a-cut-li", ["/1"], None, ""),
        ("<rss/>", [], None, ""),
    ],
)
def test_feeds(xml: str, hrefs: list[str], title: str | None, text: str) -> None:
    page = FeedModule().parse(xml.encode(), URL, None)
    assert (page.hrefs, page.title, page.text, page.source) == (hrefs, title, text, "feed")


RSS_LINK = "<rss><channel><item>%s</item><item><link>/2</link></item></channel></rss>"
ATOM_LINK = "<feed xmlns='http://www.w3.org/2005/Atom'><entry>%s</entry><entry><link href='/2'/></entry></feed>"


@pytest.mark.parametrize(
    ("template", "inside", "hrefs", "refused"),
    [
        (RSS_LINK, "<link>/1?a=1&b=2</link>", ["/1?a=1&b=2"], 0),
        (RSS_LINK, "<link>/1?a=1&amp;b=2</link>", ["/1?a=1&b=2"], 0),
        (RSS_LINK, "<link><![CDATA[ /1?a=1&b=2 ]]></link>", ["/1?a=1&b=2"], 0),
        (RSS_LINK, "<link>/1<!-- a -->?b</link>", ["/1?b"], 0),
        (RSS_LINK, "<LINK>/1</LINK>", ["/1"], 0),
        (RSS_LINK, "<link>/1&nbsp;</link>", [], 1),
        (RSS_LINK, "<link>/1<i>x</i></link>", [], 1),
        (RSS_LINK, "<description><p>a<br>b &eacute; <b></description><link>/1</link>", ["/1"], 0),
        (RSS_LINK, "<guid>http://h/1?a&b</guid>", ["http://h/1?a&b"], 0),
        (RSS_LINK, "<guid isPermaLink='true'>HTTP://h/1</guid>", ["HTTP://h/1"], 0),
        (RSS_LINK, "<guid isPermaLink=' True '>http://h/1</guid>", ["http://h/1"], 0),
        (RSS_LINK, "<guid isPermaLink='false'>http://h/1</guid>", [], 0),
        (RSS_LINK, "<guid ispermalink='FALSE'>http://h/1</guid>", [], 0),
        (RSS_LINK, "<guid>tag:h,2026:1</guid><guid>1234</guid><guid/>", [], 0),
        (RSS_LINK, "<guid>http://h/1&nope;</guid>", [], 1),
        (RSS_LINK, "<link>/1</link><guid>http://h.org/1</guid>", ["/1", "http://h.org/1"], 0),
        (ATOM_LINK, "<link href='/1?a=1&b=2'/>", ["/1?a=1&b=2"], 0),
        (ATOM_LINK, "<link href='/1?a=1&amp;b=2' />", ["/1?a=1&b=2"], 0),
        (ATOM_LINK, '<link title="a > b" href="/1"></link>', ["/1"], 0),
        (ATOM_LINK, "<a:link href='/1'/>", ["/1"], 0),
        (ATOM_LINK, "<link href='/1&nbsp;'/>", [], 1),
        (ATOM_LINK, "<link href=/1/>", [], 1),  # where does it end?
        (ATOM_LINK, "<link href='/1\n/2'/>", [], 1),
        (ATOM_LINK, "<link rel='http://www.iana.org/assignments/relation/alternate' href='/1'/>", ["/1"], 0),
        (ATOM_LINK, "<link rel='self' href='/1&nbsp;'/><link rel='' href='/1'/>", [], 0),
        (ATOM_LINK, "<link xml:base='http://b/d/' href='1'/>", ["http://b/d/1"], 0),
        (ATOM_LINK, "<x xml:base='d/'><link href='1'/></x>", ["http://h.org/d/1"], 0),
        (ATOM_LINK, "<x xml:base='http://b/c/'><y xml:base='../d/'><link href='1'/></y><link href='2'/></x>",
         ["http://b/d/1", "http://b/c/2"], 0),
        (ATOM_LINK, "<x xml:base='http://b/?a&b'><link href='1'/></x>", ["http://b/1"], 0),
        (ATOM_LINK, "<x xml:base='javascript:1'><link href='1'/></x>", ["http://h.org/1"], 0),
        (ATOM_LINK, "<x xml:base='http://b/&bogus;/'><link href='1'/></x>", ["http://h.org/1"], 0),
        (ATOM_LINK, "<x xml:base='http://b/'/><link href='1'/>", ["1"], 0),
        (ATOM_LINK, "<x xml:base='http://b/'><link href='http://['/></x>", ["http://["], 0),
    ],
)  # fmt: skip
def test_an_address_is_what_its_author_meant(template: str, inside: str, hrefs: list[str], refused: int) -> None:
    page = FeedModule().parse((template % inside).encode(), URL, None)
    assert (page.hrefs, page.refused.get("guessed", 0)) == ([*hrefs, "/2"], refused)


@pytest.mark.parametrize(
    ("root", "hrefs"),
    [
        ("<feed xml:base='http://b/d/'><link href='1'/></feed>", ["http://b/d/1"]),
        ("<rss xml:base='http://b/d/'><channel><link>1</link><guid>http://b/2</guid></channel></rss>",
         ["http://b/d/1", "http://b/2"]),
        ("<f:feed xmlns:f='x' xml:base = \"/d/\"><f:link href='1'/></f:feed>", ["http://h.org/d/1"]),
    ],
)  # fmt: skip
def test_the_base_of_a_whole_feed(root: str, hrefs: list[str]) -> None:
    assert FeedModule().parse(root.encode(), URL, None).hrefs == hrefs


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("a &amp; b", "a & b"),
        ("a & b", "a & b"),
        ("caf&eacute; &mdash; &bogus;", "café — &bogus;"),
        ("a <b>b</b>  c", "a b c"),
        ("<![CDATA[a <b>b</b>]]>", "a <b>b</b>"),
        ("1 < 2", "1 < 2"),
        ("a\x00\x07b", "ab"),
        ("\udce9t\udce9", "\ufffdt\ufffd"),
    ],
)
def test_titles_are_taken_as_they_are(written: str, title: str) -> None:
    body = f"<rss><channel><title>{written}</title><link>/1</link></channel></rss>".encode("utf-8", "surrogateescape")
    page = FeedModule().parse(body, URL, None)
    assert (page.title, page.hrefs, page.refused) == (title, ["/1"], {})


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "windows-1251", "shift_jis"]
)
@pytest.mark.parametrize(
    "content_type", ["application/rss+xml", "text/xml", "text/plain", "text/html", "text/rss", None]
)
@pytest.mark.parametrize("says", ["declared", "header"])
def test_a_feed_is_one_however_it_is_sent(codec: str, content_type: str | None, says: str) -> None:
    if says == "header" and content_type is None:
        return
    xml = "<rss><channel><title>Привет</title><link>/1</link></channel></rss>"
    label = codec.removesuffix("-sig")
    body = (f"<?xml version='1.0' encoding='{label}'?>{xml}" if says == "declared" else xml).encode(codec)
    page = parse(body, URL, content_type if says == "declared" else f"{content_type}; charset={label}")
    assert (page.mime_detected, page.title, page.hrefs) == ("application/rss+xml", "Привет", ["/1"])
    assert page.charset == ("utf-16le" if label == "utf-16" else label.replace("-le", "le").replace("-be", "be"))


def test_entities_are_not_expanded() -> None:
    page = FeedModule().parse(b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss><link>&a;</link></rss>", URL, None)
    assert (page.parse_status, page.hrefs) == ("failed", [])
