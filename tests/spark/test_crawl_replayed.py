"""A whole crawl and its second visit in the programs of others: jwarc validates every file, pywb replays the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawler.storage import Store
from jobs.crawl_round import crawl_round
from jobs.stored import read_record
from tests.fetch.warc_peers import Replay, jwarc_complaints, replay
from tests.peers import PeerMissing
from tests.spark.crawled import Crawl, Row
from tests.spark.invariants import Committed

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

DAY_S = 86_400.0
SHOWN_AT_MOST = 40


@dataclass
class Visited:
    """The lake two weeks later, and its WARC files."""

    store: Store
    captures: list[Row]
    files: list[Path]


@pytest.fixture(scope="module")
def visited(crawled: Crawl) -> Visited:
    crawl_round(crawled.lake, crawled.settings, crawled.began_at + 15 * DAY_S)
    lake = Committed(crawled.lake.store)
    files = [Path(lake.store.uri_of(name)) for name in sorted(lake.named_warc_files())]
    return Visited(lake.store, lake.captures, files)


@pytest.fixture(scope="module")
def pywb(visited: Visited, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    try:
        with replay(tmp_path_factory.mktemp("pywb"), visited.files) as running:
            yield running
    except PeerMissing as missing:
        pytest.skip(str(missing))


def test_no_two_files_share_a_base_name(visited: Visited) -> None:
    names = [file.name for file in visited.files]
    assert len(names) == len(set(names)) > 6


def test_jwarc_finds_every_file_valid(visited: Visited) -> None:
    try:
        assert not jwarc_complaints(visited.files)
    except PeerMissing as missing:
        pytest.skip(str(missing))


def test_unchanged_pages_replay_as_they_were(visited: Visited, pywb: Replay) -> None:
    """A revisit serves the stored head and body: those of the page that it names."""
    stored = {row["warc_record_id"]: row for row in visited.captures if row["warc_record_type"] == "response"}
    revisits = [row for row in visited.captures if row["warc_record_type"] == "revisit"]
    assert {row["fetch_status"] for row in revisits} == {200, 304}
    names = {row["url"]: row["url"].lower().replace("//www.", "//") for row in visited.captures}
    shared = Counter(names.values())  # replay tools take such URLs for one
    alone = [row for row in revisits if shared[names[row["url"]]] == 1]
    told = sorted(alone, key=lambda row: (row["fetch_status"], row["url"]))
    for row in [*told[:SHOWN_AT_MOST], *told[-SHOWN_AT_MOST:]]:
        page = stored[read_record(visited.store, row).headers["warc-refers-to"]]
        now, then = (pywb.get(one["url"], time14(one)) for one in (row, page))
        assert (now.status, now.body) == (then.status, then.body), row["url"]
        assert now.status == 200
        assert f"/{time14(row)}id_/" in now.headers["content-location"]


def test_pages_that_were_cut_and_redirects_keep_nobody_waiting(visited: Visited, pywb: Replay) -> None:
    """OSError or HTTPException would say so."""
    cut = [row for row in visited.captures if row["content_truncated"] and row["warc_filename"]]
    moved = [row for row in visited.captures if row["fetch_redirect"] and row["fetch_redirect"] != row["url"]]
    assert len(cut) > 2
    for row in [*cut, *moved[:SHOWN_AT_MOST]]:
        assert pywb.get(row["url"], time14(row)).status == row["fetch_status"], row["url"]


def time14(row: Row) -> str:
    """The time of a capture as replay tools have it in their URLs."""
    return "".join(sign for sign in row["warc_date"] if sign.isdigit())
