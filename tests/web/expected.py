"""Facts about the demo web that tests hold a crawl against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.web import corners
from tests.web.corner_bodies import TONGUES
from tests.web.corner_copies import MILL_PAGES
from tests.web.corner_links import COUNTER_PAGES, KINDS, forbidden_hrefs
from tests.web.pages import DRAFT
from tests.web.web import Web
from tests.web.words import listed

DENIED_HOSTS = frozenset({"shut.test", "ailing.test", "mute.test", "lure.test", "inside.test", "inside.turns.test"})
"""Hosts of which no page may be asked for."""

OPTIONAL_HOSTS = frozenset(f"{name}.test" for name in listed("closed snooze siesta broken"))
"""Hosts on which it depends on the crawl's patience what is asked for."""

_THIRD = {
    "twins.test": ("/from-twins/1", "/from-twins/2"),
    "mill.test": ("/flour/rye.html",),
    "mill-mirror.test": ("/flour/rye.html",),
    "echo.test": ("/from-story", "/only-from-story-links"),
    "courier.test": tuple(f"/story/{kind}-{number}" for kind in ("rss", "atom") for number in (1, 2, 3)),
    "packed.test": tuple(f"/linked/{kind}" for kind in ("gzip", "chunked", "gzip-chunked", "deflate", "to-close")),
    "cabinet.test": ("/from-xhtml", "/from-untyped", "/from-elsewhere"),
    "quiet.test": ("/beyond/noindex", "/beyond/noarchive", "/beyond/other-agent", "/beyond/rel"),
    "knots.test": ("/after-userinfo", "/target", "/below", *(f"/kind/{kind}" for kind in KINDS if kind != "frame")),
    "xn--bcher-kva.test": ("/stra%C3%9Fe?q=%C3%A9",),
    "maze.test": ("/a/a/",),
    "keeper.test": ("/news/0",),
    "turns.test": (
        *("/loop/b", "/chain/1", "/target/temporary", "/target/see-other", "/target/permanent", "/target/relative"),
        *("/target/broken-body", "/target/gr%C3%B6%C3%9Fe"),
    ),
    "atlas.test": ("/a.xml", "/b.xml.gz"),
}
_SECOND = {
    "mill.test": ("/stone.html", "/wheel.html", "/flour/"),
    "mill-mirror.test": ("/stone.html", "/wheel.html", "/flour/"),
    "babel.test": (*(tongue.path for tongue in TONGUES), "/broken-utf-8"),
    "steady.test": tuple(f"/page/{number}" for number in range(1, 8)),
    "counter.test": COUNTER_PAGES[1:],
    "courier.test": ("/feed.xml", "/atom.xml"),
    "atlas.test": ("/sitemap-index.xml",),
    "mark.test": ("/public/page",),
    "mark16.test": ("/public/page",),
}
_LATER = {
    ("knots.test", "/kind/frame"): 4,
    **{("atlas.test", f"/only/in-{part}/{number}"): 4 for part in "ab" for number in (1, 2, 3)},
    **{("turns.test", f"/chain/{hop}"): hop + 2 for hop in (2, 3, 4)},
    ("turns.test", "/chain/end"): 7,
    ("forward.test", "/"): 2,  # whose rules are on another host, which another partition may ask in the first
    ("forward.test", "/public/page"): 3,
}
_NEVER = {
    "gate.test": ("/private/secret", "/papers/one.pdf"),
    "quiet.test": ("/behind/meta", "/behind/header", "/behind/rel", "/behind/none"),
    "scroll.test": ("/early/page",),
}


@dataclass(frozen=True)
class Expected:
    """Sets of URLs, with port, in canonical form."""

    rounds: dict[str, int]
    """Every URL that a crawl to the end asks for, with the first round (from 1) in which it can be planned."""
    never: frozenset[str]
    never_prefixes: tuple[str, ...]
    outcomes: dict[str, str]
    """First outcome of a corner's URL, as the table says; `never` and hidden rows are left out."""
    payload_duplicates: tuple[frozenset[str], ...]
    text_duplicates: tuple[frozenset[str], ...]
    near_duplicates: tuple[frozenset[str], ...]
    redirects: dict[str, str]
    phrases: dict[str, str]
    """A phrase that the text of the page has when its charset was found."""
    crawl_delays: dict[str, float]
    """Host name with port to the delay of its robots file in seconds."""
    revisits: dict[str, str]
    """Pages that do not change, with what a second visit finds: `server-not-modified` or `identical-payload-digest`."""
    changing: frozenset[str]
    """Pages whose second visit differs from the first."""

    @property
    def must_fetch(self) -> frozenset[str]:
        return frozenset(self.rounds)

    def within(self, rounds: int) -> frozenset[str]:
        """What must have been asked for after so many rounds that were not cut short."""
        return frozenset(url for url, first in self.rounds.items() if first <= rounds)


