"""Servers that hold connections for as long as they can: what the others lose by them, and how they are given up."""

from __future__ import annotations

import asyncio
import io
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.fetch.attempt import LeaseLost
from crawler.fetch.host_queue import HostRun
from crawler.fetch.loop import SLOW_AFTER_S, FetchLoop
from crawler.fetch.politeness import Turn
from crawler.records import HostState
from tests.fetch.little_web import Answer, LittleWeb, little_web, page
from tests.fetch.partition_runs import Run, host_state

SLOTS, TARPITS, GOOD = 20, 60, 30
HOME = page(text="a good page")


def of_their_own(n: int) -> tuple[str, str]:
    return f"drip-{n}.test", f"127.0.1.{n + 1}"


def at_one_address(n: int) -> tuple[str, str]:
    return f"drip-{n}.test", "127.0.1.1"


def of_one_domain(n: int) -> tuple[str, str]:
    return f"drip-{n}.pit.test", f"127.0.1.{n + 1}"


Place = Callable[[int], tuple[str, str]]


@contextmanager
def pits(run: Run, where: Place) -> Iterator[tuple[LittleWeb, list[str], list[str]]]:
    """A web with the names of tarpits and of good hosts, each good one at an address of its own."""
    bad = dict(where(n) for n in range(TARPITS))
    good = {f"good-{n}.test": f"127.0.2.{n + 1}" for n in range(GOOD)}
    run.folder.joinpath("hosts").write_text("".join(f"{ip} {name}\n" for name, ip in (bad | good).items()))
    with little_web(*dict.fromkeys([*bad.values(), *good.values()])) as web:
        yield web, list(bad), list(good)


def dripping_body(web: LittleWeb, host: str) -> str:
    return web.put(host, "/", Answer(b"x" * 10_000, drip_s=0.2))


def dripping_robots(web: LittleWeb, host: str) -> str:
    web.put(host, "/robots.txt", Answer(b"#" * 10_000, drip_s=0.2))
    return web.put(host, "/", HOME)


def silent_head(web: LittleWeb, host: str) -> str:
    return web.put(host, "/", Answer(b"x", delay_s=60.0))


def silent_handshake(web: LittleWeb, host: str) -> str:
    return f"https://{host}:{web.port}/"  # no end of a head ever comes


WAYS = [
    (of_their_own, dripping_body),
    (at_one_address, dripping_body),
    (of_one_domain, dripping_body),
    (of_their_own, dripping_robots),
    (of_their_own, silent_head),
    (of_their_own, silent_handshake),
]


def fetch_among_tarpits(run: Run, where: Place, how: Callable[[LittleWeb, str], str], time_s: float) -> list[float]:
    """When the good pages were asked for, in seconds from the start; every planned URL has its outcome."""
    with pits(run, where) as (web, bad, good):
        urls = [how(web, host) for host in bad]
        run.plan(*urls, *(web.put(host, "/", HOME) for host in good))
        run.fetch = {"connections": SLOTS}
        began = time.time()
        run.go(time_s=time_s)
        outcomes = [row["outcome"] for row in run.outcomes() if row["host"].startswith("good")]
        assert outcomes == ["success"] * GOOD
        assert len(run.outcomes()) == GOOD + TARPITS
        return sorted(one.time - began for one in web.log if one.host in good and one.path == "/")


@pytest.mark.parametrize(("where", "how"), WAYS)
def test_tarpits_do_not_keep_good_hosts_from_being_fetched(
    run: Run, monkeypatch: pytest.MonkeyPatch, where: Place, how: Callable[[LittleWeb, str], str]
) -> None:
    monkeypatch.setattr("crawler.fetch.loop.SLOW_AFTER_S", 0.3)
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.1)
    asked = fetch_among_tarpits(run, where, how, time_s=3.5)
    assert len(asked) == GOOD


def test_tarpits_that_take_no_connection(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.fetch.loop.SLOW_AFTER_S", 0.3)
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.1)
    deaf = socket.socket()
    deaf.bind(("127.0.1.1", 0))
    deaf.listen(0)
    port = deaf.getsockname()[1]
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:  # the queue of the listening socket is full: further SYNs are dropped
        filler.setblocking(False)
        filler.connect_ex(("127.0.1.1", port))

    def no_connection(web: LittleWeb, host: str) -> str:
        return f"http://{host}:{port}/"

    try:
        asked = fetch_among_tarpits(run, at_one_address_of_nobody, no_connection, time_s=3.5)
    finally:
        for one in (deaf, *fillers):
            one.close()
    assert len(asked) == GOOD


def at_one_address_of_nobody(n: int) -> tuple[str, str]:
    return f"drip-{n}.test", "127.0.1.1"


LINK = b'<a href="/linked">x</a>'
RATE = {"min_rate": 200, "rate_window_s": 0.3}


