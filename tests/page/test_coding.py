from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.coding import decode_content, gunzip

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
