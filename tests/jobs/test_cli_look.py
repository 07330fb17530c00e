"""Commands that only look, on a lake that was made without Spark."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crawler.storage import Store
from crawler.tables.lock import acquire
from crawler.tables.reader import Reader, due_urls
from jobs import exits
from jobs.crawl import is_work_left, next_commands, sample_url
from jobs.report_html import report_html
from jobs.report_text import report_text
from jobs.status import lake_status
from tests.jobs.conftest import Run
from tests.jobs.made_lake import BODY, COPY, HEAD_304, HOME, HOUR_2, LATE, NEAR, ROUND_1, ROUND_2, make_lake


def test_status_counts_the_committed_frontier_and_names_the_open_round(run: Run, made_lake: str) -> None:
    said = json.loads(run("status", "--lake", made_lake, "--json").out)
    assert (said["committed"]["round"], said["committed"]["state"]) == (2, "COMMITTED")
    assert (said["open"]["round"], said["open"]["state"]) == (3, "OPENED")
    assert said["frontier"]["by_status"] == {"unfetched": 1, "not_modified": 1, "gone": 1}
    assert said["frontier"]["by_failures"] == {"0": 2, "1": 1}
    assert (said["inbox"], said["lock"]) == (1, None)


def test_status_counts_each_url_once_by_when_it_is_due(made_lake: str) -> None:
    due = lake_status(Store.open(made_lake), ROUND_2)["frontier"]["due"]
    assert due == {"now": 1, "within a day": 0, "within a week": 1, "within four weeks": 1, "later": 0}


def test_status_text_says_who_holds_the_lock(run: Run, tmp_path: Path) -> None:
    store = make_lake(tmp_path / "lake")
    lock = acquire(store)
    said = run("status", "--lake", store.uri).out
    lock.release()
    assert f"lock      held by {lock.holder.name}" in said
    assert "open      round 3 OPENED" in said
    assert re.search(r"not_modified +1\n", said)


def test_status_of_an_inbox_alone_is_no_error(run: Run, tmp_path: Path) -> None:
    run("inject", "https://a.test/", "--lake", str(tmp_path))
    said = run("status", "--lake", str(tmp_path))
    assert said.code == 0
    assert "committed no round yet" in said.out
    assert "1 file for the next round" in said.out


SHOWN = [
    (["--head"], HEAD_304.decode()),
    (["--body"], BODY.decode()),
    (["--head", "--round", "1"], "HTTP/1.1 200 OK"),
    (["--text"], "The wren is a small bird."),
    (["--text", "--round", "1"], "The wren is a small bird."),
]


@pytest.mark.parametrize(("options", "part"), SHOWN)
def test_show_reads_the_record_and_follows_a_revisit_to_its_body(
    run: Run, made_lake: str, options: list[str], part: str
) -> None:
    said = run("show", "A.TEST/#top", *options, "--lake", made_lake)
    assert said.code == 0
    assert part in said.out


def test_show_says_where_the_capture_lies(run: Run, made_lake: str) -> None:
    said = run("show", HOME.url, "--lake", made_lake)
    assert "revisit in crawl-data/" in said.out
    assert "body from the capture of round 1" in said.out
    facts = json.loads(run("show", HOME.url, "--lake", made_lake, "--json", "--text").out)
    assert facts["warc_record_type"] == "revisit"
    assert facts["body_from"]["round"] == 1
    assert facts["text"] == "The wren is a small bird."


NOT_SHOWN = [
    ("https://a.test/gone", "the last visit ended as gone (404 Not Found) in round 1"),
    ("https://never.test/", "never visited"),
]


@pytest.mark.parametrize(("url", "part"), NOT_SHOWN)
def test_show_says_why_there_is_nothing_to_show(run: Run, made_lake: str, url: str, part: str) -> None:
    said = run("show", url, "--lake", made_lake)
    assert said.code == exits.NOT_FOUND
    assert part in said.err


def test_a_warc_file_that_is_gone_is_told_with_its_place(run: Run, tmp_path: Path) -> None:
    store = make_lake(tmp_path / "lake")
    for path in store.list("crawl-data"):
        store.delete(path)
    said = run("show", HOME.url, "--lake", store.uri)
    assert said.code == exits.BAD_TABLE
    assert re.search(r"second\.warc\.gz at \d+", said.err)


WHY = [
    (
        HOME.url,
        ("seed      round 1: admitted", "planned   round 2: tier 0", "not_modified 304", "robots.txt allows this URL"),
    ),
    (COPY.url, (f"payload duplicate (1.00) of {HOME.url}, round 1", "response in crawl-data/")),
    (LATE.url, (f"seed      round 1: admitted ({HOME.url} redirects here, 1 redirect from the inbox)",)),
    (
        LATE.url,
        (f"link on {HOME.url}", "not_reached: time_limit", "3 URLs of its host, for host_budget: its host gives no"),
    ),
    ("https://a.test/private/secret", ("robots_denied", "robots.txt denies this URL by line 2: Disallow: /private/")),
]


@pytest.mark.parametrize(("url", "parts"), WHY)
def test_why_tells_what_the_tables_know(run: Run, made_lake: str, url: str, parts: tuple[str, ...]) -> None:
    said = run("why", url, "--lake", made_lake)
    assert said.code == 0
    assert [part for part in parts if part not in said.out] == []


STRANGERS = [
    ("https://z.test/", "out_of_scope"),
    ("gopher://z.test/", "scheme"),
    ("https://a.test/a/a/a/a/", "path_repeats"),
    ("https://a.test:8443/", "port"),
    ("https://a.test:25/", "port"),
]


@pytest.mark.parametrize(("url", "reason"), STRANGERS)
def test_why_names_the_rule_that_refuses_an_unknown_url(run: Run, made_lake: str, url: str, reason: str) -> None:
    said = run("why", url, "--lake", made_lake, "--json")
    facts = json.loads(said.out)
    assert (said.code, facts["known"], facts["refused"]) == (exits.NOT_FOUND, False, reason)


def test_why_says_what_opens_a_port(run: Run, made_lake: str) -> None:
    assert "filters.ports" in run("why", "http://a.test:8080/", "--lake", made_lake).out
    opened = run("why", "http://a.test:8080/", "--lake", made_lake, "--set", "filters.ports=[8080]", "--json")
    assert json.loads(opened.out)["refused"] is None


def test_why_knows_the_verdict_on_a_seed_that_was_refused(run: Run, made_lake: str) -> None:
    said = run("why", "ftp://a.test/", "--lake", made_lake)
    assert "round 1: scheme" in said.out


def test_the_report_counts_every_planned_url_once(run: Run, made_lake: str) -> None:
    facts = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json").out)
    uris = facts["uris"]
    assert uris["planned"] == 6
    assert uris["planned"] == uris["successes"] + uris["failures"] + uris["disregarded"] + uris["not_reached"]
    assert (uris["successes"], uris["failures"], uris["disregarded"], uris["not_reached"]) == (3, 1, 1, 1)
    assert facts["contents"]["duplicate_by_hash"] == {"uris": 1, "bytes": len(BODY)}
    assert facts["contents"]["near_duplicate"]["uris"] == 1
    assert facts["links"] == {"found": 7, "kept": 5, "refused": {"scheme": 2}}
    assert facts["seeds"]["verdicts"] == {"admitted": 1, "scheme": 1}
    assert (facts["seeds"]["crawled"], facts["seeds"]["uncrawled"], facts["duration_s"]) == (1, 0, 13.0)
    assert facts["seeds"]["from_redirects"] == 1
    assert "1 new seed to which seeds redirect" in report_text(facts)
    assert "seeds to which seeds redirect" in report_html(facts, {})
    assert facts["rates"]["uris_per_s"] == 0.4


def test_the_report_counts_documents_that_stopped_the_parser_and_says_why(run: Run, made_lake: str) -> None:
    parsing = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json").out)["parsing"]
    assert {row["value"]: row["uris"] for row in parsing["by_status"]}["killed"] == 1
    why = "the parser needed more than 10 s of CPU"
    assert parsing["reasons"] == [{"parse_status": "killed", "reason": why, "uris": 1}]
    lines = [line.split() for line in run("report", "--round", "1", "--lake", made_lake).out.splitlines()]
    assert ["killed", "1", *why.split()] in lines


def test_the_report_finds_gaps_below_the_promise(run: Run, made_lake: str) -> None:
    facts = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json", "--set", "fetch.delay_s=0.6").out)
    assert (facts["gaps"]["pairs"], facts["gaps"]["below_promise"]) == (3, 1)
    assert facts["gaps"]["shortest_s"] == 0.5
    none = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json", "--set", "fetch.delay_s=0").out)
    assert none["gaps"]["below_promise"] == 0


def test_the_report_names_near_duplicates_with_their_original(run: Run, made_lake: str) -> None:
    near = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json").out)["near_duplicates"]
    assert (near["clusters"], near["pages"]) == (1, 1)
    assert near["largest"][0]["url"] == HOME.url
    assert near["largest"][0]["members"] == [NEAR.url]


def test_the_report_is_kept_as_text_json_and_html_without_outside_parts(run: Run, made_lake: str) -> None:
    said = run("report", "--round", "1", "--lake", made_lake)
    kept = Path(made_lake, "reports", "1")
    assert (kept / "report.txt").read_text() in said.out
    assert json.loads((kept / "report.json").read_text())["round"] == 1
    page = Outside()
    page.feed((kept / "report.html").read_text())
    assert (page.pictures, page.references) == (7, [])


class Outside(HTMLParser):
    """Counts inline pictures and collects references that leave the page."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = 0
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "svg"
        found = [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]
        self.references += [value for value in found if not value.startswith("#")]


