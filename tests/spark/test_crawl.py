"""A whole crawl of the demo web: what the servers saw, and what the lake says of it."""

from __future__ import annotations

import pytest

from crawler import schemas
from crawler.tables.ledger import State
from crawler.tables.reader import Reader
from jobs.stages.fetch import earlier_until
from tests.spark.crawled import DELAY_S, Crawl
from tests.spark.invariants import Committed
from tests.web import witness
from tests.web.expected import OPTIONAL_HOSTS

SHARED_ROBOTS = "/shared-robots.txt"
SLACK_S = 0.15  # between the start of a request and its line in the log, on a machine that has others to serve
NOT_ASKED = {
    ("shut.test", "/"): "robots_denied",
    ("gate.test", "/private/secret"): "robots_denied",
    ("gate.test", "/papers/one.pdf"): "robots_denied",
    ("nameplate.test", "/not-for-us"): "robots_denied",
    ("scroll.test", "/early/page"): "robots_denied",
    ("mark.test", "/private/page"): "robots_denied",
    ("mark16.test", "/private/page"): "robots_denied",
    ("forward.test", "/private/page"): "robots_denied",
    ("ailing.test", "/"): "robots_unreachable",
    ("mute.test", "/"): "robots_unreachable",
    ("lure.test", "/"): "robots_unreachable",
    ("inside.test", "/"): "address_refused",
    ("inside.turns.test", "/admin"): "address_refused",
}


def test_three_rounds_found_and_kept_a_web(crawled: Crawl) -> None:
    assert [one.round for one in crawled.rounds] == [1, 2, 3]
    assert all(one.counts["outcomes"] == one.counts["planned"] > 0 for one in crawled.rounds)
    assert sum(one.counts["outcome.success"] for one in crawled.rounds) > 350


def test_a_host_is_never_hurried(crawled: Crawl) -> None:
    assert witness.hurried(crawled.requests, DELAY_S, tolerance_s=SLACK_S) == []
    assert witness.crowded(crawled.requests) == []
    for host, delay_s in crawled.web.expected.crawl_delays.items():
        asked = [request for request in crawled.requests if request.host == host]
        assert witness.hurried(asked, delay_s, tolerance_s=SLACK_S) == []


def test_an_address_is_never_hurried(crawled: Crawl) -> None:
    gap_s = DELAY_S * crawled.settings.fetch.address_delay_share
    assert witness.hurried(crawled.requests, gap_s, witness.by_address, tolerance_s=SLACK_S) == []


def test_a_host_that_asks_to_wait_gets_its_wait(crawled: Crawl) -> None:
    host = f"busy.test:{crawled.web.port}"
    asked = [request for request in crawled.requests if request.host == host]
    assert {request.status for request in asked} >= {200, 429, 503}
    assert witness.impatient(asked, 2.0, tolerance_s=SLACK_S) == []


def test_nothing_forbidden_was_asked(crawled: Crawl) -> None:
    expected = crawled.web.expected
    assert witness.wrongly_asked(crawled.requests, expected.never, expected.never_prefixes) == []
    assert witness.trapped(crawled.requests) == []
    assert witness.misdirected(crawled.requests) == []


def test_robots_files_came_first(crawled: Crawl) -> None:
    assert witness.pages_before_robots(crawled.requests) == []


def test_rules_on_a_host_of_another_partition_are_asked_for_in_the_next_round(crawled: Crawl) -> None:
    """The first plan may have had forward.test and gate.test, where its rules are, apart; the second had not."""
    host, other = (f"{name}.test:{crawled.web.port}" for name in ("forward", "gate"))
    committed = crawled.lake.ledger.committed()
    assert committed is not None
    rows = Reader.open(crawled.lake.store).rows(schemas.PLANS, committed.versions).to_pylist()
    places = {(row["round"], row["host"]): row["partition"] for row in rows if row["kind"] == "url"}
    were_apart = places[1, host] != places[1, other]
    when = [number for number, of in enumerate(crawled.requests_by_round, 1) for one in of if one.path == SHARED_ROBOTS]
    assert when == [2 if were_apart else 1]
    assert places[2, host] == places.get((2, other), places[2, host])


def test_a_round_knows_how_long_the_one_before_may_have_asked(crawled: Crawl) -> None:
    """Until its last request at least, and not until it was committed."""
    recorded = {(row.round, row.state): row.recorded for row in crawled.lake.ledger.newest(3)}
    last = max(request.time for request in crawled.requests_by_round[1])
    assert earlier_until(crawled.lake, 1) == 0.0
    assert last <= earlier_until(crawled.lake, 3) == recorded[2, State.FETCHED] < recorded[2, State.COMMITTED]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_every_page_was_asked_for_in_time(crawled: Crawl, rounds: int) -> None:
    asked = [request for of_round in crawled.requests_by_round[:rounds] for request in of_round]
    assert witness.missing(asked, crawled.web.expected.within(rounds)) == set()


