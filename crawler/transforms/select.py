"""What to visit this round: due URLs in a fair order, under budgets, grouped by server.

Names and URLs cost their owner nothing: wildcard DNS answers for a hundred thousand names, a script for any number of
URLs. So what a round gives is counted by what costs something, too:

1. **A host** is a name with all its ports: one queue, best first, one budget, one delay. It gives no more than
   politeness can fetch in the time box.
2. **New names.** Of the names of one owner that were never asked and that no seed names, a round takes
   `round.max_new_hosts_per_domain`, the best first. The owner is the registered domain by the whole public suffix list:
   a customer of a hosting platform is an owner, the platform is not.
3. **Turns.** Tier by tier, the first URL of every registered domain comes before the second of any; within a domain
   its hosts take turns in the same way. Ties go by due time, then by key, so the order is total.
4. **Shares.** What is more than a domain's share of the round goes behind everything that is not. So a domain has its
   share while others wait, and the whole round when nobody does. The same holds for an address.
5. **An address** gives no more than politeness can fetch from it in the time box. Addresses are known when names were
   looked up, so the round is filled without them; where one has too much, it is filled again (`jobs.stages.plan`).
6. **The round** takes the first `round.max_urls` in this order.

Politeness is never traded for fullness, and nothing is dropped: what is left out stays in the calendar and is counted
by host and reason.

No task sorts all that is due. A host's queue is cut at its budget; of a domain or an address only what a round could
take is put in order; and of the round only the step in which its budget ends (`step_of`).
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
DUE_NAMES = ["url_key", "host", "depth", "due_at", "tier"]
"""Columns of the calendar that decide what is planned."""
BEST_FIRST = ("tier", "due_at", "url_key")
EXACT_BITS = 10  # of a turn: later ones are counted in steps of a thousandth of their number


def host_key(host: str = "host") -> Column:
    """The key of a host column; equal to `crawler.page.url.host_key`."""
    return F.xxhash64(F.col(host))


def name_of(host: str = "host") -> Column:
    """A host without its port; equal to `crawler.page.url.host_name`."""
    return F.regexp_replace(host, ":[0-9]*$", "")


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


def due_hosts(due: DataFrame, known: DataFrame) -> DataFrame:
    """The hosts of the due URLs: `host_key`, `host`, `name`, how many of its `urls` are due, the `best` of them and
    their least `depth`, and of the hosts table what budgets need; `domain` is null for a host that is not in it, and
    `is_new` true for one that was never asked."""
    hosts = due.groupBy("host").agg(
        F.count("*").alias("urls"), F.min(F.struct(*BEST_FIRST)).alias("best"), F.min("depth").alias("depth")
    )
    states = known.select(
        "host_key",
        F.col("registered_domain").alias("domain"),
        "crawl_delay_s",
        "not_before",
        "last_request_at",
        F.get("addresses", F.lit(0))["address"].alias("address"),
    )
    keyed = hosts.withColumn("host_key", host_key()).withColumn("name", name_of())
    is_new = F.coalesce("last_request_at", F.lit(0.0)) == 0
    return keyed.join(states, on="host_key", how="left").withColumn("is_new", is_new)


def limit_hosts(hosts: DataFrame, settings: Settings, real_now: float) -> DataFrame:
    """The due hosts with what their name may give: `most` URLs, or none for a `reason`; `newcomer`, the place of a
    new name among those of its owner; `is_first` of the hosts of its name.

    `hosts`: `due_hosts` with every `domain`, and the `owner` of new ones.
    """
    of_name = Window.partitionBy("name")
    among_new = Window.partitionBy(F.coalesce("owner", "name"), "is_new").orderBy("best")
    named = hosts.select(
        "host_key", "host", "name", "domain", "owner", "urls",
        F.min("best").over(of_name).alias("best"),
        F.max(F.greatest("crawl_delay_s", F.lit(settings.fetch.delay_s))).over(of_name).alias("delay_s"),
        F.max("last_request_at").over(of_name).alias("asked_at"),
        F.max("not_before").over(of_name).alias("not_before"),
        F.min("address").over(of_name).alias("address"),
        (F.min("is_new").over(of_name) & (F.min("depth").over(of_name) > 0)).alias("is_new"),
        (F.col("host") == F.min("host").over(of_name)).alias("is_first"),
    )  # fmt: skip
    wait = F.greatest(F.greatest("not_before", F.expr("asked_at + delay_s")) - F.lit(real_now), F.lit(0.0))
    time_left = F.lit(settings.round.time_limit_s) - wait
    capacity = F.when(F.col("delay_s") > 0, F.greatest(F.floor(time_left / F.col("delay_s")), F.lit(1)))
    newcomer = F.dense_rank().over(among_new)
    is_late = F.col("is_new") & (newcomer > settings.round.max_new_hosts_per_domain)
    return named.select(
        "host_key", "host", "name", "domain", "address", "urls", "is_first",
        F.least(F.lit(settings.round.max_urls_per_host), capacity).alias("most"),
        newcomer.alias("newcomer"),
        F.when(time_left <= 0, "host_waiting").when(is_late, "domain_hosts").alias("reason"),
    )  # fmt: skip


def queues(due: DataFrame, hosts: DataFrame, settings: Settings) -> DataFrame:
    """The URLs that their hosts may give: `url_key`, `host`, `name`, `domain`, `tier`, `due_at`, and `position`, the
    place in the queue of the name, from 1."""
    open_names = hosts.where("is_first AND reason IS NULL").select("name", "domain", "most")
    in_name = Window.partitionBy("name").orderBy(*BEST_FIRST)
    rows = due.select("url_key", "host", name_of().alias("name"), "tier", "due_at")
    return (
        rows.join(open_names, on="name", how="inner")
        .withColumn("position", F.row_number().over(in_name))
        .where(F.col("position") <= settings.round.max_urls_per_host)
        .where("position <= most")
        .drop("most")
    )


def count_queued(hosts: DataFrame) -> int:
    """How many URLs all queues hold together."""
    of_names = hosts.where("reason IS NULL").groupBy("name").agg(F.least(F.sum("urls"), F.first("most")).alias("urls"))
    return of_names.agg(F.sum("urls").alias("urls")).collect()[0]["urls"] or 0


def take_turns(queued: DataFrame, settings: Settings) -> DataFrame:
    """The URLs of the queues with `turn`, the place in the turns of their domain and tier, and `over`, the share that
    they are more than; the `reason` is null."""
    in_domain = Window.partitionBy("domain").orderBy("tier", "position", "due_at", "url_key")
    in_tier = Window.partitionBy("domain", "tier").orderBy("position", "due_at", "url_key")
    return queued.select(
        "*",
        F.row_number().over(in_tier).alias("turn"),
        F.when(F.row_number().over(in_domain) > share_of_round(settings), "domain_share").alias("over"),
        F.lit(None).cast("string").alias("reason"),
    )


def share_of_round(settings: Settings) -> int:
    """URLs that a registered domain, or an address, may have of a round while others wait."""
    return math.ceil(settings.round.max_domain_share * settings.round.max_urls)


def address_capacity(settings: Settings) -> float:
    """URLs that politeness can fetch from an address in the time box; at least one."""
    gap = settings.fetch.delay_s * settings.fetch.address_delay_share
    return max(settings.round.time_limit_s // gap, 1.0) if gap else math.inf


def within_addresses(turns: DataFrame, addresses: DataFrame, settings: Settings) -> DataFrame:
    """Leave out what an address cannot give in the time box, and put behind what is more than its share.

    `addresses`: `name` and `address` of the names that count; all others have no such bound.
    """
    at_address = Window.partitionBy("address").orderBy(*_in_turn(), "due_at", "url_key")
    bound = turns.where("reason IS NULL").join(addresses, on="name", how="inner").withColumn("step", step_of())
    marked = within_reach(bound, "address", ["step"], settings.round.max_urls)
    first = marked.where("NOT is_beyond").withColumn("place", F.row_number().over(at_address))
    placed = first.unionByName(marked.where("is_beyond").withColumn("place", F.lit(settings.round.max_urls + 1)))
    reason = F.when(F.col("place") > address_capacity(settings), "address_budget")
    over = F.coalesce("over", F.when(F.col("place") > share_of_round(settings), "address_share"))
    free = turns.where("reason IS NOT NULL").unionByName(
        turns.where("reason IS NULL").join(addresses, on="name", how="left_anti")
    )
    limited = placed.withColumn("reason", reason).withColumn("over", over)
    return free.unionByName(limited.select(*free.columns))


def _in_turn() -> tuple[Column, Column, Column]:
    return F.col("over").isNotNull(), F.col("tier"), F.col("turn")


def within_reach(rows: DataFrame, group: str, order: Sequence[str], most: int) -> DataFrame:
    """Rows with `is_beyond`: true for those that cannot be among the first `most` of their group in this order, since
    as many stand before all that are equal to them in it. Groups are counted, not sorted."""
    before = Window.partitionBy(group).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    sizes = rows.groupBy(group, *order).count()
    ends = (
        sizes.withColumn("before", F.sum("count").over(before))
        .where(F.col("before") >= most)
        .groupBy(group)
        .agg(F.min(F.struct(*order)).alias("end"))
    )
    is_beyond = F.coalesce(F.struct(*order) >= F.col("end"), F.lit(False))
    few = F.broadcast(ends)  # of all rows no more groups than rows / most have an end
    return rows.join(few, on=group, how="left").withColumn("is_beyond", is_beyond).drop("end")


class Step(NamedTuple):
    """URLs that a round takes or leaves together, but for its last step."""

    is_over: bool
    tier: int
    turn: int


class Boundary(NamedTuple):
    """The step in which a round's budget ends, and how many of its URLs the round takes."""

    step: Step
    left: int


