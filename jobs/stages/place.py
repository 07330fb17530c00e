"""Place hosts in fetch partitions: names are looked up before, so that the plan knows who shares a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.page.url import registered_domain
from crawler.records import KnownAddress
from crawler.settings import Settings
from crawler.spark import resolve_hosts
from crawler.tables.lake import Lake
from crawler.transforms.select import Server, group_by_server

PLACEMENT = (
    schemas.Column("host_key", "bigint", "Key of a planned host."),
    schemas.Column("partition", "int", "Its fetch partition."),
    schemas.Column("gap_factor", "int", "How many times the gap to its address it keeps."),
    schemas.Column("addresses", schemas.ADDRESSES, "Its addresses, those found now first."),
    schemas.Column("grouped_by", "array<string>", "Addresses and names that bind it to its partition."),
)

Row = Mapping[str, Any]
Found = Mapping[str, tuple[KnownAddress, ...]]


def placement(lake: Lake, settings: Settings, within: DataFrame) -> DataFrame:
    """Partition, gap factor and addresses of every planned host, by its registered domain, its addresses, and the hosts
    to which its robots.txt led."""
    hosts = _planned_hosts(within)
    found = resolve_hosts(lake.spark, _unresolved(hosts, time.time()), settings)
    servers = [_server(row, found) for row in hosts]
    grouping = group_by_server(servers, partition_count(lake, settings), settings.round.max_hosts_per_address)
    addresses = [[asdict(address) for address in _addresses(row, found)] for row in hosts]
    keys = [server.host_key for server in servers]
    columns: list[Any] = [keys, grouping.partitions, grouping.gap_factors, addresses, grouping.bound_by]
    rows = pa.table(columns, schema=schemas.arrow_schema(PLACEMENT))
    return lake.spark.createDataFrame(rows, schemas.ddl(PLACEMENT))


def partition_count(lake: Lake, settings: Settings) -> int:
    """Fetch partitions of a round: the setting, or as many as tasks can run at once."""
    return settings.round.partitions or max(1, lake.spark.sparkContext.defaultParallelism)


def _planned_hosts(within: DataFrame) -> Sequence[Row]:
    names = ("addresses", "robots_hosts")
    known = [F.first(f"host_state.{name}", ignorenulls=True).alias(name) for name in names]
    known.append(F.first("known_domain", ignorenulls=True).alias("domain"))
    planned = within.where("reason IS NULL").groupBy("host_key").agg(F.first("host").alias("host"), *known)
    rows: list[dict[str, Any]] = planned.orderBy("host_key").toArrow().to_pylist()
    return rows


def _unresolved(hosts: Sequence[Row], now: float) -> list[str]:
    """Hosts without an address that is still good, and those that will be asked for a robots.txt of others."""
    stale = {row["host"] for row in hosts if all(one["expires_at"] <= now for one in row["addresses"] or ())}
    return sorted(stale.union(*(row["robots_hosts"] or () for row in hosts)))


def _addresses(row: Row, found: Found) -> list[KnownAddress]:
    """What was found now, and behind it what an earlier round knew: a server may have been asked there just now."""
    new = found.get(row["host"], ())
    asked = {address.address for address in new}
    return [*new, *(KnownAddress(**one) for one in row["addresses"] or () if one["address"] not in asked)]


def _server(row: Row, found: Found) -> Server:
    robots_hosts = row["robots_hosts"] or ()
    addresses = [*_addresses(row, found), *(address for host in robots_hosts for address in found.get(host, ()))]
    names = (row["host"], *robots_hosts)
    domain = row["domain"] or registered_domain(row["host"])
    return Server(row["host_key"], domain, tuple(one.address for one in addresses), names)
