"""Fault points: named places to die at, for tests alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crawler import schemas
from crawler.faults import POINTS, TABLES, refuse_faults

ROOT = Path(__file__).parents[1]
LOOP = "from crawler.faults import fault\nfor n in range(5): print(n, flush=True); fault('fetch.body')"


def run(tmp_path: Path, **environ: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", LOOP],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("wanted", "code", "lines"),
    [("", 0, 5), ("fetch.begin", 0, 5), ("fetch.body", -signal.SIGKILL, 1), ("fetch.body:3", -signal.SIGKILL, 3)],
)
def test_a_process_dies_at_the_point_and_time_that_are_named(
    tmp_path: Path, wanted: str, code: int, lines: int
) -> None:
    ended, printed = run(tmp_path, ORBWEAVER_FAULT=wanted)
    assert (ended, len(printed)) == (code, lines)


def test_only_the_first_process_dies_where_that_is_wanted(tmp_path: Path) -> None:
    mark = tmp_path / "died"
    codes = [run(tmp_path, ORBWEAVER_FAULT="fetch.body", ORBWEAVER_FAULT_ONCE=str(mark))[0] for _ in range(2)]
    assert codes == [-signal.SIGKILL, 0]
    assert mark.exists()


@pytest.mark.parametrize(
    ("wanted", "addresses", "only_allowed", "says"),
    [
        ("", [], False, None),
        ("fetch.body", ["127.77.0.0/16", "::1/128"], True, None),
        ("fetch.body:9", ["127.0.0.1"], True, None),
        ("fetch.body", ["127.0.0.1"], False, "faults are for tests"),
        ("fetch.body", ["127.0.0.1", "10.0.0.0/8"], True, "faults are for tests"),
        ("fetch.bodies", ["127.0.0.1"], True, "should be POINT"),
        ("fetch.body:x", ["127.0.0.1"], True, "should be POINT"),
    ],
)
def test_a_crawl_that_can_leave_this_machine_takes_no_fault(
    monkeypatch: pytest.MonkeyPatch, wanted: str, addresses: list[str], only_allowed: bool, says: str | None
) -> None:
    monkeypatch.setenv("ORBWEAVER_FAULT", wanted)
    refused = refuse_faults(addresses, only_allowed=only_allowed)
    assert refused is None if says is None else says in (refused or "")


def test_every_point_is_in_the_code_and_every_table_has_its_points() -> None:
    sources = [path for room in ("crawler", "jobs") for path in (ROOT / room).rglob("*.py") if path.stem != "faults"]
    named = {name for path in sources for name in re.findall(r'fault\(f?"([^"]+)"\)', path.read_text())}
    plain = {name for name in POINTS if not name.startswith(("files.", "commit."))}
    assert {name for name in named if "{" not in name} == plain
    assert {name.partition("{")[0] for name in named if "{" in name} == {"files.", "commit."}
    assert set(TABLES) == {table.name for table in schemas.TABLES}
