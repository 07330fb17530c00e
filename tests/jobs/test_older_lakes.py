"""Lakes of older versions: tables get the columns they lack, and every reader takes their files as they are."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from crawler import schemas
from crawler.columns import Column
from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
from crawler.tables.direct import Write, add_columns, append_rows, create_tables, data_files, open_table, read_rows
from crawler.tables.lake import columns_checksum, prepare_tables
from crawler.tables.ledger import Ledger
from crawler.tables.lock import hold_lock
from crawler.tables.manifest import TableError, TableMissing, make_lake, read_manifest
from crawler.tables.provenance import newest_version, settled_versions
from crawler.tables.reader import Reader
from tests.house.sources import ROOT
from tests.jobs.conftest import Run

OLDER = ROOT / "tests" / "lakes" / "format-2.tar.gz"


@pytest.fixture
def older(tmp_path: Path) -> Store:
    """A lake as the version before left it: two committed rounds, and a third that was killed in its commit."""
    with tarfile.open(OLDER) as tar:
        tar.extractall(tmp_path, filter="data")
    return Store.open(str(tmp_path / "lake"))


def prepare(store: Store) -> None:
    with hold_lock(store) as lock:
        prepare_tables(store, lock)


def older_version(table: Table) -> Table:
    """The table without a column in its middle and without its last one, as far as neither is needed for its shape;
    and its structures without their last field."""
    needed = {*table.partitioned_by, *table.sorted_by}
    spare = [column for column in table.columns if column.name not in needed]
    dropped = {spare[len(spare) // 2].name, spare[-1].name}
    kept = tuple(column for column in table.columns if column.name not in dropped)
    return replace(table, columns=tuple(Column(c.name, narrowed(c.type), c.sentence) for c in kept))


def narrowed(text: str) -> str:
    """A structure without its last field; everything else as it is."""
    if not text.startswith("struct<"):
        return text
    kind = arrow_schema((Column("x", text, ""),)).field("x").type
    last = kind.field(kind.num_fields - 1).name
    return text[: text.rindex(f",{last}:")] + ">"


def a_row(table: Table, number: int) -> dict[str, Any]:
    """A row with a value in every column that is a whole number or a text."""
    values: dict[str, Any] = {"bigint": number, "int": 1, "string": f"text {number}", "boolean": True, "double": 0.5}
    return {column.name: values[column.type] for column in table.columns if column.type in values}


@pytest.mark.parametrize("table", schemas.TABLES, ids=lambda table: table.name)
def test_a_table_grows_and_all_readers_take_old_files_and_new_ones(tmp_path: Path, table: Table) -> None:
    store, older = Store.open(str(tmp_path)), older_version(table)
    create_tables(store, [older])
    append_rows(store, older, [a_row(older, 1)], Write("orbweaver/t", 1))
    first = newest_version(store, table)
    assert add_columns(store, table)
    assert not add_columns(store, table)
    append_rows(store, table, [a_row(table, 2)], Write("orbweaver/t", 2))

    assert [field.name for field in open_table(store, table).schema().fields if field.name not in table.names] == []
    wanted = {number: {**dict.fromkeys(table.names), **a_row(of, number)} for number, of in ((1, older), (2, table))}
    numbered = next(c.name for c in table.columns if c.type in {"bigint", "string"} and c in older.columns)
    reader = Reader(store, 1)
    for version, numbers in ((None, (1, 2)), (first, (1,))):
        versions = {} if version is None else {table.name: version}
        found = sorted(reader.rows(table, versions).to_pylist(maps_as_pydicts="strict"), key=lambda r: str(r[numbered]))
        assert found == [wanted[number] for number in numbers]
        stored = [name for name in table.names if name not in table.partitioned_by]
        paths = [file.path for file in data_files(store, table, version)]
        rows = sorted(read_rows(store, paths, stored), key=lambda row: str(row[numbered]))
        assert rows == [{name: wanted[number][name] for name in stored} for number in numbers]
    files = open_table(store, table).file_uris()
    joined = duckdb.read_parquet(files, hive_partitioning=True, union_by_name=True)
    assert set(table.names) <= set(joined.columns)
    assert open_table(store, table).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (Column("theirs", "string", "A column of a newer version."), "does not know (theirs)"),
        (Column("line", "bigint", "Another type."), "cannot be given the columns of this version (line"),
    ],
    ids=["unknown column", "other type"],
)
def test_a_table_of_a_newer_version_is_refused(tmp_path: Path, mine: Column, said: str) -> None:
    store = Store.open(str(tmp_path))
    others = tuple(column for column in schemas.SEEDS.columns if column.name != mine.name)
    create_tables(store, [replace(schemas.SEEDS, columns=(*others, mine))])
    with pytest.raises(TableError) as refused:
        add_columns(store, schemas.SEEDS)
    assert "table seeds" in str(refused.value)
    assert said in str(refused.value)


def test_tables_are_made_and_grown_once(older: Store) -> None:
    before = {table.name: newest_version(older, table) for table in schemas.TABLES}
    assert read_manifest(older).schemas == ""
    prepare(older)
    grown = {table.name: newest_version(older, table) for table in schemas.TABLES}
    assert grown["rounds"] == before["rounds"] + 1
    assert read_manifest(older).schemas == columns_checksum()
    prepare(older)
    assert {table.name: newest_version(older, table) for table in schemas.TABLES} == grown
    newest = Ledger(older).newest(1)[-1]
    settled_versions(older, newest.versions, newest.round)


@pytest.mark.parametrize("table", [table.name for table in schemas.TABLES])
def test_a_table_that_is_gone_is_not_made_anew(older: Store, table: str) -> None:
    for path in older.list(f"tables/{table}"):
        older.delete(path)
    with pytest.raises(TableMissing, match=f"table {table}"):
        prepare(older)
    assert older.list(f"tables/{table}") == []


def test_a_making_that_was_killed_is_finished(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    make_lake(store, 1)
    create_tables(store, schemas.TABLES[:4])
    assert Reader.open(store).rounds == []
    prepare(store)
    assert all(newest_version(store, table) == 0 for table in schemas.TABLES)


LOOKS = [["status"], ["report"], ["report", "--round", "1"], ["gc"], ["config", "show"]]


@pytest.mark.parametrize("is_grown", [False, True], ids=["as it was", "grown"])
def test_an_older_lake_is_looked_at_before_and_after_it_has_grown(
    run: Run,
    older: Store,
    is_grown: bool,
) -> None:
    if is_grown:
        prepare(older)
    for command in LOOKS:
        assert run(*command, "--lake", older.uri).code == 0, command
    said = json.loads(run("status", "--lake", older.uri, "--json").out)
    assert (said["committed"]["round"], said["open"]["round"], said["open"]["state"]) == (2, 3, "FETCHED")
    newest = Reader.open(older).committed()
    assert newest is not None
    url = next(iter(Reader.open(older).rows(schemas.CAPTURES, newest["versions"]).to_pylist()))["url"]
    assert "planned   round" in run("why", url, "--lake", older.uri).out
    assert run("show", url, "--text", "--lake", older.uri).code == 0
    refused = run("config", "show", "--round", "2", "--lake", older.uri)
    assert (refused.code, "did not keep its settings" in refused.err) == (1, True)
