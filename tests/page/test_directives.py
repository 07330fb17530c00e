from __future__ import annotations

import pytest

from crawler.page.directives import from_headers, from_meta, is_robots_meta


@pytest.mark.parametrize(
    ("values", "directives"),
    [
        ([], ""),
        (["noindex"], "noindex"),
        (["NoIndex , NOFOLLOW", "noarchive"], "noarchive nofollow noindex"),
        (["none"], "nofollow noindex"),
        (["otherbot: noindex"], ""),
        (["orbweaver: noindex"], "noindex"),
        (["OrbWeaver: noindex, nofollow"], "nofollow noindex"),
        (["otherbot: noindex, orbweaver: nofollow"], "nofollow"),
        (["nofollow, otherbot: noindex, noarchive"], "nofollow"),
        (["otherbot: noindex", "noarchive"], "noarchive"),
        (["*: noindex"], "noindex"),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "noindex unavailable_after"),
        (["max-snippet:0, nofollow"], "max-snippet nofollow"),
        (["", ",", ":", "x:", "nonsense", "no index"], "index"),
    ],
)
def test_headers(values: list[str], directives: str) -> None:
    assert " ".join(sorted(from_headers(values, "orbweaver"))) == directives


@pytest.mark.parametrize(
    ("metas", "directives"),
    [
        ([("robots", "noindex,nofollow")], "nofollow noindex"),
        ([("ROBOTS", " None ")], "nofollow noindex"),
        ([("orbweaver", "noindex"), ("robots", "noarchive")], "noarchive noindex"),
        ([("otherbot", "noindex")], ""),
        ([("robots", "noindex nofollow")], "nofollow noindex"),
        ([("robots", "max-snippet:20, max-image-preview:large")], "max-image-preview max-snippet"),
        ([("", "noindex")], ""),
    ],
)
def test_metas(metas: list[tuple[str, str]], directives: str) -> None:
    assert " ".join(sorted(from_meta(metas, "OrbWeaver"))) == directives


@pytest.mark.parametrize(
    ("content", "expected"), [("a, NoIndex", True), ("max-snippet:-1", True), ("A page on indexes", False), ("", False)]
)
def test_what_looks_like_directives(content: str, expected: bool) -> None:
    assert is_robots_meta(content) is expected
