"""Verify and repair on a small crawl of two rounds; every test has a copy of its lake."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.storage import Store
from crawler.tables.direct import Write, append_rows
from crawler.tables.ledger import State
from crawler.tables.manifest import TableError
from jobs import exits
from jobs.cli import invoke
from jobs.crawl_round import crawl_round
from jobs.output import json_text
from jobs.repair import Repaired, repair
from jobs.verify import verify
from tests.fetch.warc_reading import members
from tests.jobs.exact_json import assert_json_is_exact
from tests.spark.contents import contents, different
from tests.spark.damaged import (
    HOUR_S,
    STEPS,
    Killed,
    Small,
    asked_again,
    assert_invariants_but_for,
    assert_only_lost_rows_changed,
    behind,
    crawl_small_web,
    cut,
    damage,
    die_before,
    flip,
    held,
    last_of_a_file,
    lost_places,
    place,
    stored,
    tables_of,
    texts,
)
from tests.spark.invariants import Committed

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    with crawl_small_web(spark, tmp_path_factory.mktemp("care")) as small:
        yield small


@pytest.fixture
def store(small: Small, tmp_path: Path) -> Store:
    """A copy of the lake."""
    shutil.copytree(small.folder, tmp_path / "lake")
    return Store.open(str(tmp_path / "lake"))


@pytest.fixture
def run(spark: SparkSession, store: Store, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Runs a command on the copy; its code and JSON come back."""

    def command(*words: str) -> tuple[int, Any]:
        capfd.readouterr()
        code = invoke([*words, "--lake", store.uri, "--json"])
        said = capfd.readouterr().out
        found = json.loads(said) if said else None
        assert_json_is_exact(found)
        return code, found

    return command


def test_a_clean_lake_has_no_findings(spark: SparkSession, small: Small, store: Store) -> None:
    rows, files = stored(store), Committed(store).named_warc_files()
    done = verify(spark, store)
    assert (done.files, done.rows, done.findings) == (len(files), len(rows), [])
    assert done.bytes == sum(store.size(path) for path in files)
    assert {row["warc_record_type"] for row in rows} == {"response", "revisit"}


def test_a_round_or_a_sample_is_a_part_of_it(run: Callable[..., tuple[int, Any]], store: Store) -> None:
    of_round = [row for row in stored(store) if row["round"] == 2]
    code, done = run("verify", "--round", "2")
    assert (code, done["rows"], done["findings"]) == (0, len(of_round), [])
    code, sample = run("verify", "--sample", "50%")
    assert code == 0
    assert 0 < sample["rows"] < len(stored(store))
    assert run("verify", "--sample", "0.5") == (0, sample)
    assert run("verify", "--round", "9")[0] == exits.NOT_FOUND
    assert run("verify", "--sample", "2")[0] == exits.BAD_USE


def test_a_flip_a_cut_and_a_range_named_twice_are_found(
    spark: SparkSession, run: Callable[..., tuple[int, Any]], store: Store
) -> None:
    flipped, lost = asked_again(store), last_of_a_file(store)
    twice = next(
        row for row in stored(store) if row["warc_filename"] not in {r["warc_filename"] for r in (flipped, lost)}
    )
    damage(store, flipped, flip)
    damage(store, lost, cut)
    with held(spark, store) as lake:
        append_rows(
            store, schemas.CAPTURES, [{**twice, "url": "http://twice.test/"}], Write("orbweaver/repair/captures", 1)
        )
        newest = lake.ledger.newest()[-1]
        lake.ledger.record(
            replace(newest, versions=lake.versions(), recorded=newest.recorded + 1), Write("repair/rounds", 1)
        )
    code, done = run("verify")
    assert code == exits.NOT_FOUND
    sharing = [one for one in done["findings"] if one["found"].startswith("shares bytes")]
    assert sharing[0]["url"] in {twice["url"], "http://twice.test/"}
    seen = {(one["file"], one["offset"], one["url"], one["found"].split(" ")[0]) for one in done["findings"]}
    assert (
        seen
        == {
            (flipped["warc_filename"], None, None, "SHA-256"),
            (*place(flipped), flipped["url"], "not"),
            (lost["warc_filename"], None, None, str(store.size(lost["warc_filename"]))),
            (*place(lost), lost["url"], "the"),
            (*place(twice), "http://twice.test/", "WARC-Target-URI"),
            (*place(twice), max(twice["url"], "http://twice.test/"), "shares"),
        }
        or (*place(twice), twice["url"], "shares") in seen
    )


def test_a_repair_drops_the_lost_records_and_the_next_round_fetches_them(
    spark: SparkSession, small: Small, store: Store
) -> None:
    row = asked_again(store)
    gone, before, whole = behind(store, row), tables_of(store), store.read(row["warc_filename"])
    damage(store, row, cut)
    with held(spark, store) as lake:
        done = repair(lake, (), small.later)
    kept = max(offset for offset, _, _ in members(whole) if offset <= row["warc_record_offset"])
    assert store.read(row["warc_filename"]) == whole[:kept]
    assert [(one.file, one.bytes_after) for one in done.files] == [(row["warc_filename"], kept)]
    assert lost_places(done) == {(one["url"], one["round"], *place(one)) for one in gone}
    assert (done.left, done.is_committed) == ([], True)
    assert_only_lost_rows_changed(before, tables_of(store), gone, small.later)
    assert verify(spark, store).findings == []
    assert_invariants_but_for(store, gone)
    refetch(spark, small, store, {one["url"] for one in gone})


