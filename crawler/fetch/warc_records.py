"""From a capture to WARC records: named fields and block. Sections are those of the WARC 1.1 specification.

The revisit for a 304 has no block (6.7.3 allows that). With the server's head in it, replay tools would serve that
head: pywb takes any 3xx head in a revisit for a redirect, and shows a blank page. Without, they follow the pointers and
serve head and body of the record that has the payload. The head of the 304 is kept, byte for byte, as the field
`http-head` of the metadata record: of another content type than `application/warc-fields` that record itself would be
taken for a capture.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal, NamedTuple

from warcio.statusandheaders import StatusAndHeaders

from crawler.fetch.warc_payload import Payload, chunks, digest, payload_digest, size, stored_head

HTTP_HEAD = "http-head"
"""The field of a metadata record that holds a head: a JSON string in ASCII, a byte a character (Latin-1)."""

PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
TRUNCATIONS = frozenset({"length", "time", "disconnect", "unspecified"})

_ONE_LINE = re.compile(r"[^\r\n\0]*")
_TARGET = re.compile(r"[!-~]+")
_BREAKS = re.compile(r"[\r\n\0]+")

Fields = list[tuple[str, str]]


class Tls(NamedTuple):
    """What TLS agreed on, in the words of Python's ssl: `TLSv1.3`, `TLS_AES_256_GCM_SHA384`."""

    protocol: str
    cipher: str


@dataclass(frozen=True, slots=True)
class Revisit:
    """Why the payload is not stored again, and the record that has it (6.7)."""

    profile: Literal["identical-payload-digest", "server-not-modified"]
    refers_to_id: str | None
    refers_to_uri: str
    refers_to_date: str


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """One exchange. `head` is as received, to the empty line; `body` is de-chunked and still content-coded.

    A stream as body must be seekable; it is read from its start as often as needed.
    """

    url: str
    started_at: float
    address: str | None
    request_bytes: bytes
    head: bytes
    body: Payload = b""
    truncated: str | None = None
    http_version: str | None = None  # as on the status line, `1.1`
    tls: Tls | tuple[str, str] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    identified_mime: str | None = None
    payload_digest: str | None = None  # of `body`, when it is known already
    revisit: Revisit | None = None


class Record(NamedTuple):
    """A record to write: its named fields without digest and length of the block, and the block."""

    fields: Fields
    head: bytes
    body: Payload = b""

    def block(self) -> Iterator[bytes]:
        """The block in pieces."""
        yield self.head
        yield from chunks(self.body)

    def header(self) -> bytes:
        """Version line, named fields, empty line; ValueError when a value could end its line."""
        fields = [
            *self.fields,
            ("WARC-Block-Digest", f"sha1:{digest(self.block())}"),
            ("Content-Length", str(len(self.head) + size(self.body))),
        ]
        for name, value in fields:
            if not _ONE_LINE.fullmatch(value):
                raise ValueError(f"{name} holds a line break or NUL: {value!r}")
        text: str = StatusAndHeaders("", fields, "WARC/1.1").to_str()
        return text.encode() + b"\r\n"


class Exchange(NamedTuple):
    """What the records of one exchange share: ids, and the warcinfo they hang on."""

    info_id: str
    date: str
    request_id: str
    answer_id: str
    metadata_id: str

    def fields(self, kind: str, record_id: str, concurrent_to: str | None, capture: CaptureRecord) -> Fields:
        """The fields every record of the exchange has (5.18 wants one date for all)."""
        if not _TARGET.fullmatch(capture.url):
            raise ValueError(f"not a canonical URL: {capture.url!r}")
        fields = [
            ("WARC-Type", kind),
            ("WARC-Target-URI", capture.url),
            ("WARC-Date", self.date),
            ("WARC-Record-ID", record_id),
            ("WARC-Warcinfo-ID", self.info_id),
        ]
        return [*fields, ("WARC-Concurrent-To", concurrent_to)] if concurrent_to else fields


def request_record(capture: CaptureRecord, exchange: Exchange) -> Record | None:
    """The request as it was sent; None when the protocol has none."""
    if not capture.request_bytes:
        return None
    fields = exchange.fields("request", exchange.request_id, exchange.answer_id, capture)
    fields += [*address_fields(capture), ("Content-Type", "application/http;msgtype=request")]
    return Record(fields, capture.request_bytes)


