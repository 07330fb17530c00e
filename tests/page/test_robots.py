"""The cases of RFC 9309 and of the public suites that matter, with our choice where the suites disagree."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.robots import ALLOW_ALL, DENY_ALL, PARSED_BYTES, Robots, first_lines, line_at, sitemaps

US = "OrbWeaver"


def allows(robots: str | bytes, path: str, token: str = US) -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return Robots.from_bytes(first_lines(body, PARSED_BYTES), token).allows(f"http://h.org{path}")


WIDE = [
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
]
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
        ("Disallow: x", "/x", False),  # what is missing is put in: it only keeps us out
        ("Disallow: /\nAllow: x", "/x", False),
        ("Disallow: /\nAllow: *x", "/x", True),
        ("Disallow: https://h.org/x", "/x", False),
        ("Disallow: https://h.org", "/x", False),
        ("Disallow: /\nAllow: https://h.org/x", "/x", False),
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
        ("Disallow /x", "/x", False),  # no colon, no record: it only keeps us out
        ("Disallow\t/x", "/x", False),
        ("Disallow: /\nAllow /x", "/x", False),
        ("Disallow: /x /y", "/y/z", False),  # a list
        ("Disallow: /x, /y", "/x/z", False),
        ("Disallow: /\0x", "/x", False),
        ("Disallow: /\nAllow: /\0x", "/x", False),
        ("Disallow: /x y", "/x", True),  # a path with a space
        ("Disallow: /x y", "/x%20y", False),
        ("Disallow: /\nAllow: /x /y", "/y", False),
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
        ("User-agent: orb-weaver\nDisallow: /x", True),
        ("User-agent: orbweaver-news\nDisallow: /x", True),
        ("User-agent: orbweaver_news\nDisallow: /x", True),
        ("User-agent: my-orbweaver\nDisallow: /x", True),
        *(
            (f"User-agent: orbweaver{end}\nDisallow: /x", False)
            for end in ("2", "/2", ";", ",a", ".org", "é", "(x)", "\t")
        ),
        ("User-agent: *\nDisallow: /x\nUser-agent: orbweaver2\nDisallow: /y", True),
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
        # other records do not interfere with groups (2.2.4)
        *(
            (f"User-agent: orbweaver\n{record}\nUser-agent: other\nDisallow: /x", False)
            for record in (
                "Crawl-delay: 1",
                "Sitemap: http://a/",
                "Host: a",
                "Clean-param: a",
                "Request-rate: 1/5",
                "",
                "#",
            )
        ),
        ("User-agent: *\nCrawl-delay: 1\nUser-agent: other\nAllow: /x\nUser-agent: *\nDisallow: /x", True),
        # names with `*` inside are not all the world, and must not open what is closed to it
        *(
            (f"User-agent: {name}\nAllow: /x\nUser-agent: *\nDisallow: /", False)
            for name in ("*bingbot*", "*bingbot", "*/1", "*.*", "**", "*, bingbot", "bing*bot", "* bot"[1:], "'*'", "")
        ),
        ("User-agent: *bingbot*\nDisallow: /\nUser-agent: *\nAllow: /x", True),
        ("User-agent: * # all\nDisallow: /x", False),
        ("User-agent: * all\nDisallow: /x", False),
        # lines that may mean us keep us out, and open nothing
        *(
            (f"User-agent: {name}\nDisallow: /x", False)
            for name in (
                "a orbweaver",
                "a, orbweaver",
                "Mozilla/5.0 (compatible; OrbWeaver/1.0)",
                "*orbweaver*",
                "a|orbweaver",
                "*, a",
                "a, *",
                "**",
                "'*'",
                '"orbweaver"',
                "",
                "*/*",
            )
        ),
        *(
            (f"User-agent: {name}\nAllow: /\n\nUser-agent: *\nDisallow: /x", False)
            for name in ("a orbweaver", "*orbweaver*", "**", "")
        ),
        ("User-agent orbweaver\nDisallow: /x", False),
        ("User-agent orbweaver\nDisallow /x", False),
        ("User-agent orbweaver\nAllow: /\nUser-agent: *\nDisallow: /x", False),
        ("User-agent: *\nAllow: /\nUser-agent other\nDisallow: /x", False),  # whose rule is it?
        *(
            (f"{name}: orbweaver\nDisallow: /x", False)
            for name in ("User agent", "useragent", "USER-AGENT", "User-Agent ")
        ),
        *((f"{name}: orbweaver\nDisallow: /x", True) for name in ("User_agent", "Agent", "User--agent", "User-agents")),
        # two files, joined with their marks: whose rule is it?
        ("User-agent: orbweaver\nAllow: /\n\ufeffUser-agent: *\nDisallow: /x", False),
        ("User-agent: a\nAllow: /\n\ufeffUser-agent: *\nDisallow: /x", False),
        # a page is no robots file, unless rules were put into one
        ("<html><body>Disallow: /x</body></html>", True),
        ("<!doctype html>\n<pre>\nUser-agent: *\nDisallow: /x\n</pre>", False),
        ("<!doctype html><p>User-agent: *<br>Disallow: /x</p>", False),
        ("<p>User-agent: *</p>\n<p>Disallow: /</p>", False),
        (
            "<p>User-agent: *<br>Disallow: /x<br>User-agent: orbweaver<br>Allow: /</p>\nUser-agent: *\nDisallow: /",
            False,
        ),
        ("<!doctype html><p>Our robots.txt says Disallow: / for User-agent: *</p>", True),
    ],
)
def test_groups(robots: str, expected: bool) -> None:
    assert allows(robots, "/x") is expected


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + NOT_X.encode(),
        b"\xef\xbb" + NOT_X.encode(),
        *(mark + NOT_X.encode(codec) for mark, codec in WIDE),
        *(NOT_X.encode(codec) for _, codec in WIDE),
        *(NOT_X.replace("\n", "\r\n").encode(codec) for _, codec in WIDE),
        *(("# Ā日本語のコメント ਊ\n" * 40 + NOT_X).encode(codec) for _, codec in WIDE),
        *((NOT_X + "Disallow: /日本\n" * 9_000 + "Disallow: /z").encode(codec) for _, codec in WIDE),
        *(
            (NOT_X + "Disallow: /z\n").encode(codec) + b"Disallow: /w\nDisallow: /v\n" for _, codec in WIDE
        ),  # two joined
        *((ALL + "Allow: /z\n" * 3).encode() + "Disallow: /x\n".encode(codec) for _, codec in WIDE),
        b"\xff\xfe" + NOT_X.encode(),  # marks before what they do not belong to
        b"\xfe\xff" + NOT_X.encode(),
        b"\xef\xbb\xbf" + NOT_X.encode("utf-16-le"),
        b"\xef\xbb\xbf\xef\xbb\xbf" + NOT_X.encode(),
        b"\0" + NOT_X.encode(),
        b"U\0ser-agent: *\nDisallow: /x",
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


def test_a_line_that_is_no_utf_8_keeps_us_out_and_lets_us_in_nowhere() -> None:
    body = ALL.encode() + b"Disallow: /caf\xe9\nDisallow: /secret\nAllow: /secret/\xe9"
    assert [allows(body, path) for path in ("/caf%E9", "/caf", "/secret/%E9")] == [False, True, False]


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
    assert Robots.from_bytes(f"{ALL}Crawl-delay: {delay}".encode(), US).crawl_delay == expected


def test_crawl_delay_is_that_of_our_group() -> None:
    body = b"User-agent: *\nCrawl-delay: 9\nAllow: /\nUser-agent: orbweaver\nCrawl-delay: 2"
    assert [Robots.from_bytes(body, token).crawl_delay for token in (US, "other")] == [2.0, 9.0]
    assert ALLOW_ALL.crawl_delay is None


def test_sitemaps() -> None:
    body = b"sitemap: http://a/1\nUser-agent: x\nSitemap : https://a/2#c\nSITEMAP:http://a/1\nSitemap: /3\nSitemap: ftp://a"
    assert sitemaps(body) == ["http://a/1", "https://a/2"]


def test_all_or_nothing() -> None:
    assert ALLOW_ALL.allows("http://h.org/x")
    assert not DENY_ALL.allows("http://h.org/x")


@given(st.binary(max_size=200))
def test_it_never_raises(body: bytes) -> None:
    for whole in (body, b"User-agent: *\nDisallow: " + body):
        robots = Robots.from_bytes(whole, US)
        verdict = robots.judge("http://h.org/")
        assert verdict.at is None or line_at(whole, verdict.at).number > 0
        assert robots.crawl_delay is None or robots.crawl_delay >= 0
        assert sitemaps(whole) is not None
        assert whole.startswith(first_lines(whole, 100))


# RFC 9309, 2.2.2: rule, URL, and whether the rule is found in it
SPELLINGS = [
    ("/foo/bar?baz=quz", "/foo/bar?baz=quz", True),
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", True),
    ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", True),
    ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", True),
    ("/foo/bar/ツ", "/foo/bar/%E3%83%84", True),
    ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", True),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
    ("/foo/bar/baz", "/foo/bar/%62%61%7A", True),
    ("/a%2Fb", "/a/b", False),
    ("/a/b", "/a%2Fb", False),
    ("/a%2fb", "/a%2Fb", True),
    ("/a%3Fb", "/a?b", False),
    ("/a?b", "/a%3Fb", False),
    ("/a%3Fb", "/a%3fb", True),
    *((f"/a%{ord(char):02X}b", f"/a{char}b", False) for char in "!&'()+,;=:@"),
    *((f"/a{char}b", f"/a%{ord(char):02X}b", False) for char in "!&'()+,;=:@"),
    *((f"/a{char}b", f"/a{char}b", True) for char in "!&'()+,;=:@~-._"),
    *((f"/a%{ord(char):02x}b", f"/a{char}b", True) for char in "~-._zZ09"),
    *((f"/a{char}b", f"/a%{ord(char):02X}b", True) for char in '<>\\^`{|}[] "~'),
    ("/a?b=%26", "/a?b=&", False),
    ("/a?b=%3D", "/a?b==", False),
    ("/a?b='x'", "/a?b=%27x%27", True),
    ("/a%2Ab", "/a*b", True),
    ("/a%2Ab", "/axb", False),
    ("/a%24", "/a$", True),
    ("/a%24", "/a", False),
    ("/a$b", "/a%24b", True),
    ("/a$$", "/a$", True),
    ("/a$$", "/a$b", False),
    ("/*u=http%3A%2F%2Fx", "/r?u=http%3A%2F%2Fx", True),
    ("/*u=http://x", "/r?u=http://x", True),
    ("/100%", "/100%", True),
    ("/100%zz", "/100%zz", True),
    ("/%", "/%25", True),
    ("/caf\u0065\u0301", "/caf%C3%A9", False),  # nobody normalises
    # wildcards at ends, and anchors
    ("*", "/", True),
    ("/*", "/", True),
    ("/**", "/x", True),
    ("/x*", "/x", True),
    ("/x*", "/ax", False),
    ("/x/*", "/x", False),
    ("/$", "/", True),
    ("/$", "/x", False),
    ("$", "/x", False),
    ("*$", "/x", True),
    ("/x*$", "/xyz", True),
    ("/*x$", "/axbx", True),
    ("/*x$", "/axb", False),
    ("/a*a$", "/a", False),
    ("/a*a$", "/aa", True),
    ("/*.php$", "/x.php?y", False),
    ("/*?", "/x", False),
    ("/*?", "/x?", True),
    ("/*?*=", "/x?a=b", True),
    ("/a*b*c$", "/abcabd", False),
    ("/a*b*c$", "/abdabc", True),
]


@pytest.mark.parametrize(("rule", "path", "is_found"), SPELLINGS)
def test_rules_and_paths_are_compared_in_one_spelling(rule: str, path: str, is_found: bool) -> None:
    assert allows(f"{ALL}Disallow: {rule}", path) is not is_found
    assert allows(f"{ALL}Allow: {rule}\nDisallow: /", path) is (is_found and rule[0] != "$")


@pytest.mark.parametrize(
    ("token", "robots", "expected"),
    [
        ("bot42", "User-agent: bot42\nDisallow: /x", False),
        ("bot42", "User-agent: Bot42/1.0\nDisallow: /x", False),
        ("bot42", "User-agent: bot421\nDisallow: /x", True),
        ("bot42", "User-agent: bot\nDisallow: /x", True),
        ("bot", "User-agent: bot42\nDisallow: /x", False),
        ("a.b", "User-agent: aXb\nDisallow: /x", True),
        ("", "User-agent: a\nDisallow: /x", True),
    ],
)
def test_digits_belong_to_a_token_where_they_belong_to_ours(token: str, robots: str, expected: bool) -> None:
    assert allows(robots, "/x", token) is expected


@pytest.mark.parametrize(
    ("robots", "path", "line"),
    [
        ("# c\n\nUser-agent: *\n  Disallow: /x  # why\nAllow: /y", "/x/z", (4, "Disallow: /x  # why")),
        ("# c\n\nUser-agent: *\n  Disallow: /x  # why\nAllow: /y", "/y", (5, "Allow: /y")),
        ("# c\n\nUser-agent: *\n  Disallow: /x  # why\nAllow: /y", "/z", None),
        ("User-agent: *\r\nDisallow: /x\r\nDisallow: /*y\r\n", "/y", (3, "Disallow: /*y")),
        ("User-agent: *\rDisallow: /x\r", "/x", (2, "Disallow: /x")),
        ("User-agent: *\nDisallow: /x\nAllow: /x\nAllow: /x", "/x", (3, "Allow: /x")),
        ("User-agent: *\nAllow: /\nDisallow: /*/*\nDisallow: /a/b", "/a/b", (4, "Disallow: /a/b")),
        ("User-agent: *\nDisallow:\nDisallow /x", "/x", (3, "Disallow /x")),
        ("\ufeffUser-agent: *\nDisallow: /x", "/x", (2, "Disallow: /x")),
        ("<p>User-agent: *<br>Disallow: /x</p>", "/x", (1, "<p>User-agent: *<br>Disallow: /x</p>")),
        ("User-agent: *\nDisallow: /robots", "/robots.txt", None),
    ],
)
def test_a_verdict_names_its_line(robots: str, path: str, line: tuple[int, str] | None) -> None:
    for encoding in ("utf-8", "utf-16-le", "utf-32-be"):
        body = robots.encode(encoding)
        verdict = Robots.from_bytes(body, US).judge(f"http://h.org{path}")
        assert (None if verdict.at is None else line_at(body, verdict.at)) == line
        assert verdict.allowed is (line is None or line[1].startswith("Allow"))


@pytest.mark.parametrize(
    "rule", ["Disallow: /a{}/*/b", "Disallow: /{}", "User-agent: u{}", "Allow: " + "*a" * 20 + "{}"]
)
def test_a_huge_file_takes_little_time(rule: str) -> None:
    body = (ALL + "\n".join(rule.format(number) for number in range(60_000))).encode()
    started = time.process_time()
    robots = Robots.from_bytes(body, US)
    for _ in range(10):
        robots.allows("http://h.org/" + "a" * 2_000)
    assert time.process_time() - started < 5
