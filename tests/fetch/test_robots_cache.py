"""What a robots.txt answer means, on paper."""

from __future__ import annotations

import asyncio
import gzip
import io
import zlib

import brotli
import pytest

from crawler.fetch.exchange import Exchange
from crawler.fetch.robots_cache import UNREACHABLE_S, RobotsQuest, RobotsShelf, has_rules, standing, with_copy
from crawler.page.robots import ALLOW_ALL, Robots
from crawler.page.url import UrlPolicy
from crawler.records import Outcome, RobotsCopy
from crawler.settings import UrlSettings

DENY = b"user-agent: *\ndisallow: /"
POLICY = UrlPolicy(UrlSettings())
MAX = 512_000


def exchange(status: int = 200, body: bytes = b"", **fields: object) -> Exchange:
    return Exchange(b"", "192.0.2.1", 100.0, status=status, body=io.BytesIO(body), **fields)  # type: ignore[arg-type]  # a table of cases is looser than the types


def judged(answer: Exchange) -> object:
    verdict = RobotsQuest("http", "a.test").judge(answer, POLICY, MAX)
    if isinstance(verdict, RobotsCopy):
        return "allow" if allows(verdict) else "deny"
    return verdict


def allows(copy: RobotsCopy | None) -> bool:
    rules = Robots.from_bytes(copy.body, "orbweaver") if copy is not None and has_rules(copy) else ALLOW_ALL
    return rules.allows("http://a.test/x")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (exchange(200, DENY), "deny"),
        (exchange(200, b""), "allow"),
        (exchange(204), "allow"),
        *((exchange(status, DENY), "deny") for status in (201, 203, 206, 299)),
        (exchange(200, gzip.compress(DENY), headers=[("content-encoding", "gzip")]), "deny"),
        (exchange(200, gzip.compress(DENY)[:20], headers=[("content-encoding", "gzip")]), "unreachable"),
        (exchange(200, DENY, truncated="time"), "unreachable"),
        (exchange(200, DENY, truncated="disconnect"), "unreachable"),
        (exchange(200, DENY + b"\n#" + b"x" * MAX, truncated="length"), "deny"),
        *((exchange(status, DENY), "allow") for status in (400, 401, 403, 404, 410, 451)),
        *((exchange(status, b""), "unreachable") for status in (429, 500, 503, 599)),
        (exchange(0, failure=Outcome.TIMEOUT), "unreachable"),
        (exchange(0, failure=Outcome.TLS_FAILED), "unreachable"),
        (exchange(301, headers=[("location", "https://b.test/r")]), "follow"),
        (exchange(301), "allow"),
        (exchange(302, headers=[("location", "ftp://b.test/r")]), "allow"),
        (exchange(302, headers=[("location", "http://[")]), "allow"),
    ],
)
def test_answers_mean_what_rfc_9309_says(answer: Exchange, verdict: str) -> None:
    assert judged(answer) == verdict


def test_five_redirects_are_followed_wherever_they_lead_and_no_more() -> None:
    quest = RobotsQuest("http", "a.test")
    targets = []
    for hop in range(5):
        location = f"https://h{hop}.test/r" if hop else "/moved"
        assert quest.judge(exchange(302, headers=[("location", location)]), POLICY, MAX) == "follow"
        targets.append(quest.target)
    assert targets == ["a.test", "h1.test", "h2.test", "h3.test", "h4.test"]
    copy = quest.judge(exchange(200, DENY), POLICY, MAX)
    assert isinstance(copy, RobotsCopy)
    assert (copy.scheme, copy.body) == ("http", DENY)
    sixth = quest.judge(exchange(302, headers=[("location", "/again")]), POLICY, MAX)
    assert isinstance(sixth, RobotsCopy)
    assert allows(sixth)


def test_only_whole_lines_of_a_huge_file_are_kept() -> None:
    line = b"disallow: /private\n"
    body = b"user-agent: *\n" + line * 30_000
    copy = RobotsQuest("http", "a.test").judge(exchange(200, body), POLICY, MAX)
    assert isinstance(copy, RobotsCopy)
    assert MAX - len(line) < len(copy.body) <= MAX
    assert copy.body.endswith(line)


def test_a_higher_limit_lets_more_lines_count() -> None:
    body = b"user-agent: *\n" + b"#" * 600_000 + b"\ndisallow: /x"
    for max_bytes, is_allowed in ((MAX, True), (MAX * 2, False)):
        copy = RobotsQuest("http", "a.test").judge(exchange(200, body), POLICY, max_bytes)
        assert isinstance(copy, RobotsCopy)
        assert allows(copy) is is_allowed