@pytest.mark.parametrize(("status", "outcome"), [(200, "timeout"), (404, "gone"), (301, "redirect_perm")])
def test_a_body_that_drips_is_kept_as_it_came_and_counts_against_its_host(
    run: Run, web: LittleWeb, status: int, outcome: str
) -> None:
    headers = (("Content-Type", "text/html"), ("Location", "/moved"))
    drip = Answer(LINK + b"x" * 9_000, status, headers, drip_s=0.02)
    run.fetch = RATE | {"max_host_failures": 3}
    run.plan(*(web.put("a.test", f"/{n}", drip) for n in range(5))).go()
    assert list(run.by_path().values()) == [outcome] * 3 + ["host_failed"] * 2
    assert [state["is_out"] for state in run.hosts().values()] == [True]
    row = run.outcomes()[0]
    assert (row["fetch_status"], row["content_truncated"], row["content_digest"]) == (status, "time", None)
    assert (row["reason"], row["text_checksum"]) == ("body" if status == 200 else None, None)
    data = run.store.read_range(row["warc_filename"], row["warc_record_offset"], row["warc_record_length"])
    (record,) = ArchiveIterator(io.BytesIO(data))
    assert (record.rec_type, record.rec_headers.get_header("WARC-Truncated")) == ("response", "time")
    assert "/crawldiagnostics/" in row["warc_filename"]


def test_links_of_a_page_that_came_in_part_are_followed(run: Run, web: LittleWeb) -> None:
    url = web.put("a.test", "/", Answer(LINK + b"x" * 9_000, drip_s=0.01))
    run.fetch = RATE
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], row["parse_status"], len(row["links"])) == ("timeout", "truncated", 1)


def test_a_slow_but_honest_server_loses_nothing(run: Run, web: LittleWeb) -> None:
    text = b"<title>t</title>" + b"x" * 200
    web.put("a.test", "/robots.txt", Answer(b"user-agent: *\ncrawl-delay: 0.01\n", drip_s=0.002))
    urls = [web.put("a.test", f"/{n}", Answer(text, drip_s=0.003, delay_s=1.2)) for n in range(2)]
    run.fetch = RATE | {"connections": 1, "slow_connections": 1}
    run.plan(*urls).go()
    assert [row["outcome"] for row in run.outcomes()] == ["success"] * 2
    assert [row["content_length"] for row in run.outcomes()] == [len(text)] * 2


def test_who_was_slow_in_the_last_round_begins_behind_the_others(run: Run, web: LittleWeb) -> None:
    slow = [f"a-{n}.test" for n in range(4)]
    quick = [f"b-{n}.test" for n in range(6)]
    for host in (*slow, *quick):
        answer = Answer(HOME.body, delay_s=0.5) if host in slow else HOME
        state = host_state(host=host, last_fetch_s=30.0 if host in slow else 0.1)
        run.plan(web.put(host, "/", answer), host_state=state)
    run.fetch = {"connections": 1, "slow_connections": 1}
    run.go()
    assert [row["outcome"] for row in run.outcomes()] == ["success"] * 10
    order = [one.host for one in web.log if one.path == "/"]
    assert max(map(order.index, quick)) < order.index(slow[1])


@pytest.mark.parametrize(("how", "outcome"), [(dripping_robots, "not_reached"), (dripping_body, "timeout")])
def test_only_what_was_asked_for_when_the_time_box_ended_timed_out(
    run: Run, web: LittleWeb, monkeypatch: pytest.MonkeyPatch, how: Callable[[LittleWeb, str], str], outcome: str
) -> None:
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.1)
    row = run.plan(url := how(web, "a.test")).go(time_s=1.5).outcome(url)
    assert (row["outcome"], row["reason"]) == (outcome, "time box over")


class Steps:
    """A visitor whose only step takes its time on a clock of the test's own."""

    def __init__(self, takes_s: float, *, asks: bool, settles: bool) -> None:
        self.takes_s, self.asks, self.settles = takes_s, asks, settles
        self.now = 1_000.0

    def clock(self) -> float:
        return self.now

    async def step(self, host: HostRun) -> float | None:
        host.turn.last_request_at = self.now if self.asks else host.turn.last_request_at
        self.now += self.takes_s
        host.row += self.settles
        return None


@pytest.mark.parametrize("is_stopped", [True, False])
def test_an_attempt_that_is_over_is_told_also_while_its_last_visits_end(is_stopped: bool) -> None:
    """Whether the driver asked to stop, or the time box has ended."""

    async def overtaken() -> None:
        raise LeaseLost("overtaken")

    async def end() -> None:
        nothing: Any = None
        loop = FetchLoop(nothing, nothing, lambda: 1_000.0, 2_000.0)
        loop._active[asyncio.create_task(overtaken())] = HostRun(nothing, HostState("a.test"), Turn(), 0, 1)
        await (loop._leave() if is_stopped else loop._cut_off())

    with pytest.raises(LeaseLost, match="overtaken"):
        asyncio.run(end())


