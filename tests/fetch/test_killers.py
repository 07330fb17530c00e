"""A document costs its own host only: no step of the loop, no process and no table suffers from one made to kill."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch import parsing
from crawler.fetch.attempt import StorageFailed
from crawler.fetch.capture import Capture, Capturer
from crawler.fetch.exchange import Exchange
from crawler.fetch.parsing import MAX_KILLS, PageParser
from crawler.fetch.recorder import Recorder
from crawler.page.content import ContentReader, Document
from crawler.page.url import registered_domain
from crawler.records import PlannedUrl
from crawler.settings import PageSettings, Settings
from tests.fetch.little_web import Answer, LittleWeb, page
from tests.fetch.partition_runs import Run
from tests.page import killers
from tests.page.killers import Killer

STEP_S = 0.1  # 50 ms are promised; on a machine with others, CPU time swells as its caches are shared
Row = dict[str, Any]
QUICK = (
    "gzip of empty members, short",
    "bomb of text",
    "sitemap of empty elements",
    "many links",
    "many long links",
    "five megabytes of characters",
    "five megabytes of bytes",
)


@dataclass
class Steps:
    """CPU seconds of the loop's thread in each of its steps, the longest ones by what ran."""

    longest: list[tuple[float, str]] = field(default_factory=list)

    def note(self, seconds: float, what: str) -> None:
        self.longest = sorted([*self.longest, (seconds, what)], reverse=True)[:5]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """The partition runs on a loop whose steps are measured.

    Sealing is left out, since that is the price of a segment of up to 2,000 URLs, and so is the collector's work over
    all that the other tests left in this process.
    """
    found = Steps()
    run, seal = asyncio.Handle._run, Recorder.seal
    sealing_s = 0.0

    def measured(handle: asyncio.Handle) -> None:
        nonlocal sealing_s
        sealing_s, start = 0.0, time.thread_time()
        run(handle)
        found.note(time.thread_time() - start - sealing_s, repr(handle))

    def sealed(recorder: Recorder) -> None:
        nonlocal sealing_s
        start = time.thread_time()
        seal(recorder)
        sealing_s += time.thread_time() - start

    monkeypatch.setattr(asyncio.Handle, "_run", measured)
    monkeypatch.setattr(Recorder, "seal", sealed)
    monkeypatch.setattr("crawler.fetch.partition.uvloop.new_event_loop", asyncio.new_event_loop)
    gc.collect()
    gc.freeze()
    yield found
    gc.unfreeze()


def answer(killer: Killer) -> Answer:
    coding = (("Content-Encoding", killer.coding),) if killer.coding else ()
    return Answer(killer.body, headers=(("Content-Type", killer.content_type), *coding))


def put(web: LittleWeb, found: dict[str, Killer]) -> list[str]:
    """Each killer on a host of its own."""
    return [web.put(f"h{number}.test", "/", answer(killer)) for number, killer in enumerate(found.values())]


def fetched(web: LittleWeb, run: Run, found: dict[str, Killer], time_s: float) -> dict[str, Row]:
    """The outcomes of killers, by their names."""
    run.content = {"deny_types": ()}  # every body is read here
    urls = put(web, found)
    run.page = {"parse_cpu_s": 1.0}
    rows = {row["url"]: row for row in run.plan(*urls).go(time_s).outcomes()}
    return {name: rows[url] for name, url in zip(found, urls, strict=True)}


def test_no_step_of_the_loop_is_long(web: LittleWeb, run: Run, steps: Steps) -> None:
    registered_domain("example.org")  # the list of suffixes is loaded once a process
    found = {name: Killer(body) for name, body in killers.SMALL.items()}
    found |= {name: killers.large()[name] for name in QUICK}
    rows = fetched(web, run, found, 120.0)
    assert {row["outcome"] for row in rows.values()} == {"success"}
    assert rows["many links"]["links_found"] == 662_304
    assert len(rows["many links"]["links"]) == 6_000
    assert dict(rows["many links"]["links_refused"]) == {"too_many": 656_304}
    assert rows["links"]["links_found"] == 9_000
    assert dict(rows["links"]["links_refused"]) == {"too_many": 3_000}
    assert steps.longest[0][0] < STEP_S, steps.longest


@pytest.mark.slow
def test_no_killer_of_all_costs_the_loop_a_long_step(web: LittleWeb, run: Run, steps: Steps) -> None:
    registered_domain("example.org")
    rows = fetched(web, run, killers.large(), 600.0)
    assert {row["outcome"] for row in rows.values()} == {"success"}
    assert steps.longest[0][0] < STEP_S, steps.longest


KILLER = Killer(killers.attributes(60_000))


