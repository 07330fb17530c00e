"""robots.txt as servers see it asked for and obeyed."""

from __future__ import annotations

import gzip
import time
import zlib
from itertools import pairwise
from typing import Any, cast

import pytest

from crawler.page.url import Url, UrlPolicy
from crawler.settings import Settings, UrlSettings
from crawler.tables.reader import Reader
from jobs import why
from jobs.why_text import robots_text
from tests.fetch.little_web import Answer, Asked, LittleWeb, page, redirect
from tests.fetch.partition_runs import Run, host_state

NEVER = {"robots_retry_s": 600.0}


def test_what_robots_forbids_is_never_asked(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", Answer(b"user-agent: orbweaver\ndisallow: /private\n\nuser-agent: *\nallow: /"))
    run.plan(*(web.put("a.test", path, page()) for path in ("/open", "/private/x", "/privately"))).go()
    assert run.by_path() == {"/open": "success", "/private/x": "robots_denied", "/privately": "robots_denied"}
    assert web.paths("a.test") == ["/robots.txt", "/open"]


@pytest.mark.parametrize("answer", [Answer(b""), Answer(b"", 204), Answer(b"\n"), Answer(b"x", 404)])
def test_a_robots_file_without_rules_allows_everything(web: LittleWeb, run: Run, answer: Answer) -> None:
    web.put("a.test", "/robots.txt", answer)
    run.plan(*(web.put("a.test", path, page()) for path in ("/", "/x"))).go()
    assert set(run.by_path().values()) == {"success"}


def test_sitemaps_that_robots_names_are_discovered(web: LittleWeb, run: Run) -> None:
    named = ("http://a.test/map.xml", "ftp://a.test/x", "//", "http://a.test/" + "x" * 3_000)
    web.put("a.test", "/robots.txt", Answer("".join(f"sitemap: {link}\n" for link in named).encode()))
    run.plan(web.put("a.test", "/", page())).go()
    assert run.discovered() == {"http://a.test/map.xml": "sitemap"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"x", 500), "robots.txt: status 500"),
        (Answer(b"x", 429), "robots.txt: status 429"),
        (Answer(b"disallow", is_cut=True), "robots.txt: body cut: disconnect"),
    ],
)
def test_an_unreachable_robots_forbids_everything(web: LittleWeb, run: Run, answer: Answer, reason: str) -> None:
    web.put("a.test", "/robots.txt", answer)
    run.fetch = NEVER
    run.plan(web.put("a.test", "/", page()), web.put("a.test", "/b", page())).go(time_s=20)
    assert set(run.by_path().values()) == {"robots_unreachable"}
    assert {row["reason"] for row in run.outcomes()} == {reason}
    assert web.paths("a.test") == ["/robots.txt"]
    (state,) = run.hosts().values()
    assert state["is_out"]