@pytest.mark.parametrize(
    ("copy", "is_fresh"),
    [
        (RobotsCopy("http", 900.0, 200), True),
        (RobotsCopy("http", 900.0, 404), True),
        (RobotsCopy("http", 500.0, 200), False),
        (RobotsCopy("http", 2_000.0, 200), False),
        (RobotsCopy("https", 900.0, 200), False),
        (RobotsCopy("http", 900.0, 0), False),
        (RobotsCopy("http", 900.0, 503), False),
        (RobotsCopy("http", 900.0, 429), False),
    ],
)
def test_a_copy_holds_for_its_scheme_and_its_time(copy: RobotsCopy, is_fresh: bool) -> None:
    assert (standing((copy,), "http", 1_000.0, 300.0).how == "fresh") == is_fresh


def test_failures_are_dated_from_the_first_and_leave_the_good_copy() -> None:
    good = RobotsCopy("http", 100.0, 200, DENY)
    copies = with_copy((good, RobotsCopy("https", 1.0, 200)), RobotsCopy("http", 200.0, 0))
    copies = with_copy(copies, RobotsCopy("http", 300.0, 503))
    assert [(copy.scheme, copy.fetched_at) for copy in copies] == [("https", 1.0), ("http", 100.0), ("http", 200.0)]
    healed = with_copy(copies, RobotsCopy("http", 400.0, 404))
    assert [(copy.scheme, copy.fetched_at) for copy in healed] == [("https", 1.0), ("http", 400.0)]


@pytest.mark.parametrize(
    ("good", "days", "verdict"),
    [(DENY, 29, None), (None, 29, None), (DENY, 31, False), (None, 31, True), (b"disallow:", 31, True)],
)
def test_an_unreachable_server_forbids_for_thirty_days(good: bytes | None, days: int, verdict: bool | None) -> None:
    copies: tuple[RobotsCopy, ...] = (RobotsCopy("http", 10.0, 0),)
    if good is not None:
        copies += (RobotsCopy("http", 5.0, 200, good),)
    held = standing(copies, "http", 10.0 + UNREACHABLE_S + (days - 30) * 86_400, 300.0)
    assert (None if held.how == "unreachable" else allows(held.copy)) == verdict
    assert held.failure == copies[0]


@pytest.mark.parametrize(
    ("copies", "how"),
    [
        ((), "unknown"),
        ((RobotsCopy("https", 990.0, 200),), "unknown"),
        ((RobotsCopy("http", 990.0, 200),), "fresh"),
        ((RobotsCopy("http", 900.0, 200), RobotsCopy("http", 950.0, 503)), "fresh"),  # it counts until it is asked for
        ((RobotsCopy("http", 500.0, 404),), "expired"),
        ((RobotsCopy("http", 500.0, 404), RobotsCopy("http", 950.0, 0)), "unreachable"),
        ((RobotsCopy("http", -UNREACHABLE_S, 429),), "outlived"),
    ],
)
def test_the_copies_of_a_host_say_one_thing(copies: tuple[RobotsCopy, ...], how: str) -> None:
    assert standing(copies, "http", 1_000.0, 300.0).how == how


def test_the_longest_crawl_delay_of_both_schemes_counts() -> None:
    def copy(scheme: str, delay: object, status: int = 200) -> RobotsCopy:
        return RobotsCopy(scheme, 1.0, status, f"user-agent: *\ncrawl-delay: {delay}".encode())

    def longest(*copies: RobotsCopy) -> float | None:
        shelf = RobotsShelf("orbweaver")
        return asyncio.run(shelf.crawl_delay(map(shelf.hold, copies)))

    assert longest(copy("http", 3), copy("https", 8)) == 8.0
    assert longest(copy("http", 3, 404), copy("https", "nan")) is None


