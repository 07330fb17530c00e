"""Outcome rows have the columns of the table, and statuses have one meaning each."""

from __future__ import annotations

import pytest

from crawler import __version__
from crawler.fetch.exchange import Exchange, TlsInfo
from crawler.fetch.outcomes import answered_row, blank_row, is_host_fault, outcome_of, wait_asked_for
from crawler.fetch.policies import product_token, user_agent
from crawler.records import Outcome, PlannedUrl
from crawler.schemas import OUTCOMES
from crawler.settings import CrawlSettings

URL = PlannedUrl(1, "http://a.test/", "a.test")
HELD = PlannedUrl(1, "http://a.test/", "a.test", etag='"x"')


def exchange(status: int, *headers: tuple[str, str], **fields: object) -> Exchange:
    return Exchange(b"", "192.0.2.1", 1_000.0, status=status, headers=list(headers), **fields)  # type: ignore[arg-type]  # a table of cases is looser than the types


def test_rows_have_exactly_the_columns_of_the_table() -> None:
    tls = TlsInfo("TLSv1.3", "X", "expired")
    rows = [
        blank_row(URL, Outcome.NOT_REACHED, "r" * 1_000, 5.0),
        answered_row(URL, Outcome.SUCCESS, exchange(200, ("etag", "e" * 5_000), tls=tls)),
        answered_row(URL, Outcome.TIMEOUT, exchange(0, failure=Outcome.TIMEOUT, failure_reason="head")),
    ]
    assert [list(row) for row in rows] == [OUTCOMES.names] * 3
    assert (len(rows[0]["reason"]), rows[1]["etag"], rows[1]["tls_verdict"]) == (300, None, "expired")
    assert (rows[2]["fetch_status"], rows[2]["reason"], rows[2]["address"]) == (None, "head", "192.0.2.1")


@pytest.mark.parametrize(
    ("answer", "planned", "outcome"),
    [
        (exchange(304), HELD, Outcome.NOT_MODIFIED),
        (exchange(304), URL, Outcome.PROTOCOL_ERROR),
        (exchange(206), URL, Outcome.SUCCESS),
        (exchange(429), URL, Outcome.ASKED_TO_WAIT),
        (exchange(503), URL, Outcome.SERVER_ERROR),
        (exchange(503, ("retry-after", "9")), URL, Outcome.ASKED_TO_WAIT),
        (exchange(503, ("retry-after", "nan")), URL, Outcome.SERVER_ERROR),
        (exchange(599), URL, Outcome.SERVER_ERROR),
        (exchange(305), URL, Outcome.CLIENT_ERROR),
        (exchange(0, failure=Outcome.TLS_FAILED), URL, Outcome.TLS_FAILED),
        (exchange(200, truncated="time"), URL, Outcome.TIMEOUT),
        (exchange(200, truncated="length"), URL, Outcome.SUCCESS),
        (exchange(200, truncated="disconnect"), URL, Outcome.SUCCESS),
        (exchange(301, truncated="time"), URL, Outcome.REDIRECT_PERM),
        (exchange(404, truncated="time"), URL, Outcome.GONE),
    ],
)
def test_outcomes(answer: Exchange, planned: PlannedUrl, outcome: Outcome) -> None:
    assert outcome_of(answer, planned) is outcome


@pytest.mark.parametrize("status", [200, 206, 301, 302, 404, 410, 403, 429, 500, 503])
def test_a_body_that_does_not_come_in_time_counts_against_the_host(status: int) -> None:
    for truncated in (None, "length", "disconnect", "time"):
        answer = exchange(status, truncated=truncated)
        assert is_host_fault(outcome_of(answer, URL), answer) is (truncated == "time" or status >= 500)


def test_the_first_sensible_retry_after_counts() -> None:
    assert wait_asked_for(exchange(429, ("retry-after", "x"), ("retry-after", "7"))) == 7.0
    assert wait_asked_for(exchange(429)) is None


@pytest.mark.parametrize(
    ("settings", "agent", "token"),
    [
        (CrawlSettings(), f"orbweaver/{__version__}", "orbweaver"),
        (CrawlSettings(contact="https://x.test/bot"), f"orbweaver/{__version__} (+https://x.test/bot)", "orbweaver"),
        (CrawlSettings(user_agent="Foo/2", contact="a@x.test"), "Foo/2 (+a@x.test)", "Foo"),
    ],
)
def test_we_say_who_we_are(settings: CrawlSettings, agent: str, token: str) -> None:
    assert (user_agent(settings), product_token(settings)) == (agent, token)