def step_of() -> Column:
    """The step of a URL. The first thousand turns are steps of their own, later ones share one with the turns that are
    equal to them in their first ten bits; so even a domain with a million turns has few steps, and none is large."""
    bits = f"greatest(length(bin(turn)) - {EXACT_BITS}, 0)"
    turn = F.expr(f"shiftleft(shiftright(turn, {bits}), {bits})")
    is_over, tier, _ = _in_turn()
    return F.struct(is_over.alias("is_over"), tier.alias("tier"), turn.alias("turn"))


def step_sizes(turns: DataFrame) -> DataFrame:
    """How many URLs there are of each step: `step`, `count`."""
    return turns.where("reason IS NULL").groupBy(step_of().alias("step")).count()


def boundary_of(steps: Iterable[tuple[Step, int]], max_urls: int) -> Boundary | None:
    """Where a budget ends, given the steps with their sizes; None when it holds them all."""
    left = max_urls
    for step, count in sorted(steps):
        if count > left:
            return Boundary(step, left)
        left -= count
    return None


def within_round(turns: DataFrame, boundary: Boundary) -> DataFrame:
    """Leave out what the round's budget cannot hold. The boundary is exact, and only its own step is sorted."""
    fits = F.col("reason").isNull()
    last = F.struct(*(F.lit(part).alias(name) for part, name in zip(boundary.step, Step._fields, strict=True)))
    place = F.row_number().over(Window.orderBy("turn", "due_at", "url_key"))
    placed = turns.where(fits & (step_of() == last)).select("url_key", place.alias("place"))
    taken = placed.where(F.col("place") <= boundary.left)
    is_over = fits & ((step_of() > last) | ((step_of() == last) & F.col("place").isNull()))
    reason = F.when(is_over, F.coalesce("over", F.lit("round_budget"))).otherwise(F.col("reason"))
    return turns.join(taken, on="url_key", how="left").withColumn("reason", reason).drop("place")


