"""What a repair does to a lake: cuts the files, and takes from the tables what spoke of the records that are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.columns import ddl
from crawler.fetch.mend import Scan, cut
from crawler.fetch.verify import Noted
from crawler.schemas import Column, Table
from crawler.tables.data_files import ReadFile, read_files
from crawler.tables.direct import DataFile, Write, is_done, read_rows
from crawler.tables.lake import Lake
from crawler.tables.manifest import TableError
from crawler.transforms.slots import slot_of

FILE = Column("file", "string", "The data file that a row lies in.")
CLEARED = ("etag", "last_modified", "content_digest", "digest_record_id", "digest_date")
"""What the frontier remembers of a stored payload: with it servers answer 304, and records refer to that payload."""
CHANGED = (schemas.FRONTIER, schemas.CONTENT_CHECKSUMS, schemas.NEAR_DUPLICATES, schemas.CAPTURES, schemas.SEGMENTS)
LOST = "url_key bigint, round int, warc_record_id string"


@dataclass(frozen=True)
class Lost:
    """A record that is gone: what was captured, and where it lay."""

    url: str
    round: int
    file: str
    offset: int
    url_key: int
    record_id: str


class Place(NamedTuple):
    """Where a WARC file is noted: the data file of `segments`, and the round."""

    noted: Noted
    data_file: DataFile
    round: int


def mend(lake: Lake, scans: Sequence[Scan], places: Mapping[str, Place], lost: Sequence[Lost], now: float) -> None:
    """Cut the files, then change the tables, in the order that a second attempt needs."""
    refuse_replay(lake)
    lake.lock.check()
    for one in scans:
        if one.size not in {None, one.kept}:
            cut(lake.store, one.path, one.kept)
    if lost:
        keys = lake.spark.createDataFrame([(one.url_key, one.round, one.record_id) for one in lost], LOST)
        _change_tables(lake, keys.localCheckpoint(), {one.round for one in lost}, now)
    touched = {places[one.path].data_file.path: places[one.path].data_file for one in scans}
    rows = [row for file in touched.values() for row in _segment_rows(lake, file, {one.path: one for one in scans})]
    _change(
        lake, schemas.SEGMENTS, list(touched.values()), lake.spark.createDataFrame(rows, ddl(schemas.SEGMENTS.columns))
    )


def _change_tables(lake: Lake, lost: DataFrame, rounds: set[int], now: float) -> None:
    urls = lost.select("url_key").distinct()
    records = lost.select(F.col("warc_record_id").alias("digest_record_id")).distinct()
    remembered = [(urls, "url_key"), (records, "digest_record_id")]
    if files := _files_with(lake, lake.tables.files(schemas.FRONTIER), schemas.FRONTIER, remembered):
        rows = lake.tables.read_these(schemas.FRONTIER, files)
        _change(lake, schemas.FRONTIER, files, due_again(rows, urls, records, now))
    for table, columns in (
        (schemas.CONTENT_CHECKSUMS, ["warc_record_id"]),
        (schemas.NEAR_DUPLICATES, ["url_key", "round"]),
        (schemas.CAPTURES, ["url_key", "round", "warc_record_id"]),
    ):
        gone = lost.select(*columns).distinct()
        candidates = lake.tables.files(table)
        if table.shape == "log":
            candidates = [file for file in candidates if any(map(file.may_hold, rounds))]
        if files := _files_with(lake, candidates, table, [(gone, columns)]):
            rows = lake.tables.read_these(table, files)
            _change(lake, table, files, rows.join(F.broadcast(gone), columns, "left_anti"))


def due_again(rows: DataFrame, urls: DataFrame, records: DataFrame, now: float) -> DataFrame:
    """Rows of the frontier: those of the lost URLs due now, and none that remembers a payload which is lost."""
    marked = rows.join(F.broadcast(urls.withColumn("is_lost", F.lit(True))), "url_key", "left")
    marked = marked.join(F.broadcast(records.withColumn("is_gone", F.lit(True))), "digest_record_id", "left")
    is_lost = F.col("is_lost").isNotNull()
    is_cleared = is_lost | F.col("is_gone").isNotNull()
    due = F.least("due_at", F.timestamp_micros(F.lit(int(now * 1e6))))
    values = {name: F.when(~is_cleared, F.col(name)) for name in CLEARED}
    moved = marked.withColumns({**values, "due_at": F.when(is_lost, due).otherwise(F.col("due_at"))})
    slot = F.when(is_lost, F.least("slot", slot_of("due_at", now))).otherwise(F.col("slot"))
    return moved.withColumn("slot", slot).select(*schemas.FRONTIER.names)


def _files_with(
    lake: Lake, candidates: Sequence[DataFile], table: Table, wanted: Sequence[tuple[DataFrame, Any]]
) -> list[DataFile]:
    """Those of a table's data files that hold rows of any of these keys."""
    files = {file.path: file for file in candidates}
    names = {name for keys, _ in wanted for name in keys.columns}
    columns = [column for column in table.columns if column.name in names]
    named = [ReadFile(file.path, file.size, {**file.partition, FILE.name: file.path}) for file in files.values()]
    rows = read_files(lake.spark, lake.store, named, (*columns, FILE))
    found = [rows.join(F.broadcast(keys), on, "left_semi").select(FILE.name) for keys, on in wanted]
    paths = {row[0] for one in found for row in one.distinct().collect()}
    return [file for path, file in files.items() if path in paths]


def _segment_rows(lake: Lake, file: DataFile, scans: Mapping[str, Scan]) -> list[tuple[Any, ...]]:
    """The rows of a data file of `segments`, with the new sizes and digests of mended files; one of which nothing is
    kept is named no more."""
    rows = []
    for row in read_rows(lake.store, [file.path], schemas.SEGMENTS.names):
        mended = {subset: scans[path] for subset, path in row["warcs"].items() if path in scans}
        row["warc_bytes"] |= {subset: one.kept for subset, one in mended.items()}
        row["warc_sha256"] |= {subset: one.kept_sha256 for subset, one in mended.items()}
        for subset in (subset for subset, one in mended.items() if not one.kept):
            for name in ("warcs", "warc_bytes", "warc_sha256"):
                del row[name][subset]
        rows.append(tuple(row[name] for name in schemas.SEGMENTS.names))
    return rows


def refuse_replay(lake: Lake) -> None:
    """Raise TableError where a write of this token would be taken for a replay, and change nothing."""
    if any(is_done(lake.store, table, _write(lake, table)) for table in CHANGED):
        raise TableError(f"a repair with the lock's token {lake.lock.token} was made already: let go of the lock first")


def _write(lake: Lake, table: Table) -> Write:
    return lake.write(f"repair/{table.name}", lake.lock.token)


def _change(lake: Lake, table: Table, files: Sequence[DataFile], rows: DataFrame) -> None:
    lake.lock.check()
    lake.tables.change(table, files, rows, _write(lake, table))
