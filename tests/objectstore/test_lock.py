"""The lock on S3 and on local disks: races between processes, and holders that wake up too late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake.exceptions import CommitFailedError

from crawler import schemas
from crawler.storage import Store
from crawler.tables import lock as locking
from crawler.tables.direct import Write, append_rows, commit_files, create_tables, data_files, open_table
from crawler.tables.ledger import Ledger, RoundRow, State
from crawler.tables.lock import LEASE_S, Lock, LockLost, acquire
from jobs.stages.open_round import advance
from tests.lock_races import race_for, unfair
from tests.objectstore.fault_proxy import FaultProxy
from tests.objectstore.server import BUCKET
from tests.test_lock import Held

pytestmark = pytest.mark.soak

ROW = RoundRow(1, State.OPENED, now=1.0, segment_folder="s", versions={})
SEED = {"line": "http://a.test/", "verdict": "admitted", "inbox_file": "inbox/x", "round": 1}


@pytest.fixture(params=["local", "s3"])
def lakes(request: pytest.FixtureRequest, proxy: FaultProxy, tmp_path: Path) -> str:
    """Where the lakes of a test are."""
    return str(tmp_path) if request.param == "local" else f"s3://{BUCKET}/{uuid4()}"


def overtaken(store: Store) -> tuple[Lock, Lock]:
    """A holder on another machine that gave no sign of life, and the one who took its place."""
    sleeper = acquire(store, lambda: 1_000.0)
    store.put("lock/0000000001.json", locking._encode(replace(sleeper.holder, host="elsewhere")))
    return sleeper, acquire(store, lambda: 1_000.0 + LEASE_S + 1)


def test_of_four_processes_that_race_one_wins_and_the_others_learn_its_name(lakes: str) -> None:
    ends = race_for([f"{lakes}/{race}" for race in range(100)], 4)
    assert len(ends) == 400
    assert unfair(ends, 4) == []


def test_a_holder_that_wakes_up_after_it_was_overtaken_commits_nothing(lakes: str) -> None:
    store = Store.open(f"{lakes}/woken")
    create_tables(store, [schemas.ROUNDS])
    sleeper, winner = overtaken(store)
    with pytest.raises(LockLost, match="token 1 was overtaken by 2"):
        advance(Held(sleeper), ROW)  # type: ignore[arg-type]  # the lock, store and ledger of a lake are enough here
    assert Ledger(store).newest() == []
    advance(Held(winner), ROW)  # type: ignore[arg-type]  # the lock, store and ledger of a lake are enough here
    assert [row.token for row in Ledger(store).newest()] == [2]


def test_a_write_that_had_passed_the_check_is_refused_by_the_log(lakes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(f"{lakes}/between")
    create_tables(store, [schemas.SEEDS])
    sleeper, winner = overtaken(store)

    def write(lock: Lock) -> Write:
        return Write("orbweaver/seeds", 1, note=f"round 1, token {lock.token}")

    stale = open_table(store, schemas.SEEDS)
    append_rows(store, schemas.SEEDS, [SEED], write(winner))
    commit_files(store, schemas.SEEDS, data_files(store, schemas.SEEDS), (), write(sleeper))
    assert len(data_files(store, schemas.SEEDS)) == 1
    with monkeypatch.context() as patch:
        patch.setattr("crawler.tables.direct.open_table", lambda *_: stale)
        with pytest.raises(CommitFailedError):
            commit_files(store, schemas.SEEDS, (), (), write(sleeper))
    assert open_table(store, schemas.SEEDS).version() == 1
