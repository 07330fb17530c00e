"""What comes after a crawl: replays, rounds with nothing to do, a recrawl, maintenance. One lake, in this order.

The first tests look at the three rounds as they were committed; then more rounds are run on the same lake.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from fastwarc import ArchiveIterator
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.storage import Store
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow, State
from crawler.tables.reader import Reader
from jobs.crawl_round import crawl_round
from jobs.exits import Stop
from jobs.maintain_tables import maintain
from jobs.stages.commit import commit_round
from jobs.stages.fetch import fetch_plan
from jobs.stages.reconcile import reconcile_round
from tests.fetch.warc_reading import ReadRecord, assert_rules, read_at, read_file
from tests.spark.contents import contents, different
from tests.spark.crawled import Crawl
from tests.spark.invariants import Committed
from tests.web import Request, witness

HOUR_S, DAY_S = 3_600.0, 86_400.0
TABLES = [table for table in schemas.TABLES if table is not schemas.ROUNDS]


@dataclass
class Again:
    """The lake two weeks later."""

    round: RoundRow
    requests: list[Request]
    captures: dict[str, dict[str, Any]]
    new_url: str


class Interrupted(BaseException):
    """Stands for anything that ends a driver."""


def state(crawled: Crawl, number: int, wanted: State) -> RoundRow:
    """A state of a round in the ledger."""
    (row,) = [row for row in crawled.lake.ledger.newest(10) if (row.round, row.state) == (number, wanted)]
    return row


def hashes(spark: SparkSession, lake: Lake, frame: Any, table: schemas.Table) -> list[int]:
    """A checksum of every row, of all its columns as the table has them."""
    typed = [f"CAST(`{c.name}` AS {c.type})" for c in table.columns]
    return sorted(row[0] for row in frame.selectExpr(f"xxhash64({', '.join(typed)})").collect())


@pytest.fixture(scope="module")
def warc_files(crawled: Crawl) -> list[Path]:
    lake = Committed(crawled.lake.store)
    return [Path(crawled.lake.store.uri_of(name)) for name in sorted(lake.named_warc_files())]


@pytest.mark.parametrize("command", [["gzip", "-t"], [str(Path(sys.executable).with_name("warcio")), "check", "-v"]])
def test_validators_accept_every_warc_file(warc_files: list[Path], command: list[str]) -> None:
    done = subprocess.run([*command, *map(str, warc_files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "digest failed" not in (done.stdout + done.stderr).lower()


def test_fastwarc_and_our_reader_see_the_same_records(warc_files: list[Path]) -> None:
    for path in warc_files:
        ours = read_file(path.read_bytes())
        assert_rules(ours)
        with path.open("rb") as file:
            theirs = [(one.record_id, one.verify_block_digest()) for one in ArchiveIterator(file, parse_http=False)]
        assert theirs == [(record["WARC-Record-ID"], True) for record in ours]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_deltalake_and_duckdb_read_what_spark_reads(crawled: Crawl, table: schemas.Table) -> None:
    version = crawled.versions[table.name]
    dataset = DeltaTable(crawled.lake.tables.path(table), version=version).to_pyarrow_dataset()
    count = duckdb.connect().register("found", dataset).execute("SELECT count(*) FROM found").fetchone()
    assert count == (crawled.lake.read(table, crawled.versions).count(),)
    assert count != (0,)


@pytest.mark.parametrize("number", [2, 3])
def test_the_next_frontier_can_be_computed_again_bit_for_bit(spark: SparkSession, crawled: Crawl, number: int) -> None:
    """I5: from the versions a round pinned and the outcomes it accepted."""
    lake, fetched, committed = crawled.lake, *(state(crawled, number, s) for s in (State.FETCHED, State.COMMITTED))
    found = reconcile_round(lake, crawled.settings, fetched)
    assert found is not None
    used = {file.path for file in found.used}
    rest = [file for file in lake.files(schemas.FRONTIER, fetched.versions) if file.path not in used]
    kept = lake.tables.read_these(schemas.FRONTIER, rest)
    again = hashes(spark, lake, kept, schemas.FRONTIER) + hashes(spark, lake, found.frontier, schemas.FRONTIER)
    stored = lake.read(schemas.FRONTIER, committed.versions)
    assert sorted(again) == hashes(spark, lake, stored, schemas.FRONTIER)
    captures = lake.read(schemas.CAPTURES, committed.versions).where(f"round = {number}")
    assert hashes(spark, lake, found.captures, CAPTURES) == hashes(spark, lake, captures, CAPTURES)


CAPTURES = schemas.Table(
    "captures", "log", "", tuple(c for c in schemas.CAPTURES.columns if not c.type.startswith("map"))
)  # xxhash64 takes no maps


def test_a_replayed_round_asks_nothing_and_changes_nothing(crawled: Crawl) -> None:
    """I8: every stage of a committed round, run once more."""
    lake, before = crawled.lake, crawled.lake.ledger.newest(10)
    fetch_plan(lake, crawled.settings, state(crawled, 3, State.PLANNED))
    fetched = state(crawled, 3, State.FETCHED)
    commit_round(lake, fetched, reconcile_round(lake, crawled.settings, fetched))
    assert lake.versions() == crawled.versions
    assert lake.ledger.newest(10) == before
    assert len(crawled.web.requests()) == len(crawled.requests)


def test_a_round_with_nothing_due_asks_nothing(crawled: Crawl) -> None:
    done = crawl_round(crawled.lake, crawled.settings, crawled.began_at - 2 * HOUR_S)
    assert (done.round, done.state, done.counts["planned"]) == (4, State.COMMITTED, 0)
    assert len(crawled.web.requests()) == len(crawled.requests)
    assert different(contents(crawled.lake.store), contents(crawled.lake.store, crawled.versions)) == {}


@pytest.fixture(scope="module")
def again(crawled: Crawl) -> Again:
    """A recrawl of everything that is due 15 days later. Its driver is lost before it fetches, and while it fetches
    for the second time somebody injects a URL."""
    lake, settings, seen = crawled.lake, crawled.settings, len(crawled.web.requests())
    new_url = crawled.web.url("knots.test", "/kind/injected")

    @contextmanager
    def lost(lake: Lake, rnd: RoundRow) -> Iterator[None]:
        raise Interrupted
        yield

    @contextmanager
    def injecting(lake: Lake, rnd: RoundRow) -> Iterator[None]:
        lake.store.put_new("inbox/during.urls", new_url.encode())
        yield

    if lake.ledger.newest()[-1].round < 4:
        crawl_round(lake, settings, crawled.began_at - 2 * HOUR_S)
    with pytest.raises(Interrupted):
        crawl_round(lake, settings, crawled.began_at + 15 * DAY_S, lost)
    with pytest.raises(Stop, match=r"round 5 of .* is open \(PLANNED\): finish it first"):
        maintain(lake)
    done = crawl_round(lake, settings, crawled.began_at + 99 * DAY_S, injecting)
    rows = Reader.open(lake.store).rows(schemas.CAPTURES, done.versions).to_pylist()
    captures = {row["url"]: row for row in rows if row["round"] == done.round}
    return Again(done, crawled.web.requests()[seen:], captures, new_url)


def test_an_interrupted_round_keeps_its_own_clock(crawled: Crawl, again: Again) -> None:
    assert (again.round.round, again.round.state) == (5, State.COMMITTED)
    assert again.round.now == pytest.approx(crawled.began_at + 15 * DAY_S)
    assert again.round.counts["planned"] == again.round.counts["outcomes"] > 400


def test_pages_that_did_not_change_become_revisits(crawled: Crawl, again: Again) -> None:
    for url, profile in crawled.web.expected.revisits.items():
        row, first = again.captures[url], crawled.first_captures[url]
        record = record_of(crawled.lake.store, row)
        assert (row["outcome"], row["warc_record_type"], row["is_changed"]) == ("not_modified", "revisit", False)
        assert record["WARC-Profile"].endswith(f"/revisit/{profile}")
        assert record["WARC-Refers-To"] == first["warc_record_id"]
        assert record["WARC-Refers-To-Target-URI"] == url
        assert record["WARC-Refers-To-Date"] == first["warc_date"]


def record_of(store: Store, row: dict[str, Any]) -> ReadRecord:
    data = store.read(row["warc_filename"])
    return read_at(data, row["warc_record_offset"], row["warc_record_length"])


def test_what_has_a_validator_was_asked_conditionally(crawled: Crawl, again: Again) -> None:
    conditional = {request.url for request in again.requests if request.is_conditional}
    has_validator = {url for url, row in crawled.first_captures.items() if row["etag"] or row["last_modified"]}
    assert conditional == has_validator & {request.url for request in again.requests}
    assert len([request for request in again.requests if request.status == 304]) > 100


def test_changes_are_seen(crawled: Crawl, again: Again) -> None:
    url = crawled.web.url
    assert {again.captures[page]["is_changed"] for page in crawled.web.expected.changing} == {True}
    assert again.captures[url("keeper.test", "/vanishes")]["outcome"] == "gone"
    assert again.captures[url("keeper.test", "/returns")]["outcome"] == "success"


def test_the_recrawl_was_polite_and_broke_no_invariant(crawled: Crawl, again: Again) -> None:
    everything = [*crawled.requests, *again.requests]
    assert witness.hurried(everything, crawled.settings.fetch.delay_s, tolerance_s=0.15) == []
    assert witness.trapped(everything) == []
    assert witness.misdirected(everything) == []
    lake = Committed(crawled.lake.store)
    assert lake.breaches() == []
    assert lake.orphans() == []


def test_what_was_injected_during_a_round_is_taken_by_the_next(crawled: Crawl, again: Again) -> None:
    assert crawled.lake.store.list("inbox") == ["inbox/during.urls"]
    assert again.new_url not in again.captures
    seen = len(crawled.web.requests())
    done = crawl_round(crawled.lake, crawled.settings, crawled.began_at - HOUR_S)
    assert done.counts["planned"] == 1
    assert {request.url for request in crawled.web.requests()[seen:] if not request.is_robots} == {again.new_url}
    assert crawled.lake.store.list("inbox") == []


def test_maintenance_leaves_every_answer_the_same(crawled: Crawl, again: Again) -> None:
    before, requests = contents(crawled.lake.store), len(crawled.web.requests())
    done = {one.table: one for one in maintain(crawled.lake, max_files=1)}
    assert done["url_checksums"].files_after < done["url_checksums"].files_before
    assert different(before, contents(crawled.lake.store)) == {}
    assert Committed(crawled.lake.store).breaches() == []
    empty = crawl_round(crawled.lake, crawled.settings, crawled.began_at - 2 * HOUR_S)
    assert empty.counts["planned"] == 0
    assert len(crawled.web.requests()) == requests
