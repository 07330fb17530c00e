from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.exchange import Exchange
from crawler.fetch.reader import ReadLimits, ResponseReader
from crawler.fetch.warc_payload import stored_head
from crawler.page.wanted import MimeTypes
from tests.fetch.response_vectors import CHUNKED, OK, VECTORS, Seen, Vector

LIMITS = ReadLimits(head_bytes=65_536, header_fields=200, body_bytes=1_000_000)


def read(raw: bytes, sizes: list[int], end: str = "closed", limits: ReadLimits = LIMITS) -> ResponseReader:
    reader, start = ResponseReader(limits), 0
    while start < len(raw):
        size = sizes[start % len(sizes)]
        reader.feed(raw[start : start + size])
        start += size
    reader.end(end)
    return reader


def seen(reader: ResponseReader) -> Seen:
    if reader.failure is not None:
        return Seen(failure=f"{reader.failure}: {reader.failure_reason}")
    assert reader.parsed is not None
    return Seen(reader.parsed.status, reader.body.stream().read(), reader.truncated)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
@pytest.mark.parametrize("sizes", [[1_000_000], [1], [7], [1, 2, 3, 50, 4096]], ids=str)
def test_every_vector_has_one_outcome_however_it_is_cut(vector: Vector, sizes: list[int]) -> None:
    assert seen(read(vector.raw, sizes, vector.end)) == vector.seen


@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("size", [0, 62_999, 63_000, 64_000, 65_000, 65_535, 65_536, 65_537, 200_000])
def test_the_body_limit_is_the_same_for_every_framing(framing: str, size: int) -> None:
    limit, body = 64_000, bytes(size)
    chunk = b"%x\r\n%b\r\n" % (size, body) if size else b""
    raw = {
        "length": OK + b"Content-Length: %d\r\n\r\n" % size + body,
        "chunks": CHUNKED + chunk + b"0\r\n\r\n",
        "close": OK + b"\r\n" + body,
    }[framing]
    for sizes in ([1_000_000], [1_000]):
        reader = read(raw, sizes, limits=ReadLimits(65_536, 200, limit))
        assert reader.body.size == min(size, limit)
        assert reader.truncated == ("length" if size > limit else None)


def test_the_head_is_kept_byte_for_byte() -> None:
    head = b"HTTP/1.1 200  Quite \xe4 OK\r\nX-A:b\r\nx-a:  \tc \r\nEmpty:\r\n\r\n"
    reader = read(head + b"body", [3])
    assert reader.head == head
    assert reader.parsed is not None
    assert reader.parsed.headers == [("x-a", "b"), ("x-a", "c"), ("empty", "")]
    assert (reader.parsed.reason, reader.parsed.version) == ("Quite ä OK", "1.1")


