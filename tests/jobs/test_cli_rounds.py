"""What `round` and `crawl` say before Java starts: nothing due, a clock that would go back, a storage that refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crawler import schemas
from crawler.storage import Store
from jobs import exits
from jobs.crawl import Ended, due_now_and_next, report_what_is_missing
from jobs.report import report_paths
from jobs.stages.clock import not_before
from tests.jobs.conftest import Run
from tests.jobs.made_lake import HOME, LakeMaker, due_row, make_lake

AHEAD_H = 30 * 24
OWN = ("--set", "fetch.only_allowed=true")


@pytest.fixture
def idle_lake(tmp_path: Path) -> Callable[[float], Store]:
    """A lake with one committed round, scheduled at the given time, and one URL that is due in a month."""

    def made(scheduled: float) -> Store:
        maker = LakeMaker(tmp_path / "idle")
        for table in schemas.TABLES:
            maker.write(table, [])
        maker.replace(schemas.FRONTIER, [due_row(HOME, int(time.time() // 3_600) + AHEAD_H, "fetched")])
        for state in ("OPENED", "PLANNED", "FETCHED", "COMMITTED"):
            maker.state(1, state, scheduled, 1.0, {"planned": 1})
        return maker.store

    return made


def everything(store: Store) -> dict[str, float]:
    return {path: store.modified(path) for path in store.list("") if not path.startswith("reports/")}


@pytest.mark.parametrize("command", ["round", "crawl"])
def test_where_nothing_is_due_nothing_is_written_and_schedulers_can_tell(
    run: Run, idle_lake: Callable[[float], Store], command: str
) -> None:
    store = idle_lake(time.time() - 60)
    before = everything(store)
    said = run(command, "--lake", store.uri, "--json", *OWN)
    facts = json.loads(said.out)
    assert (said.code, facts["ended_by"], facts["due"]) == (0, "nothing_due", 0)
    assert facts["next_due_at"].endswith(":00:00Z")
    assert everything(store) == before
    assert run(command, "--lake", store.uri, *OWN).out.startswith("no round was run: nothing is due; the next is at 2")


def test_nothing_due_starts_no_java(idle_lake: Callable[[float], Store]) -> None:
    store = idle_lake(time.time() - 60)
    script = "import sys; from jobs.cli import invoke; code = invoke(sys.argv[1:]); print('py4j' in sys.modules, code)"
    given = ["round", "--lake", store.uri, *OWN]
    done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False 0"


def test_a_time_before_the_last_round_is_refused(run: Run, idle_lake: Callable[[float], Store]) -> None:
    store = idle_lake(1_790_000_000.0)
    said = run("round", "--lake", store.uri, "--at", "2026-01-01", *OWN)
    assert said.code == exits.BAD_USE
    assert "--at 2026-01-01T00:00:00Z lies before round 1, which was scheduled at 2026-09-21T14:13:20Z" in said.err


def test_the_clock_of_a_lake_never_goes_back() -> None:
    ahead = time.time() + 86_400
    assert not_before(1, ahead, None) == ahead
    assert not_before(1, time.time() - 1, None) is None
    assert not_before(1, ahead, ahead) == ahead


def test_every_committed_round_has_its_report_though_its_driver_died_before(tmp_path: Path) -> None:
    from crawler.settings import Settings

    store = make_lake(tmp_path / "lake")
    report_what_is_missing(store, Settings())
    assert [path for number in (1, 2) for path in report_paths(number).values() if not store.exists(path)] == []
    before = everything(store)
    written = {path: store.modified(path) for path in store.list("reports")}
    report_what_is_missing(store, Settings())
    assert ({path: store.modified(path) for path in store.list("reports")}, everything(store)) == (written, before)


def test_what_is_due_now_and_next(idle_lake: Callable[[float], Store]) -> None:
    store = idle_lake(1.0)
    due, next_at = due_now_and_next(store, time.time())
    assert (due, next_at) == (0, (int(time.time() // 3_600) + AHEAD_H) * 3_600.0)
    assert due_now_and_next(store, next_at or 0.0) == (1, None)
    assert [str(ended) for ended in Ended] == ["nothing_due", "hosts_wait", "rounds"]


@pytest.mark.parametrize("command", [["crawl", "https://a.test/", *OWN], ["inject", "https://a.test/"]])
def test_a_place_that_takes_no_files_ends_with_6_before_java(run: Run, command: list[str]) -> None:
    said = run(*command, "--lake", "/proc/lake")
    assert said.code == exits.NO_STORAGE
    assert "The folder must be writable and have room" in said.err


@pytest.mark.parametrize(
    ("credentials", "part"),
    [
        ({}, "no credentials for S3: neither AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "`orbweaver doctor --lake URI` checks region"),
    ],
)
def test_s3_without_credentials_or_server_ends_with_6(tmp_path: Path, credentials: dict[str, str], part: str) -> None:
    nobody = "http://127.0.0.1:1"
    place = {"AWS_ENDPOINT_URL": nobody, "AWS_METADATA_ENDPOINT": nobody, "AWS_REGION": "us-east-1"}
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **place, **credentials}
    command = [sys.executable, "-m", "jobs.cli", "status", "--lake", "s3://bucket/lake"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, part in done.stderr, done.stderr.count("\n")) == (exits.NO_STORAGE, True, 1)


@pytest.mark.parametrize("command", [["maintain"], ["repair"]])
def test_care_beside_an_open_round_has_a_code_of_its_own(run: Run, made_lake: str, command: list[str]) -> None:
    said = run(*command, "--lake", made_lake)
    assert said.code == exits.ROUND_OPEN
    assert "round 3 of" in said.err
    assert "finish it first with `orbweaver round --lake" in said.err
