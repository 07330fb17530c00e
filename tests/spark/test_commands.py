"""The commands that crawl, in one process with a Spark session, against a small demo web."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from crawler.tables.lock import current_holder
from jobs import exits
from jobs.cli import invoke
from jobs.demo import demo_settings
from tests.jobs.exact_json import assert_json_is_exact
from tests.web.demo import DemoWeb
from tests.web.sites import Scale

SMALL = Scale(pages=40, hosts=6, words=80, corners=False)
Crawl = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(scale=SMALL) as running:
        yield running


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of this file run in their order on one lake, as a user would."""
    return tmp_path_factory.mktemp("commands") / "lake"


@pytest.fixture
def orbweaver(
    spark: SparkSession, web: DemoWeb, lake: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Crawl:
    """Runs a command on the lake; its code, output and messages come back."""
    monkeypatch.setenv("ORBWEAVER_LAKE", str(lake))
    settings = [*demo_settings(web.hosts_file, web.allow_addresses, web.port), "fetch.delay_s=0.0"]
    given = [word for setting in settings for word in ("--set", setting)]

    def command(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = invoke([*words, *given])
        said = capfd.readouterr()
        return code, said.out, said.err

    return command


def test_a_crawl_fetches_the_whole_small_web_and_says_what_to_try_next(
    orbweaver: Crawl, web: DemoWeb, lake: Path
) -> None:
    code, out, err = orbweaver("crawl", str(web.seeds_file), "--until-done")
    assert code == 0
    assert all(f"  orbweaver {verb} " in out for verb in ("status", "show", "why"))
    assert all(f"round 1 {stage}: " in err for stage in ("plan", "fetch", "reconcile and commit"))
    committed = [row.round for row in Ledger(Store.open(str(lake))).newest(99) if row.state is State.COMMITTED]
    assert {int(path.parent.name) for path in lake.glob("reports/*/report.html")} == set(committed)
    assert f"Ended after {len(committed)} rounds: nothing is due; the next is at 2" in out
    holder = current_holder(Store.open(str(lake)))
    assert holder is not None
    assert holder.is_released


def test_the_reports_add_up_to_what_the_server_was_asked(orbweaver: Crawl, web: DemoWeb) -> None:
    asked = [request for request in web.requests() if request.path != "/robots.txt"]
    reported = 0
    for number in range(1, 20):
        code, out, _ = orbweaver("report", "--round", str(number), "--json")
        if code == exits.NOT_FOUND:
            break
        reported += json.loads(out)["rates"]["requests"]
    assert reported == len(asked)


def test_a_crawl_of_a_lake_where_nothing_is_due_asks_nothing(orbweaver: Crawl, web: DemoWeb) -> None:
    before = len(web.requests())
    code, out, _ = orbweaver("crawl", "--rounds", "2")
    assert code == 0
    assert out.startswith("no round was run: nothing is due; the next is at 2")
    code, out, _ = orbweaver("crawl", "--rounds", "2", "--json")
    facts = json.loads(out)
    assert (code, facts["rounds"], facts["ended_by"], facts["report"]) == (0, [], "nothing_due", None)
    assert len(web.requests()) == before


def test_a_round_ahead_of_time_asks_conditionally(orbweaver: Crawl, web: DemoWeb) -> None:
    before = len(web.requests())
    code, out, _ = orbweaver("round", "--at", "+15d", "--json")
    assert (code, json.loads(out)["state"]) == (0, "COMMITTED")
    assert_json_is_exact(json.loads(out))
    again = [request for request in web.requests()[before:] if request.path != "/robots.txt"]
    assert 304 in {request.status for request in again}


def test_what_was_stored_can_be_shown_and_explained(orbweaver: Crawl, web: DemoWeb) -> None:
    seed = web.seeds[0]
    code, text, _ = orbweaver("show", seed, "--text")
    assert code == 0
    assert text.strip()
    code, out, _ = orbweaver("why", seed, "--json")
    facts = json.loads(out)
    assert (code, facts["known"], facts["known_since_round"]) == (0, True, 1)
    assert facts["captures"][0]["outcome"] == "success"
    assert facts["frontier"]["visits"] == 2


def test_maintenance_changes_no_answer(orbweaver: Crawl, web: DemoWeb) -> None:
    def answers() -> list[object]:
        status = json.loads(orbweaver("status", "--json")[1])
        why = json.loads(orbweaver("why", web.seeds[0], "--json")[1])
        report = json.loads(orbweaver("report", "--round", "1", "--json")[1])
        return [status["frontier"], status["committed"]["round"], why, report]

    before = answers()
    code, out, _ = orbweaver("maintain", "--json")
    assert code == 0
    assert_json_is_exact(json.loads(out))
    assert answers() == before