@pytest.mark.parametrize(
    ("raw", "is_reusable"),
    [
        (OK + b"Content-Length: 2\r\n\r\nhi", True),
        (CHUNKED + b"2\r\nhi\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", True),
        (OK + b"Content-Length: 2\r\n\r\nhi!", False),
        (CHUNKED + b"2\r\nhi\r\n0\r\n\r\nx", False),
        (OK + b"Content-Length: 2\r\nConnection: Close\r\n\r\nhi", False),
        (OK + b"Content-Length: 2, 2\r\nX : y\r\n\r\nhi", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", False),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", False),
        (OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", False),
        (OK + b"Content-Length: 2\r\nnonsense\r\n\r\nhi", False),
        (b"HTTP/1.1 304 Not Modified\r\n\r\nx", False),
    ],
)
def test_a_connection_is_used_again_only_after_a_clean_response(raw: bytes, is_reusable: bool) -> None:
    for sizes in ([1_000_000], [1]):
        reader = read(raw, sizes)
        assert reader.is_done
        assert reader.is_reusable is is_reusable


UNREAD = MimeTypes(["audio/*", "application/zip", "application/octet-stream"])
ZIP, NOISE, TEXT = b"PK\x03\x04" + bytes(9_000), bytes(9_000), b"some words\n" * 900
BODIES = [
    ("named", "Audio/MPEG; x=y", TEXT, "audio/mpeg"),
    ("named and empty", "audio/mpeg", b"", "audio/mpeg"),
    ("shown", "application/octet-stream", ZIP, "application/zip"),
    ("shown by few bytes", "application/octet-stream", ZIP[:9], "application/zip"),
    ("unknown bytes", "application/octet-stream", NOISE, "application/octet-stream"),
    ("as long as it takes", "application/octet-stream", NOISE[:1_445], "application/octet-stream"),
    ("one byte less", "application/octet-stream", NOISE[:1_444], "application/octet-stream"),
    ("words under that name", "application/octet-stream", TEXT, None),
    ("empty", "application/octet-stream", b"", None),
    ("a page", "text/html", TEXT, None),
    ("no page", "text/html", ZIP, "application/zip"),
]


@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("sizes", [[1_000_000], [1], [700], [1_440, 3]], ids=str)
@pytest.mark.parametrize(("name", "content_type", "body", "unread"), BODIES, ids=[case[0] for case in BODIES])
def test_a_body_of_an_unwanted_type_is_given_up(
    name: str, content_type: str, body: bytes, unread: str | None, sizes: list[int], framing: str
) -> None:
    """However it is framed and cut, whatever the status, and though the connection breaks."""
    head = b"Content-Type: %b\r\n" % content_type.encode()
    chunks = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    rest = {
        "length": b"Content-Length: %d\r\n\r\n" % len(body) + body,
        "chunks": b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        "close": b"\r\n" + body,
    }[framing]
    for status in (b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 404 No\r\n"):
        reader = read(status + head + rest, sizes, limits=ReadLimits(65_536, 200, 1_000_000, UNREAD))
        assert reader.unread_type == unread
        assert reader.body.stream().read() == (b"" if unread else body)
        assert reader.truncated == ("unspecified" if unread else None)
        assert not (unread and reader.is_reusable)
    if len(body) > 1:
        broken = read((OK + head + rest)[: -len(body) // 2], sizes, "reset", ReadLimits(65_536, 200, 1_000_000, UNREAD))
        assert broken.unread_type == unread


def test_nothing_is_fed_on_once_a_body_is_given_up() -> None:
    reader = ResponseReader(ReadLimits(65_536, 200, 1_000_000, UNREAD))
    reader.feed(OK + b"Content-Type: audio/mpeg\r\nContent-Length: 700000000\r\n\r\nabc")
    assert (reader.is_done, reader.body.size, reader.truncated) == (True, 0, "unspecified")
    reader = ResponseReader(ReadLimits(65_536, 200, 1_000, UNREAD))
    reader.feed(OK + b"Content-Type: application/octet-stream\r\n\r\n" + NOISE)
    assert (reader.unread_type, reader.truncated) == ("application/octet-stream", "unspecified"), "a limit below that"


def test_deadlines_cut_a_body_and_fail_a_head() -> None:
    for raw, expected in ((OK, ("timeout", None)), (OK + b"\r\nhal", (None, "time"))):
        reader = ResponseReader(LIMITS)
        reader.feed(raw)
        reader.time_out("head")
        assert (reader.failure, reader.truncated) == expected


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VECTORS), st.data())
def test_a_flipped_byte_never_crashes_nor_hangs(vector: Vector, data: st.DataObject) -> None:
    raw = bytearray(vector.raw[:2000])
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, 50))
    whole, pieces = read(bytes(raw), [1_000_000]), read(bytes(raw), [cut])
    assert whole.is_done
    assert seen(whole) == seen(pieces)


def test_random_bytes_after_a_good_start_end_in_one_state() -> None:
    chance = random.Random(7)
    for start in (b"", b"HTTP/1.1 ", OK, CHUNKED):
        for _ in range(500):
            reader = read(start + chance.randbytes(chance.randrange(300)), [chance.randrange(1, 100)])
            assert reader.is_done
            assert reader.failure is None or not reader.is_reusable


SPLINTERS = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b"\0",
        b":",
        b",",
        b";",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"-1",
        b"\xff",
    ),
    *(b"\r\n folded", b"\r\n\tgzip", b"\r\n \r\n", b"chunked", b"HTTP/1.1 100 \r\n\r\n", b"HTTP/1.1 200 OK\r\n"),
    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding:\r\n chunked\r\n"),
    *(b"Content-Encoding: gzip\r\n", b"Content-Encoding:\r\n br,\r\n gzip\r\n", b"Connection: close\r\n"),
]


def mutated(raw: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 6)):
        at, end = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        raw = chance.choice(
            [
                raw[:at] + chance.choice(SPLINTERS) + raw[at:],
                raw[:at] + chance.choice(SPLINTERS) + raw[end:],
                raw[:at] + raw[end:],
                raw[:end] + raw[at:],
                raw[:at] + chance.randbytes(1) + raw[at + 1 :],
                raw[:at] + chance.choice(VECTORS).raw[:500],
            ]
        )[:4_000]
    return raw


@pytest.mark.parametrize(
    ("seed", "many"), [(1, 1_500), (2, 1_500), pytest.param(3, 100_000, marks=pytest.mark.slow)], ids=str
)
def test_mutated_answers_end_in_one_state_and_can_be_archived(seed: int, many: int) -> None:
    chance = random.Random(seed)
    for _ in range(many):
        vector = chance.choice(VECTORS)
        raw = mutated(vector.raw[:2_000], chance)
        reader = read(raw, [1_000_000], vector.end)
        assert reader.is_done
        assert seen(reader) == seen(read(raw, [chance.randrange(1, 40)], vector.end)), raw
        assert reader.head in raw
        if reader.parsed is None:
            continue
        stored_head(reader.head, reader.body.size)
        assert not any(char in value for _, value in reader.parsed.headers for char in "\r\n\0")
        codings = Exchange(b"", "192.0.2.1", 0.0, headers=reader.parsed.headers).content_encoding
        assert codings.count(",") >= sum(name == "content-encoding" for name, _ in reader.parsed.headers) - 1
