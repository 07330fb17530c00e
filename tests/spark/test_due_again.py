"""What a repair makes of the rows of the calendar."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler.schemas import FRONTIER
from jobs.repair_tables import CLEARED, due_again
from tests.spark.rows import NOW, at, frame, key_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

HOUR, DAY_S = int(NOW // 3_600), 86_400
STORED = {"etag": '"1"', "last_modified": "Tue", "content_digest": "A" * 32, "digest_date": "2026-01-01T00:00:00Z"}
FAR = {"due_at": at(14 * DAY_S), "slot": HOUR + 14 * 24}
LONG_DUE = {"due_at": at(-3 * DAY_S), "slot": HOUR - 3 * 24}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lost": ({**STORED, **FAR, "digest_record_id": "<gone>"}, {"due_at": at(), "slot": HOUR, **dict.fromkeys(CLEARED)}),
    "lost, and due before": ({**STORED, **LONG_DUE, "digest_record_id": "<gone>"}, dict.fromkeys(CLEARED)),
    "lost, with a newer record": (
        {**STORED, **FAR, "digest_record_id": "<here>"},
        {"due_at": at(), "slot": HOUR, **dict.fromkeys(CLEARED)},
    ),
    "another URL that remembers a lost record": (
        {**STORED, **FAR, "digest_record_id": "<gone>"},
        dict.fromkeys(CLEARED),
    ),
    "another URL": ({**STORED, **FAR, "digest_record_id": "<here>"}, {}),
    "another URL, never visited": (FAR, {}),
}


def test_lost_urls_are_due_and_nothing_remembers_a_lost_record(spark: SparkSession) -> None:
    before = {name: visit(f"http://a.test/{place}", **row) for place, (name, (row, _)) in enumerate(CASES.items())}
    rows = frame(spark, FRONTIER.columns, before.values())
    lost = [(row["url_key"],) for name, row in before.items() if name.startswith("lost")]
    urls = spark.createDataFrame(lost, "url_key bigint")
    records = spark.createDataFrame([("<gone>",)], "digest_record_id string")
    found = due_again(rows, urls, records, NOW)
    assert found.columns == FRONTIER.names
    after = {row["url_key"]: row.asDict() for row in found.toLocalIterator()}
    blank = dict.fromkeys(FRONTIER.names)
    for place, (name, (_, changes)) in enumerate(CASES.items()):
        wanted = {**blank, **before[name], **changes}
        assert moments(after[key_of(f"http://a.test/{place}")]) == moments(wanted), name
    assert len(after) == len(CASES)


def moments(row: dict[str, Any]) -> dict[str, Any]:
    """Times as epoch seconds: Spark gives them in the zone of this machine, without saying so."""
    return {name: value.timestamp() if hasattr(value, "timestamp") else value for name, value in row.items()}
