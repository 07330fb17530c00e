"""Take the inbox in: seeds become known URLs, due now, before the plan is made."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from crawler import schemas
from crawler.settings import Settings
from crawler.spark import judge_inbox, suit_to
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow
from crawler.tables.runs import absent
from crawler.transforms.advance import first_visits
from crawler.transforms.discover import SEED_TIER

LINE_BYTES = 40  # about


def admit_inbox(lake: Lake, settings: Settings, rnd: RoundRow) -> dict[str, int]:
    """Write the inbox's lines with their verdicts, and the new URLs among them; the versions the plan reads come back.

    A line is refused with a reason, `known` already, a `repeated` one, or `admitted`.
    """
    if not rnd.inbox:
        return dict(rnd.versions)
    suit_to(lake.spark, sum(lake.store.size(path) for path in rnd.inbox) // LINE_BYTES)
    judged = judge_inbox(lake.spark, lake.store, rnd.inbox, settings).localCheckpoint()
    keys = judged.where("verdict = 'admitted'").select("url_key")
    unseen = absent(lake.run(schemas.URL_CHECKSUMS, rnd.versions), keys)
    seeds = with_verdicts(judged, unseen).withColumn("round", F.lit(rnd.round)).localCheckpoint()
    admitted = seeds.where("verdict = 'admitted'")
    lake.append(schemas.SEEDS, seeds, lake.write("admit/seeds", rnd.round))
    lake.append(schemas.URL_CHECKSUMS, admitted.select("url_key", "round"), lake.write("admit/urls", rnd.round))
    lake.append(schemas.FRONTIER, seed_visits(admitted, rnd.now), lake.write("admit/frontier", rnd.round))
    return lake.settled(rnd.versions, rnd.round)


def with_verdicts(judged: DataFrame, unseen: DataFrame) -> DataFrame:
    """Each line with its final verdict: the first line of an unseen URL is the one admitted."""
    of_key = Window.partitionBy(F.coalesce("url_key", F.xxhash64("line", "inbox_file"))).orderBy("inbox_file", "line")
    is_new = F.col("is_new").isNotNull()
    verdict = (
        F.when(F.col("verdict") != "admitted", F.col("verdict"))
        .when(~is_new, "known")
        .when(F.col("place") > 1, "repeated")
        .otherwise("admitted")
    )
    marked = judged.join(unseen.withColumn("is_new", F.lit(True)), on="url_key", how="left")
    return (
        marked.withColumn("place", F.row_number().over(of_key)).withColumn("verdict", verdict).drop("place", "is_new")
    )


def seed_visits(admitted: DataFrame, now: float) -> DataFrame:
    """Calendar rows of admitted seeds: due now, first tier."""
    at = F.timestamp_micros(F.lit(int(now * 1e6)))
    rows = admitted.select(
        "url_key", "url", "host", F.lit(0).alias("depth"), F.lit("seed").alias("source"), at.alias("due_at"),
        F.lit(SEED_TIER).alias("tier"), F.lit(0).alias("seed_hops"),
    )  # fmt: skip
    return first_visits(rows, now)