def refetch(spark: SparkSession, small: Small, store: Store, urls: set[str]) -> None:
    """The next round asks for the lost URLs without conditions and stores them anew."""
    seen = len(small.web.requests())
    with held(spark, store) as lake:
        done = crawl_round(lake, small.settings, small.later + HOUR_S)
    asked = {request.url: request for request in small.web.requests()[seen:]}
    assert urls <= asked.keys()
    assert not any(asked[url].is_conditional for url in urls)
    again = {row["url"]: row for row in stored(store) if row["round"] == done.round}
    assert {again[url]["warc_record_type"] for url in urls} == {"response"}
    assert verify(spark, store).findings == []


def test_a_repair_that_is_killed_at_every_step_is_finished(
    spark: SparkSession, small: Small, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    damage(store, asked_again(store), cut)
    shutil.copytree(tmp_path / "lake", tmp_path / "undisturbed")
    undisturbed = Store.open(str(tmp_path / "undisturbed"))
    with held(spark, undisturbed) as lake:
        wanted = repair(lake, (), small.later)
    for step in STEPS:
        with monkeypatch.context() as patch, held(spark, store) as lake:
            die_before(step, patch)
            with pytest.raises(Killed):
                repair(lake, (), small.later)
    with held(spark, store) as lake:
        done = repair(lake, (), small.later)
        assert (done.files, done.is_committed) == ([], True)
        assert repair(lake, (), small.later) == Repaired()
    assert different(contents(undisturbed), contents(store)) == {}
    assert texts(Committed(store).segments) == texts(Committed(undisturbed).segments)
    assert verify(spark, store).findings == []
    records = [json.loads(store.read(path)) for path in store.list("reports/repairs")]
    lost = json.loads(json_text([vars(row) for row in wanted.lost]))
    assert all(one["lost"] == lost for one in records[:5])


def test_damage_before_readable_records_and_missing_files_are_mended_only_by_name(
    run: Callable[..., tuple[int, Any]], store: Store
) -> None:
    row, missing = asked_again(store), last_of_a_file(store)["warc_filename"]
    gone, dropped = behind(store, row), [one for one in stored(store) if one["warc_filename"] == missing]
    damage(store, row, flip)
    store.delete(missing)
    code, done = run("repair")
    assert (code, done["files"], done["committed"]) == (exits.NOT_FOUND, [], False)
    assert {one["file"] for one in done["left"]} == {row["warc_filename"], missing}
    assert f"{len(gone) - 1} record" in next(one["reason"] for one in done["left"] if one["file"] != missing)
    code, done = run("repair", row["warc_filename"], store.uri_of(missing))
    assert (code, done["left"], len(done["lost"])) == (0, [], len(gone) + len(dropped))
    assert run("verify")[0] == 0
    assert missing not in Committed(store).named_warc_files()
    assert run("repair", "crawl-data/none.warc.gz")[0] == exits.NOT_FOUND


def test_a_robots_file_is_mended_though_no_capture_names_it(run: Callable[..., tuple[int, Any]], store: Store) -> None:
    path = next(path for path in Committed(store).named_warc_files() if "/robotstxt/" in path)
    whole = store.read(path)
    store.put(path, whole[:-1])
    assert run("verify")[0] == exits.NOT_FOUND
    code, done = run("repair")
    (mended,) = done["files"]
    assert (code, done["lost"], mended["file"]) == (0, [], path)
    assert store.read(path) == whole[: mended["bytes_after"]] != whole
    assert run("verify")[0] == 0


def test_a_repair_waits_for_the_open_round(spark: SparkSession, small: Small, store: Store) -> None:
    with held(spark, store) as lake:
        newest = lake.ledger.newest()[-1]
        lake.ledger.record(replace(newest, round=newest.round + 1, state=State.OPENED))
        with pytest.raises(exits.Stop, match=r"round 3 of .* is open \(OPENED\): finish it first"):
            repair(lake, (), small.later)


def test_one_hold_of_the_lock_repairs_a_table_once(spark: SparkSession, small: Small, store: Store) -> None:
    """A second write of the same token would be taken for a replay, and change nothing."""
    damage(store, last_of_a_file(store), cut)
    with held(spark, store) as lake:
        repair(lake, (), small.later)
        damage(store, asked_again(store), cut)
        with pytest.raises(TableError, match="let go of the lock first"):
            repair(lake, (), small.later)


def test_no_lake_is_made_where_there_is_none(spark: SparkSession, tmp_path: Path) -> None:
    for command in ("verify", "repair", "gc"):
        assert invoke([command, "--lake", str(tmp_path / "none")]) == exits.BAD_TABLE
    assert not (tmp_path / "none").exists()
