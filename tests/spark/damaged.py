"""A small lake of two rounds, ways to damage it, and what a repair must have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from crawler.schemas import Table
from crawler.settings import SegmentSettings, Settings
from crawler.storage import Store
from crawler.tables.delta import DeltaTables
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import Ledger, RoundRow
from jobs import repair_tables
from jobs.crawl_round import crawl_round
from jobs.repair import Repaired
from jobs.repair_tables import CHANGED, CLEARED
from tests.spark.crawled import BUCKETS, Row, settings_for
from tests.spark.invariants import Committed
from tests.web import DemoWeb
from tests.web.sites import Scale

SMALL = Scale(pages=40, hosts=6, words=80, corners=False)
HOUR_S, DAY_S = 3_600.0, 86_400.0


@dataclass
class Small:
    """A small web, still served, and a lake that nobody holds: after a round, and one of 15 days later."""

    web: DemoWeb
    settings: Settings
    folder: Path
    rounds: list[RoundRow]

    @property
    def later(self) -> float:
        """A scheduling time after both rounds, epoch seconds."""
        return self.rounds[-1].now + 3 * HOUR_S


@contextmanager
def crawl_small_web(spark: SparkSession, folder: Path) -> Iterator[Small]:
    """Crawl all pages, then again 15 days later; the web is served for the block."""
    with DemoWeb(log=folder / "requests.jsonl", scale=SMALL) as web:
        settings = replace(settings_for(web, delay_s=0.0), segment=SegmentSettings(max_urls=10))
        pages = [web.url(host, path) for host, site in web.web.country.sites.items() for path in site.paths]
        with held(spark, Store.open(str(folder / "lake"))) as lake:
            lake.store.put_new("inbox/seeds.urls", "\n".join(pages).encode())
            first = crawl_round(lake, settings)
            second = crawl_round(lake, settings, first.now + 15 * DAY_S)
        yield Small(web, settings, folder / "lake", [first, second])


def stored(store: Store) -> list[Row]:
    return [row for row in Committed(store).captures if row["warc_filename"]]


def place(row: Row) -> tuple[str, int]:
    return row["warc_filename"], row["warc_record_offset"]


def damage(store: Store, row: Row, change: Callable[[bytes, int], bytes]) -> None:
    """Change the file of a capture, at the middle of its record."""
    data = store.read(row["warc_filename"])
    middle = row["warc_record_offset"] + row["warc_record_length"] // 2
    store.put(row["warc_filename"], change(data, middle))


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def asked_again(store: Store) -> Row:
    """The first capture of a page that the second round found unchanged, with others behind it in its file."""
    unchanged = {row["url"] for row in stored(store) if row["round"] == 2 and row["warc_record_type"] == "revisit"}
    first = [row for row in stored(store) if row["round"] == 1 and row["url"] in unchanged]
    held = [row for row in first if len([other for other in first if place(row) < place(other)]) > 1]
    return min(held, key=place)


def last_of_a_file(store: Store) -> Row:
    """The last capture of a file of the second round."""
    return max((row for row in stored(store) if row["round"] == 2), key=place)


def held(spark: SparkSession, store: Store) -> AbstractContextManager[Lake]:
    return hold_lake(spark, store, BUCKETS)


def tables_of(store: Store) -> dict[str, list[Row]]:
    """The rows of the tables that a repair may change."""
    lake = Committed(store)
    return {table.name: lake.rows(table) for table in CHANGED}


def behind(store: Store, row: Row) -> list[Row]:
    """The captures that a cut in the middle of this one's record loses."""
    return [
        other
        for other in stored(store)
        if other["warc_filename"] == row["warc_filename"] and place(other) >= place(row)
    ]


def texts(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def lost_places(done: Repaired) -> set[tuple[str, int, str, int]]:
    return {(one.url, one.round, one.file, one.offset) for one in done.lost}


def assert_only_lost_rows_changed(
    before: dict[str, list[Row]], after: dict[str, list[Row]], gone: list[Row], now: float
) -> None:
    ids, urls = {row["warc_record_id"] for row in gone}, {row["url_key"] for row in gone}
    visits = {(row["url_key"], row["round"]) for row in gone}
    kept: dict[str, Callable[[Row], bool]] = {
        "content_checksums": lambda row: row["warc_record_id"] not in ids,
        "near_duplicates": lambda row: (row["url_key"], row["round"]) not in visits,
        "captures": lambda row: (row["url_key"], row["round"]) not in visits,
    }
    for name, is_kept in kept.items():
        rest = [row for row in before[name] if is_kept(row)]
        assert len(rest) < len(before[name]), name
        assert texts(after[name]) == texts(rest), name
    due = {"due_at": datetime.fromtimestamp(now, ZoneInfo("UTC")), "slot": int(now // HOUR_S)}
    cleared = dict.fromkeys(CLEARED)
    wanted = [
        row | cleared | due if row["url_key"] in urls else row | cleared if row["digest_record_id"] in ids else row
        for row in before["frontier"]
    ]
    assert texts(wanted) != texts(before["frontier"])
    assert texts(after["frontier"]) == texts(wanted)


def assert_invariants_but_for(store: Store, gone: list[Row]) -> None:
    """All hold, but that the outcomes files still tell of the lost records."""
    lost = {repr((row["round"], row["url_key"], row["outcome"], row["warc_record_id"])) for row in gone}
    assert set(Committed(store).breaches()) == {f"I1: captures of the outcomes: {one} is missing" for one in lost}
    assert Committed(store).orphans() == []


class Killed(BaseException):
    """Stands for anything that ends a driver."""


STEPS = ("cut", "frontier", "content_checksums", "near_duplicates", "captures", "segments", "rounds")


def die_before(step: str, patch: pytest.MonkeyPatch) -> None:
    """The next step of this name ends the repair."""
    change = DeltaTables.change

    def dies(*_: object) -> None:
        raise Killed

    def dies_at(tables: DeltaTables, table: Table, *rest: Any) -> None:
        if table.name == step:
            raise Killed
        change(tables, table, *rest)

    if step == "cut":
        patch.setattr(repair_tables, "cut", dies)
    elif step == "rounds":
        patch.setattr(Ledger, "record", dies)
    else:
        patch.setattr(DeltaTables, "change", dies_at)
