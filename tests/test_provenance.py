"""Who wrote a table: what the crawl wrote passes, what anybody else wrote is refused by name and can be taken back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, QueryBuilder, Transaction, write_deltalake
from deltalake.schema import PrimitiveType

from crawler import schemas
from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
from crawler.tables.direct import Write, add_columns, append_rows, create_tables, open_table
from crawler.tables.ledger import Ledger, RoundRow, State
from crawler.tables.manifest import TableError, make_lake
from crawler.tables.provenance import newest_version, settled_versions
from jobs.restore import restore

LOGS = (schemas.CAPTURES, schemas.SEEDS, schemas.FRONTIER, schemas.URL_CHECKSUMS)
ROW: dict[str, Any] = {"url": "http://a.test/", "url_key": 1, "round": 1, "slot": 1, "tier": 0, "bucket": 0}


def row_of(table: Table, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in {**ROW, **more}.items() if name in table.names}


def write(store: Store, table: Table, application: str, version: int, **more: Any) -> None:
    append_rows(store, table, [row_of(table, **more)], Write(application, version, note="a note"))


def versions_of(store: Store) -> dict[str, int]:
    return {table.name: newest_version(store, table) for table in schemas.TABLES if table is not schemas.ROUNDS}


def record(store: Store, number: int, state: State, versions: dict[str, int]) -> RoundRow:
    row = RoundRow(number, state, 1_800_000_000.0, "folder", versions)
    Ledger(store).record(row)
    return row


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lake after one committed round."""
    store = Store.open(str(tmp_path / "lake"))
    make_lake(store, 1)
    create_tables(store, schemas.TABLES)
    record(store, 1, State.OPENED, versions_of(store))
    for table in LOGS:
        write(store, table, f"orbweaver/{table.name}", 1)
    record(store, 1, State.COMMITTED, versions_of(store))
    return store


def settle(store: Store) -> dict[str, int]:
    newest = Ledger(store).newest(1)[-1]
    return settled_versions(store, newest.versions, None if newest.state is State.COMMITTED else newest.round)


def at(store: Store, table: Table) -> str:
    return store.uri_of(f"tables/{table.name}")


def rows(store: Store, table: Table) -> list[dict[str, Any]]:
    read = QueryBuilder().register("t", open_table(store, table)).execute("SELECT * FROM t")
    found: list[dict[str, Any]] = pa.table(read.read_all()).to_pylist()
    return sorted(found, key=repr)


def appended(place: str, table: Table) -> None:
    write_deltalake(place, pa.Table.from_pylist([row_of(table)], arrow_schema(table.columns)), mode="append")


def overwritten(place: str, table: Table) -> None:
    write_deltalake(place, pa.Table.from_pylist([row_of(table)], arrow_schema(table.columns)), mode="overwrite")


def deleted(place: str, table: Table) -> None:
    DeltaTable(place).delete()


def deleted_in_part(place: str, table: Table) -> None:
    DeltaTable(place).delete("url_key = 1")


def updated(place: str, table: Table) -> None:
    DeltaTable(place).update({"url_key": "url_key + 1"})


def optimized(place: str, table: Table) -> None:
    appended(place, table)
    DeltaTable(place).optimize.compact()


def given_a_column(place: str, table: Table) -> None:
    DeltaTable(place).alter.add_columns(Field("mine", PrimitiveType("string")))


def given_a_property(place: str, table: Table) -> None:
    DeltaTable(place).alter.set_table_properties({"delta.appendOnly": "false"})


def restored_by_hand(place: str, table: Table) -> None:
    DeltaTable(place).restore(0)


def written_by_a_stream(place: str, table: Table) -> None:
    mine = CommitProperties(app_transactions=[Transaction("a stream of mine", 1)])
    data = pa.Table.from_pylist([row_of(table)], arrow_schema(table.columns))
    write_deltalake(place, data, mode="append", commit_properties=mine)


STRANGERS = [
    (appended, "WRITE"),
    (overwritten, "WRITE"),
    (deleted, "DELETE"),
    (deleted_in_part, "DELETE"),
    (updated, "UPDATE"),
    (optimized, "WRITE"),
    (given_a_column, "ADD COLUMN"),
    (given_a_property, "SET TBLPROPERTIES"),
    (restored_by_hand, "RESTORE"),
    (written_by_a_stream, "WRITE"),
]


