"""Plan a round: the table of what will be asked, written before the first request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.page.url import host_name
from crawler.records import KnownAddress
from crawler.settings import Settings
from crawler.spark import resolve_hosts, suit_to, with_owners
from crawler.tables.direct import DataFile
from crawler.tables.lake import Lake, round_frame
from crawler.tables.ledger import RoundRow, State
from crawler.tables.runs import find
from crawler.transforms import select
from crawler.transforms.slots import current_hour
from jobs.stages.open_round import advance
from jobs.stages.place import Found, Row, placement, planned_hosts, unresolved, urls_by_address

CHOICES = 3
NAME_AND_ADDRESS = pa.schema([("name", pa.string()), ("address", pa.string())])


def plan_round(lake: Lake, settings: Settings, rnd: RoundRow, versions: dict[str, int]) -> RoundRow:
    """Write the plan and record PLANNED with the versions the rest of the round reads."""
    waiting = rows_by_slot(lake, versions, current_hour(rnd.now))
    opened = select.choose_slots(waiting, settings.round.max_urls)
    if not opened:
        return advance(lake, replace(rnd, state=State.PLANNED, versions=versions, counts={"planned": 0}))
    suit_to(lake.spark, sum(waiting[slot] for slot in opened))
    files = lake.files(schemas.FRONTIER, versions, lambda slot: (slot["slot"], slot["tier"]) in opened)
    rows = plan_of(lake, settings, replace(rnd, versions=versions), files)
    lake.append(schemas.PLANS, rows, lake.write("plans", rnd.round))
    planned = {**versions, schemas.PLANS.name: lake.tables.version(schemas.PLANS)}
    counts = count_plan(lake, planned, rnd.round) | _unopened(waiting, opened)
    return advance(lake, replace(rnd, state=State.PLANNED, versions=planned, counts=counts))


def plan_of(lake: Lake, settings: Settings, rnd: RoundRow, files: Sequence[DataFile]) -> DataFrame:
    """The plan's rows: the due URLs of these files in their turn, under budgets, placed in fetch partitions by server;
    and the counts of the others. All columns are read of the planned ones only, in the end."""
    due = lake.tables.read_these(schemas.FRONTIER, files, select.DUE_NAMES).localCheckpoint()
    keys = due.select("host").distinct().select(select.host_key().alias("host_key"))
    known = find(lake.run(schemas.HOSTS, rnd.versions), keys, keep="newest").localCheckpoint()
    owned = with_owners(select.due_hosts(due, known))
    hosts = select.limit_hosts(owned, settings, time.time()).localCheckpoint()
    chosen = choose(lake, settings, Due(turns_of(due, hosts, settings), hosts, known))
    states = known.select("host_key", F.struct(*select.HOST_NAMES).alias("host_state"))
    servers = placement(lake, settings, chosen.hosts, chosen.found).join(states, on="host_key", how="left")
    planned = select.plan_rows(lake.tables.read_these(schemas.FRONTIER, files), chosen.urls, servers, rnd.round)
    left_out = select.left_out_rows(hosts, chosen.urls, rnd.round)
    return planned.unionByName(left_out, allowMissingColumns=True)


def turns_of(due: DataFrame, hosts: DataFrame, settings: Settings) -> DataFrame:
    """The due URLs that their hosts may give, in the turns of their domains. No more of a domain is put in order than a
    round could take."""
    queued, most = select.queues(due, hosts, settings), settings.round.max_urls
    if select.count_queued(hosts) <= most:
        return select.take_turns(queued, settings).localCheckpoint()
    marked = select.within_reach(queued.localCheckpoint(), "domain", ("tier", "position"), most)
    turns = select.take_turns(marked.where("NOT is_beyond"), settings)
    beyond = marked.where("is_beyond").withColumn("reason", F.lit("domain_share"))
    return turns.unionByName(beyond, allowMissingColumns=True).drop("is_beyond").localCheckpoint()


class Due(NamedTuple):
    """What a round may choose from: URLs with their turns, their hosts, and what the hosts table has of these."""

    turns: DataFrame
    hosts: DataFrame
    known: DataFrame


class Chosen(NamedTuple):
    """URLs, with the reason of those that are left out; the hosts of the others; and the addresses looked up."""

    urls: DataFrame
    hosts: Sequence[Row]
    found: Found


def choose(lake: Lake, settings: Settings, due: Due) -> Chosen:
    """Fill the round, look up the names it would ask, and fill it again where an address is asked for too much.

    `CHOICES` times at most: then what is too much for an address is left out, and nothing takes its place.
    """
    found: dict[str, tuple[KnownAddress, ...]] = {}
    looked_up: set[str] = set()
    crowded: set[str] = set()
    bounded = due.turns
    for _ in range(CHOICES):
        urls, is_full = fill_round(bounded, settings)
        hosts = planned_hosts(urls, due.known)
        wanted = unresolved(hosts, time.time()) - looked_up
        found |= resolve_hosts(lake.spark, sorted(wanted), settings)
        looked_up |= wanted
        more = crowded_addresses(urls_by_address(hosts, found), settings, is_full=is_full) - crowded
        if not more:
            return Chosen(urls, hosts, found)
        crowded |= more
        bounded = select.within_addresses(due.turns, names_at(lake, due.hosts, found, crowded), settings)
    urls = select.within_addresses(urls, names_at(lake, due.hosts, found, crowded), settings).localCheckpoint()
    return Chosen(urls, planned_hosts(urls, due.known), found)


def fill_round(turns: DataFrame, settings: Settings) -> tuple[DataFrame, bool]:
    """The URLs with the reason of those that the round cannot hold, and whether there are any."""
    turns = turns.localCheckpoint()
    sizes = [(select.Step(*row["step"]), row["count"]) for row in select.step_sizes(turns).collect()]
    boundary = select.boundary_of(sizes, settings.round.max_urls)
    return (select.within_round(turns, boundary).localCheckpoint(), True) if boundary else (turns, False)


def crowded_addresses(urls: Mapping[str, int], settings: Settings, *, is_full: bool) -> set[str]:
    """The addresses that are asked for more than they can give, or in a full round for more than their share."""
    most = select.address_capacity(settings)
    if is_full:
        most = min(most, select.share_of_round(settings))
    return {address for address, count in urls.items() if count > most}


def names_at(lake: Lake, hosts: DataFrame, found: Found, addresses: Collection[str]) -> DataFrame:
    """`name` and `address` of the due hosts at these addresses, by what was looked up now, else by what was known."""
    firsts = {host_name(host): known[0].address for host, known in found.items()}
    new = pa.table({"name": list(firsts), "address": list(firsts.values())}, schema=NAME_AND_ADDRESS)
    looked_up = lake.spark.createDataFrame(new)
    wanted = lake.spark.createDataFrame(pa.table({"address": sorted(addresses)}))
    known = hosts.where("is_first").select("name", "address").join(looked_up, on="name", how="left_anti")
    return known.unionByName(looked_up).join(wanted, on="address", how="left_semi")


def count_plan(lake: Lake, versions: dict[str, int], number: int) -> dict[str, int]:
    """How many URLs and hosts are planned, and how many URLs were left out, by reason."""
    rows = (
        round_frame(lake, schemas.PLANS, versions, number)
        .groupBy("kind", "reason")
        .agg(F.sum("rows").alias("rows"), F.count_if(F.col("position") == 0).alias("hosts"))
        .collect()
    )
    counts = {"planned": 0, "planned_hosts": 0}
    for row in rows:
        if row["kind"] == "url":
            counts |= {"planned": row["rows"], "planned_hosts": row["hosts"]}
        else:
            counts[f"left_out.{row['reason']}"] = row["rows"]
    return counts


def rows_by_slot(lake: Lake, versions: dict[str, int], hour: int) -> dict[tuple[int, int], int]:
    """The (slot, tier) pairs that have come, with their row counts; the log of the calendar knows both."""
    counts: Counter[tuple[int, int]] = Counter()
    for file in lake.files(schemas.FRONTIER, versions):
        if file.partition["slot"] <= hour:
            counts[file.partition["slot"], file.partition["tier"]] += file.rows
    return dict(counts)


def _unopened(waiting: dict[tuple[int, int], int], opened: list[tuple[int, int]]) -> dict[str, int]:
    rest = sum(rows for slot, rows in waiting.items() if slot not in set(opened))
    return {"left_out.not_opened": rest} if rest else {}
