"""From outcome to next visit: the whole matrix of old status, outcome and failures."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from crawler.columns import Column
from crawler.file_schemas import HOST_STATES
from crawler.records import Outcome
from crawler.settings import Settings
from crawler.transforms import advance
from crawler.transforms.slots import current_hour, slot_of
from tests.spark.rows import NOW, at, frame, host, hosts, outcome, outcomes, visit, visits

DAY = 86_400
WEEK = 7 * DAY
STATUSES = ("unfetched", "fetched", "not_modified", "redir_temp", "redir_perm", "gone", "unwanted")
BACK_OFF = {0: WEEK, 1: 2 * WEEK, 2: 4 * WEEK, 3: 8 * WEEK, 9: 8 * WEEK}
NEW_STATUS = {
    "success": "fetched", "not_modified": "not_modified", "redirect_temp": "redir_temp",
    "redirect_perm": "redir_perm", "gone": "gone", "unwanted_type": "unwanted",
}  # fmt: skip
GOOD = {"success", "not_modified", "redirect_temp", "redirect_perm", "robots_denied"}
HOST_BAD = {"robots_unreachable", "host_failed"}
FAILURES = (0, 1, 2, 3, 9)


def expected(status: str, happened: str, failures: int) -> tuple[str, int, int]:
    """Status, failures and seconds from now to the next visit, written out by hand beside the code's tables."""
    new_status = NEW_STATUS.get(happened, status)
    if happened in GOOD:
        return new_status, 0, 14 * DAY
    if happened in HOST_BAD:
        return new_status, failures, 2 * WEEK  # the host has failed twice
    if happened == "not_reached":
        return new_status, failures, -60
    if happened == "asked_to_wait":
        return new_status, failures, 300
    return new_status, failures + 1, BACK_OFF[failures]


def test_every_outcome_leads_every_url_to_its_next_visit(spark: SparkSession) -> None:
    cases = list(product(STATUSES, [str(outcome) for outcome in Outcome], FAILURES))
    urls = [f"http://a.test/{number}" for number in range(len(cases))]
    planned = [
        visit(url, status=status, failures=failures, due_at=at(-60))
        for url, (status, _, failures) in zip(urls, cases, strict=True)
    ]
    happened = [outcome(url, outcome=what, retry_at=NOW + 301) for url, (_, what, _) in zip(urls, cases, strict=True)]
    failures = spark.createDataFrame([(host("a.test")["host_key"], 2)], "host_key bigint, failures int")
    rows = advance.next_visits(visits(spark, planned), outcomes(spark, happened), failures, Settings(), NOW).collect()
    found = {r["url"]: (r["status"], r["failures"], round(r["due_at"].timestamp() - NOW)) for r in rows}
    wanted = {url: expected(*case) for url, case in zip(urls, cases, strict=True)}
    assert {cases[urls.index(url)]: (found[url], wanted[url]) for url in urls if found[url] != wanted[url]} == {}
    assert len(rows) == len(cases)


def one(spark: SparkSession, was: dict[str, Any], happened: dict[str, Any]) -> dict[str, Any]:
    url = "http://a.test/"
    none = spark.createDataFrame([], "host_key bigint, failures int")
    found = advance.next_visits(
        visits(spark, [visit(url, **was)]), outcomes(spark, [outcome(url, **happened)]), none, Settings(), NOW
    )
    row: dict[str, Any] = found.collect()[0].asDict()
    return row


HELD = {"etag": '"1"', "last_modified": "M1", "content_digest": "D1", "digest_record_id": "R1", "digest_date": "T1"}
FOUND = {"etag": '"2"', "last_modified": None, "content_digest": "D2", "warc_record_id": "R2", "warc_date": "T2"}


@pytest.mark.parametrize(
    ("sentence", "happened", "digest", "etag", "record", "changes"),
    [
        ("a new payload replaces the old", FOUND, "D2", '"2"', "R2", 4),
        ("a failure keeps it", {"outcome": "timeout"}, "D1", '"1"', "R1", 3),
        ("a confirmation keeps it and takes the newer validator",
         {**FOUND, "outcome": "not_modified", "warc_record_type": "revisit"}, "D1", '"2"', "R1", 3),
        ("a cut payload is not held", {**FOUND, "content_digest": None}, "D1", '"1"', "R1", 4),
    ],
)  # fmt: skip
def test_what_we_hold_of_a_page(
    spark: SparkSession, sentence: str, happened: dict[str, Any], digest: str, etag: str, record: str, changes: int
) -> None:
    row = one(spark, {**HELD, "visits": 5, "changes": 3}, happened)
    found = (row["content_digest"], row["etag"], row["digest_record_id"], row["changes"], row["visits"])
    assert found == (digest, etag, record, changes, 6), sentence