@dataclass(frozen=True, slots=True)
class Server:
    """What decides where a host goes. `name`: its own, without the port; `names`: those of the hosts that its
    robots.txt led to."""

    host_key: int
    domain: str
    name: str
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
    """Fetch partitions by a hash of the server: hosts of one name (at other ports), of one registered domain, of one
    known address, or of one robots.txt stay together.

    What more than `max_hosts` names share is a platform and binds nothing; a host on such an address may meet others of
    it in every partition, so each partition keeps `partitions` times the gap to it. The ports of a name are never
    parted, however many there are.
    """
    own = _members([server.name] for server in servers)
    domains = _members([server.domain] for server in servers)
    sites = _members({server.name, *server.addresses, *server.names} for server in servers)
    platforms = {site for site, hosts in sites.items() if len({servers[at].name for at in hosts}) > max_hosts}
    small = [hosts for hosts in domains.values() if len({servers[at].name for at in hosts}) <= max_hosts]
    bonds = [*own.values(), *small, *(hosts for site, hosts in sites.items() if site not in platforms)]
    group = _components(len(servers), bonds)
    keys = np.fromiter((server.host_key for server in servers), np.int64, len(servers))
    first_key = np.full(group.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_key, group, keys)
    spread = first_key[group].view(np.uint64) * _MIX  # the least key of several is a small one: hash it once more
    hashed = (spread >> np.uint64(40)).astype(np.int64)
    factors = [partitions if platforms.intersection(server.addresses) else 1 for server in servers]
    bound_by = [
        sorted({server.name, *server.addresses, *server.names} - (platforms - {server.name})) for server in servers
    ]
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


