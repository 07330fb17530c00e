"""Each row of the corners' table behaves as it says."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from crawler.records import Outcome
from tests.web import DemoWeb, corners
from tests.web.answers import EXACT, PREFIXES
from tests.web.ask import Reply, ask, joined
from tests.web.corner_bodies import BIG_BYTES, BOMB_BYTES, TONGUES, Tongue
from tests.web.corner_robots import ROBOTS_LIMIT
from tests.web.corners import CORNERS, Corner

Replies = dict[tuple[str, str], Reply]
ASKED = [corner for corner in CORNERS if corner.outcome != "never"]
PATIENCE_S = 1.5


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb() as running:
        yield running


@pytest.fixture(scope="module")
def replies(web: DemoWeb) -> Replies:
    """The first answer of every corner, asked for side by side, since some take their time."""
    patience = [PATIENCE_S if corner.is_hidden else 12.0 for corner in ASKED]
    with ThreadPoolExecutor(40) as pool:
        asked = pool.map(lambda corner, s: ask(web, corner.host, corner.path, s), ASKED, patience)
        return {(corner.host, corner.path): reply for corner, reply in zip(ASKED, asked, strict=True)}


def outcome(reply: Reply) -> str:
    """What a careful client makes of a reply."""
    if not reply.wire:
        return "timeout" if reply.ending == "waiting" else "connect_failed"
    if not reply.status:
        return "protocol_error"
    if not reply.has_head or reply.ending == "waiting":
        return "timeout"
    if len(reply.headers) > 200:
        return "headers_too_large"
    if reply.status in (429, 503) and "retry-after" in reply.headers:
        return "asked_to_wait"
    known = {301: "redirect_perm", 308: "redirect_perm", 404: "gone", 410: "gone"}
    return (
        known.get(reply.status) or ("success", "redirect_temp", "client_error", "server_error")[reply.status // 100 - 2]
    )


@pytest.mark.parametrize("corner", ASKED, ids=lambda corner: corner.host + corner.path)
def test_corner_ends_as_the_table_says(corner: Corner, replies: Replies) -> None:
    assert outcome(replies[corner.host, corner.path]) == corner.outcome


def test_table_is_well_formed() -> None:
    assert len(CORNERS) > 100
    assert len({(corner.host, corner.path) for corner in CORNERS}) == len(CORNERS)
    assert {corner.outcome for corner in CORNERS} <= {"never", *Outcome}
    assert [c for c in CORNERS if not (c.what.endswith(".") and c.good.endswith("."))] == []


def test_every_registered_host_is_in_the_table() -> None:
    registered = {host for host, _ in EXACT} | set(PREFIXES)
    assert registered <= set(corners.HOSTS)


@pytest.mark.parametrize(
    ("path", "ending", "length"),
    [("/big", "complete", BIG_BYTES), ("/big-to-close", "closed", BIG_BYTES), ("/to-close", "closed", None)],
)
def test_bodies_end_as_told(replies: Replies, path: str, ending: str, length: int | None) -> None:
    reply = replies["packed.test", path]
    assert reply.ending == ending
    assert length is None or len(reply.body) == length


def test_chunks_and_codings_hold_pages(replies: Replies) -> None:
    packed = {path: reply.body for (host, path), reply in replies.items() if host == "packed.test"}
    pages = [
        gzip.decompress(packed["/gzip"]),
        joined(packed["/chunked"]),
        gzip.decompress(joined(packed["/gzip-chunked"])),
        zlib.decompress(packed["/deflate"]),
        packed["/not-gzip"],
    ]
    assert all(page.startswith(b"<!DOCTYPE html>") and page.endswith(b"</html>\n") for page in pages)
    assert len(joined(packed["/big-chunked"])) == BIG_BYTES > 5 * 1024 * 1024
    assert len(gzip.decompress(packed["/bomb"])) == BOMB_BYTES > 500 * len(packed["/bomb"])


@pytest.mark.parametrize(
    ("host", "path", "ending"),
    [
        ("faulty.test", "/reset", "reset"),
        ("faulty.test", "/nothing", "closed"),
        ("faulty.test", "/short", "closed"),
        ("faulty.test", "/cut-chunks", "closed"),
        ("closed.test", "/", "refused"),
        ("snail.test", "/stall", "waiting"),
        ("snail.test", "/endless-head", "waiting"),
        ("snail.test", "/drip", "complete"),
    ],
)
def test_failures_fail_in_their_own_way(replies: Replies, host: str, path: str, ending: str) -> None:
    assert replies[host, path].ending == ending


def test_cut_bodies_hold_something(replies: Replies) -> None:
    places = (("faulty.test", "/short"), ("faulty.test", "/cut-chunks"), ("garbled.test", "/bad-chunks"))
    cut = [replies[place] for place in places]
    assert all(b"beginning of a page" in reply.body for reply in cut)
    assert 0 < len(cut[0].body) < int(cut[0].headers["content-length"])


def test_twins_and_mill_are_equal_byte_for_byte(web: DemoWeb) -> None:
    for group in web.expected.payload_duplicates:
        assert len({_get(web, url).body for url in group}) == 1


@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.path)
def test_phrase_is_in_the_bytes_of_its_charset(web: DemoWeb, tongue: Tongue) -> None:
    reply = ask(web, "babel.test", tongue.path)
    assert tongue.phrase in reply.body.removeprefix(tongue.lead).decode(tongue.codec)
    assert reply.headers.get("content-type") == tongue.content_type


def test_redirects_lead_where_expected(web: DemoWeb) -> None:
    special = web.url("turns.test", "/non-ascii")
    for url, target in web.expected.redirects.items():
        location = _get(web, url).headers["location"]
        assert url == special or location in target
    assert _get(web, special).headers["location"].encode("latin-1").decode() == "/target/größe"


def test_scroll_is_cut_in_the_middle_of_a_rule(web: DemoWeb) -> None:
    body = ask(web, "scroll.test", "/robots.txt").body
    assert len(body) > 590_000
    assert body[:ROBOTS_LIMIT].endswith(b"\nDisallow: /cut")
    assert body.index(b"Disallow: /early/") < 100 < ROBOTS_LIMIT < body.index(b"Disallow: /late/")
    assert max(map(len, body.split(b"\n")[:20_000])) < 40


@pytest.mark.parametrize(
    ("host", "status", "start"),
    [
        ("gate.test", 200, b"User-agent"),
        ("open.test", 404, b""),
        ("locked.test", 403, b""),
        ("ailing.test", 503, b""),
        ("mark.test", 200, b"\xef\xbb\xbfUser-agent"),
        ("mark16.test", 200, b"\xff\xfe" + b"U\x00s\x00"),
        ("forward.test", 301, b""),
        ("relay.test", 302, b""),
        ("lure.test", 302, b""),
        ("sofa.test", 200, b"<html>"),
        ("mute.test", 0, b""),
        ("twins.test", 200, b"User-agent"),
    ],
)
def test_robots_files(web: DemoWeb, host: str, status: int, start: bytes) -> None:
    reply = ask(web, host, "/robots.txt", 0.5 if host == "mute.test" else 12.0)
    assert (reply.status, reply.body.startswith(start)) == (status, True)


def test_relay_takes_more_than_five_hops(web: DemoWeb) -> None:
    path, hops = "/robots.txt", 0
    while (reply := ask(web, "relay.test", path)).status == 302:
        path, hops = reply.headers["location"], hops + 1
    assert (reply.status, hops) == (200, 7)


def test_sitemap_parts(web: DemoWeb) -> None:
    plain, packed = ask(web, "atlas.test", "/a.xml").body, ask(web, "atlas.test", "/b.xml.gz").body
    assert web.url("atlas.test", "/only/in-a/3").encode() in plain
    assert web.url("atlas.test", "/only/in-b/1").encode() in gzip.decompress(packed)


def _get(web: DemoWeb, url: str) -> Reply:
    host, _, path = url.removeprefix("http://").partition("/")
    return ask(web, host.partition(":")[0], "/" + path)
