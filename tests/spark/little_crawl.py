"""Rounds over a little web that a test makes up: hosts by name on one loopback address, no delay between requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from crawler.schemas import Table
from crawler.settings import FetchSettings, RoundSettings, Settings
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow
from crawler.tables.reader import Reader
from jobs.crawl_round import crawl_round
from tests.fetch.little_web import LittleWeb

Row = dict[str, Any]


@dataclass
class LittleCrawl:
    """A lake in a folder, and rounds in it. `hosts` are the names that resolve."""

    spark: SparkSession
    folder: Path
    web: LittleWeb
    hosts: Iterable[str]
    settings: Settings = field(default_factory=Settings)

    @property
    def store(self) -> Store:
        return Store.open(str(self.folder / "lake"))

    @property
    def in_force(self) -> Settings:
        """The settings of the test, for this web."""
        self.folder.mkdir(exist_ok=True)
        names = self.folder / "hosts"
        names.write_text("".join(f"127.0.0.1 {host}\n" for host in self.hosts))
        fetch = FetchSettings(
            delay_s=0.0, only_allowed=True, allow_addresses=("127.0.0.0/8",), host_map=str(names), head_timeout_s=5.0
        )
        filters = replace(self.settings.filters, ports=(self.web.port,))
        return replace(self.settings, fetch=fetch, filters=filters)

    def inject(self, *lines: str, name: str = "seeds") -> None:
        self.store.put_new(f"inbox/{name}.urls", "\n".join(lines).encode())

    def rounds(self, *limits: int) -> list[RoundRow]:
        """A round for each limit on its URLs."""
        with hold_lake(self.spark, self.store, 2) as lake:
            return [self.round(lake, limit) for limit in limits]

    def round(self, lake: Lake, max_urls: int = 10_000, at: float | None = None) -> RoundRow:
        limits = RoundSettings(max_urls=max_urls, time_limit_s=120.0, partitions=2)
        return crawl_round(lake, replace(self.in_force, round=limits), at)

    def rows(self, table: Table) -> list[Row]:
        """A table as the newest round committed it."""
        reader = Reader.open(self.store)
        newest = reader.committed()
        assert newest is not None
        rows: list[Row] = reader.rows(table, newest["versions"]).to_pylist(maps_as_pydicts="strict")
        return rows

    def pages(self) -> list[str]:
        """What was asked for, but robots files, as host and path."""
        return [f"{one.host}{one.path}" for one in self.web.log if one.path != "/robots.txt"]
