"""The tables: written once, pinned, looked up, locked, compacted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler import schemas
from crawler.storage import Store
from crawler.tables.direct import is_done, open_table
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow, State
from crawler.tables.manifest import TableError
from crawler.tables.runs import absent, find
from jobs.exits import Stop
from jobs.maintain_tables import maintain
from tests.spark.rows import NOW, frame, host, visit, visits

BUCKETS = 8


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with hold_lake(spark, Store.open(str(tmp_path_factory.mktemp("a b") / "lake")), BUCKETS) as held:
        yield held


def keys(spark: SparkSession, first: int, last: int, number: int = 1) -> DataFrame:
    return spark.range(first, last).selectExpr("xxhash64(id) AS url_key", f"{number} AS round")


def test_a_write_replayed_changes_nothing(spark: SparkSession, lake: Lake) -> None:
    before = lake.tables.version(schemas.SEEDS)
    rows = frame(spark, schemas.SEEDS.columns, [{"line": "x", "round": 1}])
    for _ in range(2):
        lake.append(schemas.SEEDS, rows, lake.write("t/seeds", 1))
    assert lake.tables.version(schemas.SEEDS) == before + 1
    assert lake.read(schemas.SEEDS, lake.versions()).where("line = 'x'").count() == 1


def test_the_calendar_turns_in_one_commit_and_only_where_it_was_opened(spark: SparkSession, lake: Lake) -> None:
    rows = [
        visit(f"http://a.test/{n}", slot=slot, tier=tier) for n, (slot, tier) in enumerate([(1, 0), (1, 1), (2, 0)])
    ]
    lake.append(schemas.FRONTIER, visits(spark, rows), lake.write("t/frontier", 1))
    reborn = visits(spark, [visit("http://a.test/0", slot=9, tier=0)])
    used = lake.files(schemas.FRONTIER, lake.versions(), lambda slot: (slot["slot"], slot["tier"]) == (1, 0))
    for _ in range(2):
        lake.turn_calendar(used, reborn, lake.write("t/turn", 2))
    found = lake.read(schemas.FRONTIER, lake.versions()).select("url", "slot", "tier").collect()
    assert sorted((row["url"][-1], row["slot"], row["tier"]) for row in found) == [
        ("0", 9, 0),
        ("1", 1, 1),
        ("2", 2, 0),
    ]


def test_look_ups_in_runs_answer_as_the_spark_join_does(spark: SparkSession, lake: Lake) -> None:
    for number in (1, 2, 3):
        batch = keys(spark, number * 1000, number * 1000 + 1500, number)
        lake.append(schemas.URL_CHECKSUMS, batch, lake.write("t/urls", number))
    versions = lake.versions()
    run, stored = lake.run(schemas.URL_CHECKSUMS, versions), lake.read(schemas.URL_CHECKSUMS, versions)
    asked = keys(spark, 500, 6000).select("url_key")
    asked = asked.unionByName(asked.limit(100))
    oracle = asked.distinct().join(stored, on="url_key", how="left_anti")
    assert {r[0] for r in absent(run, asked).collect()} == {r[0] for r in oracle.collect()}
    for keep, best in (("newest", F.max), ("oldest", F.min)):
        joined = stored.join(asked.distinct(), on="url_key", how="left_semi")
        wanted = {tuple(r) for r in joined.groupBy("url_key").agg(best("round")).collect()}
        rows = find(run, asked, keep).collect()  # type: ignore[arg-type]  # a table of cases is looser than the types
        assert {(r["url_key"], r["round"]) for r in rows} == wanted
        assert len(rows) == len(wanted)


def test_a_look_up_reads_the_version_it_was_pinned_to(spark: SparkSession, lake: Lake) -> None:
    run = lake.run(schemas.URL_CHECKSUMS, lake.versions())
    lake.append(schemas.URL_CHECKSUMS, keys(spark, 90_000, 90_010), lake.write("t/later", 1))
    asked = keys(spark, 90_000, 90_010).select("url_key")
    assert absent(run, asked).count() == 10
    assert absent(lake.run(schemas.URL_CHECKSUMS, lake.versions()), asked).count() == 0


def test_buckets_are_those_of_the_page_room(spark: SparkSession, lake: Lake) -> None:
    from crawler.page.url import bucket_of

    rows = lake.read(schemas.URL_CHECKSUMS, lake.versions()).select("url_key", "bucket").distinct().collect()
    assert rows
    assert all(row["bucket"] == bucket_of(row["url_key"], BUCKETS) for row in rows)
    assert {row["bucket"] for row in rows} == set(range(BUCKETS))


def test_nested_columns_come_back_from_a_look_up(spark: SparkSession, lake: Lake) -> None:
    row = host("n.test", addresses=[("127.0.0.1", 5.0)], robots=[("http", 1.0, 200, b"User-agent: *")], horizon_at=3.0)
    columns = tuple(c for c in schemas.HOSTS.columns if c.name != "bucket")
    lake.append(schemas.HOSTS, frame(spark, columns, [row]), lake.write("t/hosts", 1))
    lake.append(schemas.HOSTS, frame(spark, columns, [{**row, "failures": 2, "round": 2}]), lake.write("t/hosts", 2))
    found = find(lake.run(schemas.HOSTS, lake.versions()), frame(spark, columns[:1], [row]), "newest").collect()
    assert [r["failures"] for r in found] == [2]
    assert found[0]["robots"][0]["body"] == b"User-agent: *"
    assert found[0]["addresses"][0]["address"] == "127.0.0.1"


def test_the_ledger_keeps_states_in_order_and_once(lake: Lake) -> None:
    opened = RoundRow(1, State.OPENED, NOW + 0.25, "folder", {"hosts": 3}, ("inbox/a",), {"planned": 2})
    for state in (State.OPENED, State.PLANNED, State.PLANNED):
        lake.ledger.record(replace(opened, state=state))
    rows = lake.ledger.newest(2)
    assert [row.state for row in rows] == [State.OPENED, State.PLANNED]
    assert rows[0] == opened
    assert lake.ledger.committed() is None
    with pytest.raises(Stop, match=r"round 1 of .* is open"):
        maintain(lake)
    lake.ledger.record(replace(opened, state=State.COMMITTED))
    assert lake.ledger.committed() == replace(opened, state=State.COMMITTED)


def test_versions_that_are_gone_are_named(lake: Lake) -> None:
    with pytest.raises(TableError, match="table hosts: version 999"):
        lake.tables.require_versions({"hosts": 999}, [schemas.HOSTS])


def test_every_column_is_described_in_the_table(lake: Lake) -> None:
    for table in schemas.TABLES:
        fields = open_table(lake.store, table).schema().fields
        assert {f.name: f.metadata.get("comment") for f in fields} == {c.name: c.sentence for c in table.columns}


def test_keys_of_a_run_are_stored_as_differences(lake: Lake) -> None:
    """In order, 64-bit keys take 5.2 bytes that way."""
    file = lake.files(schemas.URL_CHECKSUMS, lake.versions())[0]
    columns = pq.ParquetFile(lake.store.open_input(file.path)).metadata.row_group(0)
    encodings = {columns.column(at).path_in_schema: columns.column(at).encodings for at in range(columns.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["url_key"]


def test_of_two_drivers_that_try_the_same_write_one_is_refused(lake: Lake) -> None:
    row = {"line": "y", "round": 7}
    opened = [open_table(lake.store, schemas.SEEDS) for _ in range(2)]
    batch = pa.Table.from_pylist([row], schema=schemas.arrow_schema(schemas.SEEDS.columns))
    write = lake.write("t/race", 7)
    write_deltalake(opened[0], batch, mode="append", commit_properties=write.commit)
    with pytest.raises(DeltaError):
        write_deltalake(opened[1], batch, mode="append", commit_properties=write.commit)
    assert is_done(lake.store, schemas.SEEDS, write)


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    """A row that cannot be stored fails the task; none of its files appears, under whatever name."""
    before, version = lake.store.list("tables/frontier"), lake.tables.version(schemas.FRONTIER)
    rows = visits(spark, [visit(f"http://a.test/{n}", slot=n, tier=0) for n in range(50)])
    bad = rows.withColumn("slot", F.expr("IF(slot = 40, CAST(raise_error('no') AS INT), slot)"))
    with pytest.raises(Exception, match="no"):
        lake.append(schemas.FRONTIER, bad, lake.write("t/bad", 1))
    assert lake.store.list("tables/frontier") == before
    assert lake.tables.version(schemas.FRONTIER) == version
