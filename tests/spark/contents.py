"""What the tables of a lake say, without what differs between two crawls of the same web: times, record ids, places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crawler import schemas
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.reader import Reader

Row = dict[str, Any]

OF_CHANCE = {
    schemas.FRONTIER: {"visited_at", "digest_record_id", "digest_date"},
    schemas.PLANS: {"visited_at", "digest_record_id", "digest_date", "host_state"},
    schemas.CAPTURES: {
        *("fetch_time", "fetch_s", "warc_filename", "warc_record_offset", "warc_record_length"),
        *("warc_record_id", "warc_date"),
    },
    schemas.HOSTS: {"addresses", "robots", "not_before", "last_request_at", "last_fetch_s"},
    schemas.CONTENT_CHECKSUMS: {
        *("fetch_time", "warc_filename", "warc_record_offset", "warc_record_length", "warc_record_id"),
    },
    schemas.URL_CHECKSUMS: set(),
    schemas.NEAR_DUPLICATES: set(),
    schemas.SEEDS: set(),
}  # fmt: skip


def contents(store: Store, versions: Mapping[str, int] | None = None) -> dict[str, list[str]]:
    """Every table but `segments` and `rounds`, rows as sorted text; as committed last where no versions are given."""
    reader = Reader.open(store)
    newest = reader.committed()
    assert newest is not None
    read = versions or newest["versions"]
    return {
        table.name: rows_as_text(reader.rows(table, read).to_pylist(maps_as_pydicts="strict"), table)
        for table in OF_CHANCE
    }


def rows_as_text(rows: list[Row], table: Table) -> list[str]:
    """Sorted, without the columns of chance; of a host its newest row only, as its readers see it."""
    if table is schemas.HOSTS:
        rows = list({row["host_key"]: row for row in sorted(rows, key=lambda row: row["round"])}.values())
    dropped = OF_CHANCE[table]
    return sorted(repr({name: _plain(row[name]) for name in sorted(row) if name not in dropped}) for row in rows)


def _plain(value: Any) -> Any:
    return sorted(value.items()) if isinstance(value, dict) else value


def different(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows that only one of the two has, by table."""
    found = {name: sorted(set(one[name]) ^ set(other[name])) for name in one}
    found |= {f"{name} (rows)": [str(len(one[name])), str(len(other[name]))] for name in one
              if len(one[name]) != len(other[name])}  # fmt: skip
    return {name: rows for name, rows in found.items() if rows}
