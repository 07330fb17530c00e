"""What passes for harmless is read in less time than an event loop has for one step, and ordinary pages pass."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.fetch.policies import content_reader
from crawler.page import mime
from crawler.page.content import Document
from crawler.page.suspicion import is_suspicious
from crawler.settings import Settings
from tests.page import killers

INLINE = 131_072
STEP_S = 0.05
READER = content_reader(Settings())
READER.prints.warm_up()


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of this thread, those of the better of two tries: the machine has others to serve."""
    best = float("inf")
    for _ in range(2):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
        if best < STEP_S:
            break
    return best


def steps_of(document: Document) -> tuple[float, float]:
    """What the two steps in an event loop cost."""
    begun = cpu_s(lambda: READER.begin(document))
    draft = READER.begin(document)
    return begun, cpu_s(lambda: READER.finish(draft)) if draft is not None else 0.0


@pytest.mark.parametrize("name", killers.SMALL)
def test_a_small_killer_goes_elsewhere_or_costs_little(name: str) -> None:
    assert max(steps_of(Document(killers.SMALL[name], "http://a.test/", killers.HTML))) < STEP_S


@pytest.mark.parametrize(
    "charset", ["gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-16le", "koi8-u"]
)
@pytest.mark.parametrize("unit", [b"\xff", b"\x80", b"\xd8\x00", b"\x1b$B"])
def test_bytes_that_are_nothing_in_an_encoding_cost_little(charset: str, unit: bytes) -> None:
    body = b"<p>" + unit * (120_000 // len(unit))
    assert max(steps_of(Document(body, "http://a.test/", f"text/html; charset={charset}"))) < STEP_S


@pytest.mark.parametrize("name", killers.large())
def test_a_large_killer_goes_elsewhere_or_costs_little(name: str) -> None:
    killer = killers.large()[name]
    assert max(steps_of(Document(killer.body, "http://a.test/", killer.content_type, killer.coding))) < STEP_S


TAGS = st.sampled_from(
    [b"<div>", b"<b a=%d>", b"<i>", b"<p>", b"x", b"</b>", b"</p>", b"<a href=%d>", b"<table>", b"<td>", b"<li>",
     b"<ul>", b"<object>", b"</object>", b"<!--", b"-->", b"<p title='", b"'>", b"<font x=\">", b"\">", b"<svg>",
     b"<template>", b"<span>", b"</span>", b"<button>", b"</div>", b"<nobr>", b"<h1>", b"<form>", b"<select>",
     b" a%d ", b" b%d='>' "]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(TAGS, min_size=1, max_size=5), st.integers(1, 3_000)), min_size=1, max_size=4))
def test_no_heap_of_tags_costs_much(heaps: list[tuple[list[bytes], int]]) -> None:
    parts = [b"".join(tags).replace(b"%d", b"%d" % n) for tags, count in heaps for n in range(count)]
    body = b"".join(parts)[:INLINE]
    assert max(steps_of(Document(body, "http://a.test/", killers.HTML))) < STEP_S


TEXT = (
    b"<p>One <b>bold</b>, <i class=icon></i> <em class='a b'><span class=n>nested <a href=/x>link</a></span></em>.</p>"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", False),
        (b"<p>word</p>" * 3_000, False),
        (b"a" * (INLINE + 1), True),
        (TEXT * 400, False),
        (TEXT.upper() * 400, False),
        (b"<p>" + b"words " * 3_500 + b"</p>" + b"<p>" + b"a" * 50_000, False),
        (b"<p>He said 'so' and \"so\", isn't it.</p>" * 2_500, False),
        (b"<script>if (a < b && c > d) { e = '</b>'; }</script>" * 1_500, False),
        (b"<b a=1>" * 200 + b"<p>x" * 200, True),
        (b"<div>" * 5_000, True),
        (killers.attributes(4_200), True),
        (killers.attributes(3_800), False),
    ],
)
def test_what_is_suspicious(body: bytes, expected: bool) -> None:
    assert is_suspicious(body, INLINE) is expected


@pytest.mark.parametrize(
    ("mime_type", "body", "expected"),
    [
        (mime.PLAIN, b"<b a=1>x" * 10_000, False),
        (mime.PLAIN, b"a" * (INLINE + 1), True),
        (mime.XML, b"<x/>" * 12_000, False),
        (mime.XML, b"<x/>" * 12_001, True),
        (mime.RSS, b"<x/>" * 12_001, True),
        (mime.XHTML, b"<div>" * 5_000, True),
    ],
)
def test_other_types_have_other_bounds(mime_type: str, body: bytes, expected: bool) -> None:
    assert is_suspicious(body, INLINE, mime_type) is expected