@pytest.mark.parametrize("table", LOGS, ids=lambda table: table.name)
@pytest.mark.parametrize(("change", "operation"), STRANGERS, ids=lambda one: getattr(one, "__name__", ""))
def test_what_a_stranger_wrote_is_refused_by_name_and_taken_back(
    store: Store, table: Table, change: Callable[[str, Table], None], operation: str
) -> None:
    before, version = rows(store, table), newest_version(store, table)
    change(at(store, table), table)
    with pytest.raises(TableError) as refused:
        settle(store)
    said = str(refused.value)
    assert f"table {table.name}: version {version + 1} was written by a stranger: {operation} by delta-rs" in said
    assert f"`orbweaver restore --lake {store.uri}`" in said
    done = restore(store)
    assert [(one.table, one.as_of) for one in done] == [(table.name, version)]
    assert rows(store, table) == before
    assert settle(store) == {**versions_of(store), table.name: newest_version(store, table)}
    assert restore(store) == []


def test_several_tables_are_named_and_taken_back_at_once(store: Store) -> None:
    before = {table.name: rows(store, table) for table in LOGS}
    for table in LOGS:
        deleted(at(store, table), table)
        appended(at(store, table), table)
    with pytest.raises(TableError) as refused:
        settle(store)
    assert [table.name for table in LOGS if f"table {table.name}: version" not in str(refused.value)] == []
    assert {one.table: one.taken_back for one in restore(store)} == {table.name: 2 for table in LOGS}
    assert {table.name: rows(store, table) for table in LOGS} == before


@pytest.mark.parametrize("work", ["maintain", "repair", "columns", "restore"])
def test_care_of_the_lake_is_the_crawls_own_whether_it_was_finished_or_not(store: Store, work: str) -> None:
    write(store, schemas.CAPTURES, f"orbweaver/{work}/captures", 1)
    assert settle(store) == versions_of(store)
    assert restore(store) == []


