"""What is not asked, not read, not parsed and not stored, by suffix and by MIME type."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import Iterator

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.fetch.http import HttpProtocol
from crawler.fetch.outcomes import Row
from crawler.fetch.verify import Noted, check_file
from crawler.page.wanted import MimeTypes
from crawler.settings import ContentSettings, FetchSettings
from tests.fetch.little_web import Answer, LittleWeb, page, redirect
from tests.fetch.partition_runs import Run
from tests.fetch.raw_server import serving

MOVIE = bytes(range(256)) * 40_000  # ten million bytes
SITEMAP = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


def said(body: bytes, content_type: str, status: int = 200) -> Answer:
    return Answer(body, status, (("Content-Type", content_type), ("ETag", '"1"')))


def stored(run: Run, row: Row) -> tuple[str | None, str, bytes]:
    """WARC-Truncated, the HTTP head's Content-Type, and the body of a row's record."""
    data = run.store.read_range(row["warc_filename"], row["warc_record_offset"], row["warc_record_length"])
    record = next(iter(ArchiveIterator(io.BytesIO(data))))
    truncated = record.rec_headers.get_header("WARC-Truncated")
    return truncated, record.http_headers.get_header("Content-Type"), record.raw_stream.read()


def test_a_link_with_a_refused_suffix_is_counted_and_never_asked(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/", page("/disk.ISO", "/film.mp4?x=1", "/pack.tar.gz", "/page", "/map.xml.gz"))
    moved = web.put("a.test", "/moved", redirect("/disk.iso"))
    row = run.plan(url, moved).go().outcome(url)
    assert (dict(row["links_refused"]), row["links_found"], len(row["links"])) == ({"denied_suffix": 3}, 5, 2)
    assert (run.outcome(moved)["reason"], run.outcome(moved)["redirect_key"]) == ("redirect_denied_suffix", None)
    assert sorted(run.discovered()) == [f"http://a.test:{web.port}/{name}" for name in ("map.xml.gz", "page")]


def test_of_a_body_of_a_refused_type_only_the_head_is_stored(web: LittleWeb, run: Run) -> None:
    cases = {
        "/film": ("video/mp4", MOVIE, "video/mp4", None),
        "/untyped": ("application/octet-stream", MOVIE, "application/octet-stream", None),
        "/zip": ("application/octet-stream", b"PK\3\4" + MOVIE, "application/zip", "application/zip"),
        "/small": ("Audio/MPEG", b"ID3", "audio/mpeg", None),
    }
    urls = [web.put("a.test", path, said(body, named)) for path, (named, body, *_) in cases.items()]
    lost = web.put("a.test", "/lost", said(MOVIE, "video/mp4", 404))
    run.fetch = {"max_host_failures": 2}
    run.plan(*urls, lost, web.put("a.test", "/last", page())).go()
    assert run.by_path() == {**dict.fromkeys(cases, "unwanted_type"), "/lost": "gone", "/last": "success"}
    for url, (named, _, unread, detected) in zip(urls, cases.values(), strict=True):
        row = run.outcome(url)
        assert (row["reason"], row["content_mime_type"], row["content_mime_detected"]) == (
            f"body not read: {unread}", named.lower(), detected
        )  # fmt: skip
        assert (row["content_length"], row["content_truncated"], row["content_digest"]) == (0, "unspecified", None)
        assert stored(run, row) == ("unspecified", named, b"")
        assert "/crawldiagnostics/" in row["warc_filename"]
    assert stored(run, run.outcome(lost))[2] == b""
    host = run.hosts()[f"a.test:{web.port}"]
    assert (host["failures"], host["is_out"]) == (0, False)
    sizes = [sum(one.warc_bytes.values()) for one in run.sealed]
    assert sum(sizes) < 20_000
    rows = run.outcomes()
    for one in run.sealed:
        for subset, path in one.warcs.items():
            noted = Noted(path, one.warc_bytes[subset], one.warc_sha256[subset])
            of_file = [row for row in rows if row["warc_filename"] == path]
            assert check_file(run.store, path, noted, of_file).findings == []


def test_a_connection_whose_body_was_not_read_is_not_used_again(web: LittleWeb, run: Run) -> None:
    web.keeps_alive = True
    run.plan(*(web.put("a.test", f"/{n}", said(b"x" * 9, "text/plain")) for n in range(3))).go()
    assert web.connections == 2, "one for robots.txt and one for the pages"
    again = Run(run.folder / "again")
    again.folder.mkdir()
    web.connections = 0
    again.plan(*(web.put("a.test", f"/{n}", said(b"x" * 9, "video/mp4")) for n in range(3))).go()
    assert web.connections == 4


@pytest.mark.parametrize("content_type", ["video/mp4", "application/octet-stream"])
def test_the_server_is_cut_off_within_its_first_bytes(content_type: str) -> None:
    """Of ten million bytes the server gets rid of what fits into the buffers between, however it is framed."""
    sent = 0

    def steps() -> Iterator[bytes]:
        nonlocal sent
        yield b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: 1000000000\r\n\r\n" % content_type.encode()
        for _ in range(10_000):
            sent += 100_000
            yield bytes(100_000)

    async def ask() -> tuple[int, str | None]:
        async with serving(steps()) as server:
            protocol = HttpProtocol(FetchSettings(allow_addresses=("127.0.0.0/8",)))
            unread = MimeTypes(ContentSettings().deny_types)
            exchange = await protocol.fetch(server.request(unread=unread, keep_alive=True))
            assert exchange.connection is None
            return exchange.body_size, exchange.unread_type

    assert asyncio.run(ask()) == (0, content_type)
    assert sent < 20_000_000


def test_robots_files_and_sitemaps_are_exempt(web: LittleWeb, run: Run) -> None:
    """Whatever they end in and are sent as, and though the settings refuse their types."""
    home, base = web.put("a.test", "/", page()), f"http://a.test:{web.port}"
    web.put("a.test", "/robots.txt", said(f"User-agent: *\nSitemap: {base}/index.gz\n".encode(), "audio/mpeg"))
    index = INDEX.format(f"<sitemap><loc>{base}/maps/1.gz</loc></sitemap>").encode()
    locations = "".join(f"<url><loc>{base}/{name}</loc></url>" for name in ("page", "film.mp4"))
    urlset = gzip.compress(SITEMAP.format(locations).encode())
    web.put("a.test", "/index.gz", said(gzip.compress(index), "application/x-gzip"))
    web.put("a.test", "/maps/1.gz", said(urlset, "application/gzip"))
    run.content = {"deny_types": ("application/*", "text/xml", "audio/*")}
    run.plan(home).plan(f"{base}/index.gz", f"{base}/maps/1.gz", depth=1, source="sitemap").go()
    assert run.by_path() == {"/": "success", "/index.gz": "success", "/maps/1.gz": "success"}
    assert run.discovered() == {f"{base}/{name}": "sitemap" for name in ("index.gz", "maps/1.gz", "page")}
    assert dict(run.outcome(f"{base}/maps/1.gz")["links_refused"]) == {"denied_suffix": 1}


def test_what_is_not_parsed_is_stored_and_what_is_not_stored_is_parsed(web: LittleWeb, run: Run) -> None:
    words = " ".join(f"word{n}" for n in range(40))
    html = page("/one", text=words)
    xhtml = Answer(html.body, 200, (("Content-Type", "application/xhtml+xml"), ("ETag", '"1"')))
    one, two = web.put("a.test", "/plain", xhtml), web.put("a.test", "/kept", html)
    run.content = {"unparsed_types": ("text/html",), "unstored_types": ("application/xhtml+xml",)}
    run.plan(one, two).go()
    unstored, unparsed = run.outcome(one), run.outcome(two)
    assert (unstored["outcome"], unstored["parse_status"], len(unstored["links"])) == ("success", "ok", 1)
    assert unstored["text_words"] >= 40
    assert (unstored["content_length"], unstored["content_digest"]) == (0, None)
    assert stored(run, unstored) == ("unspecified", "application/xhtml+xml", b"")
    assert (unparsed["outcome"], unparsed["parse_status"], unparsed["links"]) == ("success", "not_parsed", [])
    assert (unparsed["content_mime_detected"], unparsed["text_words"]) == ("text/html", None)
    assert stored(run, unparsed) == (None, "text/html", html.body)


def test_what_is_held_and_has_not_changed_is_a_revisit_also_where_it_would_not_be_stored(
    web: LittleWeb, run: Run
) -> None:
    url = web.put("a.test", "/", page())
    first = run.plan(url).go().outcome(url)
    again = Run(run.folder / "again", content={"unstored_types": ("text/html",)})
    again.folder.mkdir()
    held = {"content_digest": first["content_digest"], "digest_record_id": first["warc_record_id"]}
    row = again.plan(url, **held, digest_date=first["warc_date"]).go().outcome(url)
    assert (row["outcome"], row["warc_record_type"], row["reason"]) == ("not_modified", "revisit", "same_payload")
