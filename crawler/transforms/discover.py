"""From the links of a round's pages to the URLs nobody has seen: reasoning on keys, with text only for what is new."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from crawler.settings import Settings
from crawler.transforms.select import host_key, name_of

SEED_TIER = 0
QUEUE = (
    "host_key bigint, host string, owner string, owner_key bigint, domain string, start_at double, "
    "names_horizon_at double"
)
"""Columns of `queue_names`."""


def link_tier(marked: DataFrame, settings: Settings) -> DataFrame:
    """The pages whose links count, with the least tier they give (`link_tier`).

    Links of a payload duplicate, and those of equal or nearly equal text, are followed, demoted to the lowest tier, or
    skipped, as the settings say for each kind. Equal bytes elsewhere mean other URLs where their links are relative;
    a demoted link to what the original links to as well keeps the original's tier, since the least one wins.
    """
    kind = F.col("match.kind")
    rule = (
        F.when(kind == "payload", settings.duplicates.links)
        .when(kind == "text", settings.near_duplicates.links)
        .when(kind == "near", settings.near_duplicates.links)
        .otherwise("follow")
    )
    tier = F.when(rule == "demote", settings.revisit.lowest_tier).when(rule == "follow", 0)
    return marked.withColumn("link_tier", tier).where("link_tier IS NOT NULL")


def candidates(pages: DataFrame, planned: DataFrame) -> DataFrame:
    """The distinct keys that pages link or redirect to: `url_key`, `depth`, `link_tier`, `source_key` and
    `source_payload`.

    `pages`: outcomes with `link_tier`; `planned`: the plan's rows, for the depth of the linking page. The least tier
    wins, then the least depth, then the least source key. The redirects of seeds are left to `from_seeds`. Demoted
    links of a page with the bytes of the page it was found on are none: where a server answers every path with its
    start page, relative links would lead to ever longer paths.
    """
    targets = F.concat(F.coalesce("links", F.array().cast("array<bigint>")), _redirect_target())
    known = planned.select("url_key", "depth", "source_payload")
    is_again = F.expr("link_tier > 0 AND source_payload <=> payload_checksum AND source_payload IS NOT NULL")
    found = pages.join(known, on="url_key", how="inner").where(~is_again).select(
        F.col("url_key").alias("source_key"), F.expr("depth + 1").alias("depth"), "link_tier",
        F.col("payload_checksum").alias("source_payload"), F.explode(targets).alias("url_key"),
    )  # fmt: skip
    best = F.min(F.struct("link_tier", "depth", "source_key", "source_payload")).alias("best")
    return found.groupBy("url_key").agg(best).select("url_key", "best.*")


def _redirect_target() -> Column:
    is_link = F.expr("redirect_key IS NOT NULL AND seed_hops IS NULL")
    return F.when(is_link, F.array("redirect_key")).otherwise(F.array().cast("array<bigint>"))


def from_seeds(outcomes: DataFrame) -> DataFrame:
    """What seeds redirect to, as candidates that are seeds: better than any link, with `seed_hops`."""
    return outcomes.where("seed_hops IS NOT NULL AND redirect_key IS NOT NULL").select(
        F.col("redirect_key").alias("url_key"),
        F.lit(-1).alias("link_tier"),
        F.lit(0).alias("depth"),
        F.col("url_key").alias("source_key"),
        F.lit(None).cast("bigint").alias("source_payload"),
        "seed_hops",
    )


def from_robots(discoveries: DataFrame) -> DataFrame:
    """The sitemaps that robots files name, as candidates without a linking page."""
    return discoveries.where("source = 'sitemap'").select(
        "url_key",
        F.lit(0).alias("link_tier"),
        F.lit(1).alias("depth"),
        F.lit(None).cast("bigint").alias("source_key"),
        F.lit(None).cast("bigint").alias("source_payload"),
    )


def best_candidates(linked: DataFrame, named: DataFrame, seeds: DataFrame) -> DataFrame:
    """One row a key out of the three kinds of candidates; `seed_hops` is null but for seeds."""
    best = F.min(F.struct("link_tier", "depth", "seed_hops", "source_key", "source_payload")).alias("best")
    links = linked.unionByName(named).withColumn("seed_hops", F.lit(None).cast("int"))
    return links.unionByName(seeds).groupBy("url_key").agg(best).select("url_key", "best.*")


def new_urls(unseen: DataFrame, found: DataFrame, discoveries: DataFrame) -> DataFrame:
    """The unseen candidates with their text: `url_key`, `url`, `host`, `host_key`, `registered_domain`, `source`,
    `depth`, `source_key`, `source_payload`, `link_tier`, `seed_hops`. A key of several segments is taken once."""
    text = (
        discoveries.join(unseen, on="url_key", how="left_semi")
        .groupBy("url_key")
        .agg(F.min(F.struct("url", "host", "registered_domain", "source")).alias("text"))
        .select("url_key", "text.*")
    )
    source = F.when(is_seed(), "redirect").otherwise(F.col("source")).alias("source")
    return text.join(found, on="url_key", how="inner").select(
        "url_key", "url", "host", host_key().alias("host_key"), "registered_domain", source, "depth", "source_key",
        "source_payload", "link_tier", "seed_hops",
    )  # fmt: skip


def is_seed() -> Column:
    """Whether a new URL is a seed, by a seed's redirect."""
    return F.col("seed_hops").isNotNull()


