"""Parsing apart gives what parsing here gives, and survives whatever a page does to the parser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crawler.fetch.parser_process import content_from_json, content_to_json
from crawler.fetch.parsing import PageParser
from crawler.fetch.policies import content_reader
from crawler.page.content import Content, Document
from crawler.page.model import Page
from crawler.settings import PageSettings, Settings

HTML = (
    b"<html><head><title>T\xc3\xa9</title><meta name=robots content='noindex, nofollow'></head>"
    b"<body><a href=/x>x</a><a rel=nofollow href=/y>y</a> words</body></html>"
)
ATTRIBUTES = b"<p " + b" ".join(b"a%d=1" % n for n in range(60_000)) + b"><a href=/lost>x</a>"


async def apart(parser: PageParser, body: bytes, content_type: str = "text/html; charset=utf-8") -> Content:
    return await parser.read_apart(lambda: document(body, content_type))


def with_parser(work: Callable[[PageParser], Awaitable[None]], **settings: object) -> None:
    async def run() -> None:
        parser = PageParser(Settings(page=PageSettings(**settings)))  # type: ignore[arg-type]  # a table of cases is looser than the types
        try:
            await work(parser)
        finally:
            await parser.close()

    asyncio.run(run())


def document(body: bytes, content_type: str = "text/html; charset=utf-8") -> Document:
    return Document(body, "http://a.test/", content_type)


def status(content: Content) -> str:
    assert content.page is not None
    return content.page.parse_status


READER = content_reader(Settings())


@pytest.mark.parametrize("body", [HTML, b"", b"\0\xff", b"words of a text " * 20, b"<p>" + b"some words " * 20])
def test_a_content_survives_the_way_through_json(body: bytes) -> None:
    content = READER.read(document(body))
    assert content_from_json(json.loads(json.dumps(content_to_json(content)))) == content


@pytest.mark.parametrize("body", [HTML, b"<p>" + b"some words " * 20, b"\x00\xff binary", b"", b"<p>" * 20_000])
def test_parsing_apart_gives_the_same_page(body: bytes) -> None:
    async def work(parser: PageParser) -> None:
        assert await apart(parser, body) == READER.read(document(body))
        assert await parser.read(lambda: document(body)) == READER.read(document(body))

    with_parser(work)


def test_a_page_that_takes_too_long_is_killed_and_the_next_one_is_read() -> None:
    async def work(parser: PageParser) -> None:
        contents = await asyncio.gather(*(apart(parser, body) for body in (HTML, ATTRIBUTES, HTML)))
        assert [status(content) for content in contents] == ["ok", "killed", "ok"]
        reason = "the parser needed more than 1 s of CPU"
        assert contents[1].page == Page("text/html", "killed", reason, base="http://a.test/", hrefs=["/lost"])
        assert parser.kills == 1

    with_parser(work, parse_cpu_s=1.0)


def test_a_page_that_takes_too_much_memory_costs_itself_and_keeps_its_links() -> None:
    async def work(parser: PageParser) -> None:
        content = await apart(parser, b"<p>x" * 2_000_000 + b"<a href=/kept>")
        assert content.page is not None
        assert (content.page.parse_status, content.page.hrefs) == ("killed", ["/kept"])
        assert content.page.reason is not None
        assert "64 MB of memory" in content.page.reason
        assert status(await apart(parser, HTML)) == "ok"

    with_parser(work, parse_memory_mb=64)


def test_a_child_that_ended_between_two_documents_is_replaced() -> None:
    async def work(parser: PageParser) -> None:
        await apart(parser, HTML)
        child = parser._child
        assert child is not None
        child.kill()
        await child.wait()
        assert (status(await apart(parser, HTML)), parser.kills) == ("ok", 0)

    with_parser(work)


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
