"""The invariants of a lake (I1 to I4 and I6), looked for in its files: each function returns what breaks one.

Reads the tables with `deltalake` and the WARC files with the tests' own reader, so it shares neither Spark nor the
writers with what it judges.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq

from crawler import schemas
from crawler.fetch.segment_files import SUBSETS
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.reader import Reader
from tests.fetch.warc_reading import ReadRecord, read_at, sha1

Row = dict[str, Any]


@dataclass
class Committed:
    """A lake as its newest committed round left it."""

    store: Store

    @cached_property
    def versions(self) -> dict[str, int]:
        newest = Reader.open(self.store).committed()
        assert newest is not None
        versions: dict[str, int] = newest["versions"]
        return versions

    def rows(self, table: Table) -> list[Row]:
        rows: list[Row] = Reader.open(self.store).rows(table, self.versions).to_pylist(maps_as_pydicts="strict")
        return rows

    @cached_property
    def captures(self) -> list[Row]:
        return self.rows(schemas.CAPTURES)

    @cached_property
    def segments(self) -> list[Row]:
        return self.rows(schemas.SEGMENTS)

    def breaches(self) -> list[str]:
        """Everything that breaks an invariant."""
        checks = (self.not_one_outcome, self.bad_slices, self.shared_bytes, self.bad_warc_files, self.not_known_once)
        return [breach for check in checks for breach in check()]

    def not_one_outcome(self) -> Iterator[str]:
        """I1: every planned URL has exactly one accepted outcome row, and one capture that is that row."""
        planned = [(row["round"], row["url_key"]) for row in self.rows(schemas.PLANS) if row["kind"] == "url"]
        names = ("url_key", "outcome", "warc_record_id")
        captured = [(row["round"], *(row[name] for name in names)) for row in self.captures]
        accepted = [
            (segment["round"], *(row[name] for name in names))
            for segment in self.segments
            for row in pq.read_table(self.store.open_input(segment["outcomes"]), columns=list(names)).to_pylist()
        ]
        yield from _differences("I1: outcomes of the plan", Counter(planned), Counter(row[:2] for row in accepted))
        yield from _differences("I1: captures of the outcomes", Counter(accepted), Counter(captured))
        yield from (f"I1: planned twice: {key}" for key, count in Counter(planned).items() if count > 1)

    def bad_slices(self) -> Iterator[str]:
        """I2: the slice of every accepted row parses alone, and is the record that the row and its digests say."""
        for name, rows in _by_file(self.captures).items():
            data = self.store.read(name)
            for row in rows:
                try:
                    record = read_at(data, row["warc_record_offset"], row["warc_record_length"])
                except Exception as error:  # noqa: BLE001 - whatever the slice does to the reader is the finding
                    yield f"I2: {row['url']} in {name}: {type(error).__name__}: {error}"
                else:
                    yield from (f"I2: {row['url']} in {name}: {fault}" for fault in _faults(record, row))

    def shared_bytes(self) -> Iterator[str]:
        """I3: no byte of a WARC file belongs to two rows."""
        for name, rows in _by_file(self.captures).items():
            ranges = sorted((row["warc_record_offset"], row["warc_record_length"], row["url"]) for row in rows)
            for (start, length, first), (other, _, second) in pairwise(ranges):
                if other < start + length:
                    yield f"I3: {name}: {first} and {second} share bytes at {other}"

    def bad_warc_files(self) -> Iterator[str]:
        """I4, one half: every WARC file that a segment or a capture names is there, as long and as intact as noted."""
        for segment in self.segments:
            for subset, path in segment["warcs"].items():
                data = self.store.read(path) if self.store.exists(path) else b""
                if len(data) != segment["warc_bytes"][subset]:
                    yield f"I4: {path} has {len(data)} bytes, not {segment['warc_bytes'][subset]}"
                elif hashlib.sha256(data).hexdigest() != segment["warc_sha256"][subset]:
                    yield f"I4: {path} is not what was written"
        for name in _by_file(self.captures).keys() - self.named_warc_files():
            yield f"I4: captures name {name}, which no segment names"

    def named_warc_files(self) -> set[str]:
        return {path for segment in self.segments for path in segment["warcs"].values()}

    def orphans(self) -> list[str]:
        """I4, the other half: the WARC files that no segment names; only a kill may leave any."""
        stored = [path for path in self.store.list("crawl-data") if path.split("/")[-2] in SUBSETS]
        return sorted(set(stored) - self.named_warc_files())

    def not_known_once(self) -> Iterator[str]:
        """I6: every known URL is in the calendar once, and the checksums know exactly those."""
        visits = Counter(row["url_key"] for row in self.rows(schemas.FRONTIER))
        seen = Counter(row["url_key"] for row in self.rows(schemas.URL_CHECKSUMS))
        yield from (f"I6: {key} is {count} times in the frontier" for key, count in visits.items() if count > 1)
        yield from (f"I6: {key} is {count} times in url_checksums" for key, count in seen.items() if count > 1)
        yield from _differences("I6: frontier of the known URLs", seen, visits)
        unknown = {row["url_key"] for row in self.captures} - visits.keys()
        yield from (f"I6: {key} was visited and is not in the frontier" for key in unknown)


def _differences(name: str, wanted: Counter[Any], found: Counter[Any]) -> Iterator[str]:
    yield from (f"{name}: {key} is missing" for key in sorted((wanted - found).keys(), key=repr))
    yield from (f"{name}: {key} is too much" for key in sorted((found - wanted).keys(), key=repr))


def _by_file(captures: Iterable[Row]) -> dict[str, list[Row]]:
    files: defaultdict[str, list[Row]] = defaultdict(list)
    for row in captures:
        if row["warc_filename"] is not None:
            files[row["warc_filename"]].append(row)
    return files


def _faults(record: ReadRecord, row: Row) -> Iterator[str]:
    if (record["WARC-Record-ID"], record.type) != (row["warc_record_id"], row["warc_record_type"]):
        yield "another record lies there"
    if record["WARC-Target-URI"] != row["url"]:
        yield f"it is the record of {record['WARC-Target-URI']}"
    if record["WARC-Block-Digest"] != sha1(record.block):
        yield "the block digest does not match"
    is_whole = row["content_digest"] is not None and row["warc_record_type"] == "response"
    if is_whole and f"sha1:{row['content_digest']}" != sha1(record.body):
        yield "the payload is not the one of content_digest"
