"""WARC 1.1 line by line: golden bytes, links, truncation, revisits, injection."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch.warc import Tls, WarcInfo
from crawler.fetch.warc_payload import stored_head
from crawler.settings import CrawlSettings
from crawler.storage import Store
from tests.fetch.warc_reading import assert_rules, read_at, read_file, sha1
from tests.fetch.warc_samples import (
    CAPTURE,
    CHUNKED,
    CHUNKED_HEAD,
    GZIPPED,
    HEAD_304,
    NOT_MODIFIED,
    SAME,
    answer,
    new_file,
    write,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def test_golden_bytes(store: Store) -> None:
    records = gzip.decompress(write(store, replace(CAPTURE, tls=Tls("TLSv1.3", "TLS_AES_256_GCM_SHA384"))))
    assert records == (Path(__file__).parent / "golden.warc").read_bytes()


def test_one_member_a_record_and_every_place_decodes_alone(store: Store) -> None:
    warc = new_file(store.open_writer("warc/X.warc.gz"))
    captures = [CAPTURE, replace(CHUNKED, revisit=SAME), replace(CAPTURE, body=bytes(700_000)), CHUNKED]
    places = [warc.write_exchange(capture) for capture in captures]
    warc.close()
    data = store.read("warc/X.warc.gz")
    kinds = [("request", kind, "metadata") for kind in ("response", "revisit", "response", "response")]
    assert [record.type for record in read_file(data)] == ["warcinfo", *itertools.chain(*kinds)]
    for place, capture in zip(places, captures, strict=True):
        record = read_at(data, place.offset, place.length)
        assert (record["WARC-Record-ID"], record["WARC-Date"]) == (place.record_id, place.date)
        assert record.type == place.record_type
        assert record.body == (b"" if capture.revisit else capture.body)
    assert (warc.size, warc.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_records_of_an_exchange_are_linked_and_of_one_time(store: Store) -> None:
    info, request, response, metadata = read_file(write(store, CAPTURE))
    assert {record["WARC-Date"] for record in (request, response, metadata)} == {"2026-01-31T12:00:00Z"}
    assert request["WARC-Concurrent-To"] == metadata["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert response["WARC-Concurrent-To"] == request["WARC-Record-ID"]
    assert request.block == CAPTURE.request_bytes
    assert metadata.block == b"fetchTimeMs: 12\r\ncharset-detected: utf-8\r\n"
    assert info["WARC-Filename"] == "X.warc.gz"


def test_warcinfo_says_who_and_how(store: Store) -> None:
    info = read_file(write(store))[0]
    lines = info.block.decode().splitlines()
    assert lines[:2] == ["isPartOf: ORB-TEST", "operator: Ada mailto:a@x.org"]
    assert "http-header-user-agent: orbweaver (+https://x.org)" in lines
    assert "format: WARC File Format 1.1" in lines
    crawl = CrawlSettings(name="N", contact="c", operator="o")
    assert WarcInfo.of(crawl, "ua", "h") == WarcInfo("N", "ua", operator="o", contact="c", hostname="h")


@pytest.mark.parametrize("reason", ["length", "time", "disconnect", "unspecified"])
def test_truncation_is_marked(store: Store, reason: str) -> None:
    record = answer(store, replace(CAPTURE, body=b"<p>Gr", truncated=reason))
    assert record["WARC-Truncated"] == reason
    assert record["WARC-Payload-Digest"] == sha1(b"<p>Gr")
    assert record.head.endswith(b"\r\nContent-Length: 5\r\nX-Crawler-Content-Length: 10\r\n\r\n")


def test_whole_payloads_are_not_marked(store: Store) -> None:
    assert answer(store, CAPTURE).get("WARC-Truncated") is None


def test_revisit_of_an_identical_payload(store: Store) -> None:
    record = answer(store, replace(CHUNKED, revisit=SAME))
    assert record.type == "revisit"
    assert record["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert record["WARC-Refers-To"] == "<urn:uuid:1>"
    assert record["WARC-Refers-To-Target-URI"] == "http://example.org/old"
    assert record["WARC-Refers-To-Date"] == "2026-01-01T00:00:00Z"
    assert record["WARC-Payload-Digest"] == sha1(GZIPPED)
    assert record["WARC-Truncated"] == "length"
    assert record.block == stored_head(CHUNKED_HEAD, len(GZIPPED))


def test_revisit_after_304(store: Store) -> None:
    record = answer(store, replace(CAPTURE, head=HEAD_304, body=b"", revisit=NOT_MODIFIED))
    assert record["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert record["WARC-Refers-To-Target-URI"] == "http://example.org/old"
    assert record["WARC-Refers-To-Date"] == "2026-01-01T00:00:00Z"
    assert record.get("WARC-Payload-Digest") is None
    assert record.get("WARC-Truncated") is None
    assert record.block == b""
    assert record.get("Content-Type") is None


HEADS_304 = {
    "plain": HEAD_304,
    "bare LF": b"HTTP/1.0 304\n\n",
    "every byte": b"HTTP/1.1 304 X\r\nA: " + bytes(set(range(256)) - {0, 10, 13}) + b"\r\nB: \\u0041\r\n\r\n",
    "long": b"HTTP/1.1 304 X\r\nA: " + b"\xff" * 65_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS_304.values(), ids=HEADS_304.keys())
def test_the_head_of_a_304_is_in_the_metadata_record_byte_for_byte(store: Store, head: bytes) -> None:
    """A head in the revisit itself would be replayed instead of the page's."""
    capture = replace(CAPTURE, head=head, body=b"", revisit=NOT_MODIFIED)
    _, _, revisit, metadata = read_file(write(store, capture))
    assert metadata["WARC-Concurrent-To"] == revisit["WARC-Record-ID"]
    assert metadata["Content-Type"] == "application/warc-fields"
    [line] = [line for line in metadata.block.split(b"\r\n") if line.startswith(b"http-head: ")]
    assert json.loads(line.removeprefix(b"http-head: ")).encode("latin-1") == head
    assert line.isascii()


