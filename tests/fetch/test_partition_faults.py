"""What goes wrong in our own code or in the storage while a partition is fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from crawler.fetch.attempt import StorageFailed
from crawler.fetch.capture import Capturer
from crawler.fetch.outcomes import Row
from crawler.fetch.segments import SegmentWriter
from crawler.fetch.warc import CaptureRecord, WarcFile, WarcPlace
from crawler.page.robots import Robots
from tests.fetch.little_web import LittleWeb, page
from tests.fetch.partition_runs import Run


def test_our_own_bug_costs_one_url(web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stumble(self: object, exchange: object, planned: Row) -> None:
        if getattr(planned, "url", "").endswith("/poison"):
            raise RecursionError("deep")
        return await capture(self, exchange, planned)  # type: ignore[arg-type, return-value]  # a table of cases is looser than the types

    capture = Capturer.capture
    monkeypatch.setattr(Capturer, "capture", stumble)
    run.plan(*(web.put("a.test", path, page()) for path in ("/poison", "/ok"))).go()
    assert run.by_path() == {"/poison": "quarantined", "/ok": "success"}
    assert run.outcome(f"http://a.test:{web.port}/poison")["reason"] == "RecursionError: deep"


def test_a_bug_before_the_request_costs_one_url(web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def allows(self: object, url: str) -> bool:
        if url.endswith("/poison"):
            raise ZeroDivisionError("rules")
        return True

    monkeypatch.setattr(Robots, "allows", allows)
    run.plan(*(web.put("a.test", path, page()) for path in ("/poison", "/ok"))).go()
    assert run.by_path() == {"/poison": "quarantined", "/ok": "success"}


def test_a_storage_that_fails_ends_the_attempt_and_leaves_what_was_sealed(
    web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.segment = {"max_urls": 2}
    run.plan(*(web.put("a.test", f"/{n}", page()) for n in range(5)))
    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "add", failing_from(4))
        with pytest.raises(StorageFailed, match="OSError: disk full"):
            run.go()
    assert not list(run.folder.rglob("*.open"))
    run.go()
    assert sorted(run.by_path()) == [f"/{n}" for n in range(5)]
    assert [one.attempt for one in run.sealed] == [1, 2, 2]
    once, twice = dict.fromkeys(("/robots.txt", "/0", "/1", "/4"), 1), dict.fromkeys(("/2", "/3"), 2)
    assert Counter(web.paths("a.test")) == Counter(once | twice)


def test_what_no_archive_may_hold_costs_itself(web: LittleWeb, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: WarcFile, capture: CaptureRecord) -> WarcPlace:
        if capture.url.endswith(("/robots.txt", "/odd")):
            raise ValueError("no WARC field value")
        return write(self, capture)

    write = WarcFile.write_exchange
    monkeypatch.setattr(WarcFile, "write_exchange", refuse)
    run.plan(*(web.put("a.test", path, page()) for path in ("/ok", "/odd"))).go()
    assert run.by_path() == {"/ok": "success", "/odd": "quarantined"}


def failing_from(call: int) -> Callable[..., None]:
    """`SegmentWriter.add` that finds the disk full from that call on."""
    calls = count(1)
    add = SegmentWriter.add

    def failing(self: SegmentWriter, *args: Any) -> None:
        if next(calls) >= call:
            raise OSError("disk full")
        add(self, *args)

    return failing
