"""Parsing apart gives what parsing here gives, and survives whatever a page does to the parser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crawler.fetch.parser_process import page_from_json, page_to_json
from crawler.fetch.parsing import Document, PageParser
from crawler.page import documents
from crawler.page.model import Page
from crawler.settings import PageSettings

HTML = (
    b"<html><head><title>T\xc3\xa9</title><meta name=robots content='noindex, nofollow'></head>"
    b"<body><a href=/x>x</a><a rel=nofollow href=/y>y</a> words</body></html>"
)
ATTRIBUTES = b"<p " + b" ".join(b"a%d=1" % n for n in range(60_000)) + b"><a href=/lost>x</a>"


async def apart(parser: PageParser, body: bytes) -> Page:
    return await parser.parse_apart(lambda: document(body))


def with_parser(work: Callable[[PageParser], Awaitable[None]], **settings: object) -> None:
    async def run() -> None:
        parser = PageParser(PageSettings(**settings), "orbweaver")  # type: ignore[arg-type]  # a table of cases is looser than the types
        try:
            await work(parser)
        finally:
            await parser.close()

    asyncio.run(run())


def document(body: bytes) -> Document:
    return Document(body, "http://a.test/", "text/html; charset=utf-8")


def test_a_page_survives_the_way_through_json() -> None:
    page = documents.parse(*document(HTML))
    assert page.hrefs
    assert page.robots_metas
    assert page_from_json(json.loads(json.dumps(page_to_json(page)))) == page


def test_parsing_apart_gives_the_same_page() -> None:
    async def work(parser: PageParser) -> None:
        assert parser.parse_here(document(HTML)) == documents.parse(*document(HTML))
        assert await apart(parser, HTML) == documents.parse(*document(HTML))
        assert (await apart(parser, b"\x00\xff binary")).mime_detected

    with_parser(work)


def test_a_page_that_takes_too_long_is_killed_and_the_next_one_is_read() -> None:
    async def work(parser: PageParser) -> None:
        pages = await asyncio.gather(*(apart(parser, body) for body in (HTML, ATTRIBUTES, HTML)))
        assert [page.parse_status for page in pages] == ["ok", "killed", "ok"]
        assert pages[1] == Page("text/html", "killed", base="http://a.test/", hrefs=["/lost"])
        assert parser.kills == 1

    with_parser(work, parse_cpu_s=1.0)


def test_a_page_that_takes_too_much_memory_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(parser: PageParser) -> None:
        status = (await apart(parser, b"<p>x" * 2_000_000)).parse_status
        assert status in {"killed", "failed"}
        assert (await apart(parser, HTML)).parse_status == "ok"

    with_parser(work, parse_memory_mb=64)


def test_the_child_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(parser: PageParser) -> None:
        await apart(parser, HTML)
        child = parser._child
        assert child is not None
        environment = await asyncio.to_thread(Path(f"/proc/{child.pid}/environ").read_bytes)
        assert b"PYTHONPATH=" in environment
        assert b"hush" not in environment

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    with_parser(work)
