"""What we write replays in pywb and is valid for jwarc: every kind of record, and every head that could lie."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.fetch.warc import CaptureRecord, Revisit, WarcFile
from crawler.storage import Store
from tests.fetch.warc_peers import Replay, jwarc_complaints, replay
from tests.fetch.warc_samples import CAPTURE, EVERY_KIND, HEADS, INFO, START, write
from tests.peers import PeerMissing

pytestmark = pytest.mark.soak

DAY_S = 86_400
PAGE = b"<html><head><title>Wren</title></head><body><p>The wren is a small bird.</p></body></html>"
PACKED = gzip.compress(PAGE, mtime=0)
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
HEADS_304 = {
    "etag": b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n',
    "length": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 90\r\nContent-Type: text/html\r\n\r\n",
    "coded": b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bare LF": b"HTTP/1.0 304\nLocation: /elsewhere\n\n",
    "odd bytes": b'HTTP/1.1 304 \xff\x7f\r\nX: \xe9\x1b"\\\r\n\r\n',
}
PAGES = {
    "plain": (HTML + b"Content-Length: %d\r\n\r\n" % len(PAGE), PAGE),
    "no-length": (HTML + b"\r\n", PAGE),
    "gzip": (HTML + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED), PACKED),
    "chunked": (HTML + b"Transfer-Encoding: chunked\r\n\r\n", PAGE),
    "chunked-gzip": (HTML + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", PACKED),
    "bare-lf": (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n", PAGE),
    "mixed-ends": (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\r\n", PAGE),
}
CUTS = {
    "cut-length": (HTML + b"Content-Length: 100000\r\n\r\n", PAGE[:50]),
    "cut-empty": (HTML + b"Content-Length: 7\r\n\r\n", b""),
    "cut-chunked": (HTML + b"Transfer-Encoding: chunked\r\n\r\n", PAGE[:50]),
    "cut-gzip": (HTML + b"Content-Encoding: gzip\r\nContent-Length: 5000\r\n\r\n", PACKED[:40]),
}


def url_of(name: str) -> str:
    return f"http://birds.test/{name}"


def time14(days: int) -> str:
    return f"202602{1 + days:02}120000"


def captures() -> Iterator[CaptureRecord]:
    """Each page on the first day, a 304 for it on every later one, then the same payload sent whole, then a copy."""
    first = START + DAY_S
    for name, (head, body) in PAGES.items():
        page = replace(CAPTURE, url=url_of(name), started_at=first, head=head, body=body)
        yield page
        pointer = Revisit("server-not-modified", None, page.url, "2026-02-01T12:00:00Z")
        for days, head_304 in enumerate(HEADS_304.values(), 1):
            yield replace(page, started_at=first + days * DAY_S, head=head_304, body=b"", revisit=pointer)
        same = replace(pointer, profile="identical-payload-digest")
        yield replace(page, started_at=first + 10 * DAY_S, revisit=same)
        yield replace(page, url=url_of(f"{name}/copy"), started_at=first, revisit=same)
    for name, (head, body) in CUTS.items():
        yield replace(CAPTURE, url=url_of(name), started_at=first, head=head, body=body, truncated="disconnect")
    moved = b"HTTP/1.1 301 Moved Permanently\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n"
    yield replace(CAPTURE, url=url_of("moved"), started_at=first, head=moved, body=b"")


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of all of these."""
    store = Store.open(str(tmp_path_factory.mktemp("birds")))
    warc = WarcFile(store.open_writer("birds.warc.gz"), INFO)
    for capture in captures():
        warc.write_exchange(capture)
    warc.close()
    return Path(store.uri.removeprefix("file://"), "birds.warc.gz")


@pytest.fixture(scope="module")
def pywb(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    try:
        with replay(tmp_path_factory.mktemp("pywb"), [birds]) as running:
            yield running
    except PeerMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("days", [0, *range(1, 1 + len(HEADS_304)), 10])
def test_pages_and_their_revisits_replay_as_the_page(pywb: Replay, name: str, days: int) -> None:
    """By time, so that each record is the one that answers."""
    seen = pywb.get(url_of(name), time14(days))
    body = gzip.decompress(seen.body) if seen.headers.get("content-encoding") == "gzip" else seen.body
    assert (seen.status, body) == (200, PAGE)
    assert seen.headers["content-type"] == "text/html"
    assert seen.headers["content-location"].endswith(f"/{time14(days)}id_/{url_of(name)}")
    as_people_see_it = pywb.get(url_of(name), time14(days), "mp_")
    assert b"The wren is a small bird." in as_people_see_it.body


@pytest.mark.parametrize("name", PAGES)
def test_a_copy_at_another_url_replays_as_the_page(pywb: Replay, name: str) -> None:
    seen = pywb.get(url_of(f"{name}/copy"), time14(0))
    body = gzip.decompress(seen.body) if seen.headers.get("content-encoding") == "gzip" else seen.body
    assert (seen.status, body) == (200, PAGE)


@pytest.mark.parametrize("name", CUTS)
def test_what_was_cut_replays_and_keeps_nobody_waiting(pywb: Replay, name: str) -> None:
    seen = pywb.get(url_of(name), time14(0))
    left = CUTS[name][1]
    assert (seen.status, seen.body) in {(200, left), (200, PAGE[: len(seen.body)])}  # what can be decoded of it
    assert bool(seen.body) == bool(left)


def test_a_redirect_replays_as_a_redirect(pywb: Replay) -> None:
    seen = pywb.get(url_of("moved"), time14(0), "mp_")
    assert seen.status == 301
    assert seen.headers["location"].endswith(f"mp_/{url_of('plain')}")


def test_jwarc_finds_our_files_valid(birds: Path, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    write(store, *EVERY_KIND)
    kinds = (tmp_path / "warc/X.warc.gz").rename(tmp_path / "kinds.warc.gz")
    bodies = itertools.product(HEADS.values(), (b"", b"1234567"))
    write(store, *(replace(CAPTURE, head=head, body=body, truncated="length") for (head, _), body in bodies))
    heads = (tmp_path / "warc/X.warc.gz").rename(tmp_path / "heads.warc.gz")
    golden = tmp_path / "golden.warc"
    golden.write_bytes((Path(__file__).parent / "golden.warc").read_bytes())
    try:
        assert not jwarc_complaints([birds, kinds, heads, golden])
    except PeerMissing as missing:
        pytest.skip(str(missing))
