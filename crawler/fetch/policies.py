"""The policies of the page room as the settings describe them, made on the executor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawler import __version__
from crawler.page.content import Bounds, ContentReader
from crawler.page.filters import ANYWHERE, Scope, UrlFilters
from crawler.page.fingerprint import Fingerprinter
from crawler.page.url import UrlPolicy
from crawler.settings import CrawlSettings, Settings


def url_policy(settings: Settings) -> UrlPolicy:
    """How URLs are made canonical."""
    return UrlPolicy(settings.url)


def url_filters(settings: Settings, scope: Scope = ANYWHERE) -> UrlFilters:
    """Which URLs may be fetched. A seed opens its own scope, so it is judged by what holds anywhere."""
    return UrlFilters(settings.filters, _lines(settings.filters.block_lists), scope)


def fingerprinter(settings: Settings) -> Fingerprinter:
    """How near-duplicates are found."""
    near = settings.near_duplicates
    return Fingerprinter(near.permutations, near.bands, near.shingle_words, near.min_words, near.seed)


def content_reader(settings: Settings) -> ContentReader:
    """How documents are read."""
    page = settings.page
    bounds = Bounds(
        inline_bytes=page.inline_bytes,
        max_decoded_bytes=settings.fetch.max_decoded_bytes,
        max_links=page.max_links,
        max_href_chars=settings.filters.max_raw_length,
        max_title_chars=page.max_title_chars,
        obey_nofollow=page.obey_nofollow,
        strip_fragment=settings.url.strip_fragment,
        html_module=page.html_module,
        product_token=product_token(settings.crawl),
        unparsed_types=settings.content.unparsed_types,
    )
    return ContentReader(bounds, fingerprinter(settings))


def user_agent(crawl: CrawlSettings) -> str:
    """Who we say we are: product token, version, and where the operator is to be found."""
    product = crawl.user_agent if "/" in crawl.user_agent else f"{crawl.user_agent}/{__version__}"
    return f"{product} (+{crawl.contact})" if crawl.contact else product


def product_token(crawl: CrawlSettings) -> str:
    """The name by which robots.txt and robots directives mean us."""
    return crawl.user_agent.partition("/")[0].strip()


def _lines(files: tuple[str, ...]) -> Iterator[str]:
    for name in files:
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            yield from file
