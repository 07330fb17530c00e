"""Which pages say what was said before: equal payload, equal text, or nearly equal text.

The first capture of a content is the original, by round, then fetch time, then URL key; so the same inputs give the
same originals in any order of rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from crawler.settings import NearDuplicateSettings, Settings

IS_STORED = "warc_filename IS NOT NULL AND warc_record_type = 'response'"
EARLIEST = ("fetch_time", "url_key")
MATCH = "struct<kind:string,key:bigint,round:int,similarity:double>"


def content_keys(outcomes: DataFrame) -> DataFrame:
    """The distinct payload and text checksums of a batch: `checksum`."""
    both = F.explode(F.array("payload_checksum", "text_checksum")).alias("checksum")
    return outcomes.select(both).where("checksum IS NOT NULL").distinct()


def band_keys(outcomes: DataFrame) -> DataFrame:
    """The distinct band keys of a batch: `band_key`."""
    return outcomes.select(F.explode("bands").alias("band_key")).distinct()


def mark_exact(outcomes: DataFrame, known: DataFrame, round_number: int) -> DataFrame:
    """Each outcome with `match`: the earlier capture with its payload, else the one with its text, else null.

    `known`: rows of content_checksums for the batch's keys. The capture of the same URL does not count as an earlier
    one of another page: a page that did not change is no duplicate of itself.
    """
    marked = outcomes
    for kind in ("payload", "text"):
        marked = _mark_kind(marked, known.where(F.col("kind") == kind), kind, round_number)
    match = F.coalesce("payload_match", "text_match")
    return marked.withColumn("match", match).drop("payload_match", "text_match")


def _mark_kind(outcomes: DataFrame, known: DataFrame, kind: str, round_number: int) -> DataFrame:
    checksum = f"{kind}_checksum"
    alone = F.coalesce(checksum, "url_key")  # rows without a checksum must not gather in one window
    of_checksum = Window.partitionBy(alone).orderBy(*EARLIEST)
    firsts = known.select(
        F.col("checksum").alias(checksum), F.col("url_key").alias("known_key"), F.col("round").alias("known_round")
    )
    joined = outcomes.withColumn("batch_first", F.first("url_key").over(of_checksum)).join(
        firsts, on=checksum, how="left"
    )
    key = F.coalesce("known_key", "batch_first")
    round_of = F.coalesce(F.col("known_round"), F.lit(round_number))
    is_duplicate = F.col(checksum).isNotNull() & (key != F.col("url_key"))
    match = F.when(is_duplicate, _match(F.lit(kind), key, round_of, F.lit(1.0)))
    return joined.withColumn(f"{kind}_match", match).drop("batch_first", "known_key", "known_round")


def _match(kind: Column, key: Column, round_of: Column, similarity: Column) -> Column:
    return F.struct(
        kind.alias("kind"), key.alias("key"), round_of.cast("int").alias("round"), similarity.alias("similarity")
    ).cast(MATCH)


def with_signatures(bands: DataFrame, contents: DataFrame) -> DataFrame:
    """Rows of near_duplicates, each with the `signature` that rows of content_checksums have for its text."""
    texts = contents.where("kind = 'text'").select(F.col("checksum").alias("text_checksum"), "signature")
    return bands.join(texts, on="text_checksum", how="inner")


def mark_near(marked: DataFrame, known: DataFrame, scheme: str, settings: Settings, round_number: int) -> DataFrame:
    """Fill `match` of the pages that are no exact duplicates but share a band with an earlier document and, by their
    signatures, at least `near_duplicates.threshold` of their shingles with it. The most similar one is kept.

    `known`: what `with_signatures` makes; bands of another scheme are not compared.
    """
    documents = marked.where("match IS NULL AND signature IS NOT NULL")
    bands = documents.select("url_key", "fetch_time", "signature", F.explode("bands").alias("band_key"))
    earlier = known.where(F.col("scheme") == scheme).select(
        "band_key", F.col("url_key").alias("other_key"), F.col("round").alias("other_round"),
        F.col("signature").alias("other_signature"),
    )  # fmt: skip
    pairs = _pairs_in_batch(bands, round_number).unionByName(
        bands.join(earlier, on="band_key", how="inner").select(*_PAIR)
    )
    verified = _verified(pairs.where("url_key <> other_key"), settings.near_duplicates)
    joined = marked.join(verified, on="url_key", how="left")
    return joined.withColumn("match", F.coalesce("match", "near_match")).drop("near_match")


_PAIR = ("url_key", "signature", "other_key", "other_round", "other_signature")


def _pairs_in_batch(bands: DataFrame, round_number: int) -> DataFrame:
    """Each document with the first of its band. The first only: a band that thousands share stays linear."""
    of_band = Window.partitionBy("band_key").orderBy(*EARLIEST)
    return bands.select(
        "url_key",
        "signature",
        F.first("url_key").over(of_band).alias("other_key"),
        F.lit(round_number).alias("other_round"),
        F.first("signature").over(of_band).alias("other_signature"),
    )


def _verified(pairs: DataFrame, settings: NearDuplicateSettings) -> DataFrame:
    """One row a document that has a match: `url_key`, `near_match`."""
    scored = (
        pairs.dropDuplicates(["url_key", "other_key"])
        .withColumn("similarity", _similarity())
        .where(F.col("similarity") >= settings.threshold)
    )
    best_first = Window.partitionBy("url_key").orderBy(F.desc("similarity"), "other_round", "other_key")
    near = _match(F.lit("near"), F.col("other_key"), F.col("other_round"), F.col("similarity"))
    best = scored.withColumn("place", F.row_number().over(best_first)).where("place = 1")
    return best.select("url_key", near.alias("near_match"))


def _similarity() -> Column:
    """Jaccard similarity estimated from low bytes: equal ones less what chance makes equal (b-bit MinHash, b = 8)."""
    same = "CAST(substring(signature, i, 1) = substring(other_signature, i, 1) AS INT)"
    equal = F.expr(f"aggregate(sequence(1, length(signature)), 0, (n, i) -> n + {same}) / length(signature)")
    return F.greatest((equal - F.lit(1 / 256)) / F.lit(1 - 1 / 256), F.lit(0.0))


def new_contents(marked: DataFrame, known: DataFrame) -> DataFrame:
    """Rows of content_checksums for the checksums that no earlier capture has, less `bucket`."""
    kinds = F.explode(
        F.array(
            F.struct(F.lit("payload").alias("kind"), F.col("payload_checksum").alias("checksum")),
            F.struct(F.lit("text").alias("kind"), F.col("text_checksum").alias("checksum")),
        )
    ).alias("content")
    of_content = Window.partitionBy("kind", "checksum").orderBy(*EARLIEST)
    of_text = F.when(F.col("content.kind") == "text", F.col("signature")).alias("signature")
    firsts = (
        marked.where(IS_STORED)
        .select("*", kinds)
        .select("content.*", "url_key", "url", "fetch_time", "warc_filename", "warc_record_offset",
                "warc_record_length", "warc_record_id", of_text)
        .where("checksum IS NOT NULL")
        .withColumn("place", F.row_number().over(of_content))
        .where("place = 1")
    )  # fmt: skip
    return firsts.join(known.select("kind", "checksum"), on=["kind", "checksum"], how="left_anti").drop("place")


def new_bands(marked: DataFrame, known: DataFrame, scheme: str) -> DataFrame:
    """Rows of near_duplicates for the documents that are like nothing seen before, less `bucket` and `round`.

    A page whose text is known is none of them, its own earlier text included.
    """
    texts = known.where("kind = 'text'").select(F.col("checksum").alias("text_checksum"))
    distinct = marked.where(f"match IS NULL AND signature IS NOT NULL AND {IS_STORED}")
    return distinct.join(texts, on="text_checksum", how="left_anti").select(
        F.explode("bands").alias("band_key"), "text_checksum", "url_key", F.lit(scheme).alias("scheme")
    )
