"""Heads and payloads: what is stored, and what its digest is over."""

from __future__ import annotations

import io
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from crawler.fetch.warc import payload_digest
from crawler.fetch.warc_payload import CHUNK_BYTES, stored_head
from crawler.storage import Store
from tests.fetch.warc_reading import read_file, sha1
from tests.fetch.warc_samples import CAPTURE, CHUNKED, CHUNKED_HEAD, GZIPPED, answer, write


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


HEADS = {
    "untouched": (
        b"HTTP/1.1 200\r\ncontent-length:99\r\nX: a\tb \r\n\r\n",
        b"HTTP/1.1 200\r\ncontent-length:99\r\nX: a\tb \r\n\r\n",
    ),
    "chunked": (
        CHUNKED_HEAD,
        (
            b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 7\r\nX-Crawler-transfer-encoding:  chunked\r\n"
            b"Content-Encoding: gzip\r\nX-B: \xe9\r\n\r\n"
        ),
    ),
    "length and chunked": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nContent-Length : 4\r\n\r\n",
        (
            b"HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 3\r\nContent-Length: 7\r\n"
            b"X-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Length : 4\r\n\r\n"
        ),
    ),
    "two codings": (
        b"HTTP/1.1 200 OK\nTransfer-Encoding: gzip\nTransfer-Encoding: chunked\n\n",
        (
            b"HTTP/1.1 200 OK\nContent-Length: 7\nX-Crawler-Transfer-Encoding: gzip\n"
            b"X-Crawler-Transfer-Encoding: chunked\n\n"
        ),
    ),
    "not the field": (
        b"HTTP/1.1 200 OK\r\nX-Transfer-Encoding: chunked\r\nA: transfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Transfer-Encoding: chunked\r\nA: transfer-encoding: chunked\r\n\r\n",
    ),
    "ends of lines mixed, and folded": (
        b"HTTP/1.1 200 OK\nTransfer-Encoding:\r\n chunked\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 7\r\nX-Crawler-Transfer-Encoding:\r\n chunked\n\r\n",
    ),
    "no body": (
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nX-Crawler-Transfer-Encoding: chunked\r\n\r\n",
    ),
}


@pytest.mark.parametrize(("received", "stored"), HEADS.values(), ids=HEADS.keys())
def test_the_head_changes_only_where_it_would_lie(received: bytes, stored: bytes) -> None:
    assert stored_head(received, 7) == stored


def test_a_head_without_end_is_our_bug() -> None:
    with pytest.raises(ValueError, match="empty line"):
        stored_head(b"HTTP/1.1 200 OK\r\nA: b\r\n", 0)


@pytest.mark.parametrize("as_stream", [False, True])
def test_the_payload_digest_is_that_of_the_coded_entity(store: Store, as_stream: bool) -> None:
    capture = replace(CHUNKED, body=io.BytesIO(GZIPPED)) if as_stream else CHUNKED
    record = answer(store, capture)
    assert record.body == GZIPPED
    assert record["WARC-Payload-Digest"] == sha1(GZIPPED) == f"sha1:{payload_digest(GZIPPED)}"
    assert b"\r\nContent-Length: %d\r\n" % len(GZIPPED) in record.head


def test_an_empty_payload_has_a_digest(store: Store) -> None:
    record = answer(store, replace(CAPTURE, head=b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n", body=b""))
    assert record["WARC-Payload-Digest"] == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_a_spooled_body_is_read_whole_whatever_its_position(store: Store) -> None:
    body = random.Random(1).randbytes(2 * CHUNK_BYTES + 17)
    with tempfile.SpooledTemporaryFile(max_size=65536) as file:
        file.write(body)
        spool = cast("BinaryIO", file)
        record = answer(store, replace(CAPTURE, body=spool))
        assert record.body == body
        assert payload_digest(spool) == payload_digest(body)


def test_ten_thousand_odd_heads_come_back_byte_for_byte(store: Store) -> None:
    chance = random.Random(7)
    heads = [b"HTTP/1.1 200 " + _odd_bytes(chance, 20) + _odd_lines(chance) + b"\r\n\r\n" for _ in range(10_000)]
    bare = replace(CAPTURE, request_bytes=b"", metadata={})
    records = read_file(write(store, *(replace(bare, head=head) for head in heads)))
    assert [record.block for record in records[1:]] == [head + b"<p>Grue\xc3\x9f!" for head in heads]


def _odd_bytes(chance: random.Random, most: int) -> bytes:
    return chance.randbytes(chance.randrange(most)).translate(None, b"\r\n\0")


def _odd_lines(chance: random.Random) -> bytes:
    return b"".join(
        b"\r\nX-" + _odd_bytes(chance, 9) + b": " + _odd_bytes(chance, 60) for _ in range(chance.randrange(6))
    )
