"""Politeness as servers see it: gaps by the log of the little web, waits, failures, the time box."""

from __future__ import annotations

import json
import socket
import time
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.fetch import politeness
from tests.fetch.little_web import Answer, Asked, LittleWeb, little_web, page, redirect
from tests.fetch.partition_runs import Run, host_state

EARLY_S = 0.1  # between the start of a request and its line in the log, on a machine that has others to serve


def gaps(asked: list[Asked]) -> list[float]:
    return [after.time - before.time for before, after in pairwise(asked)]


def fill(web: LittleWeb, host: str, count: int, answer: Answer | None = None) -> list[str]:
    return [web.put(host, f"/{n}", answer or page()) for n in range(count)]


def test_a_host_is_asked_once_a_delay_and_never_twice_at_once(web: LittleWeb, run: Run) -> None:
    run.fetch = {"delay_s": 0.2, "address_delay_share": 0.0}
    run.plan(*fill(web, "a.test", 4), *fill(web, "b.test", 4)).go()
    for host in ("a.test", "b.test"):
        assert len(web.asked(host)) == 5
        assert min(gaps(web.asked(host))) >= 0.2 - EARLY_S
    assert max(one.time for one in web.log) - web.log[0].time < 1.6  # side by side


def test_hosts_at_one_address_share_its_gap(run: Run) -> None:
    with little_web("127.0.0.2", "127.0.0.3") as web:
        names = {"a.test": "127.0.0.2", "b.test": "127.0.0.2", "c.test": "127.0.0.3"}
        run.folder.joinpath("hosts").write_text("".join(f"{ip} {name}\n" for name, ip in names.items()))
        run.fetch = {"delay_s": 0.4, "address_delay_share": 0.5}
        for name in names:
            run.plan(*fill(web, name, 2))
        run.go()
        by_address = {ip: [one for one in web.log if one.address == ip] for ip in names.values()}
    assert {ip: len(asked) for ip, asked in by_address.items()} == {"127.0.0.2": 6, "127.0.0.3": 3}
    assert min(gaps(by_address["127.0.0.2"])) >= 0.2 - EARLY_S
    assert min(gaps(by_address["127.0.0.3"])) >= 0.4 - EARLY_S


def test_a_platform_in_several_partitions_keeps_several_gaps(web: LittleWeb, run: Run) -> None:
    run.fetch = {"delay_s": 0.1, "address_delay_share": 1.0}
    run.plan(*fill(web, "a.test", 1), *fill(web, "b.test", 1), gap_factor=3).go()
    assert min(gaps(web.log)) >= 0.3 - EARLY_S


