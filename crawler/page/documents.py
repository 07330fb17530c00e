"""Documents by MIME type: which module reads a body, and the one way to have it read.

Modules of third parties come from the entry point group `orbweaver.documents`; the name of an entry point is the MIME
type, its object a class without arguments that is a `DocumentModule`. They go before the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from crawler.page import mime
from crawler.page.directives import from_meta
from crawler.page.model import FAILED, NOT_PARSED, Page

ENTRY_POINTS = "orbweaver.documents"


class DocumentModule(Protocol):
    """Makes a page of a body. It is pure, keeps no state between bodies, and fails by `parse_status`."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page: ...


def parse(
    body: bytes, url: str, content_type: str | None, html_module: str = "lexbor", product_token: str = ""
) -> Page:
    """The page of a body that has been decoded from its content coding. It raises nothing but MemoryError.

    The directives are those for all robots and those for `product_token`.
    """
    detected = mime.sniff(body, content_type, url)
    try:
        module = module_for(detected, html_module)
        if module is None:
            return Page(detected, NOT_PARSED, base=url)
        page = module.parse(body, url, content_type)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a module, ours or not, must not end the round
        return Page(detected, FAILED, base=url, reason=f"{type(error).__name__}: {error}"[:200])
    page.mime_detected = detected
    page.base = page.base or url
    page.directives |= from_meta(page.robots_metas, product_token)
    return page


def module_for(mime_type: str, html_module: str = "lexbor") -> DocumentModule | None:
    """The module of a MIME type, None when there is none; `html_module` is lexbor or bs4."""
    if mime_type in (mime.HTML, mime.XHTML):
        return _third_party(mime_type) or _html(html_module)
    return _third_party(mime_type) or _built_in(mime_type)


def is_built_in(mime_type: str, html_module: str = "lexbor") -> bool:
    """Whether the module of a MIME type is one of ours whose cost is known; Beautiful Soup's is not."""
    return _third_party(mime_type) is None and (mime_type not in (mime.HTML, mime.XHTML) or html_module == "lexbor")


@cache
def _third_party(mime_type: str) -> DocumentModule | None:
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == mime_type:
            factory: Callable[[], DocumentModule] = entry.load()
            return factory()
    return None


@cache
def _html(name: str) -> DocumentModule:
    if name == "lexbor":
        from crawler.page.html import LexborModule

        return LexborModule()
    if name == "bs4":
        from crawler.page.html_bs4 import BeautifulSoupModule

        return BeautifulSoupModule()
    raise ValueError(f"page.html_module: {name!r} is not known; allowed: lexbor, bs4")


@cache
def _built_in(mime_type: str) -> DocumentModule | None:
    from crawler.page.feed import FeedModule
    from crawler.page.plain import PlainModule
    from crawler.page.sitemap import GzipModule, SitemapModule

    modules: dict[str, Callable[[], DocumentModule]] = {
        mime.PLAIN: PlainModule,
        mime.XML: SitemapModule,
        mime.GZIP: GzipModule,
        mime.RSS: FeedModule,
        mime.ATOM: FeedModule,
    }
    return modules[mime_type]() if mime_type in modules else None
