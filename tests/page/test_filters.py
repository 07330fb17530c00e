from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.filters import BAD_PORTS, Scope, UrlFilters
from crawler.page.url import Url, UrlPolicy, host_key
from crawler.settings import FilterSettings, UrlSettings

POLICY = UrlPolicy(UrlSettings())
RULES = FilterSettings(
    deny_domains=("denied.org", "Xn--Fa-Hia.de"),
    deny_prefixes=("http://example.org/private/", "example.org/cgi"),
    deny_patterns=(r"\.(gif|jpe?g)$", r"[?&]sort="),
)
BLOCK_LIST = [
    "# a comment",
    "",
    "blocked.org # why",
    "0.0.0.0 ads.example.net tracker.net",
    "http://example.org/blocked",
]


def url(raw: str) -> Url:
    found = POLICY.canonical(raw)
    assert isinstance(found, Url)
    return found


def keys(*names: str) -> bytes:
    return np.sort(np.array([host_key(name) for name in names], "<i8")).tobytes()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("http://example.org/", None),
        ("https://example.org/a/b/c?d=e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z", None),
        ("ftp://example.org/", "scheme"),
        ("http://example.org/" + "a" * 2_064, None),
        ("http://example.org/" + "a" * 2_065, "too_long"),
        ("http://example.org/" + "/".join(map(str, range(20))), None),
        ("http://example.org/" + "/".join(map(str, range(20))) + "/", None),
        ("http://example.org/" + "/".join(map(str, range(21))), "path_segments"),
        ("http://example.org/a/a", None),
        ("http://example.org/a/a/a", "path_repeats"),
        ("http://example.org/x/a/b/a/b/y", None),
        ("http://example.org/x/a/b/a/b/a/b/y", "path_repeats"),
        ("http://example.org/a/b/c/a/b/c/a/b/c", "path_repeats"),
        ("http://example.org/1/a/1/b/1/c/1", None),  # dates and ids repeat out of step
        ("http://denied.org/", "denied_domain"),
        ("http://www.denied.org:8080/", "denied_domain"),
        ("http://notdenied.org/", None),
        ("http://faß.de/", "denied_domain"),
        ("http://example.org/private/a", "denied_prefix"),
        ("https://example.org/private/a", None),
        ("https://example.org/cgi-bin/", "denied_prefix"),
        ("http://example.org/a.jpeg", "denied_pattern"),
        ("http://example.org/a.jpeg.html", None),
        ("http://example.org/?a&sort=b", "denied_pattern"),
        ("http://www.blocked.org/", "block_list"),
        ("http://ads.example.net/", "block_list"),
        ("http://a.tracker.net/", "block_list"),
        ("http://example.net/", None),
        ("http://example.org/blocked/a", "block_list"),
    ],
)
def test_reasons(raw: str, reason: str | None) -> None:
    assert UrlFilters(RULES, BLOCK_LIST).refuse(url(raw), 0) == reason


SUFFIXES = [
    *((f"http://example.org/{name}", "denied_suffix") for name in (
        "a.iso", "a/b.ISO", "x.tar.gz", "x.tgz", "x.gz", "disk.img", "a.zip", "a.7z", "a.rar", "setup.exe", "a.msi",
        "a.deb", "a.rpm", "a.apk", "a.mp3", "a.mp4", "a.Mp4", "a.dmg", "a.webm", "a.zip?x=1", "a.zip?x=/y.html",
        "a%2Ezip", "a.%7aip", "a.html.zip", ".zip", "..zip", "a.xml.zip", "a.xml.gz.zip", "sitemap.gz",
    )),
    *((f"http://example.org/{name}", None) for name in (
        "", "a", "iso", "zip", "a.html", "a.zip/", "a.zip/download", "a.zip.html", "a.iso.txt", "?file=a.zip",
        "a?file=/a.zip", "sitemap.xml.gz", "sitemap.XML.GZ", "urls.txt.gz", "a.xml", "a.pdf", "a.png", "a.zips",
        "a%2Fb.zip%3F", "a.zip;v=1", "a.%ff%fe", "a.", "a..", "...",
    )),
    ("http://movie.zip/", None),
    ("http://movie.mov/a", None),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "reason"), SUFFIXES)
def test_a_suffix_is_refused_by_the_path_alone(raw: str, reason: str | None) -> None:
    filters = UrlFilters(FilterSettings())
    found = url(raw)
    assert filters.refuse(found, 0) == filters.refuse(found, 0, "seed") == reason
    assert filters.refuse(found, 1, "sitemap") is None


def test_suffixes_are_those_of_the_settings() -> None:
    filters = UrlFilters(FilterSettings(deny_suffixes=(".GIF", ".min.js"), keep_suffixes=(".ok.gif",)))
    raws = [f"http://example.org/{name}" for name in ("a.gif", "a.ok.gif", "a.js", "a.min.js", "a.zip")]
    found = [filters.refuse(url(raw), 0) for raw in raws]
    assert found == ["denied_suffix", None, None, "denied_suffix", None]


def test_a_seed_opens_its_scope_and_nothing_else() -> None:
    filters = UrlFilters(RULES, BLOCK_LIST, Scope("domains", keys("in.org")))
    raws = ["http://out.org/", "http://denied.org/", "http://blocked.org/", "http://out.org/a.gif", "ftp://out.org/"]
    assert [filters.refuse(url(raw), 0) for raw in raws[:1]] == ["out_of_scope"]
    found = [filters.refuse(url(raw), 0, "seed") for raw in raws]
    assert found == [None, "denied_domain", "block_list", "denied_pattern", "scheme"]