def test_peer_protocol_and_cipher(store: Store) -> None:
    capture = replace(CAPTURE, address="2001:DB8:0:0::1", tls=("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256"))
    _, request, response, metadata = read_file(write(store, capture))
    assert request["WARC-IP-Address"] == response["WARC-IP-Address"] == "2001:db8::1"
    assert response["WARC-Protocol"] == "http/1.1"
    assert response["WARC-Cipher-Suite"] == "ECDHE-RSA-AES128-GCM-SHA256"
    assert b"tls-version: TLSv1.2\r\n" in metadata.block


def test_without_request_and_metadata(store: Store) -> None:
    bare = replace(CAPTURE, request_bytes=b"", metadata={}, address=None, http_version=None)
    info, response = read_file(write(store, bare))
    assert_rules([info, response])
    assert response.get("WARC-Concurrent-To") is None


REFUSED: dict[str, dict[str, Any]] = {
    "line break in URL": {"url": "http://example.org/\r\nWARC-Type: evil"},
    "space in URL": {"url": "http://example.org/a b"},
    "URL not ASCII": {"url": "http://example.org/é"},
    "cipher": {"tls": ("TLSv1.3", "x\r\nWARC-Type: evil")},
    "mime": {"identified_mime": "text/html\nX: y"},
    "NUL": {"identified_mime": "text/html\0"},
    "version": {"http_version": "1.1\r\n"},
    "address": {"address": "192.0.2.1\r\nX: y"},
    "digest": {"payload_digest": "A\rB"},
    "truncation": {"truncated": "because"},
    "head": {"head": b"HTTP/1.1 200 OK\r\n"},
    "pointer": {"revisit": replace(SAME, refers_to_uri="http://x/\r\nA: b")},
    "cut payload as identical": {"revisit": SAME, "truncated": "length"},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED.keys())
def test_what_no_archive_may_hold_is_refused_before_a_byte_is_written(store: Store, changes: dict[str, Any]) -> None:
    warc = new_file(store.open_writer("warc/X.warc.gz"))
    before = warc.size
    with pytest.raises(ValueError, match=r"."):
        warc.write_exchange(replace(CAPTURE, **changes))
    assert warc.size == before
    warc.write_exchange(CAPTURE)
    warc.close()
    assert_rules(read_file(store.read("warc/X.warc.gz")))


def test_metadata_values_cannot_forge_a_line(store: Store) -> None:
    metadata = read_file(write(store, replace(CAPTURE, metadata={"title": "a\r\nfetchTimeMs: 0", "s": "\udc80"})))[-1]
    assert metadata.block == b"title: a fetchTimeMs: 0\r\ns: ?\r\n"


def test_a_file_that_ends_inside_a_record_is_not_published(store: Store) -> None:
    warc = new_file(store.open_writer("warc/X.warc.gz"))
    with pytest.raises(OSError, match="went away"):
        warc.write_exchange(replace(CAPTURE, body=_LostBody(bytes(99))))
    with pytest.raises(OSError, match="ends inside a record"):
        warc.close()
    warc.abort()
    assert store.list("") == []


class _LostBody(io.BytesIO):
    """Can be read for its digests, and then no more."""

    turns = 0

    def read(self, size: int | None = -1) -> bytes:
        self.turns += 1
        if self.turns > 5:
            raise OSError("went away")
        return super().read(size)
