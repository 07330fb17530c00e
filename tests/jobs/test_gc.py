"""What nothing names is listed and removed; what an open round or anybody else may need is not."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler import schemas
from crawler.storage import Store
from crawler.tables.lock import acquire, current_holder
from jobs import exits
from jobs.exits import Stop
from jobs.gc import DAY_S, LEAST_OPEN_AGE_S, Rubbish, age_of, find_rubbish, remove_rubbish
from tests.jobs.conftest import Run
from tests.jobs.made_lake import ROUND_2, LakeMaker, make_lake

HOUR_S = 3_600.0
NOW = ROUND_2 + 2 * HOUR_S
OLD, YOUNG = NOW - 8 * DAY_S, NOW - 6 * DAY_S
SEGMENTS = "crawl-data/ORB-MAIN-2026-45/segments"
NAMED = {
    "outcomes": f"{SEGMENTS}/1/outcomes/named.parquet",
    "discoveries": f"{SEGMENTS}/1/discoveries/named.parquet",
    "hosts": f"{SEGMENTS}/1/hosts/named.parquet",
}
RUBBISH = {
    f"{SEGMENTS}/1/warc/lost.warc.gz": "segment file",
    f"{SEGMENTS}/1/crawldiagnostics/lost.warc.gz": "segment file",
    f"{SEGMENTS}/2/robotstxt/lost.warc.gz": "segment file",
    f"{SEGMENTS}/2/outcomes/lost.parquet": "segment file",
    f"{SEGMENTS}/2/discoveries/lost.parquet": "segment file",
    f"{SEGMENTS}/2/hosts/lost.parquet": "segment file",
    f"{SEGMENTS}/1/warc/half.warc.gz.open": "half-written",
    "tables/captures/round=1/part-1.zstd.parquet.open": "half-written",
    "inbox/x.urls.0a1b2c3d.open": "half-written",
    "lock/0000000001.json": "lock",
    "lock/0000000002.json": "lock",
    "progress/1/0.json": "progress",
    "leases/2/p0/1.json": "lease",
}
KEPT = [
    f"{SEGMENTS}/1/warc/first.warc.gz",  # no segment names it, captures do
    f"{SEGMENTS}/1/warc/named.warc.gz",
    *NAMED.values(),
    f"{SEGMENTS}/1/warc/notes.txt",
    f"{SEGMENTS}/1/hosts/notes.txt",
    f"{SEGMENTS}/1/cc-index.paths.gz",
    "crawl-data/index.warc.gz",
    "tables/captures/part-nobody-names.zstd.parquet",
    "inbox/more.urls",
    "reports/1/report.txt",
    "lake.json",
]
OF_THE_OPEN_ROUND = [
    f"{SEGMENTS}/3/warc/lost.warc.gz",
    f"{SEGMENTS}/3/warc/half.warc.gz.open",
    f"{SEGMENTS}/3/outcomes/lost.parquet",
    "progress/3/0.json",
    "leases/3/p0/1.json",
]


@pytest.fixture(scope="module")
def littered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two committed rounds and an open one, with rubbish of each kind, all of it old."""
    folder = tmp_path_factory.mktemp("littered") / "lake"
    store = make_lake(folder)
    warc = {"warc": f"{SEGMENTS}/1/warc/named.warc.gz"}
    row = {"name": "named", **NAMED, "warcs": list(warc.items()), "warc_bytes": [], "warc_sha256": [], "round": 1}
    LakeMaker(folder).write(schemas.SEGMENTS, [row])
    for _ in range(3):
        acquire(store).release()
    for path in (*RUBBISH, *KEPT, *OF_THE_OPEN_ROUND, *warc.values()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.write_bytes(b"seven b")
    (folder / "progress" / "2").mkdir(parents=True)
    (folder / "progress" / "3" / "empty").mkdir(parents=True)
    for written in folder.rglob("*"):
        os.utime(written, (OLD, OLD))
    return folder


@pytest.fixture
def maker(littered: Path, tmp_path: Path) -> LakeMaker:
    """A copy of it."""
    shutil.copytree(littered, tmp_path / "lake")
    return LakeMaker(tmp_path / "lake")


def files_and_folders(store: Store) -> Iterator[Path]:
    return Path(store.uri).rglob("*")


def finish_round(maker: LakeMaker) -> None:
    """Round 3 is committed, at its own time."""
    maker.state(3, "COMMITTED", ROUND_2 + HOUR_S, 2.0, {})


def kinds(found: list[Rubbish]) -> dict[str, str]:
    return {one.path: one.kind for one in found}


def test_everything_that_nothing_names_is_listed_and_nothing_else(maker: LakeMaker) -> None:
    found = find_rubbish(maker.store, 7 * DAY_S, NOW)
    assert kinds(found) == {**RUBBISH, "progress/2": "folder"}
    assert {one.path: (one.bytes, one.modified) for one in found}["progress/1/0.json"] == (7, OLD)
    assert [one.path for one in found] == sorted(one.path for one in found)


@pytest.mark.parametrize("path", [*RUBBISH, "progress/2"])
def test_what_was_written_since_stays(maker: LakeMaker, path: str) -> None:
    os.utime(Path(maker.store.uri, path), (YOUNG, YOUNG))
    assert path not in kinds(find_rubbish(maker.store, 7 * DAY_S, NOW))
    assert path in kinds(find_rubbish(maker.store, 5 * DAY_S, NOW))


def test_a_round_that_is_committed_protects_its_files_no_more(maker: LakeMaker) -> None:
    finish_round(maker)
    found = kinds(find_rubbish(maker.store, 7 * DAY_S, NOW))
    assert found.keys() == {*RUBBISH, *OF_THE_OPEN_ROUND, "progress/2", "progress/3/empty"}


def test_nothing_that_was_written_since_the_open_round_began_is_listed(maker: LakeMaker) -> None:
    began, later = ROUND_2 + HOUR_S, NOW + 30 * DAY_S
    for path in files_and_folders(maker.store):
        os.utime(path, (began + 1, began + 1))
    assert find_rubbish(maker.store, 7 * DAY_S, later) == []
    finish_round(maker)
    assert kinds(find_rubbish(maker.store, 7 * DAY_S, later)).keys() >= RUBBISH.keys()


def test_segments_that_are_written_and_not_committed_count(maker: LakeMaker) -> None:
    """The driver of the open round may have died before it recorded FETCHED."""
    path = f"{SEGMENTS}/2/outcomes/lost.parquet"
    maker.write(schemas.SEGMENTS, [{"name": "late", "outcomes": path, "warcs": [], "round": 3}])
    assert path not in kinds(find_rubbish(maker.store, 7 * DAY_S, NOW))


def test_less_than_a_day_is_refused_while_a_round_is_open(maker: LakeMaker) -> None:
    with pytest.raises(Stop, match="round 3 is open: --older-than must be 1d or more until it is finished") as stop:
        find_rubbish(maker.store, DAY_S - 1, NOW)
    assert stop.value.code == exits.BAD_USE
    assert find_rubbish(maker.store, DAY_S, NOW)
    finish_round(maker)
    assert find_rubbish(maker.store, 0.0, NOW)


def test_a_half_written_file_of_the_last_hour_may_belong_to_a_command_without_lock(maker: LakeMaker) -> None:
    finish_round(maker)
    path = "inbox/x.urls.0a1b2c3d.open"
    for age, is_listed in ((LEAST_OPEN_AGE_S - 1, False), (LEAST_OPEN_AGE_S + 1, True)):
        os.utime(Path(maker.store.uri, path), (NOW - age, NOW - age))
        assert (path in kinds(find_rubbish(maker.store, 0.0, NOW))) is is_listed


def test_removing_takes_what_was_listed_under_the_lock(maker: LakeMaker) -> None:
    listed = find_rubbish(maker.store, 7 * DAY_S, NOW)
    before = {path for path in files_and_folders(maker.store) if path.is_file()}
    removed = remove_rubbish(maker.store, 7 * DAY_S, NOW)
    holder = current_holder(maker.store)
    assert holder is not None
    assert (holder.token, holder.is_released) == (4, True)
    assert set(kinds(removed)) == {one.path for one in listed} | {"lock/0000000003.json"}
    left = {path for path in files_and_folders(maker.store) if path.is_file()}
    gone = {full(maker, one.path) for one in removed}
    assert left == before - gone | {full(maker, "lock/0000000004.json")}
    assert not full(maker, "progress/2").exists()
    emptied = find_rubbish(maker.store, 7 * DAY_S, datetime.now(UTC).timestamp() + 8 * DAY_S)
    assert kinds(emptied) == {}  # while the round is open, which they were emptied after
    finish_round(maker)
    emptied = find_rubbish(maker.store, 7 * DAY_S, datetime.now(UTC).timestamp() + 8 * DAY_S)
    assert {path: kind for path, kind in kinds(emptied).items() if kind == "folder"} == {
        "leases/2/p0": "folder",
        "progress/1": "folder",
        "progress/3/empty": "folder",
    }


def full(maker: LakeMaker, path: str) -> Path:
    return Path(maker.store.uri, path)


def test_nothing_is_removed_while_another_driver_works(run: Run, maker: LakeMaker) -> None:
    lock = acquire(maker.store)
    before = sorted(files_and_folders(maker.store))
    assert run("gc", "--delete", "--lake", maker.store.uri).code == exits.LAKE_HELD
    assert run("gc", "--lake", maker.store.uri).code == 0
    lock.release()
    assert sorted(files_and_folders(maker.store)) == before


def test_the_command_lists_then_removes(run: Run, maker: LakeMaker) -> None:
    finish_round(maker)
    lake = ("--lake", maker.store.uri)
    text, said = run("gc", *lake), run("gc", "--json", *lake)
    facts: dict[str, Any] = json.loads(said.out)
    assert (text.code, said.code, facts["removed"]) == (0, 0, False)
    assert facts["bytes"] == sum(one["bytes"] for one in facts["found"]) > 0
    assert all(one["path"] in text.out for one in facts["found"])
    assert "that nothing names; --delete removes what is listed" in text.out
    assert run("gc", "--older-than", "9999d", *lake).out == "0 things, 0 B that nothing names\n"
    gone = run("gc", "--delete", *lake)
    assert gone.code == 0
    assert re.search(r"\d+ things, .* removed\n$", gone.out)
    assert not any(full(maker, one["path"]).exists() for one in facts["found"])


@pytest.mark.parametrize(("text", "seconds"), [("7d", 604_800.0), ("90m", 5_400.0), ("0s", 0.0), ("1.5h", 5_400.0)])
def test_an_age_has_a_unit(text: str, seconds: float) -> None:
    assert age_of(text) == seconds


@pytest.mark.parametrize("text", ["7", "d", "-1d", "1y", "7 d", ""])
def test_an_age_without_unit_is_bad_use(run: Run, tmp_path: Path, text: str) -> None:
    said = run("gc", "--older-than", text, "--lake", str(tmp_path))
    assert (said.code, "should be a number with a unit" in said.err) == (exits.BAD_USE, True)
