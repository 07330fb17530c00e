"""Verify a lake: every accepted row of `captures` against its bytes, every WARC file against `segments`. Needs no lock:
it reads what is committed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from crawler import schemas
from crawler.columns import Column, Table, arrow_schema, ddl
from crawler.fetch.verify import ROW_COLUMNS, FileCheck, Finding, Noted, check_file
from crawler.storage import Store
from crawler.tables.data_files import ReadFile, read_files
from crawler.tables.direct import DataFile, data_files, read_rows
from crawler.tables.reader import Reader
from jobs.exits import NOT_FOUND, Stop
from jobs.words import count_of, lines_of, size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_PARTS = 1_000  # tasks of a check: small ones, so that people see how far it is
FINDINGS = "array<struct<offset:bigint,url:string,found:string,expected:string>>"
NOTED = (
    Column("path", "string", "WARC file."),
    Column("size", "bigint", "Its size as noted."),
    Column("sha256", "string", "Its SHA-256 as noted."),
)
CHECKED = (
    Column("file", "string", "WARC file."),
    Column("rows", "bigint", "Rows of captures that were read."),
    Column("bytes", "bigint", "Bytes that were read."),
    Column("findings", FINDINGS, "What is not as it should be."),
)


class Verified(NamedTuple):
    """What was looked at, and all that was found, by file and offset."""

    files: int
    rows: int
    bytes: int
    findings: list[Finding]


def committed_versions(store: Store, number: int | None) -> dict[str, int]:
    """The versions that a check reads. Needs no session: raises Stop where nothing, or not that round, is committed,
    and TableError where a table is not whole."""
    reader = Reader.open(store)
    newest = reader.committed()
    if newest is None or reader.committed(number) is None:
        raise Stop(NOT_FOUND, f"{store.uri}: round {number or 1} is not committed; `orbweaver status` shows what is")
    versions: dict[str, int] = newest["versions"]
    reader.require_whole((schemas.CAPTURES, schemas.SEGMENTS), versions)
    return versions


def verify(spark: SparkSession, store: Store, number: int | None = None, share: float | None = None) -> Verified:
    """Check the newest committed version of the lake, of all rounds or of one; `share` (0 to 1) of the rows only.

    Files are checked in parallel. Raises Stop where nothing, or not that round, is committed.
    """
    versions = committed_versions(store, number)
    rows = stored_rows(spark, store, versions["captures"], number)
    files = noted_files(store, versions["segments"], number)
    spark.conf.set("spark.sql.shuffle.partitions", str(min(max(len(files), 1), MAX_PARTS)))
    noted = spark.createDataFrame(files, ddl(NOTED))
    both = noted.groupBy("path").cogroup(rows.groupBy("warc_filename"))
    check: Any = partial(_check_group, store=store, share=share)
    found = both.applyInArrow(check, ddl(CHECKED)).collect()
    findings = [Finding(row["file"], *one) for row in found for one in row["findings"]]
    return Verified(
        files=len(found),
        rows=sum(row["rows"] for row in found),
        bytes=sum(row["bytes"] for row in found),
        findings=sorted(findings, key=lambda one: (one.file, -1 if one.offset is None else one.offset, one.found)),
    )


def stored_rows(spark: SparkSession, store: Store, version: int, number: int | None) -> DataFrame:
    """The rows of `captures` that name a WARC file, of one round or all, with what a check reads of them."""
    columns = [column for column in schemas.CAPTURES.columns if column.name in {"round", *ROW_COLUMNS}]
    named = [ReadFile(file.path, file.size) for file in _files(store, schemas.CAPTURES, version, number)]
    rows = read_files(spark, store, named, columns).where("warc_filename IS NOT NULL")
    return (rows if number is None else rows.where(F.col("round") == number)).drop("round")


def noted_files(store: Store, version: int, number: int | None) -> list[Noted]:
    """The WARC files that `segments` names, of one round or all."""
    paths = [file.path for file in _files(store, schemas.SEGMENTS, version, number)]
    rows = read_rows(store, paths, ("round", "warcs", "warc_bytes", "warc_sha256"))
    return [
        Noted(path, row["warc_bytes"][subset], row["warc_sha256"][subset])
        for row in rows
        if number in {None, row["round"]}
        for subset, path in row["warcs"].items()
    ]


def _files(store: Store, table: Table, version: int, number: int | None) -> list[DataFile]:
    return [file for file in data_files(store, table, version) if number is None or file.may_hold(number)]


def _check_group(noted: pa.Table, rows: pa.Table, store: Store, share: float | None) -> pa.Table:
    """Check one file: what `segments` notes of it, and its rows; either may be empty."""
    known = [Noted(**row) for row in noted.to_pylist()]
    captures = rows.to_pylist()
    path = known[0].path if known else captures[0]["warc_filename"]
    done = check_file(store, path, known[0] if known else None, captures, share)
    twice = [Finding(path, None, None, f"{len(known)} rows of segments name the file", "one")] if known[1:] else []
    return pa.Table.from_pylist([_as_row(done, twice)], schema=arrow_schema(CHECKED))


def _as_row(done: FileCheck, more: list[Finding]) -> dict[str, Any]:
    names = ("offset", "url", "found", "expected")
    findings = [{name: getattr(one, name) for name in names} for one in (*more, *done.findings)]
    return {"file": done.file, "rows": done.rows, "bytes": done.bytes, "findings": findings}


def as_text(done: Verified) -> str:
    """The findings, a paragraph each, and the counts."""
    lines = []
    for one in done.findings:
        where = "the whole file" if one.offset is None else f"offset {one.offset}, {one.url}"
        lines += [f"{one.file}, {where}:", f"  found    {one.found}", f"  expected {one.expected}"]
    counts = f"{count_of(done.files, 'WARC file')}, {count_of(done.rows, 'row')}, {size(done.bytes)} checked"
    return lines_of([*lines, f"{counts}; {count_of(len(done.findings), 'finding')}"])


def as_json(done: Verified) -> dict[str, Any]:
    """The same as JSON knows values."""
    return {**done._asdict(), "findings": [one._asdict() for one in done.findings]}
