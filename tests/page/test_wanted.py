"""Which contents are wanted: by the name that a server gives them, and by their first bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.wanted import SITEMAP_TYPES, START_BYTES, MimeTypes, named_type, shown_type
from crawler.settings import ContentSettings

DENIED = MimeTypes(ContentSettings().deny_types)
OCTETS = "application/octet-stream"
HTML = b"<!doctype html><title>t</title><p>" + b"some words of a page " * 100
SITEMAP = b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("page.html", HTML)
    return file.getvalue()


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("folder/file.txt"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("patterns", "inside", "outside"),
    [
        ([], [], ["text/html", ""]),
        (["audio/*"], ["audio/mpeg", "audio/x-wav"], ["video/mp4", "audiobook/x", ""]),
        (["Application/ZIP"], ["application/zip"], ["application/zip-x"]),
        (["*/*"], ["text/html", "x/y"], []),
    ],
)
def test_a_set_of_types_has_names_and_kinds(patterns: list[str], inside: list[str], outside: list[str]) -> None:
    types = MimeTypes(patterns)
    assert [one for one in inside if one not in types] == []
    assert [one for one in outside if one in types] == []
    assert bool(types) == bool(patterns)
    assert [one for one in inside if one in MimeTypes(patterns, but=inside)] == []


@pytest.mark.parametrize(
    ("content_type", "named"),
    [
        ("video/mp4", "video/mp4"),
        ("Audio/MPEG; rate=44100", "audio/mpeg"),
        ("application/zip", "application/zip"),
        ("application/x-iso9660-image", "application/x-iso9660-image"),
        ("application/vnd.debian.binary-package", "application/vnd.debian.binary-package"),
        (OCTETS, None),  # says nothing, so the bytes are asked
        ("binary/octet-stream", None),
        ("application/gzip", None),  # may be a sitemap
        ("text/html; charset=utf-8", None),
        ("application/pdf", None),
        ("image/png", None),
        ("application/xml", None),
        ("nonsense", None),
        ("", None),
        (None, None),
    ],
)
def test_a_name_that_says_something_is_believed(content_type: str | None, named: str | None) -> None:
    assert named_type(DENIED, content_type) == named


@pytest.mark.parametrize(
    ("content_type", "body", "shown"),
    [
        (OCTETS, HTML, None),
        (OCTETS, b"plain words\n" * 9, None),
        (OCTETS, SITEMAP, None),
        (OCTETS, b"%PDF-1.7\n\0\0", None),
        (OCTETS, b"\x89PNG\r\n\x1a\n\0\0", None),
        (OCTETS, zipped(), "application/zip"),
        (OCTETS, tar(), OCTETS),
        (OCTETS, bytes(2_048), OCTETS),
        (OCTETS, b"MZ\x90\0\3\0\0\0", OCTETS),
        (OCTETS, b"!<arch>\ndebian-binary   1342943816  0     0     100644  4         `\n2.0\n\0\1", OCTETS),
        (OCTETS, b"\0\0\0\x20ftypisom\0\0\2\0", "video/mp4"),
        (OCTETS, b"ID3\4\0\0", "audio/mpeg"),
        (OCTETS, b"OggS\0\2\0\0", "application/ogg"),
        (None, zipped(), "application/zip"),
        (None, HTML, None),
        ("text/plain", tar(), OCTETS),  # what old servers call every file they do not know
        ("text/plain", "ÿäöü".encode("latin-1") * 20, None),
        ("text/html", zipped(), "application/zip"),
        ("application/gzip", gzip.compress(SITEMAP, mtime=0), None),
        ("application/x-gzip", gzip.compress(HTML * 50, mtime=0), None),
        ("application/gzip", gzip.compress(tar(), mtime=0), "application/gzip"),
        (OCTETS, gzip.compress(SITEMAP, mtime=0), None),
        (OCTETS, gzip.compress(bytes(100_000), mtime=0), "application/gzip"),
        ("application/gzip", b"\x1f\x8b\x08 and no more of it", "application/gzip"),
        ("image/jpeg", tar(), None),  # a name that says something is believed
    ],
)
def test_where_a_name_says_nothing_the_first_bytes_do(content_type: str | None, body: bytes, shown: str | None) -> None:
    assert shown_type(DENIED, content_type, None, body[:START_BYTES]) == shown
    for coding, coded in (("gzip", gzip.compress(body, mtime=0)), ("deflate", zlib.compress(body))):
        found = shown_type(DENIED, content_type, coding, coded[:START_BYTES])
        assert found == (None if content_type == "text/html" else shown), (
            "what is sent as a coded page is taken for one"
        )


@given(st.binary(max_size=2_000), st.sampled_from([None, OCTETS, "text/html", "application/gzip", "text/plain"]),
       st.sampled_from([None, "", "gzip", "br", "deflate", "gzip, gzip", "odd", "\0"]))  # fmt: skip
def test_no_bytes_stop_us(body: bytes, content_type: str | None, coding: str | None) -> None:
    shown = shown_type(DENIED, content_type, coding, body)
    assert shown is None or shown in DENIED or shown == "application/gzip"


def test_whoever_refuses_gzip_still_reads_sitemaps() -> None:
    types = [*ContentSettings().deny_types, "application/gzip", "text/*"]
    where_sitemaps_are = MimeTypes(types, but=SITEMAP_TYPES)
    for content_type, body in (
        ("application/gzip", gzip.compress(SITEMAP, mtime=0)),
        ("text/plain", b"http://a.test/\n"),
    ):
        assert named_type(MimeTypes(types), content_type) == content_type
        assert named_type(where_sitemaps_are, content_type) is None
        assert shown_type(where_sitemaps_are, content_type, None, body) is None
