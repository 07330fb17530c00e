"""Corners about robots files and sitemaps, and the hosts whose manners they decide."""

from __future__ import annotations

import gzip
from functools import lru_cache

from tests.web.answers import Answer, Visit, at, fixed, page, redirect
from tests.web.corner_faults import PATIENCE_S

ROBOTS_LIMIT = 512_000
PAGES_OF_SLOW_HOSTS = 8


def rules(host: str, text: str) -> None:
    """Gives the host a robots file."""
    fixed(host, "/robots.txt", _rules(text.encode()))


def _rules(body: bytes) -> Answer:
    return Answer(200, body, "text/plain")


@lru_cache(maxsize=1)
def scroll() -> bytes:
    """600 KB. The byte at the limit falls into `Disallow: /cut/other`, right after `/cut`."""
    head = b"User-agent: *\nDisallow: /early/\n"
    cut = b"Disallow: /cut"
    room = ROBOTS_LIMIT - len(head) - len(cut)
    filler = b"".join(b"Disallow: /filler/%06d/\n" % number for number in range(25_000))
    kept = filler[: room - room % 25]
    padding = b"#" * (room - len(kept) - 1) + b"\n"
    return head + kept + padding + cut + b"/other\nDisallow: /late/\n" + filler[: 600_000 - ROBOTS_LIMIT]


@at("scroll.test", "/robots.txt")
def _scroll(visit: Visit) -> Answer:
    return _rules(scroll())


@at("gate.test", "/private/*", "/papers/*")
@at("nameplate.test", "/for-us", "/not-for-us")
@at("scroll.test", "/early/*", "/cut/*", "/late/*")
@at("mark.test", "/private/*", "/public/*")
@at("mark16.test", "/private/*", "/public/*")
@at("forward.test", "/private/*", "/public/*")
@at("steady.test", "/page/*")
@at("snooze.test", "/page/*")
@at("atlas.test", "/only/*")
@at("courier.test", "/story/*")
def _leaf(visit: Visit) -> Answer:
    return page(visit, "/")


@at("steady.test", "/")
@at("snooze.test", "/")
def _slow_host(visit: Visit) -> Answer:
    return page(visit, *(f"/page/{number}" for number in range(1, PAGES_OF_SLOW_HOSTS)))


@at("mark.test", "/")
@at("mark16.test", "/")
@at("forward.test", "/")
def _two_ways(visit: Visit) -> Answer:
    return page(visit, "/private/page", "/public/page")


_GATE = "User-agent: otherbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nAllow: /private/open/\n"
rules("gate.test", _GATE + "Disallow: /*.pdf$\n")
rules("nameplate.test", "User-agent: *\nDisallow: /\n\nUser-agent: Orbweaver\nDisallow: /not-for-us\n")
rules("shut.test", "User-agent: *\nDisallow: /\n")
rules("steady.test", "User-agent: *\nCrawl-delay: 2\nDisallow:\n")
rules("snooze.test", "User-agent: *\nCrawl-delay: 120\nDisallow:\n")
fixed("open.test", "/robots.txt", Answer(404, b"not found\n", "text/plain"))
fixed("locked.test", "/robots.txt", Answer(403, b"forbidden\n", "text/plain"))
fixed("ailing.test", "/robots.txt", Answer(503, b"ill\n", "text/plain"))
fixed("mute.test", "/robots.txt", Answer(0, steps=lambda: [PATIENCE_S]))
fixed("mark.test", "/robots.txt", _rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /private/\n"))
fixed("mark16.test", "/robots.txt", _rules("\ufeffUser-agent: *\nDisallow: /private/\n".encode("utf-16-le")))
fixed("sofa.test", "/robots.txt", Answer(200, b"<html><body><p>Disallow: / is what we never say.</p></body></html>\n"))
fixed("forward.test", "/robots.txt", redirect("/rules", 301))
fixed("gate.test", "/shared-robots.txt", _rules(b"User-agent: *\nDisallow: /private/\n"))


@at("forward.test", "/rules")
def _forward(visit: Visit) -> Answer:
    return redirect(visit.world.url("gate.test", "/shared-robots.txt"), 301)


@at("relay.test", "/robots.txt", "/relay/*")
def _relay(visit: Visit) -> Answer:
    hop = int(visit.path.rpartition("/")[2]) if visit.path != "/robots.txt" else 0
    return redirect(f"/relay/{hop + 1}", 302) if hop < 7 else _rules(b"User-agent: *\nDisallow: /\n")


@at("lure.test", "/robots.txt")
def _lure(visit: Visit) -> Answer:
    return redirect(visit.world.url("127.0.0.1", "/caught/robots"))


ATLAS = "atlas.test"
_ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE urlset [<!ENTITY file SYSTEM "file:///etc/hostname"><!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">]>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&file;&e;</loc></url></urlset>
"""
fixed(ATLAS, "/sitemap-entities.xml", Answer(200, _ENTITIES.encode(), "application/xml"))


@at(ATLAS, "/robots.txt")
def _atlas_rules(visit: Visit) -> Answer:
    return _rules(f"User-agent: *\nDisallow:\nSitemap: {visit.url('/sitemap-index.xml')}\n".encode())


@at(ATLAS, "/sitemap-index.xml")
def _index(visit: Visit) -> Answer:
    locations = "".join(f"<sitemap><loc>{visit.url(path)}</loc></sitemap>" for path in ("/a.xml", "/b.xml.gz"))
    return _xml(f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</sitemapindex>')


@at(ATLAS, "/a.xml", "/b.xml.gz")
def _sitemap(visit: Visit) -> Answer:
    name = visit.path[1]
    urls = [visit.url(f"/only/in-{name}/{number}") for number in range(1, 4)]
    urls.append(visit.world.url("127.0.0.1", "/caught/sitemap"))
    locations = "".join(f"<url><loc>{url}</loc><lastmod>2026-03-03</lastmod></url>" for url in urls)
    answer = _xml(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>')
    if visit.path == "/a.xml":
        return answer
    return Answer(200, gzip.compress(answer.body, mtime=0), "application/gzip")


def _xml(text: str, content_type: str = "application/xml") -> Answer:
    return Answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode(), content_type)


@at("courier.test", "/")
def _courier(visit: Visit) -> Answer:
    feeds = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    return page(visit, head=feeds + '<link rel="alternate" type="application/atom+xml" href="/atom.xml">')


@at("courier.test", "/feed.xml")
def _rss(visit: Visit) -> Answer:
    urls = [visit.url(f"/story/rss-{number}") for number in range(1, 4)]
    items = "".join(f"<item><title>Story</title><link>{url}</link></item>" for url in urls)
    channel = f"<channel><title>Courier</title><link>{visit.url('/')}</link>{items}</channel>"
    return _xml(f'<rss version="2.0">{channel}</rss>', "application/rss+xml")


@at("courier.test", "/atom.xml")
def _atom(visit: Visit) -> Answer:
    urls = [visit.url(f"/story/atom-{number}") for number in range(1, 4)]
    items = "".join(f'<entry><title>Story</title><link href="{url}"/></entry>' for url in urls)
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>Courier</title>{items}</feed>'
    return _xml(feed, "application/atom+xml")
