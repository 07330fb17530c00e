from __future__ import annotations

import pytest

from crawler.page.directives import from_headers, from_meta, is_robots_meta

DATES = [
    "25 Jun 2010 15:00:00 PST",
    "Fri, 25 Jun 2010 15:00:00 GMT",
    "Friday, 25-Jun-10 15:00:00 UTC",
    "Fri Jun 25 15:00:00 2010",
    "2010-06-25T15:00:00+01:00",
    "2010-06-25",
    "25-Jun-2010 15:00:00 GMT+01:00",
    "June 25, 2010; 3:00 PM",
    "",
]


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("separator", [",", ";", " , ", "; ", " "])
def test_what_follows_a_date_counts(date: str, separator: str) -> None:
    value = f"unavailable_after: {date}{separator}noindex{separator}max-snippet:0{separator}nofollow"
    expected = {"unavailable_after", "noindex", "max-snippet", "nofollow"}
    assert from_headers([value], "us") == from_headers([f"us: {value}"], "us") == expected
    assert from_headers([f"them: {value}"], "us") == frozenset()
    assert from_headers([f"{value}{separator}them: noarchive"], "us") == expected
    assert from_headers([f"unavailable_after: {date}{separator}them: noarchive"], "us") == {"unavailable_after"}
    assert from_meta([("robots", value)], "us") == expected


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
        (["noindex; nofollow"], "nofollow noindex"),
        (["noindex nofollow;noarchive"], "noarchive nofollow noindex"),
        (["max-image-preview: none; noarchive"], "max-image-preview noarchive"),
        (["max-snippet: -1 noindex"], "max-snippet noindex"),
        (["max-snippet:, noindex"], "max-snippet noindex"),
        (["otherbot: noindex; nofollow"], ""),
        (["otherbot : noindex, orbweaver : nofollow"], "nofollow"),
        (["360spider: noindex"], ""),
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
        ([("robots", "noindex;nofollow")], "nofollow noindex"),
        ([("robots", "max-image-preview:none;noarchive")], "max-image-preview noarchive"),
    ],
)
def test_metas(metas: list[tuple[str, str]], directives: str) -> None:
    assert " ".join(sorted(from_meta(metas, "OrbWeaver"))) == directives


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a, NoIndex", True),
        ("noindex nofollow", True),
        ("a; none", True),
        ("all of us", False),
        ("max-snippet:-1", True),
        ("A page on indexes", False),
        ("", False),
    ],
)
def test_what_looks_like_directives(content: str, expected: bool) -> None:
    assert is_robots_meta(content) is expected