def test_it_is_tried_four_times_then_the_host_is_out(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", Answer(b"x", 503))
    run.fetch = {"robots_retry_s": 0.2}
    run.plan(web.put("a.test", "/", page())).go()
    asked = web.asked("a.test")
    assert [one.path for one in asked] == ["/robots.txt"] * 4
    assert min(after.time - before.time for before, after in pairwise(asked)) >= 0.1


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_the_answer_to_robots_asks_for_is_kept(web: LittleWeb, run: Run, status: int) -> None:
    def later(asked: Asked) -> Answer:
        return Answer(b"x", status, headers=(("Retry-After", "1"),)) if len(web.log) < 2 else Answer(b"", 404)

    web.put("a.test", "/robots.txt", later)
    run.fetch = {"robots_retry_s": 0.1}
    run.plan(web.put("a.test", "/", page())).go()
    assert run.by_path() == {"/": "success"}
    first, second, _ = web.asked("a.test")
    assert second.time - first.time >= 0.9


def test_a_server_that_recovers_is_fetched(web: LittleWeb, run: Run) -> None:
    def recovers(asked: Asked) -> Answer:
        return Answer(b"x", 500) if len(web.log) < 3 else Answer(b"", 404)

    web.put("a.test", "/robots.txt", recovers)
    run.fetch = {"robots_retry_s": 0.1}
    run.plan(web.put("a.test", "/", page())).go()
    assert run.by_path() == {"/": "success"}
    assert [state["is_out"] for state in run.hosts().values()] == [False]


def test_redirects_of_robots_are_followed_to_other_hosts(web: LittleWeb, run: Run) -> None:
    other = web.put("b.test", "/rules", Answer(b"user-agent: *\ndisallow: /private"))
    web.put("a.test", "/robots.txt", redirect("/moved", 302))
    web.put("a.test", "/moved", redirect(other, 307))
    run.folder.joinpath("hosts").write_text("127.0.0.1 a.test b.test\n")
    run.plan(*(web.put("a.test", path, page()) for path in ("/private", "/open"))).go()
    assert run.by_path() == {"/private": "robots_denied", "/open": "success"}
    assert web.paths("a.test") == ["/robots.txt", "/moved", "/open"]
    assert web.paths("b.test") == ["/rules"]
    warcs = {subset for one in run.sealed for subset in one.warcs}
    assert warcs == {"robotstxt", "warc"}


def test_a_redirect_of_robots_keeps_the_gap_of_the_host_it_leads_to(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", redirect(web.put("b.test", "/robots.txt", Answer(b"", 404))))
    run.fetch = {"delay_s": 0.3, "address_delay_share": 0.0}
    run.plan(web.put("a.test", "/", page()), web.put("b.test", "/", page()), web.put("b.test", "/2", page())).go()
    times = [one.time for one in web.asked("b.test")]
    assert len(times) == 4
    assert min(after - before for before, after in pairwise(times)) >= 0.2


ELSEWHERE = [
    ("another partition may ask it", "nothing", "not_reached", "next plan puts them together", 0),
    ("the plan has put both together", "both together", "success", "", 1),
    ("the plan could not", "known", "robots_unreachable", "too many", 0),
]


@pytest.mark.parametrize(("sentence", "planned", "outcome", "reason", "asked"), ELSEWHERE)
def test_a_robots_file_on_a_host_of_another_partition(
    web: LittleWeb, run: Run, sentence: str, planned: str, outcome: str, reason: str, asked: int
) -> None:
    other = f"b.test:{web.port}"
    plans: dict[str, Any] = {
        "nothing": {},
        "both together": {"grouped_by": [other]},
        "known": {"host_state": host_state(robots_hosts=[other])},
    }
    web.put("a.test", "/robots.txt", redirect(web.put("b.test", "/robots.txt", Answer(b"", 404))))
    run.folder.joinpath("hosts").write_text("127.0.0.1 a.test b.test\n")
    run.task_fields = {"partitions": 2}
    url = web.put("a.test", "/", page())
    run.plan(url, **plans[planned]).go()
    assert run.outcome(url)["outcome"] == outcome, sentence
    assert reason in (run.outcome(url)["reason"] or "")
    assert len(web.asked("b.test")) == asked
    assert run.hosts()[f"a.test:{web.port}"]["robots_hosts"] == ([] if asked else [other])


def test_a_host_that_is_only_led_to_may_have_been_asked_just_now(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", redirect(web.put("b.test", "/robots.txt", Answer(b"", 404))))
    run.folder.joinpath("hosts").write_text("127.0.0.1 a.test b.test\n")
    run.fetch = {"delay_s": 0.4, "address_delay_share": 0.0}
    run.plan(web.put("a.test", "/", page())).go()
    assert web.asked("b.test")[0].time - web.asked("a.test")[0].time >= 0.3


def test_a_redirect_of_robots_to_a_private_address_is_not_followed(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", redirect("http://10.0.0.1/robots.txt"))
    run.fetch = NEVER
    run.plan(web.put("a.test", "/", page())).go(time_s=20)
    assert run.by_path() == {"/": "robots_unreachable"}


def test_a_fresh_copy_is_not_asked_for_again(web: LittleWeb, run: Run) -> None:
    robots = [{"scheme": "http", "fetched_at": time.time() - 10, "status": 200, "body": b"user-agent: *\ndisallow: /x"}]
    urls = [web.put("a.test", path, page()) for path in ("/", "/x")]
    run.plan(*urls, host_state=host_state(host="a", robots=robots)).go()
    assert run.by_path() == {"/": "success", "/x": "robots_denied"}
    assert web.paths("a.test") == ["/"]


def test_an_old_copy_is_asked_for_again_and_a_ttl_of_nothing_means_once_a_round(web: LittleWeb, run: Run) -> None:
    robots = [{"scheme": "http", "fetched_at": time.time() - 90_000, "status": 404, "body": b""}]
    urls = [web.put("a.test", f"/{n}", page()) for n in range(3)]
    run.fetch = {"robots_ttl_s": 0.0}
    run.plan(*urls, host_state=host_state(host="a", robots=robots)).go()
    assert web.paths("a.test") == ["/robots.txt", "/0", "/1", "/2"]


def test_what_stops_our_own_reading_opens_no_door(web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("crawler.fetch.robots_cache.readable", stumble)
    web.put("a.test", "/robots.txt", Answer(b"user-agent: *\nallow: /"))
    run.fetch = NEVER
    run.plan(web.put("a.test", "/", page())).go(time_s=20)
    assert run.by_path() == {"/": "robots_unreachable"}


def test_a_server_out_of_reach_for_long_is_asked_for_its_rules_once_a_round(web: LittleWeb, run: Run) -> None:
    robots = [{"scheme": "http", "fetched_at": time.time() - 31 * 86_400, "status": 503, "body": b""}]
    web.put("a.test", "/robots.txt", Answer(b"x", 503))
    urls = [web.put("a.test", f"/{n}", page()) for n in range(3)]
    run.fetch = {"robots_ttl_s": 0.0}
    run.plan(*urls, host_state=host_state(host="a", robots=robots)).go()
    assert web.paths("a.test") == ["/robots.txt", "/0", "/1", "/2"]


def test_all_sitemaps_of_a_long_list_are_discovered(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", Answer(b"".join(b"sitemap: http://a.test/%d.xml\n" % n for n in range(1_000))))
    run.plan(web.put("a.test", "/", page())).go()
    assert len(run.discovered()) == 1_000


SHUT_X = gzip.compress(b"user-agent: *\ndisallow: /x", mtime=0)


@pytest.mark.parametrize(
    ("sentence", "body", "codings"),
    [
        ("coded and not said", SHUT_X, ()),
        ("several fields", zlib.compress(SHUT_X), ("gzip", "deflate")),
        ("said and not coded", b"user-agent: *\ndisallow: /x", ("utf-8",)),
        ("said in a folded line", SHUT_X, ("\r\n gzip",)),
        ("a folded line of somebody else", b"user-agent: *\ndisallow: /x", ("identity\r\nX-Powered-By: a\r\n\tb",)),
        ("in UTF-16", "user-agent: *\ndisallow: /x".encode("utf-16-be"), ()),
    ],
)
def test_rules_are_read_as_servers_send_them(
    web: LittleWeb, run: Run, sentence: str, body: bytes, codings: tuple[str, ...]
) -> None:
    fields = tuple(("Content-Encoding", coding) for coding in codings)
    web.put("a.test", "/robots.txt", Answer(body, headers=fields))
    run.fetch = NEVER
    run.plan(*(web.put("a.test", path, page()) for path in ("/", "/x"))).go(time_s=20)
    assert run.by_path() == {"/": "success", "/x": "robots_denied"}, sentence


DAY = 86_400.0
RULES = b"# hello\nuser-agent: orbweaver\ndisallow: /x # not you\n\nuser-agent: *\ndisallow: /"
# Copies as (age, status, body), what /robots.txt answers now, the outcome, and what `why` says before the fetch
STORED = [
    ([(10, 200, RULES)], 500, "robots_denied", "denies this URL by line 3: disallow: /x # not you (status 200, read "),
    (
        [(10, 200, b"user-agent: *\ndisallow: /y")],
        500,
        "success",
        "allows this URL: no rule applies (status 200, read ",
    ),
    (
        [(10, 200, b"user-agent: *\nallow: /x")],
        500,
        "success",
        "allows this URL by line 2: allow: /x (status 200, read ",
    ),
    ([(10, 404, b"")], 500, "success", "allows this URL: there is none (status 404, read "),
    ([(20, 200, RULES), (10, 0, b"")], 500, "robots_denied", "denies this URL by line 3"),
    ([(10, 500, b"")], 500, "robots_unreachable", "denies this URL: unreachable since "),
    ([(2 * DAY, 404, b""), (DAY, 0, b"")], 500, "robots_unreachable", "denies this URL: unreachable since "),
    ([(29 * DAY, 503, b"")], 503, "robots_unreachable", "denies this URL: unreachable since "),
    ([(40 * DAY, 404, b""), (31 * DAY, 503, b"")], 503, "success", "allows this URL: there is none (status 404, read "),
    ([(40 * DAY, 200, RULES), (31 * DAY, 503, b"")], 503, "robots_denied", "denies this URL by line 3: disallow: /x"),
    ([(31 * DAY, 503, b"")], 503, "success", "allows this URL: it never answered; unreachable since "),
    (
        [(2 * DAY, 200, RULES)],
        RULES,
        "robots_denied",
        "denies this URL by line 3: disallow: /x # not you (status 200, read ",
    ),
    ([], 404, "success", "never read; it is asked for first"),
]


@pytest.mark.parametrize(("copies", "answer", "outcome", "said"), STORED)
def test_why_tells_what_the_fetch_will_make_of_the_stored_copies(
    web: LittleWeb, run: Run, copies: list[tuple[float, int, bytes]], answer: int | bytes, outcome: str, said: str
) -> None:
    now = time.time()
    robots = [
        {"scheme": "http", "fetched_at": now - age, "status": status, "body": body} for age, status, body in copies
    ]
    url = web.put("a.test", "/x", page())
    web.put("a.test", "/robots.txt", Answer(b"", answer) if isinstance(answer, int) else Answer(answer))
    run.fetch = NEVER
    run.plan(url, host_state=host_state(host="a.test", robots=robots)).go(time_s=5)
    assert run.outcome(url)["outcome"] == outcome
    canonical = UrlPolicy(UrlSettings()).canonical(url)
    assert isinstance(canonical, Url)
    facts = why.robots_verdict(why.Asked(cast(Reader, None), {}, canonical, now), robots, Settings())
    assert robots_text(facts).startswith(said)
    assert facts["allowed"] in (None, outcome == "success")
