"""Ctrl-C and SIGTERM: one sentence, what was fetched is sealed, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from jobs.demo import demo_settings
from jobs.exits import INTERRUPTED, TERMINATED
from tests.spark.driver import ROOT, living
from tests.spark.invariants import Committed
from tests.web import DemoWeb, witness
from tests.web.sites import Scale

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

SMALL = Scale(pages=60, hosts=6, words=80, corners=False)
DELAY_S = 0.5
REQUESTS = 15
PROMISED_S = 10.0  # from the signal to the end


class Crawl:
    """`orbweaver crawl` on one lake, as a shell starts it: in a process group that Ctrl-C reaches as a whole."""

    def __init__(self, web: DemoWeb, lake: Path) -> None:
        self.web = web
        settings = [*demo_settings(web.hosts_file, web.allow_addresses, web.port), f"fetch.delay_s={DELAY_S}"]
        given = [word for setting in settings for word in ("--set", setting)]
        words = ["crawl", str(web.seeds_file), "--rounds", "2", "--lake", str(lake), *given]
        self.command = [sys.executable, "-m", "jobs.cli", *words]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        )

    def interrupted(self, number: signal.Signals, requests: int) -> tuple[int, str, float]:
        """Its code, what it said, and the seconds to its end, when a signal comes after so many requests."""
        process, seen = self.start(), len(self.web.requests())
        while process.poll() is None and len(self.web.requests()) < seen + requests:
            time.sleep(0.05)
        family = members_of(process.pid)
        began = time.monotonic()
        if number is signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
        took = time.monotonic() - began
        wait_for_the_end_of(family)
        return process.returncode, err, took


def members_of(root: int) -> set[int]:
    family, stats = {root}, living()
    while more := {number for number, stat in stats.items() if int(stat[1]) in family} - family:
        family |= more
    return family


def wait_for_the_end_of(family: set[int]) -> None:
    ends = time.monotonic() + 20
    while family & living().keys():
        assert time.monotonic() < ends, f"still alive: {family & living().keys()}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    with DemoWeb(scale=SMALL) as web:
        yield Crawl(web, tmp_path_factory.mktemp("interrupted") / "lake")


def test_before_the_first_request_a_signal_ends_the_command_at_once(crawl: Crawl) -> None:
    code, err, took = crawl.interrupted(signal.SIGTERM, 0)
    assert (code, took < PROMISED_S) in {(TERMINATED, True), (-signal.SIGTERM, True)}  # Python may not be up yet
    assert "Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_fetch_stage_seals_and_ends_in_time(crawl: Crawl, number: signal.Signals, code: int) -> None:
    ended, err, took = crawl.interrupted(number, REQUESTS)
    assert ended == code
    assert took < PROMISED_S
    last = err.splitlines()[-1]
    assert last == (
        f"orbweaver: interrupted ({number.name}): what was fetched is sealed, and the same command goes on from here"
    )
    assert not {"Traceback", "WARNING", "ERROR", "Exception"} & set(err.replace(":", " ").split())


def test_the_same_command_goes_on_and_asks_nobody_again(crawl: Crawl) -> None:
    lake = Path(crawl.command[crawl.command.index("--lake") + 1])
    assert Ledger(Store.open(str(lake))).newest(1)[-1].state is State.PLANNED
    process = crawl.start()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert witness.asked_again(crawl.web.requests()) == {}
    assert witness.hurried(crawl.web.requests(), DELAY_S, tolerance_s=0.03) == []
    assert Committed(Store.open(str(lake))).breaches() == []
