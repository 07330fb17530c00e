"""What the demo web answers, as values; and the table of who answers for which host and path."""

from __future__ import annotations

import gzip
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Literal

from tests.web.words import Prose

Step = bytes | float | Literal["reset"]
"""Bytes are sent, numbers are seconds of silence, `reset` ends the connection by RST."""

HTML = "text/html; charset=utf-8"
LAST_MODIFIED = "Tue, 03 Mar 2026 08:00:00 GMT"


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-behaved answer; with `steps`, whatever they say is sent instead and the connection is closed.

    `status` is what the log says, 0 when no valid status line is sent.
    """

    status: int = 200
    body: bytes = b""
    content_type: str | None = HTML
    headers: tuple[tuple[str, str], ...] = ()
    steps: Callable[[], Iterable[Step]] | None = None

    def wire_head(self, *, keep: bool = True, length: int | None = -1) -> bytes:
        """Status line and header. `length` is the Content-Length (-1: of the body, None: no such field)."""
        lines = [f"HTTP/1.1 {self.status} {_reason(self.status)}", "Server: demo-web"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if length is not None and self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body) if length == -1 else length}")
        lines.append("Connection: keep-alive" if keep else "Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


@dataclass(frozen=True, slots=True)
class World:
    """What every page may depend on besides its URL."""

    prose: Prose
    port: int

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request. `generation` is the number of earlier requests for this very host and path."""

    world: World
    host: str
    path: str
    headers: Mapping[str, str]
    generation: int = 0

    def url(self, path: str) -> str:
        return self.world.url(self.host, path)


Handler = Callable[[Visit], Answer]
EXACT: dict[tuple[str, str], Handler] = {}
PREFIXES: dict[str, list[tuple[str, Handler]]] = {}


def at(host: str, *paths: str) -> Callable[[Handler], Handler]:
    """Registers the handler for these paths of a host; a path that ends in `*` stands for all that start so."""

    def register(handler: Handler) -> Handler:
        for path in paths:
            if path.endswith("*"):
                PREFIXES.setdefault(host, []).append((path[:-1], handler))
            else:
                EXACT[host, path] = handler
        return handler

    return register


def fixed(host: str, path: str, answer: Answer) -> None:
    """Registers an answer that is always the same."""
    EXACT[host, path] = lambda visit: answer


def handler_for(host: str, path: str) -> Handler | None:
    exact = EXACT.get((host, path))
    if exact:
        return exact
    return next((handler for prefix, handler in PREFIXES.get(host, ()) if path.startswith(prefix)), None)


def document(title: str, paragraphs: Sequence[str], links: Iterable[tuple[str, str]], head: str = "") -> str:
    """An HTML page. Links are (href, text)."""
    items = "\n".join(f'<li><a href="{html.escape(href)}">{html.escape(text)}</a></li>' for href, text in links)
    body = "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>{head}</head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n<ul>\n{items}\n</ul>\n<main>\n{body}\n</main></body></html>\n"
    )


def page(visit: Visit, *hrefs: str, key: object = None, head: str = "", words: int = 160) -> Answer:
    """A page whose words, link texts included, are a function of `key` (its own URL by default)."""
    prose = visit.world.prose
    random = prose.random("corner", visit.host + visit.path if key is None else key)
    title = prose.phrase(random, 3).title()
    paragraphs = prose.paragraphs(prose.words(random, words))
    links = [(href, prose.phrase(random, 2)) for href in hrefs]
    return Answer(body=document(title, paragraphs, links, head).encode())


def redirect(location: str, status: int = 302) -> Answer:
    body = b"<html><body>This page is elsewhere.</body></html>\n"
    return Answer(status, body, headers=(("Location", location),))


def with_headers(answer: Answer, *headers: tuple[str, str]) -> Answer:
    return replace(answer, headers=(*answer.headers, *headers))


def validated(visit: Visit, answer: Answer, etag: str = "", last_modified: str = "") -> Answer:
    """The answer with validators, or 304 when the request holds one of them (RFC 9110, 13.2.2)."""
    names = (("ETag", etag), ("Last-Modified", last_modified))
    fields = tuple((name, value) for name, value in names if value)
    asked = visit.headers.get("if-none-match")
    is_same = asked == etag if asked is not None else visit.headers.get("if-modified-since") == last_modified
    if is_same and (etag if asked is not None else last_modified):
        return Answer(304, content_type=None, headers=fields)
    return with_headers(answer, *fields)


def gzipped(answer: Answer) -> Answer:
    coded = replace(answer, body=gzip.compress(answer.body, 1, mtime=0))
    return with_headers(coded, ("Content-Encoding", "gzip"))


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unassigned"
