"""A lake that knows many URLs, made by Spark alone: the tables a round reads, as many small rounds and a compaction
would have left them.

URL number n is page n of host n // 100. Half of the URLs have been fetched; one in twenty is a distinct document with a
signature. Keys are made by the functions the crawler uses.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.page.url import url_key
from crawler.schemas import Table
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow, State
from crawler.transforms.slots import slot_of

URLS_PER_HOST = 100
SCHEME = "affine32/seed1/perm128/bands16/words5"
BANDS = 16
DAY_S = 86_400
HOUR_S = 3_600
BATCH_HOURS = 6  # near slots are hours
HIGH_24, LOW_40 = -(1 << 40), (1 << 40) - 1


class KnownUrl(NamedTuple):
    """A URL by its number, as Spark makes it too."""

    url: str
    host: str
    key: int


def host_name(number: int) -> str:
    return f"h{number:07d}.test"


def known_url(number: int) -> KnownUrl:
    host = host_name(number // URLS_PER_HOST)
    url = f"https://{host}/page/{number}"
    return KnownUrl(url, host, url_key(url, host))


def fill(lake: Lake, urls: int, now: float, batches: int, scheme: str = SCHEME) -> None:
    """Fill the tables. Page b of every one of the first 10,000 hosts is due 6 b hours after `now`, all others in
    the three weeks to a year after. A round before the first commits that."""
    numbers = lake.spark.range(urls).select(F.col("id"), _host(F.col("id") / URLS_PER_HOST).alias("host"))
    known = numbers.withColumn("url", F.concat(F.lit("https://"), "host", F.lit("/page/"), "id"))
    keyed = known.withColumn("url_key", _key())
    _append(lake, schemas.URL_CHECKSUMS, keyed.select("url_key", F.lit(0).alias("round")))
    _append(lake, schemas.FRONTIER, _frontier(keyed, now, batches))
    _append(lake, schemas.CONTENT_CHECKSUMS, _contents(keyed.where("id % 2 = 0")))
    _append(lake, schemas.NEAR_DUPLICATES, _bands(keyed.where("id % 20 = 0"), scheme))
    _append(lake, schemas.HOSTS, _hosts(lake, urls // URLS_PER_HOST, now))
    lake.ledger.record(RoundRow(0, State.COMMITTED, now, "", lake.versions()))


def _append(lake: Lake, table: Table, rows: DataFrame) -> None:
    lake.append(table, rows, lake.write(f"fill/{table.name}", 0))


def _host(number: Column) -> Column:
    return F.concat(F.lit("h"), F.lpad(F.floor(number).cast("string"), 7, "0"), F.lit(".test"))


def _key() -> Column:
    return F.xxhash64("host").bitwiseAND(F.lit(HIGH_24)).bitwiseOR(F.xxhash64("url").bitwiseAND(F.lit(LOW_40)))


def _frontier(keyed: DataFrame, now: float, batches: int) -> DataFrame:
    place = F.col("id") % URLS_PER_HOST
    in_batch = (F.col("id") < 10_000 * URLS_PER_HOST) & (place < batches)
    later = F.lit(21.0) + F.pmod(F.xxhash64("url_key"), F.lit(344)).cast("double")
    days = F.when(in_batch, place * (BATCH_HOURS / 24)).otherwise(later)
    is_fetched = F.col("id") % 2 == 0
    values = {
        "depth": F.lit(3),
        "source_key": F.xxhash64("id"),
        "source": F.lit("link"),
        "status": F.when(is_fetched, "fetched").otherwise("unfetched"),
        "failures": F.lit(0),
        "visits": is_fetched.cast("int"),
        "changes": F.lit(0),
        "discovered_at": _time(F.lit(now - 30 * DAY_S)),
        "visited_at": F.when(is_fetched, _time(F.lit(now - 10 * DAY_S))),
        "etag": F.when(is_fetched, F.concat(F.lit('"'), F.hex(F.xxhash64("url")), F.lit('"'))),
        "content_digest": F.when(is_fetched, F.substring(F.sha1(F.col("url")), 1, 32)),
        "digest_record_id": F.when(is_fetched, F.concat(F.lit("<urn:uuid:"), F.md5(F.col("url")), F.lit(">"))),
        "digest_date": F.when(is_fetched, F.lit("2026-01-01T00:00:00Z")),
        "due_at": _time(F.lit(now) + days * DAY_S),
        "tier": F.lit(1),
    }
    rows = keyed.select("url_key", "url", "host", *(value.alias(name) for name, value in values.items()))
    missing = [c for c in schemas.FRONTIER.columns if c.name not in {*rows.columns, "slot"}]
    return rows.select(
        "*", *(F.lit(None).cast(c.type).alias(c.name) for c in missing), slot_of("due_at", now).alias("slot")
    )


def _time(seconds: Column) -> Column:
    return F.timestamp_micros((seconds * 1e6).cast("bigint"))


def _contents(fetched: DataFrame) -> DataFrame:
    kinds = F.explode(F.array(F.lit("payload"), F.lit("text"))).alias("kind")
    return fetched.select("*", kinds).select(
        F.xxhash64(F.concat("kind", F.col("id").cast("string"))).alias("checksum"),
        "kind", "url_key", F.lit(0).alias("round"), "url", _time(F.lit(0.0)).alias("fetch_time"),
        F.lit("crawl-data/FILL/segments/0/warc/fill.warc.gz").alias("warc_filename"),
        (F.col("id") * 9_000).alias("warc_record_offset"), F.lit(9_000).alias("warc_record_length"),
        F.concat(F.lit("<urn:uuid:"), F.md5(F.col("url")), F.lit(">")).alias("warc_record_id"),
        F.when((F.col("kind") == "text") & (F.col("id") % 20 == 0), _signature()).alias("signature"),
    )  # fmt: skip


def _bands(documents: DataFrame, scheme: str) -> DataFrame:
    number = F.col("id").cast("string")
    bands = F.sequence(F.lit(0), F.lit(BANDS - 1))
    keys = F.transform(bands, lambda band: F.xxhash64(_band(number, band)))
    return documents.select(
        "url_key", F.lit(0).alias("round"), F.lit(scheme).alias("scheme"),
        F.xxhash64(F.concat(F.lit("text"), number)).alias("text_checksum"),
        F.explode(keys).alias("band_key"),
    )  # fmt: skip


def _signature() -> Column:
    number = F.col("id").cast("string")
    return F.concat(F.unhex(F.sha2(number, 512)), F.unhex(F.sha2(F.concat(F.lit("-"), number), 512)))


def _band(number: Column, band: Column) -> Column:
    return F.concat(F.lit("band"), number, F.lit("-"), band.cast("string"))


def _hosts(lake: Lake, hosts: int, now: float) -> DataFrame:
    named = lake.spark.range(hosts).select("id", _host(F.col("id")).alias("host"))
    address = F.concat_ws(
        ".", F.lit("127"), *(F.pmod(F.col("id") / F.lit(256**n), F.lit(256)).cast("int") for n in (2, 1, 0))
    )
    values = {
        "host_key": F.xxhash64("host"),
        "host": F.col("host"),
        "registered_domain": F.col("host"),
        "addresses": F.array(F.struct(address.alias("address"), F.lit(now + DAY_S).alias("expires_at"))),
        "robots": F.array(_robots(now)),
        "not_before": F.lit(0.0),
        "last_request_at": F.lit(now - DAY_S),
        "last_fetch_s": F.lit(0.1),
        "failures": F.lit(0),
        "horizon_at": F.lit(now + 21.0 * DAY_S),
        "round": F.lit(0),
    }
    rows = named.select(*(value.alias(name) for name, value in values.items()))
    missing = [c for c in schemas.HOSTS.columns if c.name not in {*rows.columns, "bucket"}]
    return rows.select("*", *(F.lit(None).cast(c.type).alias(c.name) for c in missing))


def _robots(now: float) -> Column:
    body = F.concat(F.lit("User-agent: *\nDisallow: /private/"), F.col("id").cast("string"), F.lit("\n" * 200)).cast(
        "binary"
    )
    return F.struct(
        F.lit("https").alias("scheme"), F.lit(now - DAY_S).alias("fetched_at"), F.lit(200).alias("status"),
        body.alias("body"),
    )  # fmt: skip
