"""The ordinary pages: HTML with navigation, text and links, and the robots files of ordinary hosts."""

from __future__ import annotations

import zlib
from functools import lru_cache

from tests.web.answers import LAST_MODIFIED, Answer, Visit, World, gzipped, page, validated
from tests.web.sites import PageLinks, Scale, Site, links_of, make_sites

DRAFT = "/drafts/unfinished.html"
_MISSING = Answer(404, b"<html><body>No such page.</body></html>\n")


class Country:
    """The ordinary hosts together."""

    def __init__(self, world: World, scale: Scale) -> None:
        self.world = world
        self.scale = scale
        self.sites = make_sites(world.prose, scale)
        self._body = lru_cache(maxsize=1_000)(self._render)

    def links(self, site: Site, number: int) -> PageLinks:
        return links_of(self.world.prose, self.sites, site, number)

    def answer(self, visit: Visit) -> Answer:
        site = self.sites[visit.host]
        if visit.path == "/robots.txt":
            return robots(site)
        number = site.pages.get(visit.path)
        if number is not None:
            return self._page(visit, site, number)
        return page(visit, "/") if site.has_drafts and visit.path == DRAFT else _MISSING

    def _page(self, visit: Visit, site: Site, number: int) -> Answer:
        body = self._body(site.host, number)
        answer = Answer(body=body)
        if site.is_gzipped and "gzip" in visit.headers.get("accept-encoding", ""):
            answer = gzipped(answer)
        etag = f'"{zlib.crc32(body):08x}"' if site.validator == "etag" else ""
        return validated(visit, answer, etag, LAST_MODIFIED if site.validator == "date" else "")

    def _render(self, host: str, number: int) -> bytes:
        site, prose = self.sites[host], self.world.prose
        random = prose.random("page", host, number)
        paragraphs = prose.paragraphs(prose.words(random, int(self.scale.words * (0.4 + 1.2 * random.random()))))
        links = self.links(site, number)
        title = f"{_name(site, number)} - {host}"
        drafts = f'<a href="{DRAFT}">drafts</a>\n' if site.has_drafts else ""
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
            '<meta name="viewport" content="width=device-width">\n<link rel="stylesheet" href="/style.css">\n</head>\n'
            f'<body>\n<header><nav class="site"><ul>\n{self._items(site, links.nav)}</ul></nav></header>\n'
            f"<main><article>\n<h1>{title}</h1>\n{_sections(paragraphs)}</article>\n"
            f'<section class="related"><h2>More</h2><ul>\n{self._items(site, links.body)}</ul></section></main>\n'
            f'<aside><ul>\n{self._items(site, links.aside)}</ul>\n{drafts}<a href="#top">top</a></aside>\n'
            f'<footer><p>{host}, a place that does not exist.</p><a href="mailto:post@{host}">Post</a></footer>\n'
            "</body>\n</html>\n"
        ).encode()

    def _items(self, here: Site, targets: list[tuple[Site, int]]) -> str:
        return "".join(
            f'<li class="item"><a href="{self._href(here, site, number, turn)}">{_name(site, number)}</a></li>\n'
            for turn, (site, number) in enumerate(targets)
        )

    def _href(self, here: Site, site: Site, number: int, turn: int) -> str:
        """The same page is linked in several spellings, as on real sites."""
        path = site.paths[number]
        if site is not here:
            return self.world.url(site.host, path)
        if turn % 7 == 3:
            return f"{path}#part-{turn}"
        return self.world.url(site.host.upper() if turn % 14 == 5 else site.host, path) if turn % 7 == 5 else path


def robots(site: Site) -> Answer:
    """A third of the ordinary hosts has no robots file, a third denies its drafts, a third denies nothing."""
    if not site.has_robots:
        return Answer(404, b"not found\n", "text/plain")
    rules = f"Disallow: {DRAFT.rpartition('/')[0]}/\n" if site.has_drafts else "Disallow:\n"
    return Answer(200, f"User-agent: *\n{rules}".encode(), "text/plain")


def _name(site: Site, number: int) -> str:
    """The link text and title of a page: the words of its path."""
    last = site.paths[number].rstrip("/").rpartition("/")[2].removesuffix(".html")
    return last.replace("-", " ").title() if number else f"Home of {site.host.partition('.')[0].title()}"


def _sections(paragraphs: list[str]) -> str:
    return "".join(f"<p>{paragraph}</p>\n" for paragraph in paragraphs)
