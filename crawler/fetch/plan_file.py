"""The plan of one partition as its fetch task reads it: columns in Arrow, a row made into an object when it is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crawler.records import HostState, KnownAddress, PlannedUrl, RobotsCopy
from crawler.storage import Store

URL_FIELDS = ("url_key", "url", "host", "depth", "tier", "etag", "last_modified", "content_digest",
              "digest_record_id", "digest_date")  # fmt: skip
_COLUMNS = [*URL_FIELDS, "kind", "position", "gap_factor", "host_state"]

Row = Mapping[str, Any]
_Known = tuple[HostState, frozenset[str]]


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host and its rows of the plan, from `first` to before `end`.

    `grouped_by`: the addresses by which the plan put it into this partition.
    """

    state: HostState
    grouped_by: frozenset[str]
    first: int
    end: int


class Plan:
    """Planned URLs by host, each host's in the order of its back queue."""

    def __init__(self, urls: pa.Table, hosts: list[PlannedHost]) -> None:
        self._columns = [urls.column(name).combine_chunks() for name in URL_FIELDS]
        self.hosts = hosts
        self.urls = len(urls)

    def urls_of(self, first: int, end: int) -> list[PlannedUrl]:
        """The planned URLs of the rows from `first` to before `end`."""
        columns = [column.slice(first, end - first).to_pylist() for column in self._columns]
        return [
            PlannedUrl(key, url, host, depth or 0, tier or 0, *rest)
            for key, url, host, depth, tier, *rest in zip(*columns, strict=True)
        ]


def read_plan(
    store: Store, files: Iterable[str], done: Iterable[int] = (), newer: Mapping[str, Row] | None = None
) -> Plan:
    """The plan rows of the Parquet files (URIs inside the lake) without the URL keys that are `done`.

    `newer` are host states (rows of HOST_STATES by host) that count instead of the plan's own.
    """
    table = pa.concat_tables([_read(store, path) for path in files])
    table = table.filter(pc.equal(table["kind"], pa.scalar("url")))
    table = table.sort_by([("host", "ascending"), ("position", "ascending")])
    states = _host_states(table, newer or {})
    keys = np.fromiter(done, np.int64)
    if len(keys):
        table = table.filter(pa.array(~np.isin(table["url_key"].to_numpy(), keys)))
    urls = table.select(URL_FIELDS)
    return Plan(urls, _hosts(urls, states))


def _read(store: Store, path: str) -> pa.Table:
    with store.open_input(path) as file:
        return pq.ParquetFile(file).read(columns=_COLUMNS, use_threads=False)


def _host_states(table: pa.Table, newer: Mapping[str, Row]) -> dict[str, _Known]:
    factors = table.group_by("host").aggregate([("gap_factor", "max")]).to_pylist()
    known = table.filter(pc.is_valid(table["host_state"])).select(["host", "host_state"]).to_pylist()
    rows: dict[str, Row] = {row["host"]: row["host_state"] for row in known}
    states = {}
    for one in factors:
        host, factor = one["host"], one["gap_factor_max"] or 1
        planned = rows.get(host) or {}
        grouped_by = frozenset(address["address"] for address in planned.get("addresses") or ())
        states[host] = host_state(host, newer.get(host) or planned, factor), grouped_by
    return states


def host_state(host: str, row: Row, gap_factor: int = 1) -> HostState:
    """A row of host columns as a value; what is missing is unknown."""
    return HostState(
        host=host,
        addresses=tuple(KnownAddress(one["address"], one["expires_at"]) for one in row.get("addresses") or ()),
        robots=tuple(
            RobotsCopy(one["scheme"], one["fetched_at"], one["status"], one["body"] or b"")
            for one in row.get("robots") or ()
        ),
        crawl_delay_s=row.get("crawl_delay_s"),
        not_before=row.get("not_before") or 0.0,
        last_request_at=row.get("last_request_at") or 0.0,
        last_fetch_s=row.get("last_fetch_s") or 0.0,
        failures=row.get("failures") or 0,
        is_out=bool(row.get("is_out")),
        gap_factor=gap_factor,
    )


def _hosts(urls: pa.Table, states: Mapping[str, _Known]) -> list[PlannedHost]:
    """The runs of equal hosts in rows that are sorted by host."""
    if not len(urls):
        return []
    codes = urls["host"].combine_chunks().dictionary_encode().indices.to_numpy()
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1]).tolist()
    spans = zip(firsts, [*firsts[1:], len(urls)], strict=True)
    return [PlannedHost(*states[urls["host"][first].as_py()], first, end) for first, end in spans]
