"""Reconcile a round: what its outcomes mean for what is known. No network, nothing written, the same inputs give the
same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from crawler import schemas
from crawler.fetch.policies import fingerprinter
from crawler.schemas import Column, Table
from crawler.settings import Settings
from crawler.spark import suit_to, with_owners
from crawler.tables.data_files import ReadFile, read_files
from crawler.tables.direct import DataFile
from crawler.tables.lake import Lake, round_files, round_frame, round_rows
from crawler.tables.ledger import RoundRow
from crawler.tables.runs import absent, find
from crawler.transforms import advance, discover, duplicates, select

OUTCOME_BYTES = 2_000  # about
LINKS_A_PAGE = 50  # about
LATE_HOSTS = "left_out.domain_hosts"
FILE = Column("file", "string", "Where the row comes from; of equal times the later file counts.")


@dataclass(frozen=True)
class Reconciled:
    """What a round adds to each table, and the files of the calendar that it used up."""

    captures: DataFrame
    contents: DataFrame
    bands: DataFrame
    new_keys: DataFrame
    hosts: DataFrame
    frontier: DataFrame
    used: list[DataFile]
    seeds: DataFrame | None = None  # what seeds redirected to; None where no seed was planned


def reconcile_round(lake: Lake, settings: Settings, rnd: RoundRow) -> Reconciled | None:
    """Everything a round adds, as DataFrames over durable inputs; None for a round that asked nothing."""
    if not rnd.counts.get("planned"):
        return None
    suit_to(lake.spark, rnd.counts["outcomes"] * LINKS_A_PAGE)
    outcomes, discoveries, states = segment_frames(lake, rnd)
    planned = round_frame(lake, schemas.PLANS, rnd.versions, rnd.round).where("kind = 'url'").localCheckpoint()
    marked, known_contents = mark_duplicates(lake, settings, rnd, outcomes)
    linked = discover.candidates(discover.link_tier(marked, settings), planned)
    led = discover.from_seeds(marked)
    found = discover.best_candidates(linked, discover.from_robots(discoveries), led).localCheckpoint()
    unseen = absent(lake.run(schemas.URL_CHECKSUMS, rnd.versions), found.select("url_key"))
    new = discover.new_urls(unseen, found, discoveries).localCheckpoint()
    fresh, horizons, late = schedule_new_urls(lake, settings, rnd, new, planned)
    known_hosts = find(
        lake.run(schemas.HOSTS, rnd.versions), states.select("host_key").union(horizons.select("host_key")), "newest"
    ).localCheckpoint()
    places = planned.groupBy("slot", "tier").agg(F.min("depth").alias("depth")).collect()
    opened = {(row["slot"], row["tier"]) for row in places}
    used = lake.files(schemas.FRONTIER, rnd.versions, lambda slot: (slot["slot"], slot["tier"]) in opened)
    was_due = lake.tables.read_these(schemas.FRONTIER, used)
    failures = advance.failures_after(known_hosts, states)
    visits = advance.next_visits(planned, marked, failures, settings, rnd.now)
    frontier = (
        advance.leftover(was_due, planned, rnd.now, late)
        .unionByName(visits)
        .unionByName(advance.first_visits(fresh, rnd.now))
    )
    return Reconciled(
        captures=captures_of(marked, planned, rnd.round),
        contents=duplicates.new_contents(marked, known_contents).withColumn("round", F.lit(rnd.round)),
        bands=duplicates.new_bands(marked, known_contents, scheme_of(settings)).withColumn("round", F.lit(rnd.round)),
        new_keys=fresh.select("url_key", F.lit(rnd.round).alias("round")),
        hosts=advance.next_hosts(known_hosts, states, horizons, rnd.round),
        frontier=frontier,
        used=used,
        seeds=seeds_of(fresh, marked, rnd.round) if any(row["depth"] == 0 for row in places) else None,
    )


def seeds_of(fresh: DataFrame, marked: DataFrame, number: int) -> DataFrame:
    """Rows of `seeds` for what seeds redirected to."""
    return discover.new_seeds(fresh, marked).withColumn("round", F.lit(number))


def segment_frames(lake: Lake, rnd: RoundRow) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The accepted segments' outcomes, discoveries, and host states (the newest of each host)."""
    columns = ["outcomes", "discoveries", "hosts", "rows"]
    segments = round_rows(lake, schemas.SEGMENTS, rnd.versions, columns, rnd.round)

    def read(table: Table, column: str) -> DataFrame:
        named = sorted((row[column], row["rows"] * OUTCOME_BYTES) for row in segments)
        files = [ReadFile(path, size, {FILE.name: path}) for path, size in named]
        return read_files(lake.spark, lake.store, files, (*table.columns, FILE))

    newest = Window.partitionBy("host_key").orderBy(F.desc("last_request_at"), F.desc("file"))
    states = (
        read(schemas.HOST_STATES, "hosts")
        .withColumn("place", F.row_number().over(newest))
        .where("place = 1")
        .drop("place")
    )
    return read(schemas.OUTCOMES, "outcomes"), read(schemas.DISCOVERIES, "discoveries"), states.drop("file")


