"""What a capture left in a WARC file: its record, parted into HTTP head and body."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, NamedTuple

from crawler import schemas
from crawler.fetch.headers import head_end
from crawler.fetch.warc_reader import GZIP_WINDOW
from crawler.fetch.warc_records import HTTP_HEAD
from crawler.storage import Store
from crawler.tables.manifest import TableError
from crawler.tables.reader import Reader, Row, Versions, of_key, pc

RECORD_HEAD_END = b"\r\n\r\n"
METADATA_BYTES, MOST_UNPACKED = 256 * 1024, 1024 * 1024
"""Of a metadata record: read at most, and unpacked at most. A head of 64 KiB takes six times as much as JSON."""


class Record(NamedTuple):
    """A WARC record. Header names are lower case; `head` is the HTTP head as stored, `body` the rest of the block."""

    headers: dict[str, str]
    head: bytes
    body: bytes


def read_record(store: Store, capture: Row) -> Record:
    """The record that a capture (or any row with the warc_* columns) names. Raises TableError when it is not there."""
    place = f"{capture['warc_filename']} at {capture['warc_record_offset']:,}"
    try:
        member = store.read_range(
            capture["warc_filename"], capture["warc_record_offset"], capture["warc_record_length"]
        )
        record = parse_record(gzip.decompress(member))
    except (OSError, EOFError, ValueError, KeyError, zlib.error) as error:
        raise TableError(f"the WARC record of {capture['url']} cannot be read ({place}): {error}") from error
    if record.headers.get("warc-type") == "revisit" and not record.head:
        return record._replace(head=head_behind(store, capture, record))
    return record


def head_behind(store: Store, capture: Row, revisit: Record) -> bytes:
    """The head that came with a revisit without a block: it is in the metadata record behind. Empty where it is not."""
    end = capture["warc_record_offset"] + capture["warc_record_length"]
    try:
        packed = store.read_range(capture["warc_filename"], end, METADATA_BYTES)
        metadata = parse_record(zlib.decompressobj(GZIP_WINDOW).decompress(packed, MOST_UNPACKED))
        if metadata.headers.get("warc-concurrent-to") != revisit.headers["warc-record-id"]:
            return b""
        fields = dict(line.partition(": ")[::2] for line in metadata.body.decode().split("\r\n"))
        return str(json.loads(fields[HTTP_HEAD])).encode("latin-1")
    except (OSError, ValueError, KeyError, zlib.error):
        return b""


def parse_record(data: bytes) -> Record:
    """The record of one decompressed member. Raises ValueError or KeyError when it is none (WARC 1.1, section 4)."""
    fields, end, rest = data.partition(RECORD_HEAD_END)
    version, *lines = fields.decode("utf-8", "replace").split("\r\n")
    if not end or not version.startswith("WARC/"):
        raise ValueError("not a WARC record")
    pairs = (line.partition(":")[::2] for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    block = rest[: int(headers["content-length"])]
    body_at = head_end(block, 0) if headers.get("content-type", "").startswith("application/http") else 0
    return Record(headers, block[:body_at], block[body_at:]) if body_at >= 0 else Record(headers, block, b"")


def http_headers(record: Record) -> dict[str, str]:
    """The HTTP header fields of a record by lower-case name; the last one of a name, and all content codings."""
    lines = record.head.decode("latin-1").replace("\r\n", "\n").split("\n")[1:]
    fields = [
        (name.strip().lower(), value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon
    ]
    codings = ", ".join(value for name, value in fields if name == "content-encoding")
    return dict(fields) | ({"content-encoding": codings} if codings else {})


def captures_of(reader: Reader, versions: Versions, key: int) -> list[Row]:
    """All captures of a URL, oldest first."""
    rows: list[Row] = reader.rows(schemas.CAPTURES, versions, where=of_key(key)).to_pylist(maps_as_pydicts="strict")
    return sorted(rows, key=lambda row: (row["round"], row["fetch_time"]))


def original_of(reader: Reader, versions: Versions, revisit: Record, candidates: list[Row]) -> Row | None:
    """The capture that holds the body which a revisit record stands for (WARC 1.1, 6.7.2): by record id among the
    candidates, then among all captures, then by payload digest."""
    wanted = bare_id(revisit.headers.get("warc-refers-to", ""))
    digest = revisit.headers.get("warc-payload-digest", "").removeprefix("sha1:")
    known = [row for row in candidates if row["warc_record_type"] == "response"]
    here = [row for row in known if bare_id(row["warc_record_id"]) == wanted]
    return _last(here) or _find(reader, versions, wanted, digest) or _last(known)


def bare_id(text: str | None) -> str:
    """A record id without angle brackets."""
    return (text or "").strip("<>")


def _find(reader: Reader, versions: Versions, record_id: str, digest: str) -> Row | None:
    is_response = pc.field("warc_record_type") == "response"
    conditions = [pc.field("warc_record_id").isin([record_id, f"<{record_id}>"])] if record_id else []
    conditions += [pc.field("content_digest") == digest] if digest else []
    for condition in conditions:
        found: list[Any] = reader.rows(schemas.CAPTURES, versions, where=condition & is_response).to_pylist()
        if found:
            first: Row = min(found, key=lambda row: row["fetch_time"])
            return first
    return None


def _last(rows: list[Row]) -> Row | None:
    return rows[-1] if rows else None
