"""Corners about links: endless ones, odd ones, and those that must not be followed."""

from __future__ import annotations

import re

from tests.web.answers import Answer, Visit, World, at, fixed, page, with_headers
from tests.web.words import listed

KNOTS = "knots.test"
QUIET = "quiet.test"
COUNTER_PAGES = ("/", "/shop", "/item/1?colour=red", "/item/2", "/list?page=2", "/news?NewsID=17")
KINDS = listed("area iframe frame next canonical alternate refresh base/based")


@at("almanac.test", "/calendar/*")
def _calendar(visit: Visit) -> Answer:
    found = re.fullmatch(r"/calendar/(\d{4,6})/(\d\d)(/\d\d)?", visit.path)
    if not found:
        return Answer(404)
    month = int(found[1]) * 12 + int(found[2]) - 1
    around = [f"/calendar/{number // 12:04}/{number % 12 + 1:02}" for number in (month - 1, month, month + 1)]
    if found[3]:
        return page(visit, around[1])
    return page(visit, around[0], around[2], *(f"{visit.path}/{day:02}" for day in (1, 8, 15, 22)))


@at("maze.test", "/a/*")
def _maze(visit: Visit) -> Answer:
    return page(visit, "a/", "/")


@at("stairs.test", "/step/*")
def _stairs(visit: Visit) -> Answer:
    step = visit.path.rstrip("/").rpartition("/")[2]
    return page(visit, f"{int(step) + 1}/", "/") if step.isdecimal() and len(step) < 9 else Answer(404)


@at("counter.test", "/*")
def _counter(visit: Visit) -> Answer:
    """Pages with six links, four of which carry a session id that is new at each visit."""
    if visit.path == "/robots.txt":
        return Answer(200, b"User-agent: *\nDisallow:\n", "text/plain")
    path = re.sub(r";jsessionid=[^?]*|\b(PHPSESSID|sid)=[0-9a-f]{32}&?", "", visit.path).rstrip("?&")
    if path not in COUNTER_PAGES:
        return Answer(404)
    session = f"{visit.world.prose.random('session', visit.path, visit.generation).getrandbits(128):032x}"
    hrefs = [f"/shop;jsessionid={session}", f"/item/1;jsessionid={session.upper()}?colour=red"]
    hrefs += [f"/item/2?PHPSESSID={session}", f"/list?sid={session}&page=2"]
    return page(visit, *hrefs, "/news?NewsID=17", "/", key=f"counter {path}")


def forbidden_hrefs(world: World) -> list[str]:
    """Links that must never be asked for; whatever they name begins with /caught/ where a path is possible."""
    loopback = listed("127.0.0.1 2130706433 0x7f.1 0177.0.0.1 127.1 [::1] [::ffff:127.0.0.1] localhost inside.test")
    private = listed("10.0.0.1 192.168.1.1 172.16.0.1 100.64.0.1 169.254.169.254 [fd00::1] [fe80::1] 0.0.0.0")
    odd = ["mailto:post@knots.test", "javascript:location='/caught/script'", "ftp://knots.test/caught/ftp"]
    odd += ["data:text/html,<a href='/caught/data'>x</a>", "file:///etc/passwd", "tel:+49123", "/caught/" + "x" * 5_000]
    odd += ["/caught/" + "y" * 3_000, "http://[::bad/caught", "http://knots.test:99999/caught/port"]
    return [world.url(host, f"/caught/{turn}") for turn, host in enumerate(loopback + private)] + odd


@at(KNOTS, "/odd")
def _odd(visit: Visit) -> Answer:
    userinfo = visit.url("/after-userinfo").replace("//", "//user:secret@")
    hidden = '<!-- <a href="/caught/comment">x</a> --><script>var a = \'<a href="/caught/script">x</a>\';</script>'
    return page(visit, userinfo, *forbidden_hrefs(visit.world), head=hidden)


@at(KNOTS, "/kinds")
def _kinds(visit: Visit) -> Answer:
    head = '<base href="/kind/base/"><meta http-equiv="refresh" content="30; URL=/kind/refresh">'
    head += "".join(f'<link rel="{kind}" href="/kind/{kind}">' for kind in ("next", "canonical", "alternate"))
    body = '<map><area href="/kind/area"></map><iframe src="/kind/iframe"></iframe></main>'
    abroad = f"http://bücher.test:{visit.world.port}/straße?q=é"
    answer = page(visit, "based", "/kind/frames", abroad, head=head)
    return Answer(body=answer.body.replace(b"</main>", body.encode()))


@at(KNOTS, "/kind/frames")
def _frames(visit: Visit) -> Answer:
    text = b"<html><head><title>Frames</title></head><frameset cols='1,1'><frame src='/kind/frame'></frameset></html>"
    return Answer(body=text)


@at(KNOTS, "/spellings")
def _spellings(visit: Visit) -> Answer:
    own = visit.url("/target")
    upper = own.replace(KNOTS, "KnOtS.TEST").replace("http", "HTTP")
    hrefs = ["/target", "target", "./target", "/x/../target", own, upper, own.removeprefix("http:")]
    hrefs += ["/target#part", "/target?utm_source=a&utm_medium=b", "  /target\n", "\\target"]
    return page(visit, *hrefs, own.replace("//", "//user@"), visit.url("//target"))


@at(KNOTS, "/deep")
def _deep(visit: Visit) -> Answer:
    below = b"<div>" * 300 + b'<a href="/below">below</a>' + b"</div>" * 300
    return Answer(body=page(visit).body.replace(b"</main>", below + b"</main>"))


@at(KNOTS, "/kind/*", "/target", "/after-userinfo", "/below", "/caught/*")
@at(QUIET, "/behind/*", "/beyond/*")
@at("xn--bcher-kva.test", "/stra%C3%9Fe*")
def _leaf(visit: Visit) -> Answer:
    return page(visit, "/")


def _told(visit: Visit, directive: str, href: str) -> Answer:
    return page(visit, href, head=f'<meta name="ROBOTS" content="{directive}">')


@at(QUIET, "/nofollow")
def _nofollow(visit: Visit) -> Answer:
    return _told(visit, "NoFollow", "/behind/meta")


@at(QUIET, "/none")
def _none(visit: Visit) -> Answer:
    return _told(visit, "none", "/behind/none")


@at(QUIET, "/noindex")
def _noindex(visit: Visit) -> Answer:
    return _told(visit, "noindex, follow", "/beyond/noindex")


@at(QUIET, "/noarchive")
def _noarchive(visit: Visit) -> Answer:
    return _told(visit, "noarchive", "/beyond/noarchive")


@at(QUIET, "/nofollow-header")
def _header(visit: Visit) -> Answer:
    return with_headers(page(visit, "/behind/header"), ("X-Robots-Tag", "nofollow"))


@at(QUIET, "/other-agent")
def _other_agent(visit: Visit) -> Answer:
    return with_headers(page(visit, "/beyond/other-agent"), ("X-Robots-Tag", "otherbot: nofollow"))


@at(QUIET, "/nofollow-link")
def _rel(visit: Visit) -> Answer:
    answer = page(visit, "/behind/rel", "/beyond/rel")
    marked = answer.body.replace(b'<a href="/behind/rel"', b'<a rel="external NOFOLLOW" href="/behind/rel"')
    return Answer(body=marked)


fixed("maze.test", "/a", Answer(301, headers=(("Location", "/a/"),)))
