"""Answers that are late, refused or lost: every write happens once, and its writer knows it."""

from __future__ import annotations

from contextlib import nullcontext
from uuid import uuid4

import pytest
from obstore.exceptions import BaseError

from crawler import schemas, storage_s3
from crawler.fetch.segment_files import sealed_segments
from crawler.storage import Store
from crawler.tables.direct import Write, append_rows, commit_files, create_tables, data_files, open_table
from crawler.tables.ledger import Ledger, RoundRow, State
from crawler.tables.lock import LockHeld, acquire
from tests.fetch import segment_samples as samples
from tests.objectstore.fault_proxy import Asked, Decide, Fault, FaultProxy
from tests.objectstore.server import BUCKET

pytestmark = pytest.mark.soak

FAULTS = [fault for fault in Fault if fault is not Fault.GONE_404]
PART = 12_000_000


@pytest.fixture
def store(proxy: FaultProxy) -> Store:
    return Store.open(f"s3://{BUCKET}/{uuid4()}")


def once(fault: Fault, method: str, part: str) -> Decide:
    """Spoil the first request of the method whose path has this part."""
    left = [fault]

    def decide(asked: Asked) -> Fault | None:
        return left.pop() if left and asked.method == method and part in asked.path else None

    return decide


@pytest.mark.parametrize("fault", FAULTS)
def test_the_holder_of_a_lock_recognises_itself(store: Store, proxy: FaultProxy, fault: Fault) -> None:
    proxy.decide = once(fault, "PUT", "/lock/")
    assert acquire(store).token == 1
    assert proxy.given[fault] == 1
    with pytest.raises(LockHeld):
        acquire(store)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_segment_is_sealed_once(store: Store, proxy: FaultProxy, fault: Fault) -> None:
    writer = samples.writer(store)
    writer.add(samples.row(1), None)
    proxy.decide = once(fault, "PUT", "/outcomes/")
    sealed = writer.seal()
    assert sealed is not None
    assert proxy.given[fault] == 1
    assert [segment.name for segment in sealed_segments(store, samples.TASK)] == [sealed.name]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_state_is_recorded_once(store: Store, proxy: FaultProxy, fault: Fault) -> None:
    create_tables(store, [schemas.ROUNDS])
    proxy.decide = once(fault, "PUT", "/_delta_log/")
    Ledger(store).record(RoundRow(1, State.OPENED, now=1.0, segment_folder="s", versions={}, token=1))
    assert proxy.given[fault] == 1
    assert len(Ledger(store).newest()) == 1
    assert open_table(store, schemas.ROUNDS).version() == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_files_are_dropped_once(store: Store, proxy: FaultProxy, fault: Fault) -> None:
    create_tables(store, [schemas.SEEDS])
    append_rows(store, schemas.SEEDS, [{"line": "http://a.test/", "round": 1}], Write("seeds", 1, "token 1"))
    proxy.decide = once(fault, "PUT", "/_delta_log/")
    commit_files(store, schemas.SEEDS, data_files(store, schemas.SEEDS), (), Write("compact", 1, "token 1"))
    assert proxy.given[fault] == 1
    assert data_files(store, schemas.SEEDS) == []
    assert open_table(store, schemas.SEEDS).version() == 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_table_is_made(store: Store, proxy: FaultProxy, fault: Fault) -> None:
    proxy.decide = once(fault, "PUT", "/_delta_log/")
    create_tables(store, [schemas.SEEDS])
    assert proxy.given[fault] == 1
    assert open_table(store, schemas.SEEDS).schema().to_arrow().names == schemas.SEEDS.names


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_upload_in_parts_is_whole(store: Store, proxy: FaultProxy, fault: Fault, method: str) -> None:
    proxy.decide = once(fault, method, "uploadId=")
    writer = store.open_writer("warc/x")
    writer.write(b"1" * PART)
    writer.write(b"2" * PART)
    writer.close()
    assert proxy.given[fault] == 1
    assert store.read("warc/x") == b"1" * PART + b"2" * PART


@pytest.mark.parametrize("answers", [[Fault.UNHEARD, Fault.GONE_404], [Fault.GONE_404]])
def test_an_upload_that_is_said_to_be_gone_is_looked_for(store: Store, proxy: FaultProxy, answers: list[Fault]) -> None:
    """Some servers answer a repeated completion as if there had never been an upload."""
    was_done, left = len(answers) > 1, list(answers)

    def decide(asked: Asked) -> Fault | None:
        return left.pop(0) if left and asked.method == "POST" and "uploadId=" in asked.path else None

    proxy.decide = decide
    writer = store.open_writer("warc/x")
    writer.write(b"1" * PART)
    with nullcontext() if was_done else pytest.raises(FileNotFoundError):
        writer.close()
    assert proxy.given.total() == len(answers)
    assert store.exists("warc/x") is was_done


def test_a_server_that_refuses_for_good_is_an_error_after_a_bounded_number_of_tries(
    store: Store, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_s3, "TRIES", 2)
    proxy.decide = lambda _: Fault.ERROR_503
    with pytest.raises(BaseError, match="after 2 retries"):
        store.put("x", b"1")
    with pytest.raises(OSError, match="after 2 retries"):
        open_table(store, schemas.SEEDS)
    assert len(proxy.asked) == 6
