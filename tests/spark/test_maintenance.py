"""Maintenance: fewer files, the same answers, wherever it is broken off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from zlib import crc32

import pytest
from pyspark.sql import DataFrame, SparkSession

from crawler import schemas
from crawler.faults import _seen
from crawler.storage import Store
from crawler.tables.direct import read_rows
from crawler.tables.lake import Lake, hold_lake, round_files, round_frame
from crawler.tables.ledger import RoundRow, State
from crawler.tables.runs import find
from jobs.maintain_tables import maintain
from tests.spark.rows import NOW, frame, host

BUCKETS = 8  # writes are named as maintenance names its own: a round's would be a stranger's without the round


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """With one committed round."""
    with hold_lake(spark, Store.open(str(tmp_path_factory.mktemp("maintained") / "lake")), BUCKETS) as held:
        held.ledger.record(RoundRow(1, State.COMMITTED, NOW, "folder", held.versions()))
        yield held


def keys(spark: SparkSession, first: int, last: int, number: int = 1) -> DataFrame:
    return spark.range(first, last).selectExpr("xxhash64(id) AS url_key", f"{number} AS round")


def test_compaction_changes_no_answer(spark: SparkSession, lake: Lake) -> None:
    for number in range(10, 16):
        columns = tuple(c for c in schemas.HOSTS.columns if c.name != "bucket")
        rows = [host(f"{n}.test", round=number, failures=number) for n in random.Random(number).sample(range(40), 20)]
        lake.append(schemas.HOSTS, frame(spark, columns, rows), lake.write("maintain/t/many", number))
    asked = spark.createDataFrame([(host(f"{n}.test")["host_key"],) for n in range(40)], "host_key bigint")
    before = sorted(find(lake.run(schemas.HOSTS, lake.versions()), asked, "newest").collect())
    urls = lake.read(schemas.URL_CHECKSUMS, lake.versions()).count()
    done = {row.table: row for row in maintain(lake, max_files=1)}
    assert done["hosts"].files_after <= BUCKETS < done["hosts"].files_before
    assert sorted(find(lake.run(schemas.HOSTS, lake.versions()), asked, "newest").collect()) == before
    assert lake.read(schemas.URL_CHECKSUMS, lake.versions()).count() == urls
    committed = lake.ledger.committed()
    assert committed is not None
    assert committed.versions == lake.versions()


def test_maintenance_works_again_under_the_same_lock(spark: SparkSession, lake: Lake) -> None:
    """A second one of the same driver once had the first one's identity, and was taken for its replay."""
    for first in (100, 110):
        for number in range(first, first + 3):
            batch = keys(spark, number * 10_000, number * 10_000 + 50, number)
            lake.append(schemas.URL_CHECKSUMS, batch, lake.write("maintain/t/again", number))
        done = {row.table: row for row in maintain(lake, max_files=1)}
        assert done["url_checksums"].files_after <= BUCKETS < done["url_checksums"].files_before


def test_small_files_of_many_rounds_become_one_in_which_each_round_is_found(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = range(200, 206)
    for number in rounds:
        rows = [{"url": f"http://a.test/{number}/{n}", "round": number} for n in range(3)]
        for table in (schemas.CAPTURES, schemas.PLANS):
            placed = [{**row, "partition": n % 2} for n, row in enumerate(rows)] if table is schemas.PLANS else rows
            lake.append(table, frame(spark, table.columns, placed), lake.write(f"maintain/t/log/{table.name}", number))
    assert {file.least for file in round_files(lake, schemas.CAPTURES, lake.versions(), 203)} == {203}
    done = {row.table: row for row in maintain(lake, max_files=1)}
    for table, least in ((schemas.CAPTURES, 1), (schemas.PLANS, 2)):
        assert done[table.name].files_after == least
        for number in rounds:
            found = round_frame(lake, table, lake.versions(), number).select("round", "url").collect()
            assert sorted(map(tuple, found)) == [(number, f"http://a.test/{number}/{n}") for n in range(3)]
        assert round_files(lake, table, lake.versions(), 199) == []
    large = lake.files(schemas.CAPTURES, lake.versions())[0]
    lake.append(
        schemas.CAPTURES, frame(spark, schemas.CAPTURES.columns, [{"round": 206}]), lake.write("maintain/t/log", 206)
    )
    monkeypatch.setattr("crawler.tables.compaction.LARGE_BYTES", large.size)
    maintain(lake, max_files=0)
    assert large in lake.files(schemas.CAPTURES, lake.versions()), "a large file was written again"


class BrokenOff(Exception):
    """In place of the kill: what is stored then is the same."""


@pytest.mark.parametrize(
    "point",
    ["files.captures", "files.url_checksums", "maintain.table:1", "maintain.table:6", "maintain.vacuumed:3",
     "maintain.vacuumed:10", "commit.rounds"],
)  # fmt: skip
def test_maintenance_that_is_broken_off_loses_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def broken_off(*_: object) -> None:
        raise BrokenOff

    monkeypatch.setattr("crawler.faults.os.kill", broken_off)
    first = 1_000 + 10 * crc32(point.encode())
    for number in range(3):
        batch = keys(spark, first + number, first + number + 1)
        lake.append(schemas.URL_CHECKSUMS, batch, lake.write(f"maintain/t/{point}/keys", number))
        capture = frame(spark, schemas.CAPTURES.columns, [{"url": f"http://a.test/{first + number}", "round": 300}])
        lake.append(schemas.CAPTURES, capture, lake.write(f"maintain/t/{point}/captures", number))
    before = [stored(lake, table) for table in (schemas.URL_CHECKSUMS, schemas.CAPTURES)]
    _seen.clear()
    monkeypatch.setenv("ORBWEAVER_FAULT", point)
    with pytest.raises(BrokenOff):
        maintain(lake, max_files=1)
    monkeypatch.delenv("ORBWEAVER_FAULT")
    assert [stored(lake, table) for table in (schemas.URL_CHECKSUMS, schemas.CAPTURES)] == before
    maintain(lake, max_files=1)
    assert [stored(lake, table) for table in (schemas.URL_CHECKSUMS, schemas.CAPTURES)] == before
    assert len(lake.files(schemas.CAPTURES, lake.versions())) == 1
    committed = lake.ledger.committed()
    assert committed is not None
    assert committed.versions == lake.versions()


def stored(lake: Lake, table: schemas.Table) -> list[tuple[object, ...]]:
    """All rows, in order."""
    names = ("url_key", "round") if table is schemas.URL_CHECKSUMS else ("round", "url")
    rows = read_rows(lake.store, [file.path for file in lake.files(table, lake.versions())], names)
    return sorted(tuple(map(repr, row.values())) for row in rows)
