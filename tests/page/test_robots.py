"""The cases of RFC 9309 and of the public suites that matter, with our choice where the suites disagree."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.robots import ALLOW_ALL, DENY_ALL, PARSED_BYTES, Robots

US = "OrbWeaver"


def allows(robots: str | bytes, path: str, token: str = US) -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return Robots.from_bytes(body).allows(f"http://h.org{path}", token)


ALL = "User-agent: *\n"
NOT_X = ALL + "Disallow: /x\n"


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        # RFC 9309, 2.2.2: matching
        ("", "/", True),
        ("Disallow: /", "/", False),
        ("Disallow:", "/", True),
        ("Disallow: /x", "/xyz", False),
        ("Disallow: /x", "/X", True),
        ("Disallow: x", "/x", True),
        ("Disallow: /\nAllow: /p", "/p", True),
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Allow: /p\nDisallow: /page", "/page", False),
        ("Allow: /page\nDisallow: /page", "/page", True),  # a tie
        ("Disallow: /page\nAllow: /page", "/page", True),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /*.gif$", "/a/b.gif", False),
        ("Disallow: /*.gif$", "/a/b.gifs", True),
        ("Disallow: /a*b*c", "/aXbYcZ", False),
        ("Disallow: *x", "/a/x", False),
        ("Disallow: /a$b", "/a$b", False),
        ("Disallow: /x?", "/x?a", False),
        ("Disallow: /x?", "/x", True),
        # percent-encoding
        ("Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("Disallow: /foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", False),
        ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),  # RFC and crawler-commons; Google's parser says yes
        ("Disallow: /a%2Fb", "/a/b", True),
        # lines
        (" disallow :  /x # why", "/x", False),
        ("DISALLOW:/x", "/x", False),
        ("Disallow /x", "/x", True),  # no colon, no record; Google's parser takes it
        ("dissallow: /x", "/x", False),  # misspelled: we may only be slowed
        ("alow: /x\nDisallow: /", "/x", False),
        ("Disallow: /x\x0cy", "/x%0Cy", False),
        ("Allow: /a\u2028Disallow: /", "/b", True),  # U+2028 ends no line
        ("Disallow: /a\x85", "/a%C2%85b", False),
        # an extra of Google's parser that would speed us: refused
        ("Disallow: /\nAllow: /index.html", "/", False),
        ("Disallow: /\nAllow: /index.html", "/index.html?a", True),
        ("Disallow: /index.htmlx\nAllow: /index.html", "/index.htmlx", False),
    ],
)
def test_rules(rules: str, path: str, expected: bool) -> None:
    assert allows(ALL + rules, path) is expected


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        # RFC 9309, 2.2.1: groups
        ("User-agent: orbweaver\nDisallow: /x", False),
        ("user-agent: ORBWEAVER\nDisallow: /x", False),
        ("User-agent: OrbWeaver/1.2 (+http://a)\nDisallow: /x", False),
        ("User-agent: orbweaver*\nDisallow: /x", False),
        ("User-agent: orb\nDisallow: /x", True),  # product tokens are compared whole
        ("User-agent: orbweaver2\nDisallow: /x", True),
        ("User-agent: a orbweaver\nDisallow: /x", True),
        ("User-agent: *\nDisallow: /x\nUser-agent: orbweaver\nDisallow: /y", True),
        ("User-agent: orbweaver\n\nUser-agent: *\nDisallow: /x", False),
        ("User-agent: orbweaver\nDisallow:\n\nUser-agent: *\nDisallow: /x", True),
        ("User-agent: other\nUser-agent: orbweaver\nDisallow: /x", False),
        ("User-agent: orbweaver\nUser-agent: other\nDisallow: /x", False),
        ("User-agent: orbweaver\n\n# a\n\nDisallow: /x", False),
        ("User-agent: orbweaver\nAllow: /a\nUser-agent: b\nAllow: /c\nUser-agent: orbweaver\nDisallow: /x", False),
        ("Disallow: /x\nUser-agent: orbweaver\nAllow: /y", True),  # a rule without a group
        ("User-agent: orbweaver\nSitemap: http://a/\nDisallow: /x", False),
        ("User-agent: orbweaver\nNonsense: b\nUser-agent: other\nDisallow: /x", False),
        ("User-agent: orbweaver\nno record\nDisallow: /x", False),
        ("User-agent: orbweaver\nCrawl-delay: 1\nUser-agent: other\nDisallow: /x", True),  # the delay is a rule
        ("User-agent: *foo\nDisallow: /x", False),
        ("User-agent:\nDisallow: /x", True),
        ("<html><body>Disallow: /x</body></html>", True),
    ],
)
def test_groups(robots: str, expected: bool) -> None:
    assert allows(robots, "/x") is expected


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + NOT_X.encode(),
        b"\xef\xbb" + NOT_X.encode(),
        b"\xff\xfe" + NOT_X.encode("utf-16-le"),
        b"\xfe\xff" + NOT_X.encode("utf-16-be"),
        NOT_X.replace("\n", "\r").encode(),
        NOT_X.replace("\n", "\r\n").encode(),
        NOT_X.rstrip().encode(),
        NOT_X.replace("/x", "/\0x").encode(),
        ALL.encode() + b"Disallow: /caf\xe9\nDisallow: /x",
        ALL.encode() + b"Nonsense\xff: \xfe\nDisallow: /x",
    ],
)
def test_bytes(body: bytes) -> None:
    assert not allows(body, "/x")
    assert allows(body, "/y")
    assert allows(body, "/caf%E9")


def test_only_the_first_512_000_bytes_count_without_a_cut_line() -> None:
    filler = ALL + "#" * (PARSED_BYTES - len(ALL) - len("\nDisallow: /x"))
    assert not allows(filler + "\nDisallow: /x", "/x")
    assert not allows(filler + "\nDisallow: /x", "/xy")
    assert allows(filler + "\nDisallow: /xyz", "/xy")  # cut to `/x`, and so no rule
    assert not allows(NOT_X + "#" * PARSED_BYTES + "\nAllow: /x", "/x")


@pytest.mark.parametrize(
    ("delay", "expected"),
    [("5", 5.0), ("0.5", 0.5), ("0", 0.0), ("nan", None), ("-1", None), ("1e309", None), ("inf", None), ("soon", None)],
)
def test_crawl_delay(delay: str, expected: float | None) -> None:
    assert Robots.from_bytes(f"{ALL}Crawl-delay: {delay}".encode()).crawl_delay(US) == expected


def test_crawl_delay_is_that_of_our_group() -> None:
    robots = Robots.from_bytes(b"User-agent: *\nCrawl-delay: 9\nUser-agent: orbweaver\nCrawl-delay: 2")
    assert (robots.crawl_delay(US), robots.crawl_delay("other"), ALLOW_ALL.crawl_delay(US)) == (2.0, 9.0, None)


def test_sitemaps() -> None:
    body = b"sitemap: http://a/1\nUser-agent: x\nSitemap : https://a/2#c\nSITEMAP:http://a/1\nSitemap: /3\nSitemap: ftp://a"
    assert Robots.from_bytes(body).sitemaps == ["http://a/1", "https://a/2"]


def test_all_or_nothing() -> None:
    assert ALLOW_ALL.allows("http://h.org/x", US)
    assert not DENY_ALL.allows("http://h.org/x", US)


@given(st.binary(max_size=200))
def test_it_never_raises(body: bytes) -> None:
    robots = Robots.from_bytes(b"User-agent: *\nDisallow: " + body)
    assert robots.allows("http://h.org/", US) in (True, False)
    assert robots.crawl_delay(US) is None or robots.sitemaps is not None


@pytest.mark.parametrize(
    "rule", ["Disallow: /a{}/*/b", "Disallow: /{}", "User-agent: u{}", "Allow: " + "*a" * 20 + "{}"]
)
def test_a_huge_file_takes_little_time(rule: str) -> None:
    body = (ALL + "\n".join(rule.format(number) for number in range(60_000))).encode()
    started = time.process_time()
    robots = Robots.from_bytes(body)
    for _ in range(10):
        robots.allows("http://h.org/" + "a" * 2_000, US)
    assert time.process_time() - started < 5