def test_no_page_was_asked_for_twice_unless_its_server_said_so(crawled: Crawl) -> None:
    again = witness.asked_again(crawled.requests)
    again.pop(crawled.web.url("forward.test", "/rules"), None)  # the way to its robots.txt may end in another partition
    told = [crawled.web.url("busy.test", path) for path in ("/later", "/tired")]
    assert again == dict.fromkeys(told, 2)


def test_first_outcomes_are_those_of_the_corners(crawled: Crawl) -> None:
    """A page whose server asked for a short wait is asked again in the same round; what came then counts."""
    optional = {f"{host}:{crawled.web.port}" for host in OPTIONAL_HOSTS}
    wrong = {}
    for url, outcome in crawled.web.expected.outcomes.items():
        row = crawled.first_captures.get(url)
        found = row["outcome"] if row else "never planned"
        is_optional = url.split("/")[2] in optional
        if found != outcome and not is_optional and (outcome, found) != ("asked_to_wait", "success"):
            wrong[url] = (outcome, found)
    assert wrong == {}


def test_what_must_not_be_asked_has_its_reason(crawled: Crawl) -> None:
    found = {place: crawled.first_captures[crawled.web.url(*place)]["outcome"] for place in NOT_ASKED}
    assert found == NOT_ASKED


def test_one_accepted_outcome_a_planned_url(crawled: Crawl) -> None:
    assert list(Committed(crawled.lake.store).not_one_outcome()) == []


def test_every_slice_of_a_warc_file_is_its_record(crawled: Crawl) -> None:
    lake = Committed(crawled.lake.store)
    assert sum(row["warc_filename"] is not None for row in lake.captures) > 400
    assert list(lake.bad_slices()) == []
    assert list(lake.shared_bytes()) == []


def test_segments_name_all_warc_files_and_these_are_whole(crawled: Crawl) -> None:
    lake = Committed(crawled.lake.store)
    assert list(lake.bad_warc_files()) == []
    assert lake.orphans() == []


def test_every_known_url_is_in_the_frontier_once(crawled: Crawl) -> None:
    assert list(Committed(crawled.lake.store).not_known_once()) == []


def test_copies_are_found(crawled: Crawl) -> None:
    """Of each group one page is the original, whose copies point at a page of the group."""
    expected = crawled.web.expected
    cases = [({"payload"}, group) for group in expected.payload_duplicates]
    cases += [({"text"}, group) for group in expected.text_duplicates]
    cases += [({"text", "near"}, group) for group in expected.near_duplicates]
    for kinds, group in cases:
        rows = [crawled.first_captures[url] for url in group]
        copies = [row for row in rows if row["duplicate_kind"] in kinds]
        assert len(copies) == len(group) - 1
        assert {row["duplicate_of_key"] for row in copies} <= {row["url_key"] for row in rows}
        assert min(row["similarity"] for row in copies) >= crawled.settings.near_duplicates.threshold


def test_of_two_mirrors_both_are_crawled_the_copy_behind_all_else(crawled: Crawl) -> None:
    homes = [crawled.first_captures[crawled.web.url(host)] for host in ("mill.test", "mill-mirror.test")]
    original, copy = sorted(homes, key=lambda row: row["duplicate_kind"] or "")
    assert (original["duplicate_kind"], copy["duplicate_kind"]) == (None, "payload")
    lowest = crawled.settings.revisit.lowest_tier
    tiers = {row["url"]: row["tier"] for row in crawled.rows(schemas.FRONTIER)}
    pages = ("stone.html", "wheel.html", "flour/")
    assert [tiers[f"{original['url']}{path}"] for path in pages] == [1, 1, 1]
    assert [tiers[f"{copy['url']}{path}"] for path in pages] == [lowest, lowest, lowest]


def test_redirects_lead_where_they_say(crawled: Crawl) -> None:
    found = {
        url: crawled.first_captures[url]["fetch_redirect"]
        for url in crawled.web.expected.redirects
        if url in crawled.first_captures
    }
    assert len(found) > 10
    assert found == {url: target for url, target in crawled.web.expected.redirects.items() if url in found}


def test_pages_beyond_sitemaps_and_feeds_say_how_they_were_found(crawled: Crawl) -> None:
    sources = {row["url"]: row["source"] for row in crawled.rows(schemas.FRONTIER)}
    url = crawled.web.url
    assert sources[url("atlas.test", "/a.xml")] == "sitemap"
    assert sources[url("atlas.test", "/only/in-b/3")] == "sitemap"
    assert sources[url("courier.test", "/story/atom-1")] == "feed"
    assert sources[url("turns.test", "/target/permanent")] == "redirect"
    assert sources[url("meadow.test")] == "seed"
