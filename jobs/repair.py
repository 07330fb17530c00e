"""Repair a lake whose WARC files were cut or damaged: what is whole stays, what was lost is fetched again.

The file is cut first, then the tables follow. `captures` and `segments` come last of the tables, since a repair that
was killed finds in them what is still to do; the row of the ledger comes after all. So the same command finishes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import functions as F

from crawler import schemas
from crawler.fetch.mend import Scan, scan
from crawler.fetch.verify import ROW_COLUMNS, Noted, check_row
from crawler.fetch.warc_reader import ranges
from crawler.storage import Store
from crawler.tables.direct import Write, read_rows
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow
from jobs.driver import refuse_open_round
from jobs.exits import NOT_FOUND, Stop
from jobs.output import json_text
from jobs.repair_tables import Lost, Place, mend
from jobs.words import count_of, lines_of, number


class Mended(NamedTuple):
    """A file that was cut: bytes before (None: it was not there) and after."""

    file: str
    bytes_before: int | None
    bytes_after: int


class Left(NamedTuple):
    """A file that is damaged and stays as it is, and why."""

    file: str
    reason: str


@dataclass
class Repaired:
    """What a repair did. `is_committed` is false when there was nothing to do."""

    files: list[Mended] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    is_committed: bool = False


def repair(lake: Lake, names: Sequence[str], now: float) -> Repaired:
    """Mend the named WARC files, or look at all; `now` (epoch seconds) is when lost URLs become due.

    A file that is missing, or holds readable records behind the damage, is given up only when it is named. Raises
    Stop while a round is open, and for a name that `segments` does not have.
    """
    newest = _newest_committed(lake)
    if newest is None:
        return Repaired()
    versions = lake.settled(newest.versions)
    places = _places(lake, versions)
    chosen = [_known(lake.store, places, name) for name in names] or sorted(places)
    scans = [one for one in _scan_all(lake, [places[path].noted for path in chosen]) if not one.is_as_noted]
    behind = _rows_behind(lake, versions, scans, places)
    done = Repaired()
    for one in scans:
        reason = None if names else _reason_to_leave(lake.store, one, behind.get(one.path, ()))
        if reason:
            done.left.append(Left(one.path, reason))
        else:
            done.files.append(Mended(one.path, one.size, one.kept))
            done.lost += [_lost(row) for row in behind.get(one.path, ())]
    mended = {one.file for one in done.files}
    if mended:
        _keep_record(lake, done)
        mend(lake, [one for one in scans if one.path in mended], places, done.lost, now)
    done.is_committed = _commit(lake, newest)
    return done


def _newest_committed(lake: Lake) -> RoundRow | None:
    """The ledger's newest row; None in a lake without rounds."""
    refuse_open_round(lake.store)
    rows = lake.ledger.newest(1)
    return rows[-1] if rows else None


def _places(lake: Lake, versions: Mapping[str, int]) -> dict[str, Place]:
    """Every WARC file that `segments` names, by path."""
    found = {}
    for file in lake.files(schemas.SEGMENTS, versions):
        for row in read_rows(lake.store, [file.path], ("round", "warcs", "warc_bytes", "warc_sha256")):
            for subset, path in row["warcs"].items():
                noted = Noted(path, row["warc_bytes"][subset], row["warc_sha256"][subset])
                found[path] = Place(noted, file, row["round"])
    return found


def _known(store: Store, places: Mapping[str, Place], name: str) -> str:
    """The path in the lake of a file that a user names so, or by its full path."""
    if name in places:
        return name
    try:
        path = store.relative(name)
    except ValueError:
        path = name
    if path not in places:
        raise Stop(NOT_FOUND, f"{store.uri}: no row of segments names {name}")
    return path


def _scan_all(lake: Lake, noted: Sequence[Noted]) -> list[Scan]:
    """Look at the files in parallel."""
    if not noted:
        return []
    context = lake.spark.sparkContext
    slices = min(len(noted), context.defaultParallelism * 4)
    return context.parallelize(list(noted), slices).map(partial(scan, lake.store)).collect()


