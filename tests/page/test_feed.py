from __future__ import annotations

import pytest

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
        ("<rss><channel><item><title>a &nbsp; b</title><link>/1</link></item>", ["/1"], "a", "a"),
        ("<rss><channel><link>/1</link><item><link>/a-cut-li", ["/1"], None, ""),
        ("<rss/>", [], None, ""),
    ],
)
def test_feeds(xml: str, hrefs: list[str], title: str | None, text: str) -> None:
    page = FeedModule().parse(xml.encode(), URL, None)
    assert (page.hrefs, page.title, page.text, page.source) == (hrefs, title, text, "feed")


def test_entities_are_not_expanded() -> None:
    page = FeedModule().parse(b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss><link>&a;</link></rss>", URL, None)
    assert (page.parse_status, page.hrefs) == ("failed", [])