@pytest.mark.parametrize(
    ("copy", "is_allowed", "is_read"),
    [
        (None, True, False),
        (RobotsCopy("http", 1.0, 200, b""), True, False),
        (RobotsCopy("http", 1.0, 204, b""), True, False),
        (RobotsCopy("http", 1.0, 404, b""), True, False),
        (RobotsCopy("http", 1.0, 404, DENY), True, False),
        (RobotsCopy("http", 1.0, 302, DENY), True, False),
        (RobotsCopy("http", 1.0, 200, b"\n"), True, True),
        (RobotsCopy("http", 1.0, 200, DENY), False, True),
        (RobotsCopy("http", 1.0, 299, DENY), False, True),
    ],
)
def test_only_a_text_of_an_answer_that_succeeded_counts(
    copy: RobotsCopy | None, is_allowed: bool, is_read: bool
) -> None:
    shelf = RobotsShelf("orbweaver")
    rules = asyncio.run(shelf.rules(shelf.hold(copy) if copy else None))
    assert rules.allows("http://a.test/x") is is_allowed
    assert (rules is not ALLOW_ALL) is is_read


def coded(body: bytes, *fields: str) -> Exchange:
    return exchange(200, body, headers=[("content-encoding", field) for field in fields])


DEFLATED = zlib.compress(DENY)
RAW = zlib.compress(DENY, wbits=-15)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        # several fields are one list
        (coded(zlib.compress(gzip.compress(DENY)), "gzip", "deflate"), "deny"),
        (coded(gzip.compress(DENY), "gzip", "identity"), "deny"),
        (coded(gzip.compress(DENY), "gzip", "gzip"), "deny"),  # said twice, done once
        # not said, but to be seen
        (coded(gzip.compress(DENY)), "deny"),
        (coded(gzip.compress(gzip.compress(DENY))), "deny"),
        (coded(gzip.compress(gzip.compress(DENY)), "gzip"), "deny"),
        (coded(gzip.compress(DENY), "identity"), "deny"),
        (coded(DEFLATED), "deny"),
        (coded(gzip.compress(DENY)[:30]), "unreachable"),
        # said, but not done
        (coded(DENY, "gzip"), "deny"),
        (coded(DENY, "deflate"), "deny"),
        (coded(b"# a\n" + DENY, "deflate"), "deny"),
        (coded(DENY, "br"), "deny"),
        (coded(b"User-agent: *\nDisallow:", "gzip"), "allow"),
        # what is no coding
        *((coded(DENY, name), "deny") for name in ("none", "utf-8", "UTF8", "aws-chunked", "text/plain", "zstd", "")),
        (coded(DENY, "utf-8, none, identity, aws-chunked"), "deny"),
        (coded(gzip.compress(DENY), "gzip, utf-8"), "deny"),
        (coded(gzip.compress(DENY), "aws-chunked", "gzip"), "deny"),
        (coded(b"<html>not here</html>", "none"), "allow"),
        # what cannot be read may forbid anything
        (coded(b"\x28\xb5\x2f\xfd\x04\x00" + bytes(range(256)), "zstd"), "unreachable"),
        (coded(b"\x28\xb5\x2f\xfd\x04\x00" + bytes(range(256))), "unreachable"),
        (coded(brotli.compress(DENY + b"\n# and so on" * 9), "br"), "deny"),
        (coded(brotli.compress(bytes(range(200)) + DENY)[:90], "br"), "unreachable"),
        (coded(RAW, "deflate"), "deny"),
        # texts of all kinds without rules
        (coded("<html>für</html>".encode("latin-1")), "allow"),
        (coded("<html>日本</html>".encode("shift-jis")), "allow"),
        (coded("\ufeff<html>日本</html>".encode("utf-16-le")), "allow"),
        (coded(b"\x1b[1mhello\x1b[0m"), "allow"),
    ],
)
def test_a_body_is_read_however_it_is_coded_or_keeps_us_out(answer: Exchange, verdict: str) -> None:
    assert judged(answer) == verdict


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_bomb_or_a_long_body_is_cut_between_its_lines(encoding: str, mark: str, coding: str) -> None:
    line = "disallow: /日本/private\n"
    body = f"{mark}user-agent: *\n{line * 100_000}".encode(encoding)
    answer = coded(gzip.compress(body) if coding else body, coding)
    copy = RobotsQuest("http", "a.test").judge(answer, POLICY, MAX)
    assert isinstance(copy, RobotsCopy)
    size = len(line.encode(encoding))
    assert MAX - size - 8 < len(copy.body) <= MAX
    assert copy.body.endswith(line.encode(encoding))
    assert not Robots.from_bytes(copy.body, "orbweaver").allows("http://a.test/%E6%97%A5%E6%9C%AC/private")
    assert Robots.from_bytes(copy.body, "orbweaver").allows("http://a.test/%E6%97%A5%E6%9C%AC/")
