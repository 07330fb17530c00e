"""What is kept of a document is small, whatever the document is."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.policies import content_reader
from crawler.page import documents
from crawler.page.content import MAX_HREF_CHARS, MAX_REASON_CHARS, Content, ContentReader, Document, printable
from crawler.page.fingerprint import payload_checksum
from crawler.page.model import Page
from crawler.settings import Settings

READER = content_reader(Settings())
URL = "http://a.test/d/"


def reader(**bounds: object) -> ContentReader:
    return ContentReader(replace(READER.bounds, **bounds), READER.prints)  # type: ignore[arg-type]  # a table of cases is looser than the types


def html(body: bytes, **fields: object) -> Document:
    return Document(body, URL, "text/html", **fields)  # type: ignore[arg-type]  # a table of cases is looser than the types


def page_of(content: Content) -> Page:
    assert content.page is not None
    return content.page


def anchors(*hrefs: str) -> bytes:
    return "".join(f"<a href='{href}'>x</a>" for href in hrefs).encode()


@pytest.mark.parametrize(
    ("hrefs", "kept", "left_out"),
    [
        (["a", "b", "c"], ["a", "b", "c"], 0),
        (["a", "b", "c", "d", "e"], ["a", "b", "c"], 2),
        (["a#1", "a#2", "a#3", "b"], ["a", "b"], 0),
        (["a#1", "b", "c", "d", "a#2", "b"], ["a", "b", "c"], 1),
    ],
)
def test_hrefs_are_kept_up_to_the_bound_and_the_rest_is_counted(
    hrefs: list[str], kept: list[str], left_out: int
) -> None:
    content = reader(max_links=3).read(html(anchors(*hrefs)))
    assert (page_of(content).hrefs, content.refused.get("too_many", 0)) == (kept, left_out)
    scanned = reader(max_links=3).scan(html(anchors(*hrefs)))
    assert (page_of(scanned).hrefs, scanned.refused.get("too_many", 0)) == (kept, left_out)


def test_fragments_may_make_a_difference() -> None:
    content = reader(max_links=2, strip_fragment=False).read(html(anchors("a#1", "a#2", "a#3")))
    assert (page_of(content).hrefs, content.refused.get("too_many", 0)) == (["a#1", "a#2"], 1)


def test_endless_hrefs_are_cut_where_the_filters_refuse_them_anyway() -> None:
    content = READER.read(html(anchors(*(f"{n}" + "x" * 100_000 for n in range(1_000)))))
    hrefs = page_of(content).hrefs
    assert {len(href) for href in hrefs} == {READER.bounds.max_href_chars + 1}
    assert sum(map(len, hrefs)) <= MAX_HREF_CHARS
    assert len(hrefs) + content.refused.get("too_many", 0) == 1_000


def test_nofollow_is_counted_or_set_aside() -> None:
    body = b"<a href=a>x</a><a rel=nofollow href=b>y</a>"
    obeyed, ignored = READER.read(html(body)), reader(obey_nofollow=False).read(html(body))
    assert (page_of(obeyed).hrefs, obeyed.forbidden) == (["a"], 1)
    assert (page_of(ignored).hrefs, ignored.forbidden) == (["a", "b"], 0)


def test_text_and_metas_stay_behind_and_the_title_is_bounded() -> None:
    body = b"<title>" + b"t" * 2_000 + b"</title><meta name=robots content=noindex>" + b"<p>some words" * 30
    content = READER.read(html(body))
    page = page_of(content)
    assert (page.text, page.robots_metas, len(page.title or "")) == ("", [], 500)
    assert set(page.directives) == {"noindex"}
    assert content.fingerprint is not None
    assert content.fingerprint.words == 60


def test_of_a_payload_that_is_known_there_is_the_checksum_only() -> None:
    body = b"<p>words"
    coded = html(gzip.compress(body, mtime=0), coding="gzip", is_known=True)
    assert READER.read(coded) == Content(payload_checksum=payload_checksum(body))


class Wordy:
    """A module that fails with many words."""

    def parse(self, body: bytes, url: str, content_type: str | None) -> Page:
        raise ValueError("line\none\x1b[31m\0" + "x" * 10_000)


def test_the_reason_of_a_failure_is_one_line_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_third_party", lambda mime_type: Wordy())
    page = page_of(READER.read(html(b"x")))
    assert page.parse_status == "failed"
    assert page.reason is not None
    assert page.reason.startswith("ValueError: line one\ufffd[31m\ufffdxxx")
    assert len(page.reason) == MAX_REASON_CHARS


@given(st.text(max_size=500))
def test_a_reason_is_printable_and_bounded(text: str) -> None:
    found = printable(text)
    assert found is None or (found.isprintable() and len(found) <= MAX_REASON_CHARS)


def test_modules_of_others_are_not_trusted_with_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert READER.begin(html(b"x")) is not None
    assert reader(html_module="bs4").begin(html(b"x")) is None
    monkeypatch.setattr(documents, "_third_party", lambda mime_type: Wordy())
    assert READER.begin(html(b"x")) is None


def test_what_nobody_reads_stays_here_however_long() -> None:
    body = b"%PDF-1.4" + bytes(1_000_000)
    draft = READER.begin(Document(body, URL, "application/pdf"))
    assert draft is not None
    content = READER.finish(draft)
    assert (page_of(content).parse_status, content.payload_checksum) == ("not_parsed", payload_checksum(body))


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/html", "text/plain", "application/xml", "application/gzip", "application/rss+xml"]),
    st.sampled_from([None, "gzip", "br", "zstd", "deflate, gzip"]),
)
def test_both_ways_of_reading_agree_and_never_raise(body: bytes, content_type: str | None, coding: str | None) -> None:
    document = Document(body, URL, content_type, coding)
    draft = READER.begin(document)
    if draft is not None:
        assert READER.finish(draft) == READER.read(document)
    READER.scan(document)
    READER.glance(document)