def _rows_behind(
    lake: Lake, versions: Mapping[str, int], scans: Sequence[Scan], places: Mapping[str, Place]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of `captures` that lie, in part or whole, behind what is kept of their file; by file."""
    if not scans:
        return {}
    rounds = {places[one.path].round for one in scans}
    kept = lake.spark.createDataFrame([(one.path, one.kept) for one in scans], "warc_filename string, kept bigint")
    files = [file for file in lake.files(schemas.CAPTURES, versions) if any(map(file.may_hold, rounds))]
    rows = lake.tables.read_these(schemas.CAPTURES, files).where(F.col("round").isin(*rounds))
    behind = rows.join(F.broadcast(kept), "warc_filename").where("warc_record_offset + warc_record_length > kept")
    found: dict[str, list[dict[str, Any]]] = {}
    for row in behind.select(*ROW_COLUMNS, "url_key", "round").orderBy("warc_filename", "warc_record_offset").collect():
        found.setdefault(row["warc_filename"], []).append(row.asDict())
    return found


def _reason_to_leave(store: Store, one: Scan, behind: Iterable[Mapping[str, Any]]) -> str | None:
    """Why a file that nobody named is not cut; None when nothing would be lost that can be read."""
    if one.size is None:
        return "it is not there; where it cannot come back, name it, and its records are given up"
    readable = sum(not check_row(_slice(store, row), row, one.size) for row in behind)
    if readable:
        return f"{count_of(readable, 'record')} behind the damage can still be read; name it, and they are given up"
    return None


def _slice(store: Store, row: Mapping[str, Any]) -> Iterable[bytes]:
    start = row["warc_record_offset"]
    return ranges(store, row["warc_filename"], start, start + row["warc_record_length"])


def _lost(row: Mapping[str, Any]) -> Lost:
    place = (row["warc_filename"], row["warc_record_offset"])
    return Lost(row["url"], row["round"], *place, url_key=row["url_key"], record_id=row["warc_record_id"])


def _keep_record(lake: Lake, done: Repaired) -> None:
    """Write down what is lost before anything is changed: a killed repair has printed nothing."""
    lake.lock.check()
    lake.store.put(f"reports/repairs/{lake.lock.token:010d}.json", json_text(as_json(done), indent=1).encode())


def _commit(lake: Lake, newest: RoundRow) -> bool:
    """Record the versions of the tables where they are not those that readers see."""
    versions = lake.versions()
    if versions == newest.versions:
        return False
    lake.lock.check()
    signed = replace(newest, versions=versions, token=lake.lock.token, recorded=time.time())
    lake.ledger.record(signed, Write("repair/rounds", lake.lock.token, note=f"token {lake.lock.token}"))
    return True


def as_text(done: Repaired) -> str:
    """Files with the records that they lost, what is left, and the sum."""
    lines = []
    for one in done.files:
        before = "missing" if one.bytes_before is None else f"{number(one.bytes_before)} bytes"
        lines.append(f"{one.file}: {before} before, {number(one.bytes_after)} bytes after")
        lines += [
            f"  lost: round {row.round}, offset {row.offset}, {row.url}" for row in done.lost if row.file == one.file
        ]
    lines += [f"left as it is: {one.file}: {one.reason}" for one in done.left]
    if not done.files and done.is_committed:
        lines.append("the tables of an earlier command that was killed are committed now")
    return lines_of([*lines, f"{count_of(len(done.files), 'file')} mended, {count_of(len(done.lost), 'record')} lost"])


def as_json(done: Repaired) -> dict[str, Any]:
    """The same as JSON knows values."""
    return {
        "files": [one._asdict() for one in done.files],
        "lost": [asdict(one) for one in done.lost],
        "left": [one._asdict() for one in done.left],
        "committed": done.is_committed,
    }