def new_seeds(fresh: DataFrame, outcomes: DataFrame) -> DataFrame:
    """Rows of seeds, less `round`, for the new URLs that are seeds: each with the seed that redirected to it."""
    way = outcomes.select(F.col("url_key").alias("source_key"), F.col("url").alias("redirected_from"))
    empty = F.lit(None).cast("string")
    return fresh.where(is_seed()).join(way, on="source_key", how="inner").select(
        empty.alias("line"), "url_key", "url", "host", "registered_domain", F.lit("admitted").alias("verdict"),
        empty.alias("inbox_file"), "redirected_from", "seed_hops",
    )  # fmt: skip


def found_names(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """The hosts of new URLs that are not `known`: `host_key`, `host`, `name`, `domain`, `is_new`, and
    `rank`, by which they wait in line."""
    best = F.min(F.struct("link_tier", "depth", F.col("url_key").alias("key"))).alias("rank")
    hosts = fresh.groupBy("host_key", "host").agg(F.min("registered_domain").alias("domain"), best)
    return _in_line(hosts.join(known, on="host_key", how="left_anti"))


def late_names(left_out: DataFrame) -> DataFrame:
    """The same of the hosts that the plan left out since their owner has too many new ones: before all that were found
    later. `left_out`: `host`, `position`."""
    first = F.struct(
        F.lit(-1).alias("link_tier"), F.col("position").alias("depth"), F.lit(0).cast("bigint").alias("key")
    )
    hosts = left_out.select(host_key().alias("host_key"), "host", first.alias("rank"))
    return _in_line(hosts.withColumn("domain", F.lit(None).cast("string")))


def all_names(found: DataFrame, late: DataFrame) -> DataFrame:
    """Both kinds of names; one that is found while it waits keeps its place."""
    return found.join(late, on="host_key", how="left_anti").unionByName(late)


def _in_line(hosts: DataFrame) -> DataFrame:
    return hosts.select("host_key", "host", name_of().alias("name"), "domain", F.lit(True).alias("is_new"), "rank")


def queue_names(names: DataFrame, owners: DataFrame, settings: Settings, now: float) -> DataFrame:
    """When each new name has its first turn, `start_at`; and `names_horizon_at`, when that of its owner's next one is.

    A round asks `round.max_new_hosts_per_domain` new names of an owner, so that many have their turn a round: the first
    of them now, or when the turn of those found earlier is over. `owners`: `host_key` of the owner's own name and
    `names_horizon_at`, where it is known.
    """
    pace_s = settings.round.time_limit_s / settings.round.max_new_hosts_per_domain
    first = F.min("rank").over(Window.partitionBy("owner", "name"))
    place = F.dense_rank().over(Window.partitionBy("owner").orderBy("first", "name")) - 1
    horizons = owners.select(F.col("host_key").alias("owner_key"), "names_horizon_at")
    base = F.greatest(F.coalesce("names_horizon_at", F.lit(now)), F.lit(now))
    placed = names.withColumns({"first": first, "owner_key": host_key("owner")}).withColumn("place", place)
    started = placed.join(horizons, on="owner_key", how="left").withColumn(
        "start_at", base + F.col("place") * F.lit(pace_s)
    )
    end = F.max("start_at").over(Window.partitionBy("owner")) + F.lit(pace_s)
    return started.select("host_key", "host", "owner", "owner_key", "domain", "start_at", end.alias("names_horizon_at"))


def spread(fresh: DataFrame, horizons: DataFrame, settings: Settings, now: float) -> DataFrame:
    """Each new URL with `tier` and `due_at`.

    A host's URLs are due as fast as its delay can fetch them: the first round's worth now, the next a round later, and
    so on from the host's horizon, so that a site with a million URLs does not sit in every plan. Seeds are due now, and
    in the first tier. `horizons`: host_key, `horizon_at`, `crawl_delay_s` of the known hosts, and of new ones the time
    of their first turn as `horizon_at`.
    """
    delay = F.greatest(F.coalesce("crawl_delay_s", F.lit(0.0)), F.lit(settings.fetch.delay_s))
    in_host = Window.partitionBy("host_key").orderBy("link_tier", "depth", "url_key")
    start = F.greatest(F.coalesce("horizon_at", F.lit(now)), F.lit(now))
    due = start + F.col("place") * F.col("delay_s")
    is_near = due < now + settings.round.time_limit_s
    due_at = F.expr(f"timestamp_micros(CAST({now} * 1000000 AS BIGINT))")
    later = F.timestamp_micros((due * 1e6).cast("bigint"))
    return (
        fresh.join(horizons, on="host_key", how="left")
        .withColumn("delay_s", delay)
        .withColumn("place", F.row_number().over(in_host) - 1)
        .withColumn("due_at", F.when(is_near | is_seed(), due_at).otherwise(later))
        .withColumn("horizon_at", start + (F.col("place") + 1) * F.col("delay_s"))
        .withColumn("tier", F.when(is_seed(), SEED_TIER).otherwise(F.greatest("link_tier", tier_of(settings))))
    )


def tier_of(settings: Settings) -> Column:
    """The front queue of a new URL by how it was found: near the seeds first. The lowest tier is for demoted links."""
    deep = max(1, settings.revisit.lowest_tier - 1)
    return F.when(F.col("depth") <= 2, F.lit(1)).otherwise(F.lit(deep))
