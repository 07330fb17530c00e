"""The promises of a store, kept on a server that speaks S3."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawler import storage_s3
from crawler.storage import Store
from jobs import doctor
from tests.objectstore.fault_proxy import FaultProxy
from tests.objectstore.server import BUCKET, ObjectServer

pytestmark = pytest.mark.soak

PART = 12_000_000  # more than the 10 MiB of a part
WAIT_S = 10.0


@pytest.fixture
def store(proxy: FaultProxy) -> Store:
    return Store.open(f"s3://{BUCKET}/{uuid4()}/a lake")


def parts_held(server: ObjectServer, at_least: int = 0) -> int:
    """Parts of uploads that are neither finished nor given up; `at_least` so many are waited for, as obstore sends
    them in the background."""
    folder, end = server.bucket / ".sgwtmp" / "multipart", time.monotonic() + WAIT_S
    while True:
        held = sum(path.name.isdigit() for path in folder.rglob("*"))
        if held >= at_least or time.monotonic() > end:
            return held
        time.sleep(0.02)


@pytest.mark.usefixtures("proxy")
def test_the_doctor_finds_out_who_may_hold_a_lake(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server alone looks first and renames then; behind the proxy it creates one object at a time."""
    lake = f"s3://{BUCKET}/{uuid4()}"
    assert doctor.check_store(lake).ok
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    assert "both were told that they did" in doctor.check_store(lake).found


def test_of_a_hundred_creators_one_wins(store: Store) -> None:
    barrier = Barrier(100)

    def create(number: int) -> int | None:
        barrier.wait()
        return number if store.put_new("lock/1", b"%d" % number) else None

    with ThreadPoolExecutor(100) as pool:
        won = [number for number in pool.map(create, range(100)) if number is not None]
    assert len(won) == 1
    assert store.read("lock/1") == b"%d" % won[0]


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_writer_publishes_at_close(store: Store, as_client: ObjectServer, parts: int) -> None:
    writer = store.open_writer("warc/x.warc.gz")
    for number in range(parts):
        writer.write(bytes([number]) * PART)
    writer.write(b"end")
    assert writer.tell() == parts * PART + 3
    assert store.list("") == []
    assert parts_held(as_client, parts) == parts
    writer.close()
    assert store.list("") == ["warc/x.warc.gz"]
    assert store.size("warc/x.warc.gz") == parts * PART + 3
    assert store.read_range("warc/x.warc.gz", parts * PART, 9) == b"end"
    assert parts_held(as_client) == 0


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_an_aborted_writer_leaves_nothing(store: Store, as_client: ObjectServer, parts: int) -> None:
    writer = store.open_writer("warc/x")
    for _ in range(parts):
        writer.write(bytes(PART))
    assert parts_held(as_client, parts) == parts
    writer.abort()
    assert store.list("") == []
    assert parts_held(as_client) == 0


@pytest.mark.parametrize(
    "name", ["a/ü ä+&=%20 #?.txt", "a=1/b=2/x.parquet", "a/'quoted\"", "a/日本", "a/x;y,z@!$", "a/~(1)*.gz"]
)
def test_odd_names(store: Store, name: str) -> None:
    assert store.put_new(name, b"1")
    assert not store.put_new(name, b"2")
    assert store.list("") == store.list(name.split("/", maxsplit=1)[0]) == [name]
    assert (store.read(name), store.size(name), store.exists(name)) == (b"1", 1, True)
    store.delete(name)
    assert store.list("") == []


def test_put_ranges_lists_and_what_is_not_there(store: Store) -> None:
    store.put("s/1/a", b"old and long")
    store.put("s/1/a", b"0123456789")
    store.put("s/10/b", b"")
    assert store.list("s/1") == ["s/1/a"]
    assert store.list("s") == ["s/1/a", "s/10/b"]
    assert store.read_range("s/1/a", 3, 4) == b"3456"
    assert store.read_range("s/1/a", 8, 100) == b"89"
    assert store.list("no") == []
    store.delete("no/such")
    for ask in (store.read, store.size, store.open_input):
        with pytest.raises(FileNotFoundError):
            ask("no/such")


def test_more_objects_than_one_answer_lists(store: Store) -> None:
    names = [f"many/{number:04}" for number in range(1_100)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    assert store.list("many") == names


def test_a_small_file_is_read_with_one_request(store: Store, proxy: FaultProxy) -> None:
    table = pa.table({"a": list(range(1_000)), "b": ["x"] * 1_000})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=100)
    store.put("t.parquet", sink.getvalue().to_pybytes())
    store.put("empty", b"")
    before = len(proxy.asked)
    assert pq.ParquetFile(store.open_input("t.parquet")).read(use_threads=False).equals(table)
    assert len(proxy.asked) == before + 1
    assert store.open_input("empty").read() == b""


def test_a_large_file_is_read_in_windows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_s3, "WINDOW_BYTES", 64)
    content = bytes(range(256)) * 4
    store.put("x", content)
    file = store.open_input("x")
    for start, length in ((0, 10), (5, 3), (1_000, 24), (60, 200), (1_020, 100), (500, 0)):
        file.seek(start)
        assert file.read(length) == content[start : start + length]
    assert file.size() == len(content)
