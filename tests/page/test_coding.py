from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.page.coding import LIMIT_S, decode_content, gunzip
from tests.page import killers

TEXT = b"The quick brown fox. " * 500
RAW = zlib.compressobj(wbits=-15)
BARE = RAW.compress(TEXT) + RAW.flush()


@pytest.mark.parametrize(
    ("header", "coded"),
    [
        (None, TEXT),
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT, mtime=0)),
        (" X-GZip ", gzip.compress(TEXT, mtime=0)),
        ("gzip", gzip.compress(TEXT[:100], mtime=0) + gzip.compress(TEXT[100:], mtime=0)),
        ("gzip", gzip.compress(TEXT, mtime=0) + b"\0\0\0"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", BARE),
        ("br", brotli.compress(TEXT)),
        ("gzip, br", brotli.compress(gzip.compress(TEXT, mtime=0))),
        ("identity, gzip,", gzip.compress(TEXT, mtime=0)),
    ],
)
def test_codings(header: str | None, coded: bytes) -> None:
    assert decode_content(coded, header, 1 << 20) == (TEXT, False, None)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br"])
def test_an_empty_body_has_no_coding(header: str) -> None:
    assert decode_content(b"", header, 10) == (b"", False, None)


@pytest.mark.parametrize(
    ("header", "coded"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", BARE),
        ("br", brotli.compress(TEXT)),
    ],
)
def test_what_came_before_a_cut_is_kept(header: str, coded: bytes) -> None:
    found = decode_content(coded[: len(coded) - 9], header, 1 << 20)
    assert found.error
    assert TEXT.startswith(found.body)


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ("zstd", "unknown content coding zstd"),
        ("gzip, nonsense", "unknown content coding nonsense"),
        ("gzip, gzip, gzip", "too many content codings"),
    ],
)
def test_codings_that_are_not_undone(header: str, error: str) -> None:
    assert decode_content(TEXT, header, 1 << 20) == (TEXT, False, error)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br"])
def test_no_coding_is_an_error(header: str) -> None:
    assert decode_content(b"plain text", header, 1 << 20).error


ZEROS = bytes(100 << 20)


@pytest.mark.parametrize(
    ("header", "coded"),
    [
        ("gzip", gzip.compress(ZEROS, 9, mtime=0)),
        ("deflate", zlib.compress(ZEROS, 9)),
        ("br", brotli.compress(ZEROS, quality=5)),
        ("gzip, gzip", gzip.compress(gzip.compress(ZEROS, 9, mtime=0), 9, mtime=0)),
    ],
)
def test_a_bomb_goes_off_in_a_small_room(header: str, coded: bytes) -> None:
    tracemalloc.start()
    found = decode_content(coded, header, 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.body), found.truncated, found.error) == (1 << 20, True, None)
    assert peak < 8 << 20


def test_members_without_end_are_bounded() -> None:
    assert gunzip(gzip.compress(TEXT, mtime=0) * 1_000, 50_000) == ((TEXT * 5)[:50_000], True, None)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br", "gzip, br", "br, gzip"]))
def test_it_never_raises(body: bytes, header: str) -> None:
    assert len(decode_content(body, header, 1_000).body) <= 1_000