def plan_rows(due: DataFrame, within: DataFrame, servers: DataFrame, round_number: int) -> DataFrame:
    """Rows of `plans` for the planned URLs: what the calendar has of them, partition and gap, and the host's state on
    the first of each host.

    `servers`: the placement of every planned host, and `host_state`, what the hosts table has of it.
    """
    is_first = F.col("position") == 0
    fields = {name: F.col(f"host_state.{name}") for name in HOST_NAMES} | {"addresses": F.col("addresses")}
    state = F.struct(*(column.alias(name) for name, column in fields.items()))
    in_host = Window.partitionBy("host").orderBy("position")
    planned = within.where("reason IS NULL").select(
        "url_key", host_key().alias("host_key"), (F.row_number().over(in_host) - 1).alias("position")
    )
    return (
        due.select(*VISIT_NAMES)
        .join(planned, on="url_key", how="inner")
        .join(servers, on="host_key", how="inner")
        .select(
            *VISIT_NAMES,
            F.lit("url").alias("kind"),
            F.lit(None).cast("string").alias("reason"),
            F.lit(1).cast("bigint").alias("rows"),
            "position",
            "gap_factor",
            F.when(is_first, F.col("grouped_by")).alias("grouped_by"),
            F.when(is_first, state).alias("host_state"),
            "partition",
            F.lit(round_number).alias("round"),
        )
    )


def left_out_rows(hosts: DataFrame, within: DataFrame, round_number: int) -> DataFrame:
    """Rows of `plans` for the due URLs that are not planned: their counts by host and reason. What a host has more
    than its queue gave is `host_budget`, so every due URL is planned or counted, whatever came between."""
    by_reason = within.where("reason IS NOT NULL").groupBy("host", "reason").agg(F.count("*").alias("rows"))
    queued = within.groupBy("host").agg(F.count("*").alias("queued"))
    rest = F.col("urls") - F.coalesce("queued", F.lit(0))
    not_queued = hosts.join(queued, on="host", how="left").select(
        "host", F.coalesce("reason", F.lit("host_budget")).alias("reason"), rest.alias("rows"),
        F.when(F.col("reason") == "domain_hosts", F.col("newcomer")).alias("position"),
    )  # fmt: skip
    counted = by_reason.unionByName(not_queued.where("rows > 0"), allowMissingColumns=True)
    return counted.select(
        "*", F.lit("left_out").alias("kind"), F.lit(-1).alias("partition"), F.lit(round_number).alias("round")
    )
