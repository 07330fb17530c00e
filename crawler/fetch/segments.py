"""Segments: what a fetch task leaves behind, a batch at a time.

A segment is up to three WARC files, a discoveries file, a host states file and an outcomes file. The outcomes file is
created last, whole and once: it is the seal. Whatever has no seal never happened; nothing names its files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from crawler.faults import fault
from crawler.fetch.segment_files import (
    SUBSETS,
    Row,
    compact,
    manifest_of,
    parquet_bytes,
    parquet_path,
    read_host_states,
    read_outcomes,
    sealed_segments,
    segment_name,
    warc_path,
)
from crawler.fetch.warc import CaptureRecord, WarcFile, WarcInfo, WarcPlace
from crawler.records import PartitionTask, SealedSegment
from crawler.schemas import DISCOVERIES, HOST_STATES, OUTCOMES, Table
from crawler.settings import SegmentSettings
from crawler.storage import Store

__all__ = ["SegmentWriter", "read_host_states", "read_outcomes", "sealed_segments"]

SEEN_KEYS = 500_000


class KeyMemory:
    """The keys of late: at least the last `capacity` / 2 distinct ones, never more than `capacity`."""

    def __init__(self, capacity: int = SEEN_KEYS) -> None:
        self._half = max(capacity // 2, 1)
        self._new: set[int] = set()
        self._old: set[int] = set()

    def __contains__(self, key: int) -> bool:
        return key in self._new or key in self._old

    def add(self, key: int) -> None:
        """Remember the key; the older half is forgotten when the newer is full."""
        if len(self._new) >= self._half:
            self._old, self._new = self._new, set()
        self._new.add(key)


@dataclass
class OpenSegment:
    """What is gathered for the segment at hand."""

    name: str
    opened_at: float
    warcs: dict[str, WarcFile] = field(default_factory=dict)
    outcomes: list[Row] = field(default_factory=list)
    discoveries: list[Row] = field(default_factory=list)
    hosts: dict[int, Row] = field(default_factory=dict)


@dataclass
class SegmentWriter:
    """Writes the segments of one attempt of a fetch task. After `abort` it is of no more use."""

    store: Store
    task: PartitionTask
    settings: SegmentSettings
    warc_info: WarcInfo
    attempt: int = 0
    clock: Callable[[], float] = time.time
    fence: Callable[[], object] = bool  # raises where this attempt may not seal any more
    _open: OpenSegment | None = field(default=None, init=False)
    _sequence: int = field(default=0, init=False)
    _seen: KeyMemory = field(default_factory=KeyMemory, init=False)

    def add(self, row: Row, capture: CaptureRecord | None, subset: str = "warc") -> None:
        """Keep an outcome; its capture goes to the WARC file of the subset and the row learns where it is."""
        refuse_unknown(row, OUTCOMES)
        row["partition"] = self.task.partition
        row["links"], row["bands"] = compact(row.get("links")), compact(row.get("bands"))
        if capture:
            path, place = self._archive(capture, subset)
            row |= {
                "warc_filename": path,
                "warc_record_offset": place.offset,
                "warc_record_length": place.length,
                "warc_record_id": place.record_id,
                "warc_record_type": place.record_type,
                "warc_date": place.date,
            }
        self._current().outcomes.append(row)

    def add_robots(self, capture: CaptureRecord) -> WarcPlace:
        """Archive an answer to `/robots.txt`; it has no outcome."""
        return self._archive(capture, "robotstxt")[1]

    def knows(self, url_key: int) -> bool:
        """True when `add_discovery` would leave the URL out; asks before a row is made."""
        return url_key in self._seen

    def add_discovery(self, row: Row) -> None:
        """Keep the text of a URL found, once a task as far as its memory goes."""
        if row["url_key"] in self._seen:
            return
        refuse_unknown(row, DISCOVERIES)
        self._seen.add(row["url_key"])
        self._current().discoveries.append(row)

    def note_host(self, row: Row) -> None:
        """Keep the state of a host; the last note counts."""
        refuse_unknown(row, HOST_STATES)
        self._current().hosts[row["host_key"]] = row

    def is_due(self, now: float) -> bool:
        """True when the open segment has reached its bytes, URLs or seconds."""
        if not self._open:
            return False
        size = max((warc.size for warc in self._open.warcs.values()), default=0)
        is_full = size >= self.settings.max_bytes or len(self._open.outcomes) >= self.settings.max_urls
        return is_full or now - self._open.opened_at >= self.settings.max_seconds

    def seal(self) -> SealedSegment | None:
        """Publish the open segment, its outcomes file last; None when there is none. The next `add` opens another."""
        if not self._open:
            return None
        segment, now = self._open, self.clock()
        fault("segment.unflushed")
        for warc in segment.warcs.values():
            warc.close()
        sealed = self._describe(segment)
        self.store.put(sealed.discoveries, parquet_bytes(segment.discoveries, DISCOVERIES))
        self.store.put(sealed.hosts, parquet_bytes(list(segment.hosts.values()), HOST_STATES))
        fault("segment.unsealed")
        self.fence()
        self._create(sealed.outcomes, parquet_bytes(segment.outcomes, OUTCOMES, manifest_of(sealed, now)))
        self._open = None
        fault("segment.sealed")
        return sealed

    def abort(self) -> None:
        """Give the open segment up; none of its files appears."""
        for warc in self._open.warcs.values() if self._open else ():
            warc.abort()
        self._open = None

    def _current(self) -> OpenSegment:
        if self._open is None:
            now = self.clock()
            start14 = self.task.started14 or time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
            place = (self.attempt, self._sequence)
            name = segment_name(self.task, self.warc_info.is_part_of, start14, place, uuid4().hex[:8])
            self._open = OpenSegment(name, now)
            self._sequence += 1
        return self._open

    def _archive(self, capture: CaptureRecord, subset: str) -> tuple[str, WarcPlace]:
        segment = self._current()
        warc = segment.warcs.get(subset)
        if warc is None:
            if subset not in SUBSETS:
                raise ValueError(f"subset {subset!r} is not one of {', '.join(SUBSETS)}")
            writer = self.store.open_writer(warc_path(self.task, subset, segment.name))
            warc = segment.warcs[subset] = WarcFile(writer, self.warc_info, self.clock)
        return warc.path, warc.write_exchange(capture)

    def _describe(self, segment: OpenSegment) -> SealedSegment:
        return SealedSegment(
            name=segment.name,
            partition=self.task.partition,
            attempt=self.attempt,
            outcomes=parquet_path(self.task, "outcomes", segment.name),
            discoveries=parquet_path(self.task, "discoveries", segment.name),
            hosts=parquet_path(self.task, "hosts", segment.name),
            warcs={subset: warc.path for subset, warc in segment.warcs.items()},
            warc_bytes={subset: warc.size for subset, warc in segment.warcs.items()},
            warc_sha256={subset: warc.sha256 for subset, warc in segment.warcs.items()},
            rows=len(segment.outcomes),
        )

    def _create(self, path: str, data: bytes) -> None:
        """Create the seal. On S3 a repeated request may find the object that it made itself."""
        if not self.store.put_new(path, data) and self.store.read(path) != data:
            raise FileExistsError(f"another segment is called {path}")


def refuse_unknown(row: Row, table: Table) -> None:
    """A column that no table has is a slip of ours, and would vanish without a word."""
    if unknown := row.keys() - set(table.names):
        raise ValueError(f"{table.name} has no column {', '.join(sorted(unknown))}")
