"""WARC 1.1 files: a warcinfo, then request, response or revisit, and metadata, one gzip member a record.

warcio's model writes the header block, isal compresses the member. A field value can hold no line break, so nothing a
server says can forge a header line.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from isal import isal_zlib

import crawler
from crawler.faults import fault
from crawler.fetch.warc_payload import payload_digest
from crawler.fetch.warc_records import (
    CaptureRecord,
    Exchange,
    Record,
    Revisit,
    Tls,
    answer_record,
    metadata_record,
    request_record,
    warc_date,
    warc_fields,
)
from crawler.settings import CrawlSettings
from crawler.storage import ObjectWriter

__all__ = ["CaptureRecord", "Revisit", "Tls", "WarcFile", "WarcInfo", "WarcPlace", "payload_digest"]

GZIP_LEVEL = 2  # of isal: 27 KB in 25 us; zlib's best takes 440 us for a fifth less
GZIP_WINDOW = 31  # a deflate window of 32 KiB, in a gzip frame
CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class WarcPlace(NamedTuple):
    """Where the response or revisit record of an exchange lies; the range decodes alone."""

    offset: int
    length: int
    record_id: str
    date: str
    record_type: str


@dataclass(frozen=True, slots=True)
class WarcInfo:
    """Who crawls, with what and how: the first record of every file (6.2). `is_part_of` also begins file names."""

    is_part_of: str
    user_agent: str
    operator: str = ""
    contact: str = ""
    description: str = ""
    hostname: str = ""
    software: str = f"orbweaver/{crawler.__version__}"

    @classmethod
    def of(cls, settings: CrawlSettings, user_agent: str, hostname: str = "") -> WarcInfo:
        """What the settings say; `user_agent` is the one that requests carry."""
        return cls(settings.name, user_agent, operator=settings.operator, contact=settings.contact, hostname=hostname)

    def block(self) -> bytes:
        """The fields in Common Crawl's order; what is not known is left out."""
        return warc_fields(
            [
                ("isPartOf", self.is_part_of),
                ("description", self.description),
                ("operator", " ".join(filter(None, (self.operator, self.contact)))),
                ("hostname", self.hostname),
                ("software", self.software),
                ("robots", "obeyed as in RFC 9309"),
                ("http-header-user-agent", self.user_agent),
                ("format", "WARC File Format 1.1"),
                ("conformsTo", CONFORMS_TO),
            ]
        )


def new_record_id() -> str:
    """A WARC-Record-ID that nobody else has."""
    return f"<urn:uuid:{uuid4()}>"


class WarcFile:
    """Appends records to a writer, the warcinfo first. Not for several threads."""

    def __init__(
        self,
        writer: ObjectWriter,
        info: WarcInfo,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_record_id,
    ) -> None:
        self.path = writer.path
        self._writer = writer
        self._new_id = new_id
        self._sha256 = hashlib.sha256()
        self._is_whole = True
        self._info_id = new_id()
        fields = [
            ("WARC-Type", "warcinfo"),
            ("WARC-Date", warc_date(clock())),
            ("WARC-Record-ID", self._info_id),
            ("WARC-Filename", writer.path.rpartition("/")[2]),
            ("Content-Type", "application/warc-fields"),
        ]
        record = Record(fields, info.block())
        self._append(record, record.header())

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._writer.tell()

    @property
    def sha256(self) -> str:
        """Of these bytes, hexadecimal."""
        return self._sha256.hexdigest()

    def write_exchange(self, capture: CaptureRecord) -> WarcPlace:
        """Write request, response or revisit, and metadata; the place is that of the response or revisit.

        ValueError, and nothing written, for a capture that no archive may hold: that is our own bug.
        """
        date = warc_date(capture.started_at)
        exchange = Exchange(self._info_id, date, self._new_id(), self._new_id(), self._new_id())
        answer = answer_record(capture, exchange)
        records = [request_record(capture, exchange), answer, metadata_record(capture, exchange)]
        ready = [(record, record.header()) for record in records if record]
        places = [(record, *self._append(record, header)) for record, header in ready]
        offset, length = next(place for record, *place in places if record is answer)
        return WarcPlace(offset, length, exchange.answer_id, date, "revisit" if capture.revisit else "response")

    def close(self) -> None:
        """Publish the file; OSError when a write into it failed before."""
        if not self._is_whole:
            raise OSError(f"{self.path} ends inside a record")
        self._writer.close()

    def abort(self) -> None:
        """Leave nothing."""
        self._writer.abort()

    def _append(self, record: Record, header: bytes) -> tuple[int, int]:
        """Offset and length of the record's gzip member."""
        offset = self._writer.tell()
        self._is_whole = False
        packer = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, GZIP_WINDOW)
        self._put(packer.compress(header))
        fault("warc.record")
        for part in record.block():
            self._put(packer.compress(part))
        self._put(packer.compress(b"\r\n\r\n"))
        self._put(packer.flush())
        self._is_whole = True
        return offset, self._writer.tell() - offset

    def _put(self, packed: bytes) -> None:
        if packed:
            self._sha256.update(packed)
            self._writer.write(packed)
