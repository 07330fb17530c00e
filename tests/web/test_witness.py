"""The witness sees what it is asked about, on made-up logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web import witness
from tests.web.request_log import Request, RequestLog, read_log


def request(at: float, host: str = "a.test", path: str = "/", **fields: object) -> Request:
    known: dict[str, object] = {"address": "127.77.0.1", "status": 200, "at_once": 1, "user_agent": ""}
    known |= {"method": "GET", "is_conditional": False, "connection": 1} | fields
    return Request(time=at, host=host, path=path, **known)  # type: ignore[arg-type]  # a table of cases is looser than the types


LOG = [
    request(10.0, path="/robots.txt"),
    request(11.0, path="/one"),
    request(11.9, path="/two", status=429),
    request(10.5, "b.test", "/direct"),
    request(12.4, "b.test", "/one", at_once=2),
    request(13.5, path="/two", address="127.0.0.1"),
    request(14.0, "c.test", "/robots.txt", status=421),
]


def test_gaps_by_host_and_address() -> None:
    smallest = witness.smallest_gaps(LOG)
    assert {host: round(gap, 3) for host, gap in smallest.items()} == {"a.test": 0.9, "b.test": 1.9}
    assert round(witness.smallest_gaps(LOG, witness.by_address)["127.77.0.1"], 3) == 0.5


def test_hurried_names_both_requests() -> None:
    (gap,) = witness.hurried(LOG, 1.0)
    assert str(gap) == "a.test: 0.900 s between http://a.test/one and http://a.test/two"
    assert witness.hurried(LOG, 0.94) == []


@pytest.mark.parametrize(
    ("sentence", "times", "breaches"),
    [
        ("kept", (0.0, 1.0, 2.0), 0),
        ("the second was noted late, the third in time", (0.0, 1.4, 2.0), 0),
        ("less was lost than is missing", (0.0, 1.2, 1.9), 1),
        ("two at once after a pause", (0.0, 9.0, 9.0), 1),
        ("two at once at the start", (0.0, 0.0, 1.0), 1),
    ],
)
def test_a_line_that_came_late_is_no_breach(sentence: str, times: tuple[float, ...], breaches: int) -> None:
    assert len(witness.hurried([request(at) for at in times], 1.0)) == breaches, sentence


def test_impatient_looks_at_what_follows_a_429() -> None:
    assert [gap.first.path for gap in witness.impatient(LOG, 2.0)] == ["/two"]
    assert witness.impatient(LOG, 1.6) == []


def test_counts_and_repeats() -> None:
    assert witness.counts(LOG)["a.test", "/two"] == 2
    assert witness.asked_again(LOG) == {"http://a.test/two": 2}
    assert witness.missing(LOG, ["http://a.test/one", "http://a.test/three"]) == {"http://a.test/three"}


def test_wrong_requests() -> None:
    assert [r.path for r in witness.wrongly_asked(LOG, ["http://b.test/one"])] == ["/one"]
    assert [r.path for r in witness.wrongly_asked(LOG, [], ["http://b.test/di"])] == ["/direct"]
    assert witness.wrongly_asked(LOG, []) == []
    assert [r.time for r in witness.trapped(LOG)] == [13.5]
    assert [r.host for r in witness.misdirected(LOG)] == ["c.test"]
    assert [r.host for r in witness.pages_before_robots(LOG)] == ["b.test"]
    assert [r.path for r in witness.crowded(LOG)] == ["/one"]


def test_log_is_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert read_log(path) == []
    log = RequestLog(path)
    for entry in LOG:
        log.write(entry)
    log.close()
    assert read_log(path) == sorted(LOG, key=lambda entry: entry.time)
