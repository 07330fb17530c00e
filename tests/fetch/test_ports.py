"""Ports: what a page can make us try, and that all ports of a name are one host to be polite to."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

from crawler.fetch.http import HttpProtocol, Request
from crawler.page.filters import BAD_PORTS
from crawler.page.url import host_key
from crawler.records import Outcome
from crawler.settings import FetchSettings
from tests.fetch.little_web import Answer, LittleWeb, little_web, page, redirect
from tests.fetch.partition_runs import Run, host_state

HOSTS = ("a.test", "alone.test")
NEVER = {"robots_retry_s": 600.0}


@contextmanager
def listening(count: int) -> Iterator[tuple[list[int], list[int]]]:
    """So many ports of other services, and those of them that anybody connected to."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    tried: list[int] = []

    def watch(server: socket.socket) -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return
            tried.append(server.getsockname()[1])

    threads = [threading.Thread(target=watch, args=(server,), daemon=True) for server in sockets]
    for thread in threads:
        thread.start()
    try:
        yield [server.getsockname()[1] for server in sockets], tried
    finally:
        for server in sockets:
            server.shutdown(socket.SHUT_RDWR)
            server.close()


def opened(*hosts: str) -> bytes:
    return np.sort(np.array([host_key(host) for host in hosts], "<i8")).tobytes()


def test_a_page_cannot_send_us_to_the_ports_of_other_services(web: LittleWeb, run: Run) -> None:
    """By links, redirects, sitemaps and the robots file's own redirect."""
    with listening(4) as (ports, tried):
        link, moved, listed, rules = (f"http://a.test:{port}/x" for port in ports)
        web.put("a.test", "/robots.txt", Answer(f"sitemap: {listed}\nsitemap: http://a.test:{web.port}/map".encode()))
        web.put("b.test", "/robots.txt", redirect(rules))
        run.fetch = NEVER
        urls = [
            web.put("a.test", "/", page(link, link.replace("a.test", "b.test"), "http://a.test:22/", "/ok")),
            web.put("a.test", "/moved", redirect(moved)),
            web.put("b.test", "/", page()),
        ]
        run.plan(*urls).go(time_s=20)
    assert tried == []
    linking, redirected, forbidden = map(run.outcome, urls)
    assert (len(linking["links"]), dict(linking["links_refused"])) == (1, {"port": 3})
    assert (redirected["reason"], redirected["redirect_key"]) == ("redirect_port", None)
    assert (forbidden["outcome"], "port that is not open" in forbidden["reason"]) == ("robots_unreachable", True)
    assert set(run.discovered()) == {f"http://a.test:{web.port}/ok", f"http://a.test:{web.port}/map"}


def test_a_seed_opens_its_port_on_its_own_host_only(web: LittleWeb, run: Run) -> None:
    run.opens_ports = False
    run.task_fields = {"ports": opened(f"a.test:{web.port}")}
    links = [f"http://{host}:{web.port}/x" for host in ("a.test", "www.a.test", "b.test")]
    url = web.put("a.test", "/", page(*links, f"http://a.test:{web.port + 1}/"))
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], dict(row["links_refused"])) == ("success", {"port": 3})
    assert run.discovered() == {links[0]: "link"}


def test_what_was_found_before_its_port_was_closed_is_not_asked(run: Run) -> None:
    with listening(1) as ((port,), tried):
        run.opens_ports = False
        urls = [f"http://a.test:{port}/", f"http://a.test:{port}/b", "http://a.test:25/"]
        run.plan(*urls).go()
    assert tried == []
    assert [(row["outcome"], row["reason"]) for row in run.outcomes()] == [("address_refused", "port")] * 3


@pytest.mark.parametrize("port", sorted(BAD_PORTS))
def test_no_packet_goes_to_a_bad_port(port: int) -> None:
    settings = FetchSettings(allow_addresses=("127.0.0.0/8",))
    for scheme in ("http", "https"):
        asked = Request(f"{scheme}://a.example:{port}/", "127.0.0.1", "agent")
        exchange = asyncio.run(HttpProtocol(settings).fetch(asked))
        assert (exchange.failure, exchange.failure_reason) == (Outcome.ADDRESS_REFUSED, "port")
        assert exchange.request_bytes == b""


def test_the_ports_of_a_name_share_one_gap_and_one_connection(run: Run) -> None:
    slow = Answer(page().body, delay_s=0.15)
    with little_web() as one, little_web() as other, little_web() as third:
        webs = (one, other, third)
        run.fetch = {"delay_s": 0.3, "address_delay_share": 0.0}
        for web in webs:
            run.plan(*(web.put("a.test", f"/{n}", slow) for n in range(2)))
        run.plan(web.put("b.test", "/", page()))
        run.go()
        log = sorted((asked for web in webs for asked in web.asked("a.test")), key=lambda asked: asked.time)
    assert [row["outcome"] for row in run.outcomes()] == ["success"] * 7
    assert len(log) == 9
    assert min(after.time - before.time for before, after in pairwise(log)) >= 0.3 - 0.1


def test_of_a_name_with_two_ports_no_connection_is_kept_beside_another(run: Run) -> None:
    with little_web() as one, little_web() as other:
        for web in (one, other):
            web.keeps_alive = True
            run.plan(*(web.put("a.test", f"/{n}", page()) for n in range(3)))
        run.plan(*(one.put("alone.test", f"/{n}", page()) for n in range(3)))
        run.go()
        asked = [*one.log, *other.log]
    assert {one.headers.get("connection") for one in asked if one.host == "a.test"} == {"close"}
    assert "close" not in {
        one.headers.get("connection") for one in asked if one.host == "alone.test" and one.path == "/1"
    }


def test_the_longest_delay_of_a_name_holds_for_all_its_ports(run: Run) -> None:
    body = b"user-agent: *\ncrawl-delay: 0.4"
    known = {"robots": [{"scheme": "http", "fetched_at": time.time(), "status": 200, "body": body}]}
    with little_web() as one, little_web() as other:
        urls = [[web.put("a.test", f"/{n}", page()) for n in range(2)] for web in (one, other)]
        run.plan(*urls[0], host_state=host_state(host="x", crawl_delay_s=0.4, **known)).plan(*urls[1]).go()
        log = sorted(asked.time for web in (one, other) for asked in web.asked("a.test"))
    assert len(log) == 5
    assert min(after - before for before, after in pairwise(log)) >= 0.4 - 0.1
    assert {state["crawl_delay_s"] for state in run.hosts().values()} == {0.4, None}  # each as its own file says


def test_a_port_that_was_asked_in_the_last_round_counts_for_the_name(run: Run) -> None:
    with little_web() as one, little_web() as other:
        began = time.time()
        run.fetch = {"delay_s": 0.6, "address_delay_share": 0.0}
        run.plan(one.put("a.test", "/", page()), host_state=host_state(host="x", last_request_at=began))
        run.plan(other.put("a.test", "/", page()), host_state=host_state(host="x", last_request_at=began - 900))
        run.go()
        assert min(asked.time for web in (one, other) for asked in web.asked()) >= began + 0.6


def test_a_dead_port_does_not_keep_the_others_waiting(run: Run, web: LittleWeb) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        run.fetch = NEVER
        run.plan(f"http://a.test:{closed.getsockname()[1]}/", web.put("a.test", "/ok", page())).go(time_s=20)
    assert run.by_path() == {"/": "robots_unreachable", "/ok": "success"}
