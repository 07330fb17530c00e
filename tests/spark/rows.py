"""Rows by exception: one base row a table, each case states only what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from crawler.columns import Column, ddl
from crawler.page.url import host_key, host_name, registered_domain, url_key
from crawler.schemas import FRONTIER, HOSTS, OUTCOMES

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z, a full hour
Row = Mapping[str, Any]


def at(seconds: float = 0.0) -> datetime:
    """A time, in seconds from NOW."""
    return datetime.fromtimestamp(NOW + seconds, UTC)


def frame(spark: SparkSession, columns: tuple[Column, ...], rows: Iterable[Row]) -> DataFrame:
    """Rows as a DataFrame with exactly these columns; what a row does not state is null."""
    names = [column.name for column in columns]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl(columns))


def key_of(url: str) -> int:
    return url_key(url, url.split("/")[2])


def visit(url: str, **differs: Any) -> dict[str, Any]:
    """A row of the calendar: a page never visited, due now, in the first queue of links."""
    base = {
        "url_key": key_of(url), "url": url, "host": url.split("/")[2], "depth": 1, "source": "link",
        "status": "unfetched", "failures": 0, "visits": 0, "changes": 0, "discovered_at": at(-60), "due_at": at(),
        "tier": 1, "slot": int(NOW // 3600),
    }  # fmt: skip
    return {**base, **differs}


def outcome(url: str, **differs: Any) -> dict[str, Any]:
    """An outcome row: a page fetched well, with contents of its own, one second after NOW."""
    key = key_of(url)
    base = {
        "url_key": key, "url": url, "host": url.split("/")[2], "outcome": "success", "fetch_time": at(1),
        "fetch_s": 0.1, "fetch_status": 200, "content_digest": f"D{key}", "payload_checksum": key ^ 1,
        "text_checksum": key ^ 2, "text_words": 500, "links": [], "bands": [], "warc_filename": "w.warc.gz",
        "warc_record_offset": 0, "warc_record_length": 9, "warc_record_id": f"<urn:uuid:{key}>",
        "warc_record_type": "response", "warc_date": "2027-01-15T08:00:01Z", "partition": 0,
    }  # fmt: skip
    return {**base, **differs}


def host(name: str, **differs: Any) -> dict[str, Any]:
    base = {
        "host_key": host_key(name), "host": name, "registered_domain": registered_domain(host_name(name)),
        "addresses": [], "robots": [], "not_before": 0.0, "last_request_at": 0.0, "last_fetch_s": 0.0, "failures": 0,
        "round": 1,
    }  # fmt: skip
    return {**base, **differs}


def visits(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return frame(spark, FRONTIER.columns, rows)


def outcomes(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return frame(spark, OUTCOMES.columns, rows)


def hosts(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return frame(spark, tuple(c for c in HOSTS.columns if c.name != "bucket"), rows)
