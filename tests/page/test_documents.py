from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page import documents
from crawler.page.documents import module_for, parse
from crawler.page.model import Page
from crawler.page.plain import PlainModule

URL = "http://h.org/d/page"


@pytest.mark.parametrize(
    ("body", "content_type", "mime", "status"),
    [
        (b"<p>a", "text/html", "text/html", "ok"),
        (b"<html xmlns='x'>", "application/xhtml+xml", "application/xhtml+xml", "ok"),
        (b"words", "text/plain", "text/plain", "ok"),
        (b"%PDF-1.4", "application/pdf", "application/pdf", "not_parsed"),
        (b"{}", "application/json", "application/json", "not_parsed"),
        (b"<svg/>", "application/xml", "application/xml", "not_parsed"),
        (b"", None, "application/octet-stream", "not_parsed"),
        (b"", "text/html", "text/html", "ok"),
    ],
)
def test_by_type(body: bytes, content_type: str | None, mime: str, status: str) -> None:
    page = parse(body, URL, content_type)
    assert (page.mime_detected, page.parse_status, page.base) == (mime, status, URL)


def test_directives_of_the_product_token_count() -> None:
    html = b"<meta name=robots content=noarchive><meta name=OrbWeaver content=noindex>"
    assert parse(html, URL, "text/html", product_token="orbweaver").directives == {"noarchive", "noindex"}
    assert parse(html, URL, "text/html").directives == {"noarchive"}


@given(
    st.binary(max_size=80),
    st.sampled_from([None, "text/html", "text/plain", "application/xml", "application/rss+xml", "application/gzip"]),
)
def test_it_never_raises(body: bytes, content_type: str | None) -> None:
    for prefix in (b"", b"<?xml version='1.0'?>", b"\x1f\x8b\x08", b"<urlset><url><loc>"):
        assert parse(prefix + body, URL, content_type).parse_status in ("ok", "not_parsed", "failed")


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = importlib.metadata.EntryPoint("text/x-test", "tests.page.test_documents:Broken", documents.ENTRY_POINTS)
    monkeypatch.setattr(documents, "entry_points", lambda group: [point] if group == documents.ENTRY_POINTS else [])
    documents._third_party.cache_clear()
    yield
    documents._third_party.cache_clear()


class Broken:
    """A module that raises what nobody expects."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        raise ZeroDivisionError("no\0thing")


@pytest.mark.usefixtures("third_party")
def test_a_module_of_a_third_party_that_breaks_is_a_failed_parse() -> None:
    assert isinstance(module_for("text/x-test"), Broken)
    assert isinstance(module_for("text/plain"), PlainModule)
    page = parse(b"a", URL, "text/x-test")
    assert (page.parse_status, page.reason) == ("failed", "ZeroDivisionError: no\0thing")


class Strict:
    """A module that forbids by itself."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        return Page("text/x-other", directives=frozenset({"noindex"}), robots_metas=[("us", "nofollow")])


def test_the_directives_of_a_module_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_third_party", lambda mime_type: Strict())
    page = parse(b"a", URL, "text/x-test", product_token="us")
    assert (page.directives, page.mime_detected, page.base) == (frozenset({"noindex", "nofollow"}), "text/x-test", URL)