def expect(web: Web) -> Expected:
    """The facts of this web. Without corners, most of them are empty."""
    if not web.scale.corners:
        return Expected(_ordinary_rounds(web), _drafts(web), (), {}, (), (), (), {}, {}, {}, {}, frozenset())
    url = web.world.url
    echo = [url("echo.test", path) for path in ("/story", "/story-links", "/story-print", "/story-edited")]
    keeper = {path: url("keeper.test", path) for path in ("/etag", "/date", "/steady", "/fickle", "/fickle-etag")}
    return Expected(
        rounds=_ordinary_rounds(web) | dict(_corner_rounds(web)),
        never=_drafts(web) | _never(web),
        never_prefixes=(
            *(url(host, "") + "/caught/" for host in ("knots.test", "127.0.0.1", "inside.test", "inside.turns.test")),
            url("maze.test", "/a/a/a/"),
        ),
        outcomes={url(c.host, c.path): c.outcome for c in corners.CORNERS if c.outcome != "never" and not c.is_hidden},
        payload_duplicates=(
            frozenset(url("twins.test", path) for path in ("/one", "/two", "/three")),
            *(frozenset({url("mill.test", path), url("mill-mirror.test", path)}) for path in MILL_PAGES),
        ),
        text_duplicates=(frozenset(echo[:3]),),
        near_duplicates=(frozenset(echo),),
        redirects=_redirects(web),
        phrases={url("babel.test", tongue.path): tongue.phrase for tongue in TONGUES},
        crawl_delays={f"{host}.test:{web.world.port}": delay for host, delay in (("steady", 2.0), ("snooze", 120.0))},
        revisits={
            keeper["/etag"]: "server-not-modified",
            keeper["/date"]: "server-not-modified",
            keeper["/steady"]: "identical-payload-digest",
        },
        changing=frozenset({keeper["/fickle"], keeper["/fickle-etag"]}),
    )


def _ordinary_rounds(web: Web) -> dict[str, int]:
    """Breadth first from the seeds along the pages' links."""
    sites, seeds = web.country.sites, set(web.seeds())
    rounds = {(host, 0): 1 for host in sites if web.world.url(host) in seeds}
    newest = list(rounds)
    while newest:
        found: list[tuple[str, int]] = []
        for host, number in newest:
            for site, target in web.country.links(sites[host], number):
                if (site.host, target) not in rounds:
                    rounds[site.host, target] = rounds[host, number] + 1
                    found.append((site.host, target))
        newest = found
    return {web.world.url(host, sites[host].paths[number]): first for (host, number), first in rounds.items()}


def _corner_rounds(web: Web) -> Iterator[tuple[str, int]]:
    hosts = [host for host in corners.HOSTS if host not in DENIED_HOSTS | OPTIONAL_HOSTS]
    for host in hosts:
        yield web.world.url(host), 1
    for corner in corners.CORNERS:
        if corner.host in hosts and corner.path != "/" and not corner.is_hidden and corner.outcome != "never":
            yield web.world.url(corner.host, corner.path), 2
    for first, paths_by_host in ((2, _SECOND), (3, _THIRD)):
        for host, paths in paths_by_host.items():
            yield from ((web.world.url(host, path), first) for path in paths)
    for (host, path), first in _LATER.items():
        yield web.world.url(host, path), first


def _drafts(web: Web) -> frozenset[str]:
    return frozenset(web.world.url(site.host, DRAFT) for site in web.country.sites.values() if site.has_drafts)


def _never(web: Web) -> frozenset[str]:
    urls = {web.world.url(corner.host, corner.path) for corner in corners.CORNERS if corner.outcome == "never"}
    urls |= {web.world.url(host) for host in DENIED_HOSTS}
    urls |= {web.world.url(host, path) for host, paths in _NEVER.items() for path in paths}
    return frozenset(urls | set(forbidden_hrefs(web.world)))


def _redirects(web: Web) -> dict[str, str]:
    """Redirects between pages that may be asked for."""
    paths = {"/loop/a": "/loop/b", "/loop/b": "/loop/a", "/self": "/self", "/chain/4": "/chain/end"}
    paths |= {f"/chain/{hop}": f"/chain/{hop + 1}" for hop in range(4)}
    paths |= {f"/{kind}": f"/target/{kind}" for kind in listed("temporary see-other permanent relative broken-body")}
    paths["/non-ascii"] = "/target/gr%C3%B6%C3%9Fe"
    inner = {web.world.url("turns.test", source): web.world.url("turns.test", to) for source, to in paths.items()}
    return inner | {web.world.url("turns.test", "/elsewhere"): web.world.url("cabinet.test", "/from-elsewhere")}