def test_what_killed_the_parser_is_sealed_and_not_asked_again(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt that read it dies of something else, one page later."""
    urls = [web.put("a.test", path, one) for path, one in (("/killer", answer(KILLER)), ("/next", page("/x")))]
    run.page = {"parse_cpu_s": 1.0}
    capture = Capturer.capture

    async def dying(self: Capturer, exchange: Exchange, planned: PlannedUrl) -> Capture:
        if planned.url == urls[1]:
            raise StorageFailed("the disk is gone")
        return await capture(self, exchange, planned)

    run.plan(*urls)
    with monkeypatch.context() as patch:
        patch.setattr(Capturer, "capture", dying)
        with pytest.raises(StorageFailed):
            run.go()
    run.go()
    assert [path for path in web.paths("a.test") if path != "/robots.txt"] == ["/killer", "/next", "/next"]
    rows = {row["url"]: row for row in run.outcomes()}
    assert [rows[url]["parse_status"] for url in urls] == ["killed", "ok"]
    assert rows[urls[0]]["reason"] == "the parser needed more than 1 s of CPU"


def test_an_attempt_after_one_that_died_reads_nothing_in_its_own_process(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (web.put("a.test", path, page("/x", text="words " * 30)) for path in ("/1", "/2"))
    run.plan(first).go()

    def stops(self: ContentReader, document: Document) -> None:
        raise AssertionError("read in the fetch process")

    monkeypatch.setattr(ContentReader, "begin", stops)
    run.plan(second).go()
    rows = run.outcomes()
    assert [(row["outcome"], row["parse_status"], len(row["links"])) for row in rows] == [("success", "ok", 1)] * 2


MEMORY_KILLER = Answer(b"<p>x" * 1_200_000 + b"<a href=/lost>")


@pytest.mark.parametrize(
    ("hosts", "name", "limit"), [(["a.test"] * 5, "a.test:{port}", MAX_KILLS), ("vwxyz", "*.a.test", MAX_KILLS)]
)
def test_who_kills_again_and_again_is_scanned_only(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch, hosts: Sequence[str], name: str, limit: int
) -> None:
    monkeypatch.setattr(parsing, "HOSTS_A_DOMAIN", 1)
    names = [host if "." in host else f"{host}.a.test" for host in hosts]
    urls = [web.put(host, f"/{number}", MEMORY_KILLER) for number, host in enumerate(names)]
    run.page = {"parse_memory_mb": 64}
    rows = run.plan(*urls).go(60.0).outcomes()
    assert sorted(row["parse_status"] for row in rows) == ["killed"] * limit + ["not_parsed"] * (5 - limit)
    assert {len(row["links"]) for row in rows} == {1}
    reasons = {row["reason"] for row in rows if row["parse_status"] == "not_parsed"}
    assert reasons == {f"documents of {name.format(port=web.port)} stopped the parser {limit} times"}


def test_hosts_of_a_platform_do_not_pay_for_each_other(web: LittleWeb, run: Run) -> None:
    large = page("/x", text="words " * 40_000)
    urls = [web.put("bad.a.test", f"/{number}", MEMORY_KILLER) for number in range(4)]
    urls.append(web.put("good.a.test", "/", large))
    run.page = {"parse_memory_mb": 64}
    rows = {row["url"]: row for row in run.plan(*urls).go(60.0).outcomes()}
    assert [rows[url]["parse_status"] for url in urls] == ["killed"] * 3 + ["not_parsed", "ok"]


def resident_kb(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


@pytest.mark.slow
def test_no_document_takes_more_memory_than_promised() -> None:
    """Ten times `fetch.max_decoded_bytes` and 100 MB; the child's peak is looked at while it works."""
    settings = Settings(page=PageSettings(parse_cpu_s=3.0))
    promised_mb = (10 * settings.fetch.max_decoded_bytes + 100_000_000) / (1 << 20)
    peaks: dict[str, float] = {}

    async def watch(parser: PageParser, name: str, start_kb: int) -> None:
        while True:
            child = parser._child
            if child is not None and child.returncode is None:
                with suppress(OSError):
                    peak = (resident_kb(child.pid, "VmHWM") - start_kb) / 1024
                    peaks[name] = max(peaks.get(name, 0.0), peak)
            await asyncio.sleep(0.01)

    async def work() -> None:
        for number, (name, killer) in enumerate(killers.large().items()):
            parser = PageParser(settings)
            await parser.read_apart(lambda: Document(b"<p>warm", "http://a.test/", killers.HTML))
            assert parser._child is not None
            watcher = asyncio.create_task(watch(parser, name, resident_kb(parser._child.pid, "VmRSS")))
            document = Document(killer.body, f"http://h{number}.test/", killer.content_type, killer.coding)
            await parser.read_apart(lambda: document)  # noqa: B023 - called at once
            watcher.cancel()
            await parser.close()

    asyncio.run(work())
    assert len(peaks) > len(killers.large()) // 2
    assert max(peaks.values()) < promised_mb, peaks