def mark_duplicates(lake: Lake, settings: Settings, rnd: RoundRow, outcomes: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Outcomes with `match`, and the known contents among their checksums."""
    keys = duplicates.content_keys(outcomes)
    known = find(lake.run(schemas.CONTENT_CHECKSUMS, rnd.versions), keys, "oldest", ()).localCheckpoint()
    exact = duplicates.mark_exact(outcomes, known, rnd.round)
    bands = find(lake.run(schemas.NEAR_DUPLICATES, rnd.versions), duplicates.band_keys(outcomes), "oldest")
    bands = bands.localCheckpoint()
    texts = bands.select(F.col("text_checksum").alias("checksum"))
    contents = find(lake.run(schemas.CONTENT_CHECKSUMS, rnd.versions), texts, "oldest", ["signature"])
    similar = duplicates.with_signatures(bands, contents)
    return duplicates.mark_near(exact, similar, scheme_of(settings), settings, rnd.round).localCheckpoint(), known


class NewUrls(NamedTuple):
    """The new URLs, with tier and due time; the horizons that their hosts, and the owners of these, reach; and the
    hosts whose turn is later than the plan had it (None: none)."""

    urls: DataFrame
    horizons: DataFrame
    late: DataFrame | None


def schedule_new_urls(lake: Lake, settings: Settings, rnd: RoundRow, new: DataFrame, planned: DataFrame) -> NewUrls:
    """When the new URLs are due. A host is new when neither the hosts table nor this round's plan has it."""
    names = ("horizon_at", "crawl_delay_s")
    known = find(lake.run(schemas.HOSTS, rnd.versions), new.select("host_key"), "newest", names)
    known = known.select("host_key", *names).localCheckpoint()
    asked = known.select("host_key").union(planned.select(select.host_key().alias("host_key")))
    queue = queue_names(lake, settings, rnd, discover.found_names(new, asked))
    starts = queue.join(known, on="host_key", how="left_anti").select("host_key", F.col("start_at").alias("horizon_at"))
    spread = discover.spread(new, known.unionByName(starts, allowMissingColumns=True), settings, rnd.now)
    spread = spread.localCheckpoint()
    of_hosts = spread.select("host_key", "host", "registered_domain", "horizon_at")
    next_round = rnd.now + settings.round.time_limit_s
    of_owners = queue.where(F.col("names_horizon_at") > next_round).select(
        F.col("owner_key").alias("host_key"),
        F.col("owner").alias("host"),
        F.col("domain").alias("registered_domain"),
        "names_horizon_at",
    )
    horizons = of_hosts.unionByName(of_owners, allowMissingColumns=True).groupBy("host_key").agg(
        F.min("host").alias("host"),
        F.min("registered_domain").alias("registered_domain"),
        F.max("horizon_at").alias("horizon_at"),
        F.max("names_horizon_at").alias("names_horizon_at"),
    )  # fmt: skip
    late = queue.where(F.col("start_at") >= next_round) if rnd.counts.get(LATE_HOSTS) else None
    return NewUrls(spread, horizons, late)


def queue_names(lake: Lake, settings: Settings, rnd: RoundRow, found: DataFrame) -> DataFrame:
    """When the names found have their first turn, and those that the plan left out their next."""
    names = found
    if rnd.counts.get(LATE_HOSTS):
        plan = round_files(lake, schemas.PLANS, rnd.versions, rnd.round)
        counted = lake.tables.read_these(schemas.PLANS, plan, ["round", "reason", "host", "position"])
        is_late = (F.col("round") == rnd.round) & (F.col("reason") == "domain_hosts")
        names = discover.all_names(found, discover.late_names(counted.where(is_late)))
    names = with_owners(names).localCheckpoint()
    if names.isEmpty():
        return lake.spark.createDataFrame([], discover.QUEUE)
    keys = names.select(select.host_key("owner").alias("host_key")).distinct()
    owners = find(lake.run(schemas.HOSTS, rnd.versions), keys, "newest", ["names_horizon_at"])
    return discover.queue_names(names, owners, settings, rnd.now).localCheckpoint()


def captures_of(marked: DataFrame, planned: DataFrame, number: int) -> DataFrame:
    """Rows of `captures`."""
    was = planned.select("url_key", F.col("content_digest").alias("was_content_digest"))
    columns = {
        "links_kept": F.size(F.coalesce("links", F.array().cast("array<bigint>"))),
        "duplicate_kind": F.col("match.kind"),
        "duplicate_of_key": F.col("match.key"),
        "duplicate_of_round": F.col("match.round"),
        "similarity": F.col("match.similarity"),
        "is_changed": advance.is_changed(),
        "round": F.lit(number),
    }
    joined = marked.join(was, on="url_key", how="left")
    return joined.withColumns(columns).select(*schemas.CAPTURES.names)


def scheme_of(settings: Settings) -> str:
    return fingerprinter(settings).scheme
