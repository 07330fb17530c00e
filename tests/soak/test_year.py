"""A simulated year: a round a day on the real tables, maintenance once a week, the fetch stage replaced at its seam.

ORBWEAVER_YEAR_ROUNDS sets how many rounds (365). Figures are printed; ARCHITECTURE.md has those of a whole year.
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
from crawler.tables.lake import Lake, hold_lake
from jobs.crawl_round import crawl_round
from jobs.maintain_tables import maintain
from tests.soak.seam import install
from tests.soak.year_web import HOSTS, host_name
from tests.spark.invariants import Committed

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

ROUNDS = int(os.environ.get("ORBWEAVER_YEAR_ROUNDS", "365"))
DAY_S = 86_400.0
BEGAN = 1_800_000_000.0
WEEK = 7
Week = dict[str, Any]


@pytest.fixture
def year_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the day; sessions that are started from now on crawl the year's web."""
    install(monkeypatch, tmp_path, "tests.soak.year_web:YearWeb")
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
                began = time.monotonic()
                done = crawl_round(lake, settings, BEGAN + day * DAY_S)
                weeks = weeks if day % WEEK else [*weeks, {"seconds": [], "pages": 0}]
                weeks[-1]["seconds"].append(time.monotonic() - began)
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
    early, late = whole[len(whole) // 4], whole[-1]
    assert late["known"] >= min(2_000, 5 * ROUNDS)
    for table in schemas.TABLES:
        assert late["files"][table.name] <= 1.5 * early["files"][table.name] + 4, table.name


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
    state = sum(week["bytes"][name] for name in ("frontier", "url_checksums", "hosts"))
    line = {
        "week": number,
        "seconds_a_round": round(median(week["seconds"]), 2),
        "pages": week["pages"],
        "known": week["known"],
        "state_bytes_a_url": round(state / week["known"]),
        "files": week["files"],
    }
    with capsys.disabled():
        print(json.dumps(line), flush=True)