def test_a_vacuum_is_anybodys(store: Store) -> None:
    deleted(at(store, schemas.SEEDS), schemas.SEEDS)
    restore(store)
    DeltaTable(at(store, schemas.SEEDS)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert settle(store) == versions_of(store)


def test_the_open_round_is_known_by_its_number(store: Store) -> None:
    record(store, 2, State.OPENED, versions_of(store))
    write(store, schemas.SEEDS, "orbweaver/admit/seeds", 2)
    assert settle(store) == versions_of(store)
    write(store, schemas.CAPTURES, "orbweaver/captures", 3)
    with pytest.raises(TableError, match="table captures: version 2 was written by round 3, which is not open"):
        settle(store)


def test_strangers_can_come_again(store: Store) -> None:
    before = rows(store, schemas.SEEDS)
    for _ in range(3):
        deleted(at(store, schemas.SEEDS), schemas.SEEDS)
        with pytest.raises(TableError, match="table seeds: version"):
            settle(store)
        restore(store)
        assert (rows(store, schemas.SEEDS), settle(store)) == (before, versions_of(store))


def test_a_stranger_beside_an_open_round_is_taken_back_and_the_rounds_own_rows_stay(store: Store) -> None:
    record(store, 2, State.OPENED, versions_of(store))
    write(store, schemas.SEEDS, "orbweaver/admit/seeds", 2, round=2)
    before = rows(store, schemas.SEEDS)
    deleted(at(store, schemas.SEEDS), schemas.SEEDS)
    assert [one.as_of for one in restore(store)] == [2]
    assert rows(store, schemas.SEEDS) == before
    assert settle(store) == versions_of(store)


def test_columns_that_came_after_a_stranger_stay(store: Store) -> None:
    """A newer version adds its columns when it opens the lake, and looks for strangers when it opens a round."""
    narrow = replace(schemas.SEEDS, columns=schemas.SEEDS.columns[:-1])
    shutil.rmtree(at(store, schemas.SEEDS))
    create_tables(store, [narrow])
    write(store, narrow, "orbweaver/seeds", 1)
    before = rows(store, narrow)
    deleted(at(store, narrow), narrow)
    assert add_columns(store, schemas.SEEDS)
    with pytest.raises(TableError, match="table seeds: version 2 was written by a stranger: DELETE"):
        settle(store)
    assert [one.as_of for one in restore(store)] == [1]
    assert rows(store, schemas.SEEDS) == [{**row, schemas.SEEDS.columns[-1].name: None} for row in before]
    assert settle(store) == versions_of(store)


def test_a_damaged_log_is_told(store: Store) -> None:
    deleted(at(store, schemas.SEEDS), schemas.SEEDS)
    store.put(f"tables/seeds/_delta_log/{2:020d}.json", b'{"commitInfo"')
    for attempt in (settle, restore):
        with pytest.raises(TableError, match=r"table seeds of .*0002.json is damaged"):
            attempt(store)


def test_what_the_crawl_built_on_cannot_be_taken_back(store: Store) -> None:
    record(store, 2, State.OPENED, versions_of(store))
    for _ in range(2):
        appended(at(store, schemas.SEEDS), schemas.SEEDS)
    for application in ("orbweaver/admit/seeds", "orbweaver/seeds"):
        write(store, schemas.SEEDS, application, 2)
    with pytest.raises(TableError, match=r"table seeds: version 2 .*in version 4 the crawl built on it"):
        restore(store)


def test_a_ledger_older_than_the_tables_is_told_and_nothing_is_taken_back(store: Store) -> None:
    """As when half of a copy was brought back: the log would call the writes of round 2 done."""
    write(store, schemas.CAPTURES, "orbweaver/captures", 2)
    with pytest.raises(TableError, match="`rounds` is older than the other tables"):
        settle(store)
    with pytest.raises(TableError, match="cannot be taken back"):
        restore(store)


@pytest.mark.parametrize("change", [appended, deleted, given_a_property, written_by_a_stream], ids=lambda f: f.__name__)
def test_strangers_in_the_ledger_are_refused_as_well(store: Store, change: Callable[[str, Table], None]) -> None:
    before = Ledger(store).newest(9)
    change(at(store, schemas.ROUNDS), schemas.ROUNDS)
    with pytest.raises(TableError, match="table rounds: version 3 was written by a stranger"):
        settled_versions(store, before[-1].versions, None)
    assert [one.table for one in restore(store)] == ["rounds"]
    assert Ledger(store).newest(9) == before
    assert settle(store) == versions_of(store)


def test_beside_a_ledger_that_is_too_old_a_stranger_is_not_taken_back_either(store: Store) -> None:
    appended(at(store, schemas.SEEDS), schemas.SEEDS)
    write(store, schemas.CAPTURES, "orbweaver/captures", 2)
    with pytest.raises(TableError) as refused:
        settle(store)
    assert "table seeds: version 2 was written by a stranger" in str(refused.value)
    assert "`rounds` is older than the other tables" in str(refused.value)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"engineInfo": "Spark/4", "clientVersion": "x.1", "operation": "MERGE"}, "MERGE by Spark/4"),
        ({"engineInfo": "Spark/4", "operation": "MERGE"}, "MERGE by Spark/4"),
        ({"clientVersion": "x.1", "operation": "WRITE", "timestamp": 1_500}, "WRITE by x.1 at 1970-01-01T00:00:01Z"),
        ({"timestamp": "soon"}, "an unnamed operation by an unnamed engine"),
    ],
)
def test_a_stranger_is_named_as_far_as_its_entry_does(store: Store, info: dict[str, Any], said: str) -> None:
    entry = [json.dumps({"commitInfo": info}), json.dumps({"remove": {"path": "x"}})]
    store.put(f"tables/seeds/_delta_log/{2:020d}.json", "\n".join(entry).encode())
    with pytest.raises(TableError, match=f"version 2 was written by a stranger: {said}\n"):
        settle(store)


def test_files_that_are_gone_cannot_be_taken_back(store: Store) -> None:
    deleted(at(store, schemas.SEEDS), schemas.SEEDS)
    DeltaTable(at(store, schemas.SEEDS)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(TableError, match=r"table seeds: version 2 .*cannot be taken back \(.*copy of the lake"):
        restore(store)


def test_before_the_first_round_tables_are_empty(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    make_lake(store, 1)
    create_tables(store, schemas.TABLES)
    assert set(settled_versions(store, {}, None).values()) == {0}
    appended(at(store, schemas.CAPTURES), schemas.CAPTURES)
    with pytest.raises(TableError, match="table captures: version 1"):
        settled_versions(store, {}, None)
    assert [(one.table, one.as_of) for one in restore(store)] == [("captures", 0)]
