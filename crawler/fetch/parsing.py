"""Parsing of pages: the usual ones here and now, those that could cost seconds in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from html import unescape
from itertools import islice
from typing import NamedTuple

from crawler.fetch.parser_process import LENGTH, packed, page_from_json
from crawler.page import documents, mime
from crawler.page.model import KILLED, Page
from crawler.settings import PageSettings

START_S = 20.0
WALL_FACTOR = 4.0  # of the CPU limit, by the clock on the wall: the machine has others to serve
_HREF = re.compile(rb"""\bhref\s{0,9}=\s{0,9}["']?([^"'\s<>]{1,4096})""", re.IGNORECASE)
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR")


class Document(NamedTuple):
    """A body without its content coding, and what its server says it is."""

    body: bytes
    url: str
    content_type: str | None


class PageParser:
    """Parses pages under the limits of the settings. Belongs to one event loop; `close` it at the end."""

    def __init__(self, settings: PageSettings, product_token: str) -> None:
        self._settings = settings
        self._token = product_token
        self._child: Process | None = None
        self._turn = asyncio.Lock()
        self.kills = 0

    def parse_here(self, document: Document) -> Page | None:
        """The page, None when it could cost seconds to parse."""
        if documents.is_suspicious(document.body, self._settings.inline_bytes):
            return None
        return documents.parse(*document, self._settings.html_module, self._token)

    async def parse_apart(self, document: Callable[[], Document]) -> Page:
        """The page; `parse_status` is `killed` when it used up its time or memory. The document is made when its turn
        has come: those that wait for it take no memory."""
        async with self._turn:
            return await self._parse(document())

    async def close(self) -> None:
        """End the process, if there is one."""
        child, self._child = self._child, None
        if child is None:
            return
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()

    async def _parse(self, document: Document) -> Page:
        limit_s = START_S + WALL_FACTOR * self._settings.parse_cpu_s
        try:
            return await asyncio.wait_for(self._ask(document), limit_s)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, BrokenPipeError):
            self.kills += 1
            await self.close()
            return self._without_parser(document)
        except asyncio.CancelledError:
            await self.close()
            raise

    def _without_parser(self, document: Document) -> Page:
        """What can be said of a page that stops parsers: its type, and what looks like a link."""
        detected = mime.sniff(document.body, document.content_type, document.url)
        page = Page(detected, KILLED, base=document.url)
        if detected in (mime.HTML, mime.XHTML):
            found = islice(_HREF.finditer(document.body), self._settings.max_links)
            page.hrefs = list(dict.fromkeys(unescape(match[1].decode("utf-8", "replace")) for match in found))
        return page

    async def _ask(self, document: Document) -> Page:
        child = self._child or await self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        request = {"url": document.url, "content_type": document.content_type, "size": len(document.body)}
        child.stdin.write(packed(request | self._options))
        child.stdin.write(document.body)
        await child.stdin.drain()
        (length,) = LENGTH.unpack(await child.stdout.readexactly(LENGTH.size))
        return page_from_json(json.loads(await child.stdout.readexactly(length)))

    @property
    def _options(self) -> dict[str, str]:
        return {"html_module": self._settings.html_module, "product_token": self._token}

    async def _start(self) -> Process:
        """A child with our import path and nothing else of our environment: no credentials."""
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        limits = (str(self._settings.parse_cpu_s), str(self._settings.parse_memory_mb))
        program = (sys.executable, "-m", "crawler.fetch.parser_process", *limits)
        self._child = await asyncio.create_subprocess_exec(
            *program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        return self._child