def test_what_was_not_asked_is_no_visit(spark: SparkSession) -> None:
    row = one(spark, {"visits": 5, "visited_at": at(-5)}, {"outcome": "not_reached"})
    assert (row["visits"], row["visited_at"].timestamp()) == (5, NOW - 5)


@pytest.mark.parametrize(
    ("seconds", "hours"),
    [
        (-9, 0),
        (0, 0),
        (1, 1),
        (3600, 1),
        (3601, 2),
        (47.5 * 3600, 48),
        (14 * DAY, 14 * 24),
        (17 * DAY, 17 * 24),
        (20 * WEEK, 20 * 7 * 24),
    ],
)
def test_a_slot_holds_what_is_due_when_it_comes(spark: SparkSession, seconds: float, hours: int) -> None:
    row = spark.createDataFrame([(at(seconds),)], "due_at timestamp").select(slot_of("due_at", NOW)).collect()[0]
    assert row[0] >= current_hour(NOW) + hours
    assert row[0] - (current_hour(NOW) + hours) < (1 if hours <= 48 else 24 if hours <= 16 * 24 else 168)


STATES = (*HOST_STATES.columns,)
FAR = (Column("host_key", "bigint", ""), Column("host", "string", ""), Column("registered_domain", "string", ""),
       Column("horizon_at", "double", ""), Column("names_horizon_at", "double", ""))  # fmt: skip


def test_hosts_keep_what_no_one_changed(spark: SparkSession) -> None:
    known = hosts(spark, [host(f"{n}.test", failures=2, horizon_at=7.0, crawl_delay_s=3.0) for n in "abc"])
    states = frame(
        spark, STATES, [{**host("a.test", crawl_delay_s=4.0), "is_out": True}, {**host("b.test"), "is_out": False}]
    )
    horizons = [("b.test", {"horizon_at": 9.0}), ("c.test", {"horizon_at": 8.0}), ("d.test", {"horizon_at": 6.0}),
                ("e.test", {"names_horizon_at": 5.0})]  # fmt: skip
    far = frame(spark, FAR, [{**host(name), **horizon} for name, horizon in horizons])
    rows = advance.next_hosts(known, states, far, 5).collect()
    found = {r["host"]: (r["failures"], r["horizon_at"], r["crawl_delay_s"], r["round"]) for r in rows}
    assert found == {
        "a.test": (3, 7.0, 4.0, 5),
        "b.test": (0, 9.0, None, 5),
        "c.test": (2, 8.0, 3.0, 5),
        "d.test": (0, 6.0, None, 5),
        "e.test": (0, None, None, 5),
    }
    assert {r["host"]: r["names_horizon_at"] for r in rows if r["names_horizon_at"]} == {"e.test": 5.0}
    after = {r["host_key"]: r["failures"] for r in advance.failures_after(known, states).collect()}
    assert after == {host("a.test")["host_key"]: 3, host("b.test")["host_key"]: 0}


def test_leftovers_are_what_the_plan_did_not_take(spark: SparkSession) -> None:
    opened = visits(spark, [visit(f"http://a.test/{n}", slot=3, tier=2) for n in range(3)])
    planned = visits(spark, [visit("http://a.test/1")])
    expected = visits(spark, [visit(f"http://a.test/{n}", slot=current_hour(NOW), tier=2) for n in (0, 2)])
    left = advance.leftover(opened, planned, NOW)
    assert_df_equality(left, expected, ignore_row_order=True, ignore_nullable=True)


def test_leftovers_of_a_late_host_are_due_at_its_turn(spark: SparkSession) -> None:
    opened = visits(spark, [visit(f"http://{name}.test/", slot=3) for name in "ab"])
    late = spark.createDataFrame([("a.test", NOW + 7_200)], "host string, start_at double")
    rows = advance.leftover(opened, opened.limit(0), NOW, late).collect()
    found = {row["host"]: (row["due_at"].timestamp() - NOW, row["slot"] - current_hour(NOW)) for row in rows}
    assert found == {"a.test": (7_200, 2), "b.test": (0, 0)}


def test_a_first_visit_is_a_whole_row_of_the_calendar(spark: SparkSession) -> None:
    names = ["url_key", "url", "host", "depth", "source", "due_at", "tier"]
    fresh = visits(spark, [visit("http://a.test/")]).select(*names)
    expected = visits(spark, [visit("http://a.test/", discovered_at=at())])
    assert_df_equality(advance.first_visits(fresh, NOW), expected, ignore_nullable=True)
