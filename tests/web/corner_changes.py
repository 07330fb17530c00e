"""Corners that answer otherwise at another visit: validators, changing pages, and servers that ask for patience."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.web.answers import LAST_MODIFIED, Answer, Visit, at, fixed, page, validated

HOST = "keeper.test"


@at(HOST, "/etag")
def _etag(visit: Visit) -> Answer:
    return validated(visit, page(visit, "/"), etag='"kept-1"')


@at(HOST, "/date")
def _date(visit: Visit) -> Answer:
    return validated(visit, page(visit, "/"), last_modified=LAST_MODIFIED)


@at(HOST, "/steady")
def _steady(visit: Visit) -> Answer:
    return page(visit, "/")


@at(HOST, "/fickle")
def _fickle(visit: Visit) -> Answer:
    return page(visit, "/", key=f"fickle {visit.generation}")


@at(HOST, "/fickle-etag")
def _fickle_etag(visit: Visit) -> Answer:
    return validated(visit, page(visit, "/", key=f"fickle etag {visit.generation}"), etag=f'"{visit.generation}"')


@at(HOST, "/clock")
def _clock(visit: Visit) -> Answer:
    answer = page(visit, "/", words=400)
    now = datetime.fromtimestamp(1_767_225_600 + 61 * visit.generation, UTC).isoformat()
    return Answer(body=answer.body.replace(b"</main>", f"<p>It is now {now}.</p></main>".encode()))


@at(HOST, "/vanishes")
def _vanishes(visit: Visit) -> Answer:
    return Answer(404, b"<html><body>It was here.</body></html>\n") if visit.generation else page(visit, "/")


@at(HOST, "/returns")
def _returns(visit: Visit) -> Answer:
    return page(visit, "/") if visit.generation else Answer(404, b"<html><body>Not yet.</body></html>\n")


@at(HOST, "/new-links")
def _new_links(visit: Visit) -> Answer:
    return page(visit, *(f"/news/{number}" for number in range(visit.generation + 1)))


@at(HOST, "/news/*")
def _news(visit: Visit) -> Answer:
    return page(visit, "/")


def _patience(visit: Visit, status: int) -> Answer:
    waiting = Answer(status, b"<html><body>Later, please.</body></html>\n", headers=(("Retry-After", "2"),))
    return page(visit, "/") if visit.generation else waiting


@at("busy.test", "/later")
def _later(visit: Visit) -> Answer:
    return _patience(visit, 429)


@at("busy.test", "/tired")
def _tired(visit: Visit) -> Answer:
    return _patience(visit, 503)


fixed("siesta.test", "/years", Answer(503, b"asleep\n", "text/plain", (("Retry-After", "315360000"),)))
fixed("weary.test", "/plain", Answer(503, b"overloaded\n", "text/plain"))
