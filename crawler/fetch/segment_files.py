"""The files of a segment: their names, rows to Parquet, and how a resumed task finds what is sealed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crawler.records import PartitionTask, SealedSegment
from crawler.schemas import OUTCOMES, Table, arrow_schema
from crawler.storage import Store

SUBSETS = ("warc", "crawldiagnostics", "robotstxt")
MANIFEST_KEY = b"orbweaver.segment"

_NAME = re.compile(r"-r(?P<round>\d{5,})-p(?P<partition>\d{5,})-a\d+-\d{5,}-[0-9a-f]{8}$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")

Row = dict[str, Any]


def segment_name(task: PartitionTask, prefix: str, start14: str, place: tuple[int, int], unique: str) -> str:
    """The name that all files of a segment share; `place` is attempt and sequence number."""
    prefix = _UNSAFE.sub("-", prefix)
    return f"{prefix}-{start14}-r{task.round:05}-p{task.partition:05}-a{place[0]}-{place[1]:05}-{unique}"


def warc_path(task: PartitionTask, subset: str, name: str) -> str:
    """Where Common Crawl's readers look for a WARC file of the subset.

    The subset is in the file's own name as well: indexes (CDXJ, WACZ) know files by that alone. Nothing takes it apart:
    files are found by the names in tables, and those of older lakes had no subset in them.
    """
    return f"{task.segment_folder}/{subset}/{name}-{subset}.warc.gz"


def parquet_path(task: PartitionTask, kind: str, name: str) -> str:
    """Where outcomes, discoveries or hosts of a segment are, beside the WARC files."""
    return f"{task.segment_folder}/{kind}/{name}.parquet"


def parquet_bytes(rows: Sequence[Row], table: Table, manifest: Mapping[str, Any] | None = None) -> bytes:
    """The rows as a Parquet file, with the manifest in the metadata of its schema."""
    schema = arrow_schema(table.columns)
    if manifest is not None:
        schema = schema.with_metadata({MANIFEST_KEY: json.dumps(manifest, sort_keys=True).encode()})
    columns = [column(field, [row.get(field.name) for row in rows]) for field in schema]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def column(field: pa.Field[Any], values: list[Any]) -> pa.Array[Any]:
    """Values of rows as an Arrow array: epoch seconds become timestamps, mappings pairs."""
    convert = _converter(field.type)
    if convert:
        values = [None if value is None else convert(value) for value in values]
    array: pa.Array[Any] = pa.array(values, type=field.type)
    return array


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_timestamp(kind):
        return lambda seconds: round(seconds * 1_000_000)
    if pa.types.is_string(kind):
        return storable
    if pa.types.is_map(kind):
        return lambda mapping: [(storable(key), value) for key, value in mapping.items()]
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
        return lambda texts: [storable(text) for text in texts]
    return None


def storable(text: str) -> str:
    """The text without what a table cannot hold: NUL and lone surrogates become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def compact(keys: Sequence[int] | None) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """Keys as eight bytes each, for the minutes until the segment is sealed."""
    return None if keys is None else np.asarray(keys, dtype=np.int64)


def sealed_segments(store: Store, task: PartitionTask) -> list[SealedSegment]:
    """The sealed segments of this round and partition, by any attempt, oldest first."""
    found = [manifest(store, path) for path in store.list(f"{task.segment_folder}/outcomes") if belongs(path, task)]
    return [segment for _, segment in sorted(found, key=lambda item: (item[0], item[1].name))]


def belongs(path: str, task: PartitionTask) -> bool:
    """True for an outcomes file of this round and partition."""
    name = _NAME.search(PurePosixPath(path).stem)
    return name is not None and (int(name["round"]), int(name["partition"])) == (task.round, task.partition)


def manifest(store: Store, path: str) -> tuple[float, SealedSegment]:
    """When the segment was sealed and what it consists of, from the footer of its outcomes file."""
    with store.open_input(path) as file:
        values = json.loads(pq.read_schema(file).metadata[MANIFEST_KEY])
    return values.pop("sealed_at"), SealedSegment(**values)


def manifest_of(segment: SealedSegment, sealed_at: float) -> dict[str, Any]:
    """What `manifest` reads back."""
    return dataclasses.asdict(segment) | {"sealed_at": sealed_at}


def read_outcomes(store: Store, segment: SealedSegment, columns: Sequence[str] | None = None) -> pa.Table:
    """The outcome rows of a sealed segment, in the order they were added."""
    with store.open_input(segment.outcomes) as file:
        table = pq.ParquetFile(file).read(None if columns is None else list(columns), use_threads=False)
    wanted = arrow_schema(OUTCOMES.columns)
    return table.cast(pa.schema([wanted.field(name) for name in table.column_names]))


def read_host_states(store: Store, segment: SealedSegment) -> list[Row]:
    """The hosts of a sealed segment as it left them, one row a host."""
    with store.open_input(segment.hosts) as file:
        return pq.ParquetFile(file).read(use_threads=False).to_pylist()
