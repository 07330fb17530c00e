"""Plan a round: the table of what will be asked, written before the first request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.page.url import host_name
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
    rows = sum(file.rows for file in files)
    if rows > settings.round.max_urls:
        rows = select.count_queued(hosts)
    chosen = choose(lake, settings, Due(turns_of(due, hosts, settings, rows), rows, hosts, known))
    states = known.select("host_key", F.struct(*select.HOST_NAMES).alias("host_state"))
    servers = placement(lake, settings, chosen.hosts, chosen.found).join(states, on="host_key", how="left")
    planned = select.plan_rows(lake.tables.read_these(schemas.FRONTIER, files), chosen.urls, servers, rnd.round)
    left_out = select.left_out_rows(hosts, chosen.urls, rnd.round)
    return planned.unionByName(left_out, allowMissingColumns=True)


def turns_of(due: DataFrame, hosts: DataFrame, settings: Settings, rows: int) -> DataFrame:
    """The due URLs that their hosts may give, `rows` at most, in the turns of their domains. No more of a domain is put
    in order than a round could take."""
    queued, most = select.queues(due, hosts, settings), settings.round.max_urls
    if rows <= most:
        return select.take_turns(queued, settings).localCheckpoint()
    marked = select.within_reach(queued.localCheckpoint(), "domain", ("tier", "position"), most)
    turns = select.take_turns(marked.where("NOT is_beyond"), settings)
    beyond = marked.where("is_beyond").withColumn("reason", F.lit("domain_share"))
    return turns.unionByName(beyond, allowMissingColumns=True).drop("is_beyond").localCheckpoint()


class Due(NamedTuple):
    """What a round may choose from: URLs with their turns, how many at most, their hosts, and what the hosts table has
    of these."""

    turns: DataFrame
    rows: int
    hosts: DataFrame
    known: DataFrame


class Chosen(NamedTuple):
    """URLs, with the reason of those that are left out; the hosts of the others; and the addresses looked up."""

    urls: DataFrame
    hosts: Sequence[Row]
    found: Found


def choose(lake: Lake, settings: Settings, due: Due) -> Chosen:
    """Fill the round and look up the names it would ask. Where an address is asked for too much, look up all names that
    could take its place, and fill the round again under the budgets of addresses."""
    is_full = due.rows > settings.round.max_urls
    urls = fill_round(due.turns, settings) if is_full else due.turns
    hosts = planned_hosts(urls, due.known)
    wanted = unresolved(hosts, time.time())
    found = resolve_hosts(lake.spark, sorted(wanted), settings)
    if not has_crowded(urls_by_address(hosts, found), settings, is_full=is_full):
        return Chosen(urls, hosts, found)
    others = unresolved(planned_hosts(due.turns, due.known), time.time()) - wanted
    found |= resolve_hosts(lake.spark, sorted(others), settings)
    names = names_with_addresses(lake, due.hosts, found)
    urls = fill_round(select.within_addresses(due.turns, names, settings).localCheckpoint(), settings)
    return Chosen(urls, planned_hosts(urls, due.known), found)


def fill_round(turns: DataFrame, settings: Settings) -> DataFrame:
    """The URLs with the reason of those that the round cannot hold."""
    sizes = [(select.Step(*row["step"]), row["count"]) for row in select.step_sizes(turns).collect()]
    boundary = select.boundary_of(sizes, settings.round.max_urls)
    return select.within_round(turns, boundary).localCheckpoint() if boundary else turns


def has_crowded(urls: Mapping[str, int], settings: Settings, *, is_full: bool) -> bool:
    """True when an address is asked for more than it can give, or in a full round for more than its share."""
    most = select.address_capacity(settings)
    if is_full:
        most = min(most, select.share_of_round(settings))
    return any(count > most for count in urls.values())


def names_with_addresses(lake: Lake, hosts: DataFrame, found: Found) -> DataFrame:
    """`name` and `address` of the due hosts, by what was looked up now, else by what was known."""
    firsts = {host_name(host): known[0].address for host, known in found.items()}
    new = pa.table({"name": list(firsts), "address": list(firsts.values())}, schema=NAME_AND_ADDRESS)
    looked_up = lake.spark.createDataFrame(new)
    known = hosts.where("is_first AND address IS NOT NULL").select("name", "address")
    return known.join(looked_up, on="name", how="left_anti").unionByName(looked_up)


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
