"""Place hosts in fetch partitions: names are looked up before, so that the plan knows who shares a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.page.url import host_name
from crawler.records import KnownAddress
from crawler.settings import Settings
from crawler.tables.lake import Lake
from crawler.transforms.select import Server, group_by_server, host_key

PLACEMENT = (
    schemas.Column("host_key", "bigint", "Key of a planned host."),
    schemas.Column("partition", "int", "Its fetch partition."),
    schemas.Column("gap_factor", "int", "How many times the gap to its address it keeps."),
    schemas.Column("addresses", schemas.ADDRESSES, "Its addresses, those found now first."),
    schemas.Column("grouped_by", "array<string>", "Addresses and names that bind it to its partition."),
)

Row = Mapping[str, Any]
Found = Mapping[str, tuple[KnownAddress, ...]]


def placement(lake: Lake, settings: Settings, hosts: Sequence[Row], found: Found) -> DataFrame:
    """Partition, gap factor and addresses of every planned host, by its name, its registered domain, its addresses, and
    the hosts to which its robots.txt led. `found`: what the look-ups gave."""
    servers = [_server(row, found) for row in hosts]
    grouping = group_by_server(servers, partition_count(lake, settings), settings.round.max_hosts_per_address)
    addresses = [[asdict(address) for address in known_addresses(row, found)] for row in hosts]
    keys = [server.host_key for server in servers]
    columns: list[Any] = [keys, grouping.partitions, grouping.gap_factors, addresses, grouping.bound_by]
    rows = pa.table(columns, schema=schemas.arrow_schema(PLACEMENT))
    return lake.spark.createDataFrame(rows, schemas.ddl(PLACEMENT))


def partition_count(lake: Lake, settings: Settings) -> int:
    """Fetch partitions of a round: the setting, or as many as tasks can run at once."""
    return settings.round.partitions or max(1, lake.spark.sparkContext.defaultParallelism)


def planned_hosts(within: DataFrame, known: DataFrame) -> Sequence[Row]:
    """The hosts of the planned URLs: `host_key`, `host`, `domain`, how many `urls` are planned, and of the hosts table
    `addresses` and `robots_hosts`."""
    planned = within.where("reason IS NULL").groupBy("host", "domain").agg(F.count("*").alias("urls"))
    states = known.select("host_key", "addresses", "robots_hosts")
    joined = planned.withColumn("host_key", host_key()).join(states, on="host_key", how="left")
    rows: list[dict[str, Any]] = joined.orderBy("host_key").toArrow().to_pylist()
    return rows


def unresolved(hosts: Sequence[Row], now: float) -> set[str]:
    """Hosts without an address that is still good, and those that will be asked for a robots.txt of others."""
    stale = {row["host"] for row in hosts if all(one["expires_at"] <= now for one in row["addresses"] or ())}
    return stale.union(*(row["robots_hosts"] or () for row in hosts))


def known_addresses(row: Row, found: Found) -> list[KnownAddress]:
    """What was found now, and behind it what an earlier round knew: a server may have been asked there just now."""
    new = found.get(row["host"], ())
    asked = {address.address for address in new}
    return [*new, *(KnownAddress(**one) for one in row["addresses"] or () if one["address"] not in asked)]


def urls_by_address(hosts: Sequence[Row], found: Found) -> Counter[str]:
    """How many URLs are planned for each address, counted at the one that a host will be asked at first."""
    urls: Counter[str] = Counter()
    for row in hosts:
        for first in known_addresses(row, found)[:1]:
            urls[first.address] += row["urls"]
    return urls


def _server(row: Row, found: Found) -> Server:
    robots_hosts = row["robots_hosts"] or ()
    addresses = [*known_addresses(row, found), *(address for host in robots_hosts for address in found.get(host, ()))]
    return Server(
        row["host_key"],
        row["domain"],
        host_name(row["host"]),
        tuple(one.address for one in addresses),
        (row["host"], *robots_hosts, *map(host_name, robots_hosts)),
    )