@pytest.mark.parametrize(("lasted_s", "is_parked"), [(0.0, False), (SLOW_AFTER_S - 0.1, False), (SLOW_AFTER_S, True)])
def test_a_visit_leaves_its_slot_when_its_step_has_lasted_and_not_before(lasted_s: float, is_parked: bool) -> None:
    nothing: Any = None
    host = HostRun(nothing, HostState("a.test"), Turn(), 0, 1)
    loop = FetchLoop(nothing, nothing, lambda: 1_000.0, 2_000.0)

    async def look() -> bool:
        loop.queue.push(host, 1.0)
        assert loop.queue.pop_due(1.0) is host
        loop._step_began[host] = 1_000.0 - lasted_s
        loop._look_at(host)
        return loop.queue.is_misplaced(host)

    assert asyncio.run(look()) is is_parked
    assert (host in loop._watches) is not is_parked


@pytest.mark.parametrize(
    ("was_slow", "steps", "is_slow"),
    [
        (False, Steps(0.1, asks=True, settles=True), False),
        (False, Steps(SLOW_AFTER_S, asks=True, settles=True), False),
        (False, Steps(SLOW_AFTER_S + 0.1, asks=True, settles=True), True),
        (False, Steps(SLOW_AFTER_S + 0.1, asks=True, settles=False), True),
        (True, Steps(0.1, asks=True, settles=True), False),
        (True, Steps(0.1, asks=True, settles=False), True),  # robots.txt, which proves nothing
        (True, Steps(0.1, asks=False, settles=True), True),  # nobody was asked
        (True, Steps(SLOW_AFTER_S + 0.1, asks=True, settles=True), True),
    ],
)
def test_a_host_is_as_slow_as_its_last_page(was_slow: bool, steps: Steps, is_slow: bool) -> None:
    nothing: Any = None
    host = HostRun(nothing, HostState("a.test"), Turn(last_request_at=990.0), 0, 1)
    host.is_slow = was_slow
    visitor: Any = steps
    assert asyncio.run(FetchLoop(visitor, nothing, steps.clock, 2_000.0)._go_on(host)) is None
    assert host.is_slow is is_slow


def test_a_robots_file_that_drips_forbids_everything(run: Run, web: LittleWeb) -> None:
    url = dripping_robots(web, "a.test")
    run.fetch = RATE | {"robots_retry_s": 0.1}
    run.plan(url).go()
    assert run.outcome(url)["outcome"] == "robots_unreachable"
    assert web.paths("a.test") == ["/robots.txt"] * 4


def test_a_sitemap_that_drips_counts_as_any_page(run: Run, web: LittleWeb) -> None:
    sitemap = Answer(b"<urlset>" + b" " * 9_000, headers=(("Content-Type", "application/xml"),), drip_s=0.02)
    run.fetch = RATE | {"max_host_failures": 2}
    run.plan(*(web.put("a.test", f"/sitemap-{n}.xml", sitemap) for n in range(3))).go()
    assert list(run.by_path().values()) == ["timeout", "timeout", "host_failed"]


def test_a_time_box_among_tarpits_loses_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """More tarpits than there are slots of both kinds: whatever is under way, waits or stands aside has its outcome."""
    monkeypatch.setattr("crawler.fetch.loop.SLOW_AFTER_S", 0.1)
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.1)
    with pits(run, at_one_address) as (web, bad, good):
        run.plan(*(url for host in bad for url in (dripping_body(web, host), f"http://{host}:{web.port}/2")))
        run.plan(*(web.put(host, "/", HOME) for host in good))
        run.fetch = {"connections": 8, "slow_connections": 8}
        began = time.time()
        run.go(time_s=1.5)
    rows = run.outcomes()
    assert time.time() - began < 6.0
    assert len(rows) == len({row["url"] for row in rows}) == 2 * TARPITS + GOOD
    assert {row["outcome"] for row in rows} == {"success", "timeout", "not_reached"}
    assert sum(row["outcome"] == "success" for row in rows) == GOOD


@pytest.mark.slow
@pytest.mark.parametrize(("where", "how"), WAYS)
def test_with_the_defaults_good_hosts_lose_a_few_seconds(
    run: Run, where: Place, how: Callable[[LittleWeb, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.fetch.loop.GRACE_S", 0.1)
    asked = fetch_among_tarpits(run, where, how, time_s=12.0)
    print(f"\n{where.__name__}, {how.__name__}: {asked[0]:.2f} to {asked[-1]:.2f} s")
    assert asked[-1] < 6.0
