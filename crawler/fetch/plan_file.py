"""The plan of one partition as its fetch task reads it: columns in Arrow, a row made into an object when it is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crawler.records import HostState, KnownAddress, PlannedUrl, RobotsCopy
from crawler.schemas import PLANS, arrow_schema
from crawler.storage import Store

URL_FIELDS = ("url_key", "url", "host", "depth", "tier", "etag", "last_modified", "content_digest",
              "digest_record_id", "digest_date", "seed_hops", "source")  # fmt: skip
_URL_COLUMNS = [*URL_FIELDS, "kind", "position"]
_STATE_COLUMNS = ["host", "kind", "position", "gap_factor", "grouped_by", "host_state"]
_TYPES = arrow_schema(PLANS.columns)
BATCH_ROWS = 8_192

Row = Mapping[str, Any]
_Known = tuple[HostState, frozenset[str]]


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host and its rows of the plan, from `first` to before `end`.

    `grouped_by`: the addresses and robots hosts by which the plan put it into this partition.
    """

    state: HostState
    grouped_by: frozenset[str]
    first: int
    end: int


class Plan:
    """Planned URLs by host, each host's in the order of its back queue."""

    def __init__(self, urls: pa.Table, hosts: list[PlannedHost]) -> None:
        self._columns = [urls.column(name) for name in URL_FIELDS]
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
    """The plan rows of the Parquet files (paths in the lake) without the URL keys that are `done`.

    `newer` are host states (rows of HOST_STATES by host) that count instead of the plan's own.
    """
    paths = list(files)
    firsts = pa.concat_tables([_read(store, path, _STATE_COLUMNS, _is_first) for path in paths])
    states = _host_states(firsts, newer or {})
    finished = np.fromiter(done, np.int64)
    urls = pa.concat_tables([_read(store, path, _URL_COLUMNS, partial(_is_open, done=finished)) for path in paths])
    if not _is_in_order(urls):
        urls = urls.sort_by([("host", "ascending"), ("position", "ascending")])
    urls = urls.select(URL_FIELDS)
    pa.default_memory_pool().release_unused()  # decoding took more than the plan does; the system has it back
    return Plan(urls, _hosts(urls, states))


def _read(store: Store, path: str, columns: list[str], wanted: Callable[[pa.RecordBatch], Any]) -> pa.Table:
    """The rows that are wanted, a few thousand at a time: of a big plan there is never a second copy."""
    with store.open_input(path) as input_file:
        file = pq.ParquetFile(input_file)
        held = [name for name in columns if name in file.schema_arrow.names]
        parts = [batch.filter(wanted(batch)) for batch in file.iter_batches(BATCH_ROWS, columns=held)]
        rows = pa.Table.from_batches(parts, file.schema_arrow.empty_table().select(held).schema)
    for name in columns:
        if name not in held:  # the plan of an older version lacks what came later
            rows = rows.append_column(name, pa.nulls(len(rows), _TYPES.field(name).type))
    return rows.select(columns)


def _is_first(batch: pa.RecordBatch) -> Any:
    """Rows of planned URLs that are the first of their host, which have its state."""
    return pc.and_(pc.equal(batch["kind"], pa.scalar("url")), pc.equal(batch["position"], pa.scalar(0, pa.int32())))


def _is_open(batch: pa.RecordBatch, done: np.ndarray) -> Any:
    """Rows of planned URLs that have no outcome yet; the others are counts of what was left out."""
    is_url = pc.equal(batch["kind"], pa.scalar("url"))
    return pc.and_(is_url, pa.array(~np.isin(batch["url_key"].to_numpy(zero_copy_only=False), done)))


def _is_in_order(urls: pa.Table) -> bool:
    """True when the rows are by host and position already, as those of a plan's own file are."""
    host, position = urls["host"], urls["position"]
    if len(urls) < 2:
        return True
    is_next_host = pc.greater(host[1:], host[:-1])
    is_next_place = pc.and_(pc.equal(host[1:], host[:-1]), pc.greater(position[1:], position[:-1]))
    return bool(pc.all(pc.or_(is_next_host, is_next_place)).as_py())


def _host_states(table: pa.Table, newer: Mapping[str, Row]) -> dict[str, _Known]:
    """What is known of each host, and by what it was grouped."""
    states = {}
    for row in table.to_pylist():
        host = row["host"]
        state = host_state(host, newer.get(host) or row["host_state"] or {}, row["gap_factor"] or 1)
        states[host] = state, frozenset(row["grouped_by"] or ())
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
        robots_hosts=tuple(row.get("robots_hosts") or ()),
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
