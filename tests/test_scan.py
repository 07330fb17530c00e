"""Tables read without Spark: the rows that Arrow's own scanner finds, and no file opened that cannot hold one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from deltalake import write_deltalake

from crawler import schemas
from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
from crawler.storage_local import LocalStore
from crawler.tables.direct import create_tables, open_table
from crawler.tables.scan import read_matching

pc: Any = pyarrow.compute
field = pc.field
ROUNDS_HELD, ROWS_A_ROUND = 6, 40
KEYS = pa.array([20_003, 40_007], pa.int64())


class Opened(LocalStore):
    """A local store that notes the files it opens."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.paths: list[str] = []

    def open_input(self, path: str) -> pa.NativeFile:
        self.paths.append(path)
        return super().open_input(path)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Captures in one partition a round, and URL checksums in two buckets, a file each a round."""
    uri = str(tmp_path_factory.mktemp("scan"))
    store = Store.open(uri)
    create_tables(store, [schemas.CAPTURES, schemas.URL_CHECKSUMS])
    for number in range(1, ROUNDS_HELD + 1):
        keys = [number * 10_000 + at for at in range(ROWS_A_ROUND)]
        captures = [{"url_key": k, "url": f"http://a/{k}", "outcome": "success" if k % 3 else "gone",
                     "fetch_status": k % 2 * 200 or None, "round": number} for k in keys]  # fmt: skip
        _append(store, schemas.CAPTURES, captures)
        _append(store, schemas.URL_CHECKSUMS, [{"url_key": k, "round": number, "bucket": k % 2} for k in keys])
    return uri


def _append(store: Store, table: Table, rows: list[dict[str, Any]]) -> None:
    write_deltalake(open_table(store, table), pa.Table.from_pylist(rows, arrow_schema(table.columns)), mode="append")


def both(lake: str, table: Table, columns: list[str] | None, where: Any) -> tuple[list[Any], list[Any], int]:
    """What we read, what Arrow's scanner reads, sorted; and how many files we opened."""
    store = Opened(lake)
    delta = open_table(store, table)
    ours = read_matching(store, table, delta, columns, where)
    theirs = delta.to_pyarrow_dataset().to_table(columns=columns, filter=where)
    assert ours.schema.names == (columns or table.names)
    found = [sorted(map(repr, rows.select(ours.schema.names).to_pylist())) for rows in (ours, theirs)]
    return found[0], found[1], len(store.paths)


@pytest.mark.parametrize(
    ("table", "columns", "where", "rows", "files"),
    [
        (schemas.CAPTURES, None, None, 240, 6),
        (schemas.CAPTURES, ["url", "round"], None, 240, 6),
        (schemas.CAPTURES, ["round"], None, 240, 6),
        (schemas.CAPTURES, ["url"], field("round") == pa.scalar(3, pa.int32()), 40, 1),
        (schemas.CAPTURES, ["url"], (field("round") == 3) & (field("outcome") == "gone"), 14, 1),
        (schemas.CAPTURES, ["url", "round"], field("round").isin([2, 5, 9]), 80, 2),
        (schemas.CAPTURES, ["url"], field("round") == pa.scalar(99, pa.int32()), 0, 0),
        (schemas.CAPTURES, ["url"], field("fetch_status").is_null(), 120, 6),
        (schemas.CAPTURES, None, (field("round") > 4) | (field("url") == "http://a/10001"), 81, 6),
        (schemas.URL_CHECKSUMS, ["round"], field("url_key") == 30_007, 1, 2),
        (schemas.URL_CHECKSUMS, None, (field("bucket") == 1) & field("url_key").isin(KEYS), 2, 2),
        (schemas.URL_CHECKSUMS, ["url_key"], field("bucket") == 0, 120, 6),
    ],
)
def test_the_rows_of_arrows_own_scanner_from_as_few_files(
    lake: str, table: Table, columns: list[str] | None, where: Any, rows: int, files: int
) -> None:
    ours, theirs, opened = both(lake, table, columns, where)
    assert ours == theirs
    assert (len(ours), opened) == (rows, files)


def test_an_older_version_has_its_own_rows(lake: str) -> None:
    store = Store.open(lake)
    delta = open_table(store, schemas.CAPTURES, 2)
    assert sorted(set(read_matching(store, schemas.CAPTURES, delta)["round"].to_pylist())) == [1, 2]


def test_reading_needs_no_spark(tmp_path: Path) -> None:
    program = "import sys, crawler.tables.reader, crawler.tables.ledger; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout == "False\n"
