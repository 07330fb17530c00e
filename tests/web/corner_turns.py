"""Corners that redirect."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.web.answers import Answer, Visit, at, fixed, page, redirect, with_headers

HOST = "turns.test"
CHAIN = 5


@at(HOST, "/chain/*")
def _chain(visit: Visit) -> Answer:
    found = re.fullmatch(r"/chain/(\d)", visit.path)
    if not found:
        return page(visit, "/") if visit.path == "/chain/end" else Answer(404)
    hop = int(found[1]) + 1
    return redirect(visit.url(f"/chain/{hop}" if hop < CHAIN else "/chain/end"), 301)


@at(HOST, "/loop/a")
def _loop_a(visit: Visit) -> Answer:
    return redirect(visit.url("/loop/b"))


@at(HOST, "/loop/b")
def _loop_b(visit: Visit) -> Answer:
    return redirect(visit.url("/loop/a"))


@at(HOST, "/self")
def _self(visit: Visit) -> Answer:
    return redirect(visit.url("/self"))


@at(HOST, "/elsewhere")
def _elsewhere(visit: Visit) -> Answer:
    return redirect(visit.world.url("cabinet.test", "/from-elsewhere"), 301)


@at(HOST, "/target/*")
@at("cabinet.test", "/from-elsewhere")
@at("inside.turns.test", "/*")
def _target(visit: Visit) -> Answer:
    return page(visit, "/")


@at(HOST, "/broken-body")
def _broken_body(visit: Visit) -> Answer:
    answer = redirect("/target/broken-body", 301)
    return with_headers(replace(answer, body=b"\x1f\x8bnot gzip at all"), ("Content-Encoding", "gzip"))


@at(HOST, "/to-loopback")
def _to_loopback(visit: Visit) -> Answer:
    return redirect(visit.world.url("127.0.0.1", "/caught/redirect"))


@at(HOST, "/to-inside")
def _to_inside(visit: Visit) -> Answer:
    return redirect(visit.world.url("inside.turns.test", "/admin"))


fixed(HOST, "/temporary", redirect("/target/temporary", 307))
fixed(HOST, "/see-other", redirect("/target/see-other", 303))
fixed(HOST, "/permanent", redirect("/target/permanent", 308))
fixed(HOST, "/relative", redirect("target/relative"))
fixed(HOST, "/non-ascii", redirect("/target/größe".encode().decode("latin-1")))
fixed(HOST, "/no-location", Answer(302, b"<html><body>Somewhere else.</body></html>\n"))
fixed(HOST, "/bad-location", redirect("http://[::bad"))
fixed(HOST, "/to-file", redirect("file:///etc/passwd"))
fixed(HOST, "/to-private", redirect("http://10.0.0.1/caught/private"))
fixed(HOST, "/to-metadata", redirect("http://169.254.169.254/latest/meta-data/"))
