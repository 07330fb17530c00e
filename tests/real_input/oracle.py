"""Which URLs a crawl of the corpus must ask: a link walker of its own over the files, sharing no code with the crawler.

Pages are read with BeautifulSoup on lxml, links resolved with urllib, robots rules matched by a few lines of RFC 9309,
and paths mapped to files as nginx does it.
"""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag, XMLParsedAsHTMLWarning
from bs4.filter import SoupStrainer

from tests.real_input.corpus import Site
from tests.real_input.origin import Origin

FOLLOWED_RELATIONS = {"canonical", "next", "alternate"}
HTML_SUFFIXES = {".html", ".htm"}
_ELEMENTS = SoupStrainer(["a", "area", "base", "frame", "iframe", "link", "meta"])


@dataclass
class Expected:
    """What must be asked, each once, as (host, request target), with the status the server gives; and what robots.txt
    forbids although it is linked."""

    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    denied: set[tuple[str, str]] = field(default_factory=set)
    links: int = 0

    @property
    def pages(self) -> set[tuple[str, str]]:
        """Those that exist."""
        return {url for url, status in self.asked.items() if status == 200}


def walk(sites: Sequence[Site], origin: Origin) -> Expected:
    """Everything that can be reached from the front pages by links that robots.txt allows."""
    by_host = {f"{site.host}:{origin.port}": site for site in sites}
    expected = Expected()
    queue = deque(origin.url(site.host) for site in sites)
    known = set(queue)
    while queue:
        url = queue.popleft()
        parts = urlsplit(url)
        site = by_host[parts.netloc]
        asked = (site.host, parts.path + (f"?{parts.query}" if parts.query else ""))
        if not is_allowed(site.robots or "", asked[1]):
            expected.denied.add(asked)
            continue
        expected.asked[asked], targets = _answer(site, url, parts)
        expected.links += len(targets)
        for target in targets:
            if target not in known and urlsplit(target).netloc in by_host:
                known.add(target)
                queue.append(target)
    return expected


def _answer(site: Site, url: str, parts: SplitResult) -> tuple[int, set[str]]:
    """The status nginx answers with, and where the answer leads."""
    path = site.root / unquote(parts.path).lstrip("/")
    if path.is_dir():
        if not parts.path.endswith("/"):
            return 301, {f"{parts.scheme}://{parts.netloc}{parts.path}/"}
        path = path / "index.html"
        if not path.is_file():
            return 403, set()
    elif not path.is_file() or parts.path.endswith("/"):
        return 404, set()
    return 200, set(_links(path, url)) if path.suffix in HTML_SUFFIXES else set()


def _links(path: Path, url: str) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        tags = BeautifulSoup(path.read_bytes(), "lxml", parse_only=_ELEMENTS).find_all(True)
    if any(_says_nofollow(tag) for tag in tags):
        return
    base = next((urljoin(url, str(tag["href"])) for tag in tags if tag.name == "base" and tag.has_attr("href")), url)
    for tag in tags:
        target = _target(tag)
        if target is not None and (link := _resolved(base, target)) is not None:
            yield link


def _target(tag: Tag) -> str | None:
    relations = {relation.lower() for relation in tag.get_attribute_list("rel") if relation}
    if tag.name == "meta":
        refresh = str(tag.get("http-equiv", "")).lower() == "refresh"
        found = (
            re.search(r"url\s*=\s*['\"]?([^'\">]+)", str(tag.get("content", "")), re.IGNORECASE) if refresh else None
        )
        return found[1].strip() if found else None
    if "nofollow" in relations or (tag.name == "link" and not relations & FOLLOWED_RELATIONS):
        return None
    value = tag.get("src" if tag.name in {"frame", "iframe"} else "href") if tag.name != "base" else None
    return None if value is None else str(value)


def _says_nofollow(tag: Tag) -> bool:
    content = str(tag.get("content", "")).lower()
    return (
        tag.name == "meta"
        and str(tag.get("name", "")).lower() == "robots"
        and bool({"nofollow", "none"} & set(re.split(r"[\s,]+", content)))
    )


def _resolved(base: str, target: str) -> str | None:
    try:
        parts = urlsplit(urljoin(base, target.strip()))
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"}:
        return None
    query = f"?{quote(parts.query, safe='%/?:@!$&()*+,;=~-._')}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc.lower()}{quote(parts.path or '/', safe='%/:@!$&()*+,;=~-._')}{query}"


def is_allowed(robots: str, target: str) -> bool:
    """RFC 9309 for the group `*`: the longest matching rule decides, Allow where two are as long."""
    best = (0, True)
    for allows, pattern in _rules(robots):
        matcher = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
        if re.match(matcher + ("$" if pattern.endswith("$") else ""), target):
            best = max(best, (len(pattern), allows))
    return best[1]


def _rules(robots: str) -> Iterator[tuple[bool, str]]:
    agents: list[str] = []
    in_rules = False
    for line in robots.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key.lower() == "user-agent":
            agents = [] if in_rules else agents
            in_rules = False
            agents.append(value)
        elif key.lower() in {"allow", "disallow"}:
            in_rules = True
            if "*" in agents and value:
                yield key.lower() == "allow", value
