"""What a running round shows."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawler.storage import Store
from jobs.progress import Counts, Meter, Progress, line_of, read_counts, spark_tasks, watch_parts


def beat(store: Store, partition: int, pages: int, **more: Any) -> None:
    said = {"pages": pages, "bytes": pages * 1_000, "failures": 1, "hosts_waiting": 2, "urls_left": 5}
    outcomes = {"success": pages, "timeout": 1}
    store.put(f"progress/2/{partition}.json", json.dumps({**said, "outcomes": outcomes, **more}).encode())


def test_the_progress_of_all_partitions_is_summed_and_broken_files_are_passed_over(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    assert read_counts(store, 2) == Counts()
    beat(store, 0, 10)
    beat(store, 1, 5)
    store.put("progress/2/2.json", b'{"pages": ')
    store.put("progress/1/0.json", b'{"pages": 7}')
    assert read_counts(store, 2) == Counts(done=17, pages=15, bytes=15_000, failures=2, hosts_waiting=4, urls_left=10)


def test_speed_is_that_of_the_last_half_minute() -> None:
    meter = Meter(0.0)
    for second in range(0, 100, 10):
        meter.add(float(second), Counts(done=second * 2 if second <= 50 else 100 + (second - 50) * 10))
    assert meter.speed("done") == pytest.approx(10.0)
    assert meter.left_s(600) == pytest.approx(10.0)


def test_there_is_no_time_left_to_tell_while_nothing_moves() -> None:
    meter = Meter(0.0)
    assert meter.left_s(10) is None
    meter.add(5.0, Counts())
    assert meter.left_s(10) is None


def test_the_line_has_the_words_of_the_field() -> None:
    meter, counts = Meter(0.0), Counts(done=120, pages=110, bytes=2_000_000, failures=3, hosts_waiting=12)
    meter.add(10.0, counts)
    assert line_of(2, 300, counts, meter) == (
        "round 2 fetch: 120/300 URLs, 11.0 pages/s, 200 KB/s, 3 failures, 12 hosts waiting, 0:00:15 left"
    )


def test_lines_come_every_ten_seconds_then_every_minute_and_each_stage_has_its_duration(tmp_path: Path) -> None:
    store, stream, now = Store.open(str(tmp_path)), io.StringIO(), [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    beat(store, 0, 10)
    rnd: Any = SimpleNamespace(round=2, counts={"planned": 20, "planned_hosts": 3, "new_urls": 4})
    progress = Progress(stream=stream, clock=clock, poll_s=0.001)
    progress.begin()
    with progress.watch(SimpleNamespace(store=store), rnd):  # type: ignore[arg-type]  # a table of cases is looser than the types
        while now[0] < 200:
            pass
    progress.end(rnd)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "round 2 plan: 20 URLs of 3 hosts, 1.0 s"
    assert re.fullmatch(r"round 2 fetch: 10 pages, 9\.8 KiB, 1 failures, \d+\.\d s", lines[-2])
    assert lines[-1].startswith("round 2 reconcile and commit: 4 new URLs, ")
    assert sum("11/20 URLs" in line for line in lines) in range(6, 10)


def test_long_work_says_how_many_parts_are_done_and_what_is_left() -> None:
    stream, now = io.StringIO(), [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    def count() -> tuple[int, int]:
        return (0, 0) if now[0] > 100 else (int(now[0]) // 2, 50)  # behind the last stage there is none to tell of

    with watch_parts("verify", count, Progress(stream=stream, clock=clock, poll_s=0.001)):
        while now[0] < 200:
            pass
    lines = stream.getvalue().splitlines()
    assert re.fullmatch(r"verify: \d+/50 parts, 0:01:\d\d left", lines[0])
    assert len(lines) in range(6, 10)
    done = [int(line.split()[1].partition("/")[0]) for line in lines]
    assert done == sorted(done)
    assert done[-1] >= 49


def test_tasks_of_a_session_are_those_of_its_running_stages() -> None:
    stages = {1: SimpleNamespace(numTasks=4, numCompletedTasks=1), 2: SimpleNamespace(numTasks=6, numCompletedTasks=6)}
    tracker = SimpleNamespace(getActiveStageIds=lambda: [1, 2, 3], getStageInfo=stages.get)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    assert spark_tasks(session) == (7, 10)