def test_crawl_delay_counts_from_the_first_page_on(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", Answer(b"user-agent: *\ncrawl-delay: 0.3"))
    run.plan(*fill(web, "a.test", 3)).go()
    assert min(gaps(web.log)) >= 0.3 - EARLY_S


def test_the_last_round_counts(web: LittleWeb, run: Run) -> None:
    began = time.time()
    states = {"a.test": {"last_request_at": began}, "b.test": {"not_before": began + 0.5}}
    for host, state in states.items():
        run.plan(*fill(web, host, 1), host_state=host_state(host=host, **state))
    run.fetch = {"delay_s": 0.3, "address_delay_share": 0.0}
    run.go()
    assert web.asked("a.test")[0].time >= began + 0.3
    assert web.asked("b.test")[0].time >= began + 0.5


@pytest.mark.parametrize(("takes_s", "settled"), [(0.0, 1), (1.0, 1), (20.0, 0)])
def test_a_stop_lets_what_is_quick_end_drops_the_rest_and_begins_nothing(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch, takes_s: float, settled: int
) -> None:
    """What is dropped, and what was not begun, has no outcome: the next attempt finds it undone."""
    monkeypatch.setattr("crawler.fetch.progress.EVERY_S", 0.1)

    def stopped(asked: Asked) -> Answer:
        run.store.put("leases/1/stop/0", b"")
        return Answer(b"x", delay_s=takes_s)

    url, other = web.put("a.test", "/0", stopped), web.put("a.test", "/1", page())
    began = time.time()
    run.fetch = {"delay_s": 1.5}
    run.plan(url, other).go()
    assert [row["url"] for row in run.outcomes()] == [url][:settled]
    assert web.paths("a.test") == ["/robots.txt", "/0"]
    assert time.time() - began < 15.0


GONE = {"host": socket.gethostname(), "pid": 1, "process_started": "another process"}


def test_a_resumed_partition_waits_before_its_first_request(web: LittleWeb, run: Run) -> None:
    robots = [{"scheme": "http", "fetched_at": time.time(), "status": 404, "body": b""}]
    run.plan(*fill(web, "known.test", 1), host_state=host_state(host="x", robots=robots))
    run.plan(*fill(web, "new.test", 1))
    run.fetch = {"delay_s": 0.2, "max_crawl_delay_s": 0.6}
    run.store.put_new("leases/1/0/000001.json", json.dumps(GONE).encode())
    began = time.time()
    run.go()
    assert 0.2 <= web.asked("known.test")[0].time - began < 0.55
    assert web.asked("new.test")[0].time - began >= 0.6


def test_a_server_that_says_later_is_asked_later(web: LittleWeb, run: Run) -> None:
    def busy_once(asked: Asked) -> Answer:
        is_first = len([one for one in web.log if one.path == asked.path]) == 1
        return Answer(b"later", 429, (("Retry-After", "1"),)) if is_first else page()

    url = web.put("a.test", "/", busy_once)
    run.plan(url).go()
    assert run.outcome(url)["outcome"] == "success"
    assert web.paths("a.test") == ["/robots.txt", "/", "/"]
    assert gaps(web.log)[-1] >= 1.0 - EARLY_S


@pytest.mark.parametrize(("status", "headers"), [(503, (("Retry-After", "900"),)), (429, ())])
def test_a_wait_that_does_not_fit_ends_the_host(
    web: LittleWeb, run: Run, status: int, headers: tuple[tuple[str, str], ...]
) -> None:
    urls = [web.put("a.test", f"/{n}", Answer(b"later", status, headers)) for n in range(3)]
    run.plan(*urls).go(time_s=20)
    assert run.by_path() == {"/0": "asked_to_wait", "/1": "not_reached", "/2": "not_reached"}
    wait_s = 900 if status == 503 else politeness.FIRST_WAIT_S
    first = run.outcome(urls[0])
    assert first["retry_at"] == pytest.approx(time.time() + wait_s, abs=5)
    assert "host waits until 20" in run.outcome(urls[1])["reason"]
    (state,) = run.hosts().values()
    assert (state["not_before"], state["is_out"]) == (first["retry_at"], False)
    assert web.paths("a.test") == ["/robots.txt", "/0"]


def test_five_failures_and_the_host_is_out(web: LittleWeb, run: Run) -> None:
    run.plan(*fill(web, "a.test", 8, Answer(b"broken", 500))).go()
    outcomes = run.by_path()
    assert list(outcomes.values()) == ["server_error"] * 5 + ["host_failed"] * 3
    assert len(web.paths("a.test")) == 6
    assert [state["is_out"] for state in run.hosts().values()] == [True]


def test_a_success_between_failures_keeps_the_host(web: LittleWeb, run: Run) -> None:
    answers = [Answer(b"broken", 500), Answer(b"x", 500), page()] * 3
    run.fetch = {"max_host_failures": 3}
    run.plan(*(web.put("a.test", f"/{n}", answer) for n, answer in enumerate(answers))).go()
    assert list(run.by_path().values()) == ["server_error", "server_error", "success"] * 3


def test_a_host_that_is_out_stays_out_when_the_partition_resumes(web: LittleWeb, run: Run) -> None:
    run.plan(*fill(web, "a.test", 5, Answer(b"broken", 500))).go()
    web.log.clear()
    run.plan(web.put("a.test", "/late", page())).go()
    assert run.by_path()["/late"] == "host_failed"
    assert not web.log


def test_the_time_box_ends_and_what_is_left_is_said(web: LittleWeb, run: Run) -> None:
    run.fetch = {"delay_s": 0.4}
    urls = fill(web, "a.test", 10)
    began = time.time()
    run.plan(*urls, web.put("b.test", "/slow", Answer(b"x", delay_s=3.0))).go(time_s=1.5)
    outcomes = run.by_path()
    assert len(outcomes) == 11
    assert outcomes["/0"] == "success"
    assert outcomes["/9"] == "not_reached"
    assert outcomes["/slow"] == "success"  # it had begun
    assert time.time() - began < 6.0
    assert max(one.time for one in web.log) < began + 1.5


def test_nobody_waits_for_a_host_whose_time_comes_after_the_time_box(web: LittleWeb, run: Run) -> None:
    began = time.time()
    run.plan(
        web.put("a.test", "/", page()), host_state=host_state(host="a.test", last_request_at=began, crawl_delay_s=60.0)
    )
    run.plan(web.put("b.test", "/", page())).go(time_s=20)
    assert time.time() - began < 10.0
    assert sorted(row["outcome"] for row in run.outcomes()) == ["not_reached", "success"]
    assert web.asked("a.test") == []


def test_an_exchange_far_over_the_time_box_is_cut_off(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.3)
    began = time.time()
    run.plan(web.put("a.test", "/tar", Answer(b"x", delay_s=20.0)), web.put("a.test", "/next", page())).go(time_s=0.5)
    assert time.time() - began < 3.0
    assert run.by_path() == {"/tar": "timeout", "/next": "not_reached"}


def test_a_dead_address_is_passed_over(run: Run, web: LittleWeb) -> None:
    url = web.put("a.test", "/", page())
    run.folder.joinpath("hosts").write_text("127.0.0.9 a.test\n127.0.0.1 a.test\n")
    run.plan(url).go()
    assert run.outcome(url)["outcome"] == "success"
    assert run.outcome(url)["address"] == "127.0.0.1"


@pytest.mark.parametrize(("delay_s", "connections"), [(0.0, 2), (0.05, 5)])
def test_a_connection_is_kept_only_where_no_gap_is_promised(
    web: LittleWeb, run: Run, delay_s: float, connections: int
) -> None:
    web.keeps_alive = True
    run.fetch = {"delay_s": delay_s}
    run.plan(*fill(web, "a.test", 4)).go()
    assert len(web.log) == 5
    assert web.connections == connections  # robots.txt has its own


def test_no_more_connections_are_kept_than_may_be_in_use(web: LittleWeb, run: Run) -> None:
    web.keeps_alive = True
    run.fetch = {"connections": 2}
    for n in range(8):
        run.plan(*fill(web, f"h{n}.test", 2))
        web.put(f"h{n}.test", "/1", Answer(b"later", 429, (("Retry-After", "1"),)))
    run.go(time_s=5)
    assert len(web.log) >= 8 * 3
    assert web.open_most <= 5


def test_redirects_are_not_followed_but_written_down(web: LittleWeb, run: Run, tmp_path: Path) -> None:
    chain = [web.put("a.test", f"/{n}", redirect(f"/{n + 1}")) for n in range(3)]
    run.plan(chain[0]).go()
    assert web.paths("a.test") == ["/robots.txt", "/0"]
    assert run.discovered() == {chain[1]: "redirect"}
