"""Fetch a plan: one Spark stage with one action, whose results are files."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime

import numpy as np

from crawler import schemas
from crawler.faults import fault
from crawler.page.url import host_key, host_port
from crawler.records import PartitionTask
from crawler.settings import Settings
from crawler.spark import fetch_partitions
from crawler.tables.direct import is_done
from crawler.tables.lake import Lake, round_files, round_rows
from crawler.tables.ledger import RoundRow, State
from jobs.stages.open_round import advance
from jobs.stages.place import partition_count

Watch = Callable[[Lake, RoundRow], AbstractContextManager[object]]


def fetch_plan(lake: Lake, settings: Settings, rnd: RoundRow, watch: Watch | None = None) -> RoundRow:
    """Fetch what is planned, note the accepted segments in `segments`, and record FETCHED."""
    noted = lake.write("segments", rnd.round)
    if not is_done(lake.store, schemas.SEGMENTS, noted):
        tasks = partition_tasks(lake, settings, rnd)
        with watch(lake, rnd) if watch else nullcontext():
            segments = fetch_partitions(lake.spark, tasks, settings)
        fault("fetch.returned")
        if segments:
            rows = [{**asdict(segment), "round": rnd.round} for segment in segments]
            lake.note(schemas.SEGMENTS, rows, noted)
    versions = {**rnd.versions, schemas.SEGMENTS.name: lake.tables.version(schemas.SEGMENTS)}
    counts = {**rnd.counts, **count_segments(lake, rnd.round, versions)}
    return advance(lake, replace(rnd, state=State.FETCHED, versions=versions, counts=counts))


def partition_tasks(lake: Lake, settings: Settings, rnd: RoundRow) -> list[PartitionTask]:
    """A task for every partition that has planned URLs."""
    if not rnd.counts.get("planned"):
        return []
    files = defaultdict(list)
    for file in round_files(lake, schemas.PLANS, rnd.versions, rnd.round):
        if file.partition["partition"] >= 0:
            files[file.partition["partition"]].append(file.path)
    partitions = max(partition_count(lake, settings), 1 + max(files, default=-1))
    base = PartitionTask(
        lake=lake.store.uri,
        round=rnd.round,
        partition=-1,
        segment_folder=rnd.segment_folder,
        plan_files=(),
        deadline_at=time.time() + settings.round.time_limit_s,
        scope=scope_keys(lake, settings, rnd.versions),
        ports=port_keys(lake, rnd.versions),
        partitions=partitions,
        earlier_until=earlier_until(lake, rnd.round),
        started14=datetime.now(UTC).strftime("%Y%m%d%H%M%S"),
        driver=lake.lock.token,
    )
    return [replace(base, partition=number, plan_files=tuple(sorted(paths))) for number, paths in sorted(files.items())]


def earlier_until(lake: Lake, number: int) -> float:
    """When the fetch stage of the round before was over, 0 without one."""
    rows = lake.ledger.newest(2)
    return max((row.recorded for row in rows if row.round < number and row.state is State.FETCHED), default=0.0)


def scope_keys(lake: Lake, settings: Settings, versions: dict[str, int]) -> bytes:
    """The keys of the hosts or registered domains that seeds opened, sorted, as little-endian 64-bit integers."""
    if settings.scope.mode == "web":
        return b""
    name = "host" if settings.scope.mode == "hosts" else "registered_domain"
    seeds = lake.rows(schemas.SEEDS, versions, ["verdict", name])
    names = {row[name] for row in seeds if row["verdict"] == "admitted"}
    return np.sort(np.array([host_key(opened) for opened in names], "<i8")).tobytes()


def port_keys(lake: Lake, versions: dict[str, int]) -> bytes:
    """The keys of the hosts that seeds named with a port of their own, sorted; a seed that was known opens it too."""
    hosts = {row["host"] for row in lake.rows(schemas.SEEDS, versions, ["host"]) if row["host"]}
    return np.sort(np.array([host_key(host) for host in hosts if host_port(host)], "<i8")).tobytes()


def count_segments(lake: Lake, number: int, versions: dict[str, int]) -> dict[str, int]:
    """What the accepted segments of a round hold."""
    of_round = round_rows(lake, schemas.SEGMENTS, versions, ["rows", "warc_bytes"], number)
    return {
        "segments": len(of_round),
        "outcomes": sum(row["rows"] for row in of_round),
        "warc_files": sum(len(row["warc_bytes"]) for row in of_round),
        "warc_bytes": sum(sum(row["warc_bytes"].values()) for row in of_round),
    }
