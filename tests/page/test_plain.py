from __future__ import annotations

import pytest

from crawler.page.plain import MAX_URLS, PlainModule

URL = "http://h.org/sitemap.txt"


@pytest.mark.parametrize(
    ("body", "text", "hrefs"),
    [
        (b"one\0two \xc3\xa9", "one two é", []),
        (b"http://a/1\n\n  http://a/2\r\nhttp://a/1", None, ["http://a/1", "http://a/2"]),
        (b"\xef\xbb\xbfHTTP://a/1\rhttps://a/2?b&c\n", None, ["HTTP://a/1", "https://a/2?b&c"]),
        (b"http://a/1 http://a/2", "http://a/1 http://a/2", []),
        (b"http://a/1\nftp://a/2", "http://a/1\nftp://a/2", []),
        (b"http://a/1\n# a comment", "http://a/1\n# a comment", []),
        (b"http://\nhttp://a", "http://\nhttp://a", []),
        (b"see http://a/1", "see http://a/1", []),
        (b"http://a/1\nis a link", "http://a/1\nis a link", []),
        (b"", "", []),
    ],
)
def test_texts_and_url_lists(body: bytes, text: str | None, hrefs: list[str]) -> None:
    page = PlainModule().parse(body, URL, "text/plain; charset=utf-8")
    assert page.hrefs == hrefs
    assert page.source == ("sitemap" if hrefs else "link")
    assert text is None or page.text == text


def test_what_is_not_taken_of_a_list_is_counted() -> None:
    page = PlainModule().parse(b"http://a/1\nhttp://a/\xe9\n", URL, "text/plain; charset=utf-8")
    assert (page.hrefs, page.refused) == (["http://a/1"], {"guessed": 1})
    page = PlainModule().parse(b"".join(b"http://a/%d\n" % n for n in range(MAX_URLS + 7)), URL, None)
    assert (len(page.hrefs), page.refused) == (MAX_URLS, {"too_many": 7})


@pytest.mark.parametrize(
    ("body", "hrefs", "refused"),
    [
        (b"http://a/1\nhttp://a/2", ["http://a/1"], {"guessed": 1}),
        (b"http://a/1\nhttp://a/2\r\n", ["http://a/1", "http://a/2"], {}),
        (b"http://a/1", [], {"guessed": 1}),
        (b"words", [], {}),
    ],
)
def test_a_list_that_is_cut_loses_its_last_line(body: bytes, hrefs: list[str], refused: dict[str, int]) -> None:
    page = PlainModule().parse(body, URL, "text/plain")
    page.cut()
    assert (page.hrefs, page.refused, page.parse_status) == (hrefs, refused, "truncated")
