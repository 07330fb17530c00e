from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.filters import UrlFilters
from crawler.page.links import LinkReader, Links
from crawler.page.url import Url, UrlPolicy
from crawler.settings import FilterSettings, UrlSettings

RULES = FilterSettings(deny_domains=("denied.org",), max_depth=3)
BASE = "http://h.org/d/page.html"


def reader(max_links: int = 6_000, memory_bytes: int = 1 << 20) -> LinkReader:
    return LinkReader(UrlPolicy(UrlSettings()), UrlFilters(RULES), max_links, memory_bytes)


def texts(links: Links) -> list[str]:
    return [link.url for link in links.urls]


def test_distinct_in_document_order_with_reasons_counted() -> None:
    hrefs = ["b", "/d/b", "#x", "#y", "", "a?utm_source=1", "a", "mailto:x", "mailto:y", "http://denied.org/"]
    links = reader().read(hrefs, BASE, 1)
    assert texts(links) == ["http://h.org/d/b", BASE, "http://h.org/d/a"]
    assert links.refused == {"scheme": 2, "denied_domain": 1}
    assert links.found == 6


def test_the_same_refused_url_counts_once() -> None:
    links = reader().read(["http://denied.org/", "http://denied.org/#a", "HTTP://denied.org"], BASE, 1)
    assert (links.found, links.refused) == (1, {"denied_domain": 1})


def test_too_many_links_are_cut_and_counted() -> None:
    links = reader(max_links=3).read([f"p{n}" for n in range(10)], BASE, 1)
    assert texts(links) == [f"http://h.org/d/p{n}" for n in range(3)]
    assert (links.found, links.refused) == (10, {"too_many": 7})


def test_too_long_hrefs_are_not_parsed() -> None:
    assert reader().read(["x" * 4_097], BASE, 1).refused == {"raw_too_long": 1}


def test_depth_is_not_remembered() -> None:
    one = reader()
    assert [one.read(["a"], BASE, depth).refused for depth in (4, 3, 4)] == [{"too_deep": 1}, {}, {"too_deep": 1}]


def test_what_is_remembered_is_bounded() -> None:
    one = reader(memory_bytes=10_000)
    for number in range(1_000):
        one.read([f"p{number}", f"/{number}"], f"http://h{number % 7}.org/d{number}/", 1)
    assert sum(map(len, one._known.values())) + len(one._known) < 100


@pytest.mark.parametrize("href", ["#a", "", "?b", " #a", "\t#a", "http:#a", "HTTP:", "http:?c", "ht\ntp:#a", "\n"])
def test_what_means_the_page_itself_differs_from_page_to_page(href: str) -> None:
    one = reader()
    pages = ["http://h.org/d/a", "http://h.org/d/b", "http://h.org/d/a?q"]
    shared = [texts(one.read([href], page, 1)) for page in pages]
    assert shared == [texts(reader().read([href], page, 1)) for page in pages]


RELATIVE = ["a", "./a", "../a", "/a", "httpd.html", "?q", "#f", "a#f", "", " /a ", "\\a", "a\tb", "\t#", "..", "a/"]
ABSOLUTE = ["//o.org/a", "http://o.org/a", "https://o.org", "http:a", "HTTP:/a", "https:a", "/\\o.org", "mailto:a"]
HREFS = st.lists(st.sampled_from([*RELATIVE, *ABSOLUTE, "http://denied.org"]))
PAGES = st.sampled_from(
    ["http://h.org/", "http://h.org/d/a?q=/x/", "http://h.org/d/b", "https://h.org/d/b", "http://o.org/d/"]
)


@given(st.lists(st.tuples(HREFS, PAGES)), st.sampled_from([1, 2_000, 1 << 20]))
def test_remembering_changes_nothing(visits: list[tuple[list[str], str]], memory_bytes: int) -> None:
    one = reader(memory_bytes=memory_bytes)
    policy, filters = UrlPolicy(UrlSettings()), UrlFilters(RULES)
    for hrefs, page in visits:
        found = [policy.canonical(href, page) for href in hrefs]
        accepted = dict.fromkeys(u.url for u in found if isinstance(u, Url) and filters.refuse(u, 1) is None)
        assert texts(one.read(hrefs, page, 1)) == list(accepted)
