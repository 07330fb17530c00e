"""A real cluster crawls as a laptop does: from the packed environment, on machines that know nothing of the project."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from jobs.exits import BAD_USE
from tests.cluster.crawls import CONF, DELAY_S, SLACK_S, Packed, Place, Rounds, Submission, at, options
from tests.cluster.processes import Cluster, plain_environ
from tests.spark.contents import contents, different
from tests.spark.invariants import Committed
from tests.web import witness

pytestmark = [pytest.mark.soak, pytest.mark.jvm]

WITHOUT_SPARK = "import importlib.util; print(importlib.util.find_spec('crawler'))"


def test_the_machines_do_not_know_the_project(cluster: Cluster) -> None:
    environ = plain_environ(cluster.folder)
    command = ["python3", "-c", WITHOUT_SPARK]
    said = subprocess.run(command, cwd=cluster.folder, env=environ, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "None"


def test_two_rounds_on_the_cluster_say_what_two_rounds_here_say(
    cluster: Cluster, packed: Packed, rounds: Rounds, tmp_path: Path
) -> None:
    """The executors unpack the archive themselves."""
    lake = tmp_path / "lake"
    shutil.copytree(rounds.after_two.parent / "injected", lake)
    conf = CONF | {"spark.pyspark.python": "./env/bin/python", "spark.pyspark.driver.python": packed.python}
    words = [*options(conf), "--archives", f"{packed.dist / 'orbweaver-env.tar.gz'}#env"]
    words += [str(packed.dist / "crawl_round.py"), "--lake", str(lake), *rounds.sets]
    seen = len(rounds.web.requests())
    for number in (1, 2):
        driver = cluster.submit([*words, "--at", at(number)], tmp_path / "driver.log")
        assert driver.end() == 0, driver.said()[-3_000:]
    assert different(contents(Store.open(str(rounds.after_two))), contents(Store.open(str(lake)))) == {}
    assert Committed(Store.open(str(lake))).breaches() == []
    assert Committed(Store.open(str(lake))).orphans() == []
    rows = Ledger(Store.open(str(lake))).newest(2)
    assert [(row.round, row.state) for row in rows] == [(number, state) for number in (1, 2) for state in State]
    requests = rounds.requests_after(seen)
    assert witness.asked_again(requests) == {}
    assert witness.hurried(requests, DELAY_S, tolerance_s=SLACK_S) == []


def test_speculation_is_refused(place: Place, tmp_path: Path) -> None:
    round_ = Submission.of(place, place.lake_after_one(tmp_path), 2, {"spark.speculation": "true"})
    assert round_.driver.end() == BAD_USE, round_.driver.said()[-3_000:]
    assert "Set spark.speculation=false" in round_.driver.said()
    assert round_.requests() == []
