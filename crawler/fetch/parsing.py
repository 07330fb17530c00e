"""Reading of documents: the usual ones here and now, those that could cost seconds in a process that can be killed.

What runs on the event loop makes all hosts of the partition wait, so it is judged before: by sizes, by what a document
looks like, by the time its decoding takes ([suspicion](../page/suspicion.py)). All else goes to one child process with
limits of CPU and memory, as bytes that are still coded. When a document has the child killed, a fresh one scans it for
its links; a host whose documents do so again and again loses the right to the first try, then to the second.

An attempt that follows one that died reads everything apart: what killed that one may have been a document.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from crawler.fetch.parser_process import LENGTH, content_from_json, packed, spec_of
from crawler.fetch.policies import content_reader
from crawler.page.content import Content, ContentReader, Document
from crawler.page.model import KILLED, NOT_PARSED
from crawler.page.url import registered_domain
from crawler.settings import Settings

START_S = 20.0
WALL_FACTOR = 4.0  # of the CPU limit, by the clock on the wall: the machine has others to serve
MAX_KILLS = 3  # by documents of a host in a partition, before it loses the first of the two tries
HOSTS_A_DOMAIN = 5  # that may each do so, before all of the domain lose it: names cost nothing
LONG_BYTES = 32_768  # of a body whose parsing and fingerprint are two steps of the loop
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR")


class _Killed(Exception):
    """The child is gone, or must go, and no document but the one at hand is to blame. Says why."""


class PageParser:
    """Reads documents under the limits of the settings. Belongs to one event loop; `close` it at the end."""

    def __init__(self, settings: Settings, *, trusts_nobody: bool = False) -> None:
        self._settings = settings.page
        self._reader = content_reader(settings)
        self._trusts_nobody = trusts_nobody
        self._child: Process | None = None
        self._turn = asyncio.Lock()
        self._warming: asyncio.Future[None] | None = None
        self._kills_of: Counter[str] = Counter()  # by host and by domain
        self.kills = 0  # how often a document had the child killed

    async def read(self, document: Callable[[], Document]) -> Content:
        """The content; `parse_status` is `killed` where reading used up its time or memory. A document that must wait
        for its turn is made again when that has come: those that wait take no memory."""
        if self._warming is None:
            self._warming = asyncio.ensure_future(asyncio.to_thread(_warm_up, self._reader))
        if not self._warming.done():
            await asyncio.shield(self._warming)
        if not self._trusts_nobody:
            draft = self._reader.begin(document())
            if draft is not None:
                if len(draft.decoded.body) > LONG_BYTES:
                    await asyncio.sleep(0)
                return self._reader.finish(draft)
        return await self.read_apart(document)

    async def read_apart(self, document: Callable[[], Document]) -> Content:
        """The same, in the child in any case."""
        async with self._turn:
            return await self._apart(document())

    async def close(self) -> None:
        """End the process, if there is one."""
        child, self._child = self._child, None
        if child is None:
            return
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()

    async def _apart(self, document: Document) -> Content:
        """Two tries, to parse and to scan; what is killed is not tried again."""
        host = urlsplit(document.url).netloc
        names = {host: MAX_KILLS, f"*.{registered_domain(host)}": MAX_KILLS * HOSTS_A_DOMAIN}
        status, reason, content = NOT_PARSED, "", None
        for is_scan in (False, True):
            spent = [name for name, limit in names.items() if self._kills_of[name] >= limit * (1 + is_scan)]
            if spent:
                reason = reason or f"documents of {spent[0]} stopped the parser {self._kills_of[spent[0]]} times"
                continue
            try:
                content = await self._ask(document, is_scan=is_scan)
            except _Killed as killed:
                self.kills += 1
                self._kills_of.update(names.keys())
                status, reason = KILLED, str(killed)
            else:
                if not is_scan:
                    return content
        content = content or self._reader.glance(document)
        if content.page is not None:
            content.page.parse_status, content.page.reason = status, reason
        return content

    async def _ask(self, document: Document, *, is_scan: bool) -> Content:
        """The child's answer. Raises _Killed."""
        limit_s = START_S + WALL_FACTOR * self._settings.parse_cpu_s
        try:
            answer = await asyncio.wait_for(self._exchange(document, is_scan=is_scan), limit_s)
        except TimeoutError:
            await self.close()
            raise _Killed(f"the parser gave no answer in {limit_s:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError, BrokenPipeError):
            raise _Killed(await self._how_it_died()) from None
        except asyncio.CancelledError:
            await self.close()
            raise
        if answer["is_last"]:
            await self.close()
        if answer["content"] is None:
            raise _Killed(f"the parser needed more than {self._settings.parse_memory_mb} MB of memory")
        return content_from_json(answer["content"])

    async def _exchange(self, document: Document, *, is_scan: bool) -> dict[str, Any]:
        if self._child is not None and self._child.returncode is not None:
            self._child = None  # whatever ended it between two documents, this one did not
        child = self._child or await self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        request = document._asdict()
        body = request.pop("body")
        child.stdin.write(packed({**request, "size": len(body), "is_scan": is_scan}))
        child.stdin.write(body)
        await child.stdin.drain()
        (length,) = LENGTH.unpack(await child.stdout.readexactly(LENGTH.size))
        answer: dict[str, Any] = json.loads(await child.stdout.readexactly(length))
        return answer

    async def _how_it_died(self) -> str:
        child, self._child = self._child, None
        assert child is not None
        with suppress(ProcessLookupError):
            if not await _ends_by_itself(child):
                child.kill()
        code = await child.wait()
        if code == -signal.SIGXCPU:
            return f"the parser needed more than {self._settings.parse_cpu_s:g} s of CPU"
        return f"the parser died of {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"

    async def _start(self) -> Process:
        """A child with our import path and nothing else of our environment: no credentials."""
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        spec = spec_of(self._reader, self._settings.parse_cpu_s, self._settings.parse_memory_mb)
        program = (sys.executable, "-m", "crawler.fetch.parser_process", spec)
        self._child = await asyncio.create_subprocess_exec(
            *program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        return self._child


def _warm_up(reader: ContentReader) -> None:
    """Load what the first page would otherwise wait for, and all hosts with it."""
    reader.prints.warm_up()
    registered_domain("example.org")


async def _ends_by_itself(child: Process) -> bool:
    """A pipe that broke is nearly always the end of the process."""
    with suppress(TimeoutError):
        await asyncio.wait_for(child.wait(), 1.0)
        return True
    return False
