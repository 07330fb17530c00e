"""What a body in this or that coding comes to: outcome rows of pages that were really fetched."""

from __future__ import annotations

import gzip
import zlib

import pytest

from crawler.fetch.exchange import Exchange
from crawler.page.fingerprint import payload_checksum
from tests.fetch.little_web import Answer, LittleWeb
from tests.fetch.partition_runs import Run

PAGE = b"<!doctype html><title>t</title><p>some words<a href=/x>x</a>" + b"<p>more" * 50
ZIPPED = gzip.compress(PAGE, mtime=0)
BINARY = b"(\xb5/\xfd\x04X\x00\x01\x02\x03" + bytes(range(256))


@pytest.mark.parametrize(
    ("codings", "body", "status", "reason"),
    [
        ((), PAGE, "ok", None),
        (("gzip",), ZIPPED, "ok", None),
        (("gzip", "gzip"), gzip.compress(ZIPPED, mtime=0), "ok", None),
        (("identity", "gzip"), ZIPPED, "ok", None),
        (("deflate", "gzip"), gzip.compress(zlib.compress(PAGE), mtime=0), "ok", None),
        (("gzip, identity", "none"), ZIPPED, "ok", None),
        (("gzip",), ZIPPED[:-8] + bytes(8), "ok", None),
        (("gzip",), ZIPPED[:-5], "ok", None),
        (("none",), PAGE, "ok", None),
        (("utf-8",), PAGE, "ok", None),
        (("aws-chunked",), PAGE, "ok", None),
        (("aws-chunked", "gzip"), ZIPPED, "ok", None),
        (("zstd",), PAGE, "ok", "content coding: unknown content coding zstd"),
        (("x-none, y",), PAGE, "ok", "content coding: unknown content coding y"),
        (("gzip, gzip, gzip",), PAGE, "ok", "content coding: too many content codings"),
        (("gzip",), PAGE, "ok", "content coding: not in the coding gzip"),
        (("zstd",), BINARY, "not_parsed", "content coding: unknown content coding zstd"),
    ],
)
def test_codings_of_pages(
    web: LittleWeb, run: Run, codings: tuple[str, ...], body: bytes, status: str, reason: str | None
) -> None:
    fields = tuple(("Content-Encoding", coding) for coding in codings)
    url = web.put("a.test", "/", Answer(body, headers=(("Content-Type", "text/html"), *fields)))
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], row["parse_status"], row["reason"]) == ("success", status, reason)
    assert row["payload_checksum"] == payload_checksum(PAGE if status == "ok" else body)
    assert len(row["links"]) == (status == "ok")


@pytest.mark.parametrize("cut", [20, len(ZIPPED) // 2])
def test_a_page_whose_coding_breaks_off_is_truncated(web: LittleWeb, run: Run, cut: int) -> None:
    fields = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    url = web.put("a.test", "/", Answer(ZIPPED[:-cut], headers=fields))
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], row["parse_status"], row["payload_checksum"]) == ("success", "truncated", None)
    assert row["reason"] == "content coding: the coded body is cut short"


def test_several_fields_are_one_list() -> None:
    fields = [("content-encoding", "gzip"), ("server", "x"), ("content-encoding", "br")]
    assert Exchange(b"", "", 0.0, headers=fields).content_encoding == "gzip, br"
    assert Exchange(b"", "", 0.0, headers=fields[1:2]).content_encoding == ""


def test_the_reason_of_a_failed_parse_is_the_reason(web: LittleWeb, run: Run) -> None:
    body = b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><urlset><url><loc>http://a.test/1</loc></url></urlset>"
    url = web.put("a.test", "/", Answer(body, headers=(("Content-Type", "application/xml"),)))
    row = run.plan(url).go().outcome(url)
    assert (row["parse_status"], row["reason"]) == ("failed", "the document has an internal DTD subset")
