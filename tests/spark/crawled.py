"""The demo web, crawled for three rounds in one session: what the tests of a whole crawl look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from crawler import schemas
from crawler.schemas import Table
from crawler.settings import CrawlSettings, FetchSettings, FilterSettings, RoundSettings, SegmentSettings, Settings
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow
from crawler.tables.reader import Reader
from jobs.crawl_round import crawl_round
from tests.web import DemoWeb, Request

ROUNDS = 3
DELAY_S = 0.4
BUCKETS = 4
Row = dict[str, Any]


@dataclass
class Crawl:
    """A crawl after three rounds. Facts stay those of that time, whatever later tests do to the lake."""

    web: DemoWeb
    lake: Lake
    settings: Settings
    rounds: list[RoundRow]
    requests_by_round: list[list[Request]]

    @property
    def requests(self) -> list[Request]:
        return [request for of_round in self.requests_by_round for request in of_round]

    @property
    def versions(self) -> dict[str, int]:
        """The versions that the third round committed."""
        return self.rounds[-1].versions

    @property
    def began_at(self) -> float:
        """Scheduling time of the first round, epoch seconds."""
        return self.rounds[0].now

    def rows(self, table: Table) -> list[Row]:
        """A table as the third round committed it."""
        rows: list[Row] = Reader.open(self.lake.store).rows(table, self.versions).to_pylist()
        return rows

    @cached_property
    def captures(self) -> list[Row]:
        """By round, then URL."""
        return sorted(self.rows(schemas.CAPTURES), key=lambda row: (row["round"], row["url"]))

    @cached_property
    def first_captures(self) -> dict[str, Row]:
        """The first outcome of every URL whose turn came."""
        return {row["url"]: row for row in reversed(self.captures) if row["outcome"] != "not_reached"}


@contextmanager
def crawl_demo_web(spark: SparkSession, folder: Path) -> Iterator[Crawl]:
    """Serve the demo web, crawl it for three rounds, and keep serving."""
    with (
        DemoWeb(log=folder / "requests.jsonl") as web,
        hold_lake(spark, Store.open(str(folder / "lake")), BUCKETS) as lake,
    ):
        settings = settings_for(web)
        lake.store.put_new("inbox/seeds.urls", "\n".join(web.seeds).encode())
        rounds, requests_by_round, seen = [], [], 0
        for _ in range(ROUNDS):
            rounds.append(crawl_round(lake, settings))
            requests = web.requests()
            requests_by_round.append(requests[seen:])
            seen = len(requests)
        yield Crawl(web, lake, settings, rounds, requests_by_round)


def settings_for(web: DemoWeb, **fetch: Any) -> Settings:
    """What a crawl of the demo web needs, with little patience for servers that never answer."""
    given: dict[str, Any] = {"delay_s": DELAY_S, "address_delay_share": 0.5}
    given |= {"head_timeout_s": 2.0, "idle_timeout_s": 2.0, "robots_retry_s": 0.5}
    given |= {"only_allowed": True, "allow_addresses": web.allow_addresses, "host_map": str(web.hosts_file)}
    return Settings(
        crawl=CrawlSettings(name="ORB-TEST"),
        fetch=FetchSettings(**given | fetch),
        filters=FilterSettings(ports=(web.port,)),
        round=RoundSettings(time_limit_s=60.0, partitions=2),
        segment=SegmentSettings(max_urls=100),
    )
