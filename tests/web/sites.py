"""The ordinary hosts of the demo web: their names, addresses, pages and links, all a function of the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from tests.web.words import Prose, listed

BRANCHES = 12
MOST_SECTIONS_IN_NAV = 8
PLATFORM_ADDRESS = "127.77.3.1"
SHARED_ADDRESS = "127.77.3.2"
MEADOW_ADDRESS = "127.77.3.3"

PORTAL = "meadow.test"
_MEADOW = ("meadow.test", "www.meadow.test", "shop.meadow.test", "blog.meadow.test")
_PLATFORM = tuple(f"{name}.nest.test" for name in listed("wren finch robin swift heron stork crane raven owl"))
_SHARED = tuple(f"{name}.test" for name in listed("potter weaver cooper fletcher tanner mason turner sawyer"))
_ALONE = tuple(f"{name}.test" for name in listed("harbour orchard foundry library bakery lighthouse quarry abbey"))
_ALONE_MORE = ("www.harbour.test", "docs.foundry.test")


@dataclass(frozen=True)
class Scale:
    """How big the ordinary part of the web is. `words` is the mean length of a page's text."""

    pages: int = 300
    hosts: int = 31
    words: int = 450
    corners: bool = True


LARGE = Scale(pages=20_000, hosts=50, words=1_500, corners=False)


@dataclass(frozen=True)
class Site:
    """An ordinary host. Page 0 is its home, the pages 12 i + 1 to 12 i + 12 are the children of page i."""

    host: str
    address: str
    paths: tuple[str, ...]
    turn: int  # decides about robots file, validators and coding

    @property
    def has_robots(self) -> bool:
        return self.turn % 3 != 2

    @property
    def has_drafts(self) -> bool:
        """True when its pages link to /drafts/, which its robots file denies."""
        return self.turn % 3 == 1

    @property
    def validator(self) -> str:
        return ("etag", "date", "")[self.turn % 4 % 3]

    @property
    def is_gzipped(self) -> bool:
        return self.turn % 5 == 3

    @cached_property
    def pages(self) -> dict[str, int]:
        return {path: page for page, path in enumerate(self.paths)}

    def children(self, page: int) -> range:
        return range(page * BRANCHES + 1, min(page * BRANCHES + 1 + BRANCHES, len(self.paths)))

    def sections(self) -> range:
        return range(1, min(1 + MOST_SECTIONS_IN_NAV, len(self.paths)))


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The links of an ordinary page by their place in it, as (site, page)."""

    nav: list[tuple[Site, int]]
    body: list[tuple[Site, int]]
    aside: list[tuple[Site, int]]

    def __iter__(self) -> Iterator[tuple[Site, int]]:
        yield from self.nav
        yield from self.body
        yield from self.aside


def make_sites(prose: Prose, scale: Scale) -> dict[str, Site]:
    """All ordinary hosts. A host has between half and about twice the mean number of pages."""
    places = _places(prose, scale.hosts)
    shares = [0.5 + 1.5 * (place * 7 % 10) / 9 for place in range(len(places))]
    counts = [max(1, int(scale.pages * share / sum(shares))) for share in shares]
    counts[0] += max(0, scale.pages - sum(counts))
    sites: dict[str, Site] = {}
    for turn, ((host, address), count) in enumerate(zip(places, counts, strict=True)):
        sites[host] = Site(host, address, _paths(prose, host, count), turn)
    return sites


def links_of(prose: Prose, sites: dict[str, Site], site: Site, page: int) -> PageLinks:
    """10 to 70 links: the site's sections, the page's neighbours and children, and pages of other hosts."""
    random = prose.random("links", site.host, page)
    size = len(site.paths)
    parent = (page - 1) // BRANCHES if page else 0
    nav = [(site, 0), *((site, section) for section in site.sections())]
    body = [(site, child) for child in site.children(page)]
    body += [(site, int(random.random() * size)) for _ in range(6 + int(random.random() * 24))]
    aside = [(site, parent), (site, (page + 1) % size), (site, (page - 1) % size)]
    aside += _away(random, list(sites.values()), 2 + int(random.random() * 4))
    if site.host == PORTAL and page == 0:
        aside += [(other, 0) for other in sites.values()]
    return PageLinks(nav, body, aside)


def _away(random: Random, sites: list[Site], count: int) -> list[tuple[Site, int]]:
    chosen = [sites[int(random.random() * len(sites))] for _ in range(count)]
    return [(site, int(random.random() ** 3 * len(site.paths))) for site in chosen]


def _places(prose: Prose, hosts: int) -> list[tuple[str, str]]:
    """(host, address) of each: known names first, then made-up ones."""
    places = [(host, MEADOW_ADDRESS) for host in _MEADOW]
    places += [(host, PLATFORM_ADDRESS) for host in _PLATFORM] + [(host, SHARED_ADDRESS) for host in _SHARED]
    alone = [*_ALONE, *_ALONE_MORE]
    names = prose.random("hosts").sample(prose.names, 1_500)
    alone += [f"{name}-{number}.test" for number, name in enumerate(names)]
    places += [(host, f"127.77.1.{number % 250 + 1}") for number, host in enumerate(alone)]
    return places[:hosts]


def _paths(prose: Prose, host: str, count: int) -> tuple[str, ...]:
    random = prose.random("paths", host)
    paths = ["/"]
    for page in range(1, count):
        if page <= BRANCHES:
            paths.append(f"/{prose.phrase(random, 1)}-{page}/")
        else:
            folder = paths[(page - 1) // BRANCHES].rpartition("/")[0]
            paths.append(f"{folder}/{prose.phrase(random, 2).replace(' ', '-')}-{page}.html")
    return tuple(paths)