@pytest.mark.parametrize("words", [[], ["--round", "2"]])
def test_the_report_is_of_the_newest_committed_round(run: Run, made_lake: str, words: list[str]) -> None:
    assert "round 2: COMMITTED" in run("report", *words, "--lake", made_lake).out


def test_a_round_that_is_not_committed_has_no_report(run: Run, made_lake: str) -> None:
    said = run("report", "--round", "3", "--lake", made_lake)
    assert said.code == exits.NOT_FOUND
    assert "the newest committed one is 2" in said.err


def test_committed_versions_are_read_and_nothing_later(tmp_path: Path) -> None:
    store = make_lake(tmp_path / "lake")
    before = Reader.open(store).committed()
    assert before is not None
    assert before["versions"]["captures"] == 2
    assert due_urls(Reader.open(store), HOUR_2) == 1
    assert due_urls(Reader.open(store), HOUR_2 + 24 * 365) == 3


def test_a_version_that_is_gone_is_told(run: Run, tmp_path: Path) -> None:
    store = make_lake(tmp_path / "lake")
    for path in store.list("tables/captures/_delta_log"):
        store.delete(path)
    said = run("why", HOME.url, "--lake", store.uri)
    assert said.code == exits.BAD_TABLE
    assert "table captures" in said.err


def test_work_is_left_while_something_is_due_or_open_or_in_the_inbox(tmp_path: Path) -> None:
    store = make_lake(tmp_path / "lake")
    assert is_work_left(store, ROUND_1)
    reader = Reader.open(store)
    assert reader.open_round is not None
    assert reader.open_round["round"] == 3


def test_the_commands_to_try_next_can_be_pasted(made_lake: str) -> None:
    commands = next_commands("my lake", "https://a.test/?a=b&c", lambda text: f"'{text}'")
    assert commands[1] == "orbweaver show 'https://a.test/?a=b&c' --lake 'my lake' --text"
    assert sample_url(Store.open(made_lake)) is None
