"""A simulated year: a round a day on the real tables, maintenance once a week, the fetch stage replaced at its seam.

YEAR_ROUNDS sets how many rounds (365). Figures are printed; ARCHITECTURE.md has those of a whole year.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from crawler import schemas
from crawler.settings import CrawlSettings, FetchSettings, RoundSettings, Settings, SparkSettings
from crawler.spark import open_session
from crawler.storage import Store
from crawler.tables.direct import PROPERTIES
from crawler.tables.lake import Lake, hold_lake
from jobs.crawl_round import crawl_round
from jobs.maintain_tables import maintain
from tests.soak.seam import install
from tests.soak.year_web import HOSTS, host_name
from tests.spark.driver import cpu_seconds
from tests.spark.invariants import Committed

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

ROUNDS = int(os.environ.get("YEAR_ROUNDS", "365"))
DAY_S = 86_400.0
BEGAN = 1_800_000_000.0
WEEK, HALF_A_YEAR = 7, 26  # days, weeks
Week = dict[str, Any]
SHORT_MEMORY = {
    "delta.deletedFileRetentionDuration": "interval 40 seconds",
    "delta.logRetentionDuration": "interval 180 seconds",
}
"""Files have times of the real clock, where a day takes six seconds: a week of old files, a month of old versions."""


@pytest.fixture
def year_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the day; sessions that are started from now on crawl the year's web."""
    install(monkeypatch, tmp_path, "tests.soak.year_web:YearWeb")
    monkeypatch.setattr("crawler.tables.direct.PROPERTIES", PROPERTIES | SHORT_MEMORY)
    monkeypatch.setenv("YEAR_WEB_DAY", str(tmp_path / "day"))
    (tmp_path / "hosts").write_text("".join(f"127.99.0.{n + 1} {host_name(n)}\n" for n in range(HOSTS)))
    return tmp_path / "day"


def test_a_year_of_rounds_stays_flat(year_web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(
        crawl=CrawlSettings(name="YEAR"),
        fetch=FetchSettings(
            delay_s=0.0, only_allowed=True, allow_addresses=("127.99.0.0/16",), host_map=str(tmp_path / "hosts")
        ),
        round=RoundSettings(time_limit_s=60.0, partitions=1),
        spark=SparkSettings(master="local[2]", shuffle_partitions=2),
    )
    store = Store.open(str(tmp_path / "lake"))
    store.put_new("inbox/seeds.urls", "\n".join(f"http://{host_name(n)}/p0" for n in range(HOSTS)).encode())
    spark = open_session(settings, "orbweaver-year")
    weeks: list[Week] = []
    try:
        with hold_lake(spark, store, buckets=4) as lake:
            for day in range(ROUNDS):
                year_web.write_text(str(day))
                began, cpu_began = time.monotonic(), cpu_seconds(os.getpid())
                done = crawl_round(lake, settings, BEGAN + day * DAY_S)
                weeks = weeks if day % WEEK else [*weeks, {"seconds": [], "cpu": [], "pages": 0}]
                weeks[-1]["seconds"].append(time.monotonic() - began)
                weeks[-1]["cpu"].append(cpu_seconds(os.getpid()) - cpu_began)
                weeks[-1]["pages"] += done.counts["outcomes"] if done.counts["planned"] else 0
                if day % WEEK == WEEK - 1:
                    maintain(lake)
                    weeks[-1] |= sizes(lake)
                    assert_invariants(store, day)
                    tell(capsys, len(weeks), weeks[-1])
            assert_invariants(store, ROUNDS - 1)
    finally:
        spark.stop()
    whole = [week for week in weeks if "files" in week]
    assert whole[-1]["known"] >= min(2_000, 5 * ROUNDS)
    if len(whole) >= HALF_A_YEAR:
        assert_flat(whole)


def assert_flat(weeks: list[Week]) -> None:
    """The last quarter of a year is as the second: in the first the calendar fills."""
    quarter = max(len(weeks) // 4, 1)
    early, late = weeks[quarter : 2 * quarter] or weeks, weeks[-quarter:]
    for table in schemas.TABLES:
        files = [median(week["files"][table.name] for week in part) for part in (early, late)]
        assert files[1] <= 1.2 * files[0] + 4, table.name
    for name in ("state", "cpu_s"):
        before, after = (median(figures(week)[name] for week in part) for part in (early, late))
        assert after <= 1.2 * before, f"{name}: {before} -> {after}"


def figures(week: Week) -> dict[str, float]:
    """Bytes a known URL of the tables that are read in every round, and what a round took."""
    state = sum(week["bytes"][name] for name in ("frontier", "url_checksums", "hosts"))
    return {
        "state": state / week["known"],
        "seconds": median(week["seconds"]),
        "cpu_s": median(week["cpu"]),
    }


def sizes(lake: Lake) -> Week:
    """Files and bytes of every table, and how many URLs are known."""
    files = {table.name: lake.tables.files(table) for table in schemas.TABLES}
    return {
        "known": sum(file.rows for file in files[schemas.URL_CHECKSUMS.name]),
        "files": {name: len(held) for name, held in files.items()},
        "bytes": {name: sum(file.size for file in held) for name, held in files.items()},
    }


def assert_invariants(store: Store, day: int) -> None:
    if day % 91 == 90 or day == ROUNDS - 1:
        assert Committed(store).breaches() == []


def tell(capsys: pytest.CaptureFixture[str], number: int, week: Week) -> None:
    rounded = {name: round(value, 2) for name, value in figures(week).items()}
    line = {"week": number, "pages": week["pages"], "known": week["known"], **rounded, "files": week["files"]}
    with capsys.disabled():
        print(json.dumps(line), flush=True)
