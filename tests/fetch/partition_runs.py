"""Plans for tests, fetched for real: a lake in a folder, a plan file, a run of `fetch_partition`, and what it left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crawler.fetch.partition import fetch_partition
from crawler.fetch.segments import read_host_states, read_outcomes
from crawler.page.url import host_port, url_key
from crawler.records import PartitionTask, SealedSegment
from crawler.schemas import HOST_COLUMNS, PLANS, arrow_schema
from crawler.settings import (
    ContentSettings,
    FetchSettings,
    FilterSettings,
    PageSettings,
    ScopeSettings,
    SegmentSettings,
    Settings,
)
from crawler.storage import Store

Row = dict[str, Any]


def planned(url: str, position: int, **fields: Any) -> Row:
    """A plan row of a URL."""
    host = url.split("/")[2]
    row = {"url": url, "host": host, "url_key": url_key(url, host), "depth": 0, "tier": 0, "kind": "url", "rows": 1}
    return row | {"position": position, "gap_factor": 1} | fields


def host_state(**fields: Any) -> Row:
    """A host_state struct."""
    return {column.name: None for column in HOST_COLUMNS} | fields


@dataclass
class Run:
    """A lake with one planned partition."""

    folder: Path
    rows: list[Row] = field(default_factory=list)
    task_fields: Row = field(default_factory=dict)
    fetch: Row = field(default_factory=dict)
    segment: Row = field(default_factory=dict)
    page: Row = field(default_factory=dict)
    opens_ports: bool = True
    content: Row = field(default_factory=dict)
    filters: Row = field(default_factory=dict)
    scope: Row = field(default_factory=lambda: {"mode": "web"})
    sealed: list[SealedSegment] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return Store.open(str(self.folder))

    def plan(self, *urls: str, **fields: Any) -> Run:
        """Plan these URLs, each host's in their order; `fields` go to all of them."""
        for url in urls:
            host = url.split("/")[2]
            position = sum(row["host"] == host for row in self.rows)
            self.rows.append(planned(url, position, **fields))
        return self

    @property
    def settings(self) -> Settings:
        fetch = {"delay_s": 0.0, "allow_addresses": ("127.0.0.0/8",), "host_map": self._host_map(), "connections": 50}
        return Settings(
            fetch=FetchSettings(**fetch | {"max_crawl_delay_s": 1.0} | self.fetch),  # type: ignore[arg-type]  # a table of cases is looser than the types
            segment=SegmentSettings(**self.segment),
            page=PageSettings(**self.page),
            filters=FilterSettings(**{"ports": self._ports(), **self.filters}),
            content=ContentSettings(**self.content),
            scope=ScopeSettings(**self.scope),
        )

    def task(self, time_s: float = 30.0) -> PartitionTask:
        schema = arrow_schema(PLANS.columns)
        rows = [{name: row.get(name) for name in schema.names} for row in self.rows]
        path = self.folder / "plan.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        task = PartitionTask(
            lake=str(self.folder),
            round=1,
            partition=0,
            segment_folder="crawl-data/TEST/segments/1",
            plan_files=(path.name,),
            deadline_at=time.time() + time_s,
        )
        return replace(task, **self.task_fields)

    def go(self, time_s: float = 30.0) -> Run:
        """Fetch."""
        self.sealed = fetch_partition(self.task(time_s), self.settings)
        return self

    def outcomes(self) -> list[Row]:
        return [row for one in self.sealed for row in read_outcomes(self.store, one).to_pylist()]

    def outcome(self, url: str) -> Row:
        (row,) = [row for row in self.outcomes() if row["url"] == url]
        return row

    def by_path(self) -> dict[str, str]:
        """Outcomes by the path of their URL."""
        return {"/" + row["url"].split("/", 3)[3]: row["outcome"] for row in self.outcomes()}

    def hosts(self) -> dict[str, Row]:
        """The newest host states."""
        return {row["host"]: row for one in self.sealed for row in read_host_states(self.store, one)}

    def discovered(self) -> dict[str, str]:
        """Discovered URLs and how they were found."""
        tables = [pq.read_table(self.folder / one.discoveries).to_pylist() for one in self.sealed]
        return {row["url"]: row["source"] for table in tables for row in table}

    def _ports(self) -> tuple[int, ...]:
        """Those of the planned hosts, as the little web has one for all of its hosts."""
        ports = {host_port(row["host"]) for row in self.rows} - {None} if self.opens_ports else ()
        return tuple(port for port in ports if port)

    def _host_map(self) -> str:
        path = self.folder / "hosts"
        names = {row["host"].partition(":")[0] for row in self.rows} | set(self.task_fields.get("names", ()))
        if not path.exists():
            path.write_text("".join(f"127.0.0.1 {name}\n" for name in sorted(names)))
        return str(path)