def answer_record(capture: CaptureRecord, exchange: Exchange) -> Record:
    """The response, or the revisit that stands for it."""
    kind = "revisit" if capture.revisit else "response"
    fields = exchange.fields(kind, exchange.answer_id, exchange.request_id if capture.request_bytes else None, capture)
    fields += [*address_fields(capture), *protocol_fields(capture)]
    fields += revisit_fields(capture, capture.revisit) if capture.revisit else payload_fields(capture)
    if capture.revisit and capture.revisit.profile == "server-not-modified":
        return Record(fields, b"")  # and no Content-Type: that would be of a block (5.6)
    fields += [("Content-Type", "application/http;msgtype=response")]
    head = stored_head(capture.head, size(capture.body))
    return Record(fields, head, b"" if capture.revisit else capture.body)


def metadata_record(capture: CaptureRecord, exchange: Exchange) -> Record | None:
    """What the crawler knows of the exchange besides its bytes; None when that is nothing."""
    known = dict(capture.metadata) | ({"tls-version": capture.tls[0]} if capture.tls else {})
    if capture.revisit and capture.revisit.profile == "server-not-modified":
        known[HTTP_HEAD] = json.dumps(capture.head.decode("latin-1"))
    if not known:
        return None
    fields = exchange.fields("metadata", exchange.metadata_id, exchange.answer_id, capture)
    return Record([*fields, ("Content-Type", "application/warc-fields")], warc_fields(known.items()))


def address_fields(capture: CaptureRecord) -> Fields:
    """The peer that was connected to."""
    return [("WARC-IP-Address", canonical_address(capture.address))] if capture.address else []


def protocol_fields(capture: CaptureRecord) -> Fields:
    """HTTP version and cipher. WARC-Protocol stands once: only WARC-Concurrent-To may be repeated (5.1)."""
    fields = [("WARC-Protocol", f"http/{capture.http_version}")] if capture.http_version else []
    return [*fields, ("WARC-Cipher-Suite", capture.tls[1])] if capture.tls else fields


def payload_fields(capture: CaptureRecord) -> Fields:
    """Digest, truncation and type of a stored payload; the digest of a cut one is that of what was kept."""
    fields = [("WARC-Payload-Digest", f"sha1:{capture.payload_digest or payload_digest(capture.body)}")]
    if capture.truncated:
        if capture.truncated not in TRUNCATIONS:
            raise ValueError(f"WARC-Truncated {capture.truncated!r} is not one of {', '.join(sorted(TRUNCATIONS))}")
        fields.append(("WARC-Truncated", capture.truncated))
    if capture.identified_mime:
        fields.append(("WARC-Identified-Payload-Type", capture.identified_mime))
    return fields


def revisit_fields(capture: CaptureRecord, revisit: Revisit) -> Fields:
    """Profile and pointers (6.7). Readers resolve by target and date; a left-out body is a truncation by length."""
    fields = [("WARC-Profile", PROFILES + revisit.profile)]
    if revisit.refers_to_id:
        fields.append(("WARC-Refers-To", revisit.refers_to_id))
    fields.append(("WARC-Refers-To-Target-URI", revisit.refers_to_uri))
    fields.append(("WARC-Refers-To-Date", revisit.refers_to_date))
    if revisit.profile == "server-not-modified":
        return fields
    if capture.truncated:
        raise ValueError(f"{capture.url}: a cut payload ({capture.truncated}) identifies nothing")
    known = capture.payload_digest or payload_digest(capture.body)
    return [*fields, ("WARC-Payload-Digest", f"sha1:{known}"), ("WARC-Truncated", "length")]


def warc_fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of `application/warc-fields`; empty values are left out, line breaks in values become spaces."""
    lines = (f"{name}: {_BREAKS.sub(' ', value)}\r\n" for name, value in pairs if value)
    return "".join(lines).encode("utf-8", "replace")


def warc_date(seconds: float) -> str:
    """UTC to the second: the start of the capture (5.18), as the pointers of revisits compare it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@lru_cache(4096)
def canonical_address(address: str) -> str:
    """The text form of RFC 5952 for IPv6; IPv4 as it is."""
    return str(ip_address(address))