OPENED = Scope(ports=keys("a.org:8080", "[2001:db8::1]:81"))


@pytest.mark.parametrize(
    ("raw", "is_open"),
    [
        ("http://a.org/", True),
        ("http://a.org:80/", True),
        ("http://a.org:443/", True),
        ("https://a.org:80/", True),
        ("http://a.org:8080/", True),
        ("https://a.org:8080/", True),
        ("http://a.org:8081/", False),
        ("http://www.a.org:8080/", False),
        ("http://b.org:8080/", False),
        ("http://b.org:9000/", True),  # by the settings
        ("http://[2001:db8::1]:81/", True),
        ("http://[2001:db8::1]/", True),
        ("http://[2001:db8::2]:81/", False),
        ("http://192.0.2.1:8080/", False),
        ("http://a.org:0/", False),
        ("http://a.org:22/", False),
        ("http://a.org:65535/", False),
    ],
)
def test_a_port_is_open_where_a_setting_or_a_seed_of_that_host_opened_it(raw: str, is_open: bool) -> None:
    filters = UrlFilters(FilterSettings(ports=(9000,)), scope=OPENED)
    assert filters.refuse(url(raw), 0) == (None if is_open else "port")


@given(st.integers(0, 65_535), st.sampled_from(["http", "https"]))
def test_without_a_word_only_the_ports_of_the_web_are_open_and_a_seed_opens_all_but_the_bad(
    port: int, scheme: str
) -> None:
    asked = url(f"{scheme}://a.org:{port}/")
    assert UrlFilters(FilterSettings(), scope=Scope(ports=b"")).refuse(asked, 0) == (
        None if port in (80, 443) else "port"
    )
    assert UrlFilters(FilterSettings()).refuse(asked, 0) == ("port" if port in BAD_PORTS else None)


@pytest.mark.parametrize("port", sorted(BAD_PORTS))
def test_a_bad_port_is_closed_whoever_opens_it(port: int) -> None:
    filters = UrlFilters(FilterSettings(ports=(port,)), scope=Scope(ports=keys(f"a.org:{port}")))
    for scheme in ("http", "https"):
        assert filters.refuse(url(f"{scheme}://a.org:{port}/"), 0) == "port"


def test_the_bad_ports_are_those_of_the_fetch_standard() -> None:
    """83 of them, with the latest additions: 0, 4190, 6679, 10080, and none that the web itself uses."""
    assert len(BAD_PORTS) == 83
    assert {0, 1, 21, 22, 25, 53, 110, 143, 554, 993, 2049, 4190, 5060, 6000, 6667, 6679, 10080} <= BAD_PORTS
    assert BAD_PORTS.isdisjoint({80, 81, 443, 3000, 3128, 8000, 8008, 8080, 8081, 8443, 8888})


def test_depth() -> None:
    filters = UrlFilters(FilterSettings(max_depth=2))
    assert [filters.refuse(url("http://example.org/"), depth) for depth in (2, 3)] == [None, "too_deep"]


def test_only_allowed_patterns() -> None:
    filters = UrlFilters(FilterSettings(allow_patterns=("^https?://example[.]org/docs/", "[.]html$")))
    raws = ("http://example.org/docs/", "http://example.org/a.html", "http://example.org/a")
    assert [filters.refuse(url(raw), 0) for raw in raws] == [None, None, "not_allowed_pattern"]


@pytest.mark.parametrize(
    ("mode", "scope", "within", "without"),
    [
        ("web", b"", "http://any.org/", None),
        ("hosts", keys("a.org", "b.org:8080"), "http://b.org:8080/", "http://b.org/"),
        ("hosts", keys("a.org", "b.org:8080"), "http://a.org/", "http://www.a.org/"),
        ("domains", keys("a.org", "b.co.uk"), "http://www.b.co.uk:8080/", "http://c.co.uk/"),
        ("domains", b"", "http://a.org/", "http://a.org/"),
    ],
)
def test_scope(mode: str, scope: bytes, within: str, without: str | None) -> None:
    filters = UrlFilters(FilterSettings(), scope=Scope(mode, scope))
    if within != without:
        assert filters.refuse(url(within), 0) is None
    if without:
        assert filters.refuse(url(without), 0) == "out_of_scope"


def test_a_bad_pattern_is_refused_with_its_setting() -> None:
    with pytest.raises(ValueError, match=r"filters\.deny_patterns: '\(' is no RE2 expression"):
        UrlFilters(FilterSettings(deny_patterns=("(",)))


def test_patterns_take_linear_time() -> None:
    filters = UrlFilters(FilterSettings(deny_patterns=("(a|a)*(a|a)*(a|a)*b$",)))
    assert filters.refuse(url("http://example.org/" + "a" * 2_000), 0) is None


def test_filters_of_third_parties_come_last() -> None:
    class NoQueries:
        def refuse(self, url: Url, depth: int) -> str | None:
            return "query" if "?" in url.url else None

    filters = UrlFilters(replace(RULES, max_depth=1), further=[NoQueries()])
    raws = ("http://example.org/?a", "http://denied.org/?a", "http://example.org/")
    assert [filters.refuse(url(raw), 0) for raw in raws] == ["query", "denied_domain", None]
