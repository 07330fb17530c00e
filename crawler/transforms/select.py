"""What to visit this round: due URLs, best first, under budgets, grouped by server.

Nothing is planned that politeness cannot fetch: a host gives at most round time / delay URLs. What is left out stays in
the calendar and is counted with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from crawler.schemas import HOST_COLUMNS, VISIT_COLUMNS
from crawler.settings import Settings

VISIT_NAMES = [*(column.name for column in VISIT_COLUMNS), "slot"]
HOST_NAMES = [column.name for column in HOST_COLUMNS]
_MIX = np.uint64(0x9E3779B97F4A7C15)
BEST_FIRST = ("tier", "due_at", "url_key")


def host_key(host: str = "host") -> Column:
    """The key of a host column; equal to `crawler.page.url.host_key`."""
    return F.xxhash64(F.col(host))


def choose_slots(waiting: Mapping[tuple[int, int], int], max_urls: int, overfetch: int = 4) -> list[tuple[int, int]]:
    """The (slot, tier) pairs to open of those that are due, given with their row counts: tier by tier, oldest slot
    first, until they hold `overfetch` times what a round may take (hosts' caps leave much of it out)."""
    opened, rows = [], 0
    for tier, slot, count in sorted((tier, slot, count) for (slot, tier), count in waiting.items()):
        if rows >= overfetch * max_urls:
            break
        opened.append((slot, tier))
        rows += count
    return opened


def with_host_state(due: DataFrame, hosts: DataFrame) -> DataFrame:
    """Each due URL with `host_key`, `host_state` (null for a new host) and `known_domain`, its registered domain where
    the hosts table has it."""
    states = hosts.select(
        "host_key", F.struct(*HOST_NAMES).alias("host_state"), F.col("registered_domain").alias("known_domain")
    )
    keyed = due.select(*VISIT_NAMES, host_key().alias("host_key"))
    return keyed.join(states, on="host_key", how="left")


def rank_in_budgets(due: DataFrame, settings: Settings, real_now: float) -> DataFrame:
    """Each due URL with its place in its host's queue (`position`, from 0) and, where a budget leaves it out, why
    (`reason`; null when it is planned)."""
    in_host = Window.partitionBy("host_key").orderBy(*BEST_FIRST)
    ranked = due.withColumn("position", F.row_number().over(in_host) - 1)
    time_left = F.lit(settings.round.time_limit_s) - _wait(real_now, settings)
    is_waiting = time_left <= 0
    is_over_host = F.col("position") >= F.least(
        F.lit(float(settings.round.max_urls_per_host)), _capacity(time_left, settings)
    )
    reason = F.when(is_waiting, "host_waiting").when(is_over_host, "host_budget")
    return _within_domain_share(ranked.withColumn("reason", reason), settings)


def _within_domain_share(ranked: DataFrame, settings: Settings) -> DataFrame:
    """Leave out what is more than a registered domain's share of the round: of its hosts the first URLs stay."""
    if settings.round.max_domain_share == 1:
        return ranked
    most = math.ceil(settings.round.max_domain_share * settings.round.max_urls)
    domain = F.coalesce("known_domain", "host")
    in_domain = Window.partitionBy(domain, F.col("reason").isNull()).orderBy("position", *BEST_FIRST)
    is_over = F.col("reason").isNull() & (F.row_number().over(in_domain) > most)
    return ranked.withColumn("reason", F.when(is_over, "domain_share").otherwise(F.col("reason")))


def _wait(real_now: float, settings: Settings) -> Column:
    """Seconds until the host may be asked again."""
    may_be_asked_at = F.greatest("host_state.not_before", F.col("host_state.last_request_at") + _delay(settings))
    return F.greatest(may_be_asked_at - F.lit(real_now), F.lit(0.0))


def _delay(settings: Settings) -> Column:
    return F.greatest("host_state.crawl_delay_s", F.lit(settings.fetch.delay_s))


def _capacity(time_left: Column, settings: Settings) -> Column:
    """URLs that politeness can fetch from a host in the time left; at least one."""
    delay = _delay(settings)
    return F.when(delay > 0, F.greatest(F.floor(time_left / delay), F.lit(1))).otherwise(F.lit(1e18))


class Boundary(NamedTuple):
    """The step (a tier and a position) in which a round's budget ends, and how many of its URLs the round takes."""

    tier: int
    position: int
    left: int


def step_sizes(ranked: DataFrame) -> DataFrame:
    """How many URLs there are of each tier and position: `tier`, `position`, `count`."""
    return ranked.where("reason IS NULL").groupBy("tier", "position").count()


def boundary_of(steps: Iterable[tuple[int, int, int]], max_urls: int) -> Boundary | None:
    """Where a budget ends, given the steps with their sizes; None when it holds them all."""
    left = max_urls
    for tier, position, count in sorted(steps):
        if count > left:
            return Boundary(tier, position, left)
        left -= count
    return None


def within_round(ranked: DataFrame, boundary: Boundary) -> DataFrame:
    """Leave out what the round's budget cannot hold: tier by tier, and in a tier the first of every host before the
    second of any. The boundary is exact, ties are broken by key, and only its own step is sorted."""
    fits = F.col("reason").isNull()
    step = F.struct(F.col("tier").alias("tier"), F.col("position").alias("position"))
    last = F.struct(F.lit(boundary.tier).alias("tier"), F.lit(boundary.position).alias("position"))
    place = F.row_number().over(Window.orderBy("due_at", "url_key"))
    placed = ranked.where(fits & (step == last)).select("url_key", place.alias("place"))
    taken = placed.where(F.col("place") <= boundary.left)
    is_over = fits & ((step > last) | ((step == last) & F.col("place").isNull()))
    reason = F.when(is_over, "round_budget").otherwise(F.col("reason"))
    return ranked.join(taken, on="url_key", how="left").withColumn("reason", reason).drop("place")


@dataclass(frozen=True, slots=True)
class Server:
    """What decides where a host goes. `names`: its own, and those of the hosts that its robots.txt led to."""

    host_key: int
    domain: str
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """Where each host goes: its fetch partition, how many times the gap to its addresses it must keep, and which of its
    addresses and names bind it there."""

    partitions: np.ndarray
    gap_factors: np.ndarray
    bound_by: list[list[str]]


def group_by_server(servers: Sequence[Server], partitions: int, max_hosts: int) -> Grouping:
    """Fetch partitions by a hash of the server: hosts of one registered domain, of one known address, or of one
    robots.txt stay together.

    What more than `max_hosts` hosts share is a platform and binds nothing; a host on such an address may meet others of
    it in every partition, so each partition keeps `partitions` times the gap to it.
    """
    domains = _members([server.domain] for server in servers)
    sites = _members({*server.addresses, *server.names} for server in servers)
    platforms = {name for name, hosts in sites.items() if len(hosts) > max_hosts}
    bonds = [hosts for hosts in (*domains.values(), *sites.values()) if len(hosts) <= max_hosts]
    group = _components(len(servers), bonds)
    keys = np.fromiter((server.host_key for server in servers), np.int64, len(servers))
    first_key = np.full(group.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_key, group, keys)
    spread = first_key[group].view(np.uint64) * _MIX  # the least key of several is a small one: hash it once more
    hashed = (spread >> np.uint64(40)).astype(np.int64)
    factors = [partitions if platforms.intersection(server.addresses) else 1 for server in servers]
    bound_by = [sorted({*server.addresses, *server.names} - platforms) for server in servers]
    return Grouping((hashed * partitions >> 24).astype(np.int32), np.asarray(factors, np.int32), bound_by)


def _members(names_of_hosts: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, names in enumerate(names_of_hosts):
        for name in names:
            members.setdefault(name, []).append(at)
    return members


def _components(size: int, bonds: Sequence[Sequence[int]]) -> np.ndarray:
    """The component of each of `size` nodes, where the nodes of a bond belong together."""
    pairs = [(bond[0], other) for bond in bonds for other in bond[1:]]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    graph = coo_matrix((np.ones(len(pairs)), (rows, columns)), shape=(size, size))
    labels: np.ndarray = connected_components(graph, directed=False)[1]
    return labels


def plan_rows(ranked: DataFrame, placement: DataFrame, round_number: int) -> DataFrame:
    """Rows of `plans`: the planned URLs with partition and gap, the host's state on the first of each host, and the
    counts of what was left out by host and reason.

    `placement`: host_key, partition, gap_factor, grouped_by, and the addresses that count instead of the state's own.
    """
    is_first = F.col("new_position") == 0
    fields = {name: F.col(f"host_state.{name}") for name in HOST_NAMES} | {"addresses": F.col("addresses")}
    state = F.struct(*(column.alias(name) for name, column in fields.items()))
    in_host = Window.partitionBy("host_key").orderBy("position")
    planned = (
        ranked.where("reason IS NULL")
        .withColumn("new_position", F.row_number().over(in_host) - 1)
        .join(placement, on="host_key", how="inner")
        .select(
            *VISIT_NAMES,
            F.lit("url").alias("kind"),
            "reason",
            F.lit(1).cast("bigint").alias("rows"),
            F.col("new_position").alias("position"),
            "gap_factor",
            F.when(is_first, F.col("grouped_by")).alias("grouped_by"),
            F.when(is_first, state).alias("host_state"),
            "partition",
            F.lit(round_number).alias("round"),
        )
    )
    left_out = (
        ranked.where("reason IS NOT NULL")
        .groupBy("host", "reason")
        .agg(F.count("*").alias("rows"))
        .select("host", "reason", "rows", F.lit("left_out").alias("kind"), F.lit(-1).alias("partition"))
        .withColumn("round", F.lit(round_number))
    )
    return planned.unionByName(left_out, allowMissingColumns=True)
