from __future__ import annotations

import pytest

from crawler.page.plain import PlainModule

URL = "http://h.org/sitemap.txt"


@pytest.mark.parametrize(
    ("body", "text", "hrefs"),
    [
        (b"one\0two \xc3\xa9", "one two é", []),
        (b"http://a/1\n\n  http://a/2\r\nhttp://a/1", None, ["http://a/1", "http://a/2"]),
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
