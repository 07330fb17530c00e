"""What a robots.txt answer means, on paper."""

from __future__ import annotations

import gzip
import io

import pytest

from crawler.fetch.exchange import Exchange
from crawler.fetch.robots_cache import (
    UNREACHABLE_S,
    RobotsQuest,
    crawl_delay,
    fresh_copy,
    good_copy,
    rules_of,
    rules_when_unreachable,
    with_copy,
)
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
        return "allow" if rules_of(verdict).allows("http://a.test/x", "orbweaver") else "deny"
    return verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (exchange(200, DENY), "deny"),
        (exchange(200, b""), "allow"),
        (exchange(204), "allow"),
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
    assert rules_of(sixth).allows("http://a.test/x", "orbweaver")


def test_only_whole_lines_of_a_huge_file_are_kept() -> None:
    line = b"disallow: /private\n"
    body = b"user-agent: *\n" + line * 30_000
    copy = RobotsQuest("http", "a.test").judge(exchange(200, body), POLICY, MAX)
    assert isinstance(copy, RobotsCopy)
    assert MAX - len(line) < len(copy.body) <= MAX
    assert copy.body.endswith(line)


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
    assert (fresh_copy((copy,), "http", 1_000.0, 300.0) is not None) == is_fresh


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
    rules = rules_when_unreachable(copies, "http", 10.0 + UNREACHABLE_S + (days - 30) * 86_400)
    assert (rules and rules.allows("http://a.test/x", "orbweaver")) == verdict


def test_the_longest_crawl_delay_of_both_schemes_counts() -> None:
    def copy(scheme: str, delay: object, status: int = 200) -> RobotsCopy:
        return RobotsCopy(scheme, 1.0, status, f"user-agent: *\ncrawl-delay: {delay}".encode())

    assert crawl_delay((copy("http", 3), copy("https", 8)), "orbweaver") == 8.0
    assert crawl_delay((copy("http", 3, 404), copy("https", "nan")), "orbweaver") is None
    assert good_copy((copy("http", 3, 500),), "http") is None
