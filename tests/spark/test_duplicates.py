"""Duplicates: which page is the original, and of whom the others are copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from crawler.schemas import CONTENT_CHECKSUMS, NEAR_DUPLICATES
from crawler.settings import Settings
from crawler.transforms import duplicates
from tests.spark.rows import at, frame, key_of, outcome, outcomes

A, B, C, D = (f"http://{name}.test/" for name in "abcd")
SCHEME = "s"
CONTENT = tuple(c for c in CONTENT_CHECKSUMS.columns if c.name != "bucket")
BANDS = tuple(c for c in NEAR_DUPLICATES.columns if c.name != "bucket")


def known_content(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    base = {"kind": "payload", "round": 1}
    return frame(spark, CONTENT, [{**base, **row} for row in rows])


def known_bands(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Each row with a text of its own."""
    texts = [{"text_checksum": number, **row} for number, row in enumerate(rows)]
    bands = [{"round": 1, "scheme": SCHEME, **row} for row in texts]
    contents = [
        {"kind": kind, "checksum": row["text_checksum"], "signature": row["signature"] if kind == "text" else None}
        for row in texts
        for kind in ("payload", "text")
    ]
    stored = [{name: value for name, value in row.items() if name != "signature"} for row in bands]
    return duplicates.with_signatures(frame(spark, BANDS, stored), known_content(spark, *contents))


def matches(marked: DataFrame) -> dict[str, tuple[Any, ...] | None]:
    rows = marked.select("url", "match").collect()
    return {row["url"]: tuple(row["match"]) if row["match"] else None for row in rows}


def test_the_first_in_time_is_the_original_and_equal_payload_comes_before_equal_text(spark: SparkSession) -> None:
    batch = outcomes(
        spark,
        [
            outcome(A, payload_checksum=5, text_checksum=7, fetch_time=at(2)),
            outcome(B, payload_checksum=5, text_checksum=7, fetch_time=at(1)),
            outcome(C, payload_checksum=6, text_checksum=7, fetch_time=at(3)),
            outcome(D, payload_checksum=None, text_checksum=None),
        ],
    )
    found = matches(duplicates.mark_exact(batch, known_content(spark), 4))
    assert found == {
        A: ("payload", key_of(B), 4, 1.0), B: None, C: ("text", key_of(B), 4, 1.0), D: None,
    }  # fmt: skip


def test_an_earlier_round_comes_first_and_a_page_is_no_duplicate_of_itself(spark: SparkSession) -> None:
    batch = outcomes(spark, [outcome(A, payload_checksum=5), outcome(B, payload_checksum=6)])
    known = known_content(
        spark,
        {"checksum": 5, "url_key": key_of(C), "round": 2},
        {"checksum": 6, "url_key": key_of(B), "round": 3},
        {"checksum": key_of(A) ^ 2, "kind": "text", "url_key": key_of(D)},
    )
    assert matches(duplicates.mark_exact(batch, known, 4)) == {A: ("payload", key_of(C), 2, 1.0), B: None}


def signature(changed: int) -> bytes:
    values = np.arange(128, dtype=np.uint8)
    values[:changed] += 100
    return bytes(values)


def near(spark: SparkSession, batch: list[dict[str, Any]], *known: dict[str, Any]) -> dict[str, Any]:
    exact = duplicates.mark_exact(outcomes(spark, batch), known_content(spark), 4)
    marked = duplicates.mark_near(exact, known_bands(spark, *known), SCHEME, Settings(), 4)
    return {url: match and (*match[:3], round(match[3], 2)) for url, match in matches(marked).items()}


def test_near_duplicates_are_verified_and_the_most_similar_is_kept(spark: SparkSession) -> None:
    batch = [
        outcome(A, signature=signature(0), bands=[1, 2], fetch_time=at(1)),
        outcome(B, signature=signature(12), bands=[2, 3], fetch_time=at(2)),
        outcome(C, signature=signature(60), bands=[3, 4], fetch_time=at(3)),
        outcome(D, signature=signature(64), bands=[4], fetch_time=at(4)),
    ]
    known = {"band_key": 3, "url_key": 77, "signature": signature(10), "round": 2}
    expected = {A: None, B: ("near", 77, 2, 0.98), C: None, D: ("near", key_of(C), 4, 0.97)}
    assert near(spark, batch, known) == expected


def test_signatures_of_another_scheme_and_of_the_page_itself_do_not_count(spark: SparkSession) -> None:
    batch = [outcome(A, signature=signature(0), bands=[1])]
    other = {"band_key": 1, "url_key": 77, "signature": signature(0), "scheme": "other"}
    itself = {"band_key": 1, "url_key": key_of(A), "signature": signature(1)}
    assert near(spark, batch, other, itself) == {A: None}


def test_new_contents_and_bands_are_those_nobody_had(spark: SparkSession) -> None:
    batch = outcomes(
        spark,
        [
            outcome(A, payload_checksum=5, text_checksum=7, bands=[1, 2], signature=signature(0)),
            outcome(B, payload_checksum=5, text_checksum=8, bands=[3], signature=signature(99), fetch_time=at(2)),
            outcome(C, payload_checksum=9, text_checksum=None, bands=None, warc_record_type="revisit"),
            outcome(D, payload_checksum=12, text_checksum=11, bands=[4, 5], signature=signature(50), fetch_time=at(3)),
        ],
    )
    known = known_content(spark, {"checksum": 7, "kind": "text", "url_key": key_of(A)})
    marked = duplicates.mark_exact(batch, known, 4)
    rows = duplicates.new_contents(marked, known).collect()
    assert {(row["kind"], row["checksum"], row["url"], row["signature"]) for row in rows} == {
        ("payload", 5, A, None), ("text", 8, B, signature(99)),
        ("payload", 12, D, None), ("text", 11, D, signature(50)),
    }  # fmt: skip
    bands = duplicates.new_bands(marked, known, SCHEME).collect()
    assert {(row["band_key"], row["url_key"], row["text_checksum"]) for row in bands} == {
        (4, key_of(D), 11), (5, key_of(D), 11),
    }, "A had that text before: its bands are there"  # fmt: skip
