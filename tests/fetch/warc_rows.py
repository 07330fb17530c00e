"""A WARC file and the rows of `captures` that name its records."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from crawler.fetch.verify import Noted
from crawler.fetch.warc import CaptureRecord, payload_digest
from crawler.storage import Store
from tests.fetch.warc_samples import new_file

PATH = "crawl-data/ORB-TEST/segments/1/warc/X.warc.gz"
Row = dict[str, Any]


class Written(NamedTuple):
    """A file as it was written: what the tables say of it, and its bytes."""

    noted: Noted
    rows: list[Row]
    data: bytes


def write_file(store: Store, *captures: CaptureRecord) -> Written:
    """Write the captures, and make the rows as a fetch task and a round would."""
    warc = new_file(store.open_writer(PATH))
    rows = []
    for capture in captures:
        place = warc.write_exchange(capture)
        rows.append(
            {
                "url": capture.url,
                "warc_filename": PATH,
                "warc_record_offset": place.offset,
                "warc_record_length": place.length,
                "warc_record_id": place.record_id,
                "warc_record_type": place.record_type,
                "content_digest": None if capture.truncated else payload_digest(capture.body),
                "content_truncated": capture.truncated,
            }
        )
    warc.close()
    return Written(Noted(PATH, warc.size, warc.sha256), rows, store.read(PATH))


def noted_of(data: bytes) -> Noted:
    """What `segments` would say of a file with these bytes."""
    return Noted(PATH, len(data), hashlib.sha256(data).hexdigest())
