"""A partition fetched for real from a little web on loopback; the web's log is the witness."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawler.fetch.outcomes import Row
from crawler.page.url import host_key
from jobs.stored import http_headers, read_record
from tests.fetch.little_web import Answer, Asked, LittleWeb, page, redirect
from tests.fetch.partition_runs import Run, host_state

WORDS = " ".join(f"word{n}" for n in range(40))


def records(run: Run, row: Row) -> list[tuple[str, str | None]]:
    """Type and payload digest of the records in the slice that an outcome names."""
    data = run.store.read_range(row["warc_filename"], row["warc_record_offset"], row["warc_record_length"])
    return [
        (record.rec_type, record.rec_headers.get_header("WARC-Payload-Digest"))
        for record in ArchiveIterator(io.BytesIO(data))
    ]


def test_pages_become_outcomes_captures_and_discoveries(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/", page("/one", "/two#x", "mailto:x@y", text=WORDS))
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], row["fetch_status"], row["parse_status"], row["title"]) == ("success", 200, "ok", "t")
    assert (len(row["links"]), row["links_found"], dict(row["links_refused"])) == (2, 3, {"scheme": 1})
    assert (len(row["signature"]), len(row["bands"])) == (128, 16)
    assert run.discovered() == {f"http://a.test:{web.port}/{path}": "link" for path in ("one", "two")}
    assert web.paths("a.test") == ["/robots.txt", "/"]
    assert records(run, row) == [("response", f"sha1:{row['content_digest']}")]
    assert set(run.sealed[0].warcs) == {"warc", "robotstxt"}


def test_every_planned_url_has_one_outcome_and_statuses_mean_what_they_say(web: LittleWeb, run: Run) -> None:
    answers: dict[str, tuple[Answer, str]] = {
        "/ok": (page(), "success"),
        "/empty": (Answer(b"", 204, ()), "success"),
        "/perm": (redirect("/ok", 308), "redirect_perm"),
        "/temp": (redirect("/ok", 303), "redirect_temp"),
        "/choice": (Answer(b"x", 300), "client_error"),
        "/lost": (Answer(b"x", 404), "gone"),
        "/gone": (Answer(b"x", 410), "gone"),
        "/secret": (Answer(b"x", 401), "client_error"),
        "/odd": (Answer(b"x", 999), "client_error"),
        "/broken": (Answer(b"x", 500), "server_error"),
        "/busy": (Answer(b"x", 503), "server_error"),
        "/unasked": (Answer(b"", 304), "protocol_error"),
    }
    run.plan(*(web.put("a.test", path, answer) for path, (answer, _) in answers.items())).go()
    assert run.by_path() == {path: outcome for path, (_, outcome) in answers.items()}
    assert Counter(web.paths("a.test")) == Counter([*answers, "/robots.txt"])


def test_a_captured_failure_goes_to_the_diagnostics(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/lost", Answer(b"gone fishing", 404))
    row = run.plan(url).go().outcome(url)
    assert "/crawldiagnostics/" in row["warc_filename"]
    assert records(run, row) == [("response", f"sha1:{row['content_digest']}")]


@pytest.mark.parametrize(
    ("target", "planned", "seed_hops", "reason"),
    [
        ("http://b.test/", {}, 1, None),
        ("http://a.test/next", {}, 1, None),
        ("https://a.test/", {}, 1, None),
        ("http://b.test/", {"seed_hops": 0}, 1, None),
        ("http://b.test/", {"seed_hops": 4}, 5, None),
        ("http://b.test/", {"seed_hops": 5}, None, "redirect_out_of_scope"),
        ("http://a.test/next", {"seed_hops": 5}, None, None),
        ("http://b.test/", {"depth": 1}, None, "redirect_out_of_scope"),
        ("http://a.test/next", {"depth": 1}, None, None),
        ("http://denied.test/", {}, None, "redirect_denied_domain"),
        ("http://b.test/disk.iso", {}, None, "redirect_denied_suffix"),
        ("ftp://b.test/", {}, None, "redirect_scheme"),
    ],
)
def test_what_a_seed_redirects_to_may_lie_outside_of_the_scope(
    web: LittleWeb, run: Run, target: str, planned: Row, seed_hops: int | None, reason: str | None
) -> None:
    url = web.put("a.test", "/", redirect(target))
    run.scope, run.filters = {"mode": "domains"}, {"deny_domains": ("denied.test",)}
    run.task_fields = {"scope": np.array([host_key("a.test")], "<i8").tobytes()}
    row = run.plan(url, **planned).go().outcome(url)
    assert (row["fetch_redirect"], row["seed_hops"], row["reason"]) == (target, seed_hops, reason)
    assert (row["redirect_key"] is None) == (reason is not None)
    assert run.discovered() == ({} if reason else {target: "redirect"})


@pytest.mark.parametrize(
    ("location", "target", "reason"),
    [
        ("/next", "/next", None),
        ("/gr\u00f6", "/gr%C3%B6", None),  # raw UTF-8 on the wire
        ("http://b.test/x#frag", "http://b.test/x", None),
        ("/here", "/here", "redirect_to_itself"),
        ("ftp://b.test/", "ftp://b.test/", "redirect_scheme"),
        ("javascript:alert(1)", None, "redirect_scheme"),
        ("", None, "no_location"),
    ],
)
def test_redirects_name_their_target(
    web: LittleWeb, run: Run, location: str, target: str | None, reason: str | None
) -> None:
    url = web.put("a.test", "/here", redirect(location))
    row = run.plan(url).go().outcome(url)
    absolute = target if target is None or "//" in target else f"http://a.test:{web.port}{target}"
    assert (row["outcome"], row["fetch_redirect"], row["reason"]) == ("redirect_perm", absolute, reason)
    assert (row["redirect_key"] is None) == (reason is not None)
    assert run.discovered() == ({} if reason else {absolute: "redirect"})
    assert web.paths("a.test") == ["/robots.txt", "/here"]


def test_a_page_we_hold_is_asked_for_conditionally(web: LittleWeb, run: Run) -> None:
    def answer(asked: Asked) -> Answer:
        is_held = asked.headers.get("if-none-match") == '"v1"'
        return Answer(b"", 304, (("ETag", '"v2"'),)) if is_held else page(text=WORDS)

    url = web.put("a.test", "/", answer)
    held = {"content_digest": "A" * 32, "digest_record_id": "<urn:uuid:1>", "digest_date": "2026-01-01T00:00:00Z"}
    row = run.plan(url, etag='"v1"', last_modified="Mon, 01 Jan 2026 00:00:00 GMT", **held).go().outcome(url)
    assert (row["outcome"], row["fetch_status"], row["content_digest"]) == ("not_modified", 304, "A" * 32)
    assert (row["warc_record_type"], row["etag"]) == ("revisit", '"v2"')
    assert records(run, row) == [("revisit", None)]
    assert read_record(run.store, row).head.startswith(b"HTTP/1.1 304 ")
    assert http_headers(read_record(run.store, row))["etag"] == '"v2"'
    assert "if-modified-since" in web.asked("a.test")[-1].headers


def test_the_same_payload_again_is_a_revisit_without_its_body(web: LittleWeb, run: Run, tmp_path: Path) -> None:
    url = web.put("a.test", "/", page("/one", text=WORDS))
    first = run.plan(url).go().outcome(url)
    names = {"digest_record_id": "warc_record_id", "digest_date": "warc_date"}
    held = {name: first[source] for name, source in names.items()} | {"content_digest": first["content_digest"]}
    again = Run(tmp_path / "again").plan(url, **held)
    again.folder.mkdir()
    row = again.go().outcome(url)
    assert (row["outcome"], row["fetch_status"], row["warc_record_type"]) == ("not_modified", 200, "revisit")
    assert (row["content_digest"], row["payload_checksum"]) == (first["content_digest"], first["payload_checksum"])
    assert row["warc_record_length"] < first["warc_record_length"] + 200
    assert records(again, row) == [("revisit", f"sha1:{first['content_digest']}")]


def test_the_same_payload_whose_record_is_unknown_is_stored(web: LittleWeb, run: Run, tmp_path: Path) -> None:
    url = web.put("a.test", "/", page(text=WORDS))
    first = run.plan(url).go().outcome(url)
    again = Run(tmp_path / "again").plan(url, content_digest=first["content_digest"])
    again.folder.mkdir()
    row = again.go().outcome(url)
    assert (row["outcome"], row["warc_record_type"]) == ("not_modified", "response")


def test_directives_of_page_and_head_are_recorded_and_nofollow_is_obeyed(web: LittleWeb, run: Run) -> None:
    tagged = Answer(page("/x").body, 200, (("Content-Type", "text/html"), ("X-Robots-Tag", "noarchive, nofollow")))
    url = web.put("a.test", "/", tagged)
    row = run.plan(url).go().outcome(url)
    assert row["directives"] == ["noarchive", "nofollow"]
    assert (row["links"], row["links_found"], dict(row["links_refused"])) == ([], 1, {"nofollow": 1})
    assert run.discovered() == {}


def test_nofollow_may_be_set_aside(web: LittleWeb, run: Run) -> None:
    body = b"<meta name=robots content=nofollow><a href=/x>x</a><a rel=nofollow href=/y>y</a>"
    url = web.put("a.test", "/", Answer(body))
    run.page = {"obey_nofollow": False}
    row = run.plan(url).go().outcome(url)
    assert (len(row["links"]), row["links_found"], dict(row["links_refused"])) == (2, 2, {})


def test_a_long_body_is_cut_and_says_so(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/", page("/x", text=WORDS * 100))
    run.fetch = {"max_body_bytes": 2_000}
    row = run.plan(url).go().outcome(url)
    assert (row["outcome"], row["content_truncated"], row["content_length"]) == ("success", "length", 2_000)
    assert (row["parse_status"], row["content_digest"], row["payload_checksum"]) == ("truncated", None, None)
    stored = read_record(run.store, row)
    lengths = [http_headers(stored)[name] for name in ("content-length", "x-crawler-content-length")]
    assert (lengths, len(stored.body)) == (["2000", str(len(page("/x", text=WORDS * 100).body))], 2_000)


PLAIN = (("Content-Type", "text/plain"),)


def test_addresses_that_would_have_to_be_guessed_are_counted(web: LittleWeb, run: Run) -> None:
    locations = [f"http://a.test/{path}" for path in ("1?a=1&b=2", "2?a&bogus;", "3&nbsp;")]
    sitemap = "<urlset>" + "".join(f"<url><loc>{location}</loc></url>" for location in locations) + "</urlset>"
    url = web.put("a.test", "/sitemap.xml", Answer(sitemap.encode(), 200, PLAIN))
    row = run.plan(url).go().outcome(url)
    assert (len(row["links"]), row["links_found"], dict(row["links_refused"])) == (1, 3, {"guessed": 2})
    assert run.discovered() == {"http://a.test/1?a=1&b=2": "sitemap"}


def test_the_last_line_of_a_list_that_is_cut_is_not_followed(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/sitemap.txt", Answer(b"http://a.test/one\nhttp://a.test/two", 200, PLAIN))
    run.fetch = {"max_body_bytes": 30}
    row = run.plan(url).go().outcome(url)
    assert (row["parse_status"], dict(row["links_refused"])) == ("truncated", {"guessed": 1})
    assert run.discovered() == {"http://a.test/one": "sitemap"}


def test_a_suspicious_page_is_parsed_apart_and_a_killer_is_killed(web: LittleWeb, run: Run) -> None:
    killer = b"<p " + b" ".join(b"a%d=1" % n for n in range(60_000)) + b"><a href=/lost>x</a>"
    paths = {"/fine": page("/x", text=WORDS * 20), "/killer": Answer(killer), "/after": page("/y", text=WORDS * 20)}
    urls = [web.put("a.test", path, answer) for path, answer in paths.items()]
    run.page = {"inline_bytes": 500, "parse_cpu_s": 1.0}
    run.plan(*urls).go()
    rows = {row["url"].rpartition("/")[2]: row for row in run.outcomes()}
    assert [rows[name]["parse_status"] for name in ("fine", "killer", "after")] == ["ok", "killed", "ok"]
    assert {row["outcome"] for row in rows.values()} == {"success"}
    assert rows["killer"]["warc_record_type"] == "response"
    assert [len(row["links"]) for row in rows.values()] == [1, 1, 1]


def test_what_was_sealed_is_not_asked_again(web: LittleWeb, run: Run) -> None:
    urls = [web.put("a.test", f"/{n}", page()) for n in range(6)]
    run.plan(*urls[:3]).go()
    web.log.clear()
    run.plan(*urls[3:])
    run.go()
    assert sorted(row["url"] for row in run.outcomes()) == sorted(urls)
    assert sorted(web.paths("a.test")) == ["/3", "/4", "/5"]
    assert [one.attempt for one in run.sealed] == [1, 2]
    web.log.clear()
    assert run.go().outcomes()
    assert not web.log


def test_segments_are_rolled(web: LittleWeb, run: Run) -> None:
    run.segment = {"max_urls": 2}
    run.plan(*(web.put("a.test", f"/{n}", page()) for n in range(5))).go()
    assert [one.rows for one in run.sealed] == [2, 2, 1]
    assert [len(run.hosts()), len(run.outcomes())] == [1, 5]


def test_progress_tells_what_happened(web: LittleWeb, run: Run) -> None:
    run.plan(web.put("a.test", "/", page()), f"http://a.test:{web.port}/lost").go()
    numbers = json.loads(run.store.read("progress/1/0.json"))
    expected = {"pages": 1, "failures": 1, "hosts_waiting": 0, "urls_left": 0, "segments": 1}
    assert expected.items() <= numbers.items()
    assert numbers["bytes"] == len(page().body) + len(b"nothing")


def test_progress_counts_what_an_earlier_attempt_did(web: LittleWeb, run: Run) -> None:
    urls = [web.put("a.test", f"/{n}", page()) for n in range(4)]
    run.plan(*urls[:3], f"http://a.test:{web.port}/lost").go()
    run.plan(urls[3]).go()
    numbers = json.loads(run.store.read("progress/1/0.json"))
    assert {"pages": 4, "failures": 1, "urls_left": 0}.items() <= numbers.items()
    assert numbers["bytes"] == 4 * len(page().body) + len(b"nothing")


def test_the_host_state_holds_what_politeness_must_remember(web: LittleWeb, run: Run) -> None:
    web.put("a.test", "/robots.txt", Answer(b"user-agent: *\ncrawl-delay: 0.5"))
    run.plan(web.put("a.test", "/", page())).go()
    (state,) = run.hosts().values()
    assert (state["crawl_delay_s"], state["is_out"], state["registered_domain"]) == (0.5, False, "a.test")
    assert [(copy["scheme"], copy["status"]) for copy in state["robots"]] == [("http", 200)]
    assert abs(state["last_request_at"] - web.log[-1].time) < 0.2
    assert [known["address"] for known in state["addresses"]] == ["127.0.0.1"]


def test_an_address_that_must_not_be_asked_is_not(web: LittleWeb, run: Run) -> None:
    url = web.put("a.test", "/", page())
    run.fetch = {"allow_addresses": ()}
    run.plan(url, f"http://a.test:{web.port}/b", host_state=host_state(host="a.test")).go()
    assert run.by_path() == {"/": "address_refused", "/b": "address_refused"}
    assert run.hosts()[f"a.test:{web.port}"]["is_out"]
    assert not web.log


def test_a_name_that_nobody_knows_fails_with_all_its_urls(run: Run) -> None:
    run.folder.joinpath("hosts").write_text("127.0.0.1 a.test\n")
    run.plan("http://bad name.test/", "ftp://a.test/file").go()
    assert run.by_path() == {"/": "dns_failed", "/file": "unsupported_scheme"}
