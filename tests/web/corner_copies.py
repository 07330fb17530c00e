"""Corners that say the same twice, or nearly."""

from __future__ import annotations

from tests.web.answers import Answer, Visit, at, document, page

MILL_PAGES = {"/": ("stone.html", "wheel.html", "flour/"), "/stone.html": ("./",), "/wheel.html": ("flour/rye.html",)}
MILL_PAGES |= {"/flour/": ("rye.html", "../"), "/flour/rye.html": ("../stone.html",)}
_EDITS = ("otter", "bramble", "lantern", "copper", "thistle", "marble")


@at("twins.test", "/one", "/two", "/three")
def _twins(visit: Visit) -> Answer:
    return page(visit, "/from-twins/1", "/from-twins/2", key="twins")


@at("twins.test", "/from-twins/*")
def _from_twins(visit: Visit) -> Answer:
    return page(visit, "/")


@at("mill.test", *MILL_PAGES)
@at("mill-mirror.test", *MILL_PAGES)
def _mill(visit: Visit) -> Answer:
    return page(visit, *MILL_PAGES[visit.path], key=f"mill {visit.path}")


def story(visit: Visit) -> list[str]:
    """The 600 words of the story."""
    prose = visit.world.prose
    return prose.words(prose.random("story"), 600)


def _told(visit: Visit, words: list[str], href: str = "/from-story") -> str:
    return document("A story", visit.world.prose.paragraphs(words), [(href, "read on"), ("/", "home")])


@at("echo.test", "/story")
def _story(visit: Visit) -> Answer:
    return Answer(body=_told(visit, story(visit)).encode())


@at("echo.test", "/story-edited")
def _edited(visit: Visit) -> Answer:
    words = story(visit)
    words[50::100] = _EDITS
    return Answer(body=_told(visit, words).encode())


@at("echo.test", "/story-links")
def _links(visit: Visit) -> Answer:
    return Answer(body=_told(visit, story(visit), "/only-from-story-links").encode())


@at("echo.test", "/story-print")
def _print(visit: Visit) -> Answer:
    told = _told(visit, story(visit))
    for old, new in (("<p>", '<div class="print">'), ("</p>", "</div>"), ("ul>", "ol>"), ("\n", "\n  ")):
        told = told.replace(old, new)
    return Answer(body=told.encode())


@at("echo.test", "/story-rewritten")
def _rewritten(visit: Visit) -> Answer:
    prose = visit.world.prose
    return Answer(body=_told(visit, [*story(visit)[:300], *prose.words(prose.random("another ending"), 300)]).encode())


@at("echo.test", "/from-story", "/only-from-story-links")
def _from_story(visit: Visit) -> Answer:
    return page(visit, "/")