EMPTY = gzip.compress(b"", mtime=0)
KIB = 1_024


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of the best of three tries."""
    found = []
    for _ in range(3):
        start = time.thread_time()
        work()
        found.append(time.thread_time() - start)
    return min(found)


def test_members_cost_by_their_number_and_not_by_its_square() -> None:
    few, many = (EMPTY * (size // len(EMPTY)) for size in (128 * KIB, 1_024 * KIB))
    costs = [cpu_s(partial(gunzip, body, 1 << 20)) for body in (few, many)]
    assert costs[1] < 8 * 3 * costs[0]


@pytest.mark.parametrize(
    ("header", "coded"),
    [
        ("gzip", EMPTY * (5_000 * KIB // len(EMPTY))),
        ("gzip", EMPTY * (512 * KIB // len(EMPTY))),
        ("gzip", killers.blocks(5_000 * KIB)),
        ("gzip, gzip", gzip.compress(EMPTY * 400_000, mtime=0)),
        ("br, gzip", gzip.compress(brotli.compress(bytes(50 << 20), quality=5), mtime=0)),
        ("deflate", zlib.compress(bytes(50 << 20), 9)),
        ("deflate", b"\0\0\0\xff\xff" * 1_000_000),
        ("br", b"\x06" * 5_000_000),
        ("br", brotli.compress(bytes(range(256)) * 20_000, quality=1)),
        ("gzip", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 5_000_000),
        ("gzip", b"\x1f\x8b\x08\x1c\0\0\0\0\0\0\xff\xff" + b"n" * 5_000_000),
    ],
)
def test_no_body_takes_an_event_loop_more_than_its_time(header: str, coded: bytes) -> None:
    """Robots files and lists of seeds are decoded in event loops, and their decoder has no other bound of time."""
    assert cpu_s(lambda: decode_content(coded, header, 10 << 20)) < LIMIT_S + 0.01


def test_what_takes_too_long_says_so() -> None:
    body = gzip.compress(TEXT, mtime=0) + EMPTY * 50_000
    found = decode_content(body, "gzip", 1 << 20)
    assert (found.body, found.took_too_long, found.is_whole) == (TEXT, True, False)
    assert decode_content(body, "gzip", 1 << 20, limit_s=60) == (TEXT, False, None)


GZIPPED = gzip.compress(TEXT, mtime=0)


@pytest.mark.parametrize(
    ("header", "coded"),
    [
        ("gzip", GZIPPED[:-8] + b"\0\0\0\0" + GZIPPED[-4:]),
        ("gzip", GZIPPED[:-4] + b"\xff\xff\xff\xff"),
        ("gzip", GZIPPED[:-8]),
        ("gzip", GZIPPED[:-3]),
        ("gzip", (GZIPPED[:-8] + bytes(8)) * 2),
        ("deflate", zlib.compress(TEXT)[:-4] + b"\0\0\0\0"),
        ("deflate", zlib.compress(TEXT)[:-2]),
        ("br", brotli.compress(TEXT) + b"\0junk"),
    ],
)
def test_a_bad_end_takes_nothing_away(header: str, coded: bytes) -> None:
    found = decode_content(coded, header, 1 << 20)
    assert (found.body[: len(TEXT)], found.truncated, found.error) == (TEXT, False, None)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br"])
def test_what_came_before_a_fault_is_kept_to_the_byte(header: str) -> None:
    text = "".join(random.Random(1).choices("abcdefgh \n", k=60_000)).encode()
    coded = {"gzip": gzip.compress(text, mtime=0), "deflate": zlib.compress(text), "br": brotli.compress(text)}[header]
    broken = coded[: len(coded) // 2] + b"\xff" * 64 + coded[len(coded) // 2 + 64 :]
    found = decode_content(broken, header, 1 << 20)
    same = next(at for at, pair in enumerate(zip(found.body, text, strict=False)) if pair[0] != pair[1])
    assert same > len(text) // 2 - 3_000


@pytest.mark.parametrize("header", ["none", "utf-8", "UTF-8", "aws-chunked", "identity", "binary", "8bit", " none , "])
def test_words_that_are_no_codings_mean_none(header: str) -> None:
    assert decode_content(TEXT, header, 10) == (TEXT, False, None)
    assert decode_content(GZIPPED, f"{header}, gzip", 1 << 20) == (TEXT, False, None)
    assert decode_content(GZIPPED, f"gzip, {header}", 1 << 20) == (TEXT, False, None)


@pytest.mark.parametrize(
    ("header", "coded", "body", "error"),
    [
        ("zstd", TEXT, TEXT, "unknown content coding zstd"),
        ("zstd, gzip", GZIPPED, TEXT, "unknown content coding zstd"),
        ("gzip, zstd", GZIPPED, GZIPPED, "unknown content coding zstd"),
        ("gzip", TEXT, TEXT, "not in the coding gzip"),
        ("gzip, gzip", GZIPPED, TEXT, "not in the coding gzip"),
        ("x\x1b[31m", TEXT, TEXT, "unknown content coding x?[31m"),
        ("x" * 100, TEXT, TEXT, "unknown content coding " + "x" * 40),
    ],
)
def test_a_coding_that_is_not_undone_takes_nothing_away(header: str, coded: bytes, body: bytes, error: str) -> None:
    found = decode_content(coded, header, 1 << 20)
    assert (found.is_whole, found.is_as_sent) == (True, True)
    assert found == (body, False, error)


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_header_with_everything_is_read_and_its_cuts_are_told(cut: int) -> None:
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\0abc" + b"name\0" + b"comment\0" + b"\0\0"
    bare = GZIPPED[10:]
    assert decode_content(header + bare, "gzip", 1 << 20) == (TEXT, False, None)
    found = decode_content(header[:cut], "gzip", 1 << 20)
    assert found.error is not None
    assert cut < 2 or not found.body


@settings(deadline=None)
@given(
    st.sampled_from(["gzip", "deflate", "br", "gzip, br"]),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=8),
    st.integers(0, 400),
)
def test_flipped_bytes_never_raise_and_cost_little(header: str, flips: list[tuple[int, int]], cut: int) -> None:
    text = TEXT[:3_000]
    coded = text
    for name in header.split(", "):
        coder = {"gzip": partial(gzip.compress, mtime=0), "deflate": zlib.compress, "br": brotli.compress}[name]
        coded = coder(coded)
    mutated = bytearray(coded[: len(coded) - min(cut, len(coded))])
    for at, value in flips:
        if mutated:
            mutated[at % len(mutated)] ^= value
    start = time.thread_time()
    found = decode_content(bytes(mutated), header, 100_000)
    assert len(found.body) <= 100_000
    assert time.thread_time() - start < LIMIT_S + 0.05
