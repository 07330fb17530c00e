"""The promises of a store, the same table for a local folder and for stores behind obstore."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import hypothesis
import obstore.store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler import schemas
from crawler.storage import Store, checked, normal_uri
from crawler.storage_s3 import BucketStore
from crawler.tables.direct import (
    Write,
    append_rows,
    commit_files,
    create_tables,
    data_files,
    lost_of,
    open_table,
    read_rows,
)  # fmt: skip
from crawler.tables.manifest import TableError, make_lake, read_manifest


@pytest.fixture(params=["local", "file_uri", "obstore_memory", "obstore_folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    root = tmp_path / "a lake"
    match request.param:
        case "local":
            return Store.open(str(root))
        case "file_uri":
            return Store.open(root.as_uri())
        case "obstore_memory":
            return BucketStore("s3://bucket/lake", obstore.store.MemoryStore())
    return BucketStore("s3a://bucket/lake", obstore.store.LocalStore(root, mkdir=True))


def test_the_top_of_a_store_is_seen_without_what_is_below(store: Store) -> None:
    assert list(store.top()) == []
    for path in ("lake.json", "inbox/a.urls", "inbox/b.urls", "tables/x/_delta_log/0.json"):
        store.put_new(path, b"x")
    assert sorted(store.top()) == ["inbox", "lake.json", "tables"]


def test_a_lake_is_made_in_an_empty_place_only(store: Store) -> None:
    store.put_new("notes/mine.txt", b"x")
    with pytest.raises(TableError, match="holds notes: a lake is made in an empty or a new folder"):
        make_lake(store, 4)
    store.delete("notes/mine.txt")
    store.remove_folder("notes")
    if list(store.top()):
        return  # a folder behind obstore, which knows no folders
    assert make_lake(store, 4, {"fetch.delay_s": 2.0})
    assert not make_lake(store, 8)
    assert read_manifest(store).remembered() == {"fetch.delay_s": 2.0, "lake.buckets": 4}


def test_put_new_creates_once(store: Store) -> None:
    assert store.put_new("lock/round", b"first")
    assert not store.put_new("lock/round", b"second")
    assert store.read("lock/round") == b"first"
    assert store.list("") == ["lock/round"]


def test_put_replaces(store: Store) -> None:
    store.put("progress/1/2.json", b"old and long")
    store.put("progress/1/2.json", b"new")
    assert store.read("progress/1/2.json") == b"new"
    assert store.size("progress/1/2.json") == 3


def test_reads_by_range(store: Store) -> None:
    store.put("a", b"0123456789")
    assert store.read_range("a", 3, 4) == b"3456"
    assert store.read_range("a", 8, 100) == b"89"


def test_what_is_not_there(store: Store) -> None:
    assert not store.exists("no/such")
    assert store.list("no") == []
    store.delete("no/such")
    for ask in (store.read, store.size):
        with pytest.raises(FileNotFoundError):
            ask("no/such")


def test_lists_a_folder_sorted_and_nothing_beside_it(store: Store) -> None:
    for path in ("s/10/b", "s/1/z", "s/1/a", "s/1/x/y", "other"):
        store.put(path, b"")
    assert store.list("s/1") == ["s/1/a", "s/1/x/y", "s/1/z"]
    assert store.list("s") == ["s/1/a", "s/1/x/y", "s/1/z", "s/10/b"]


def test_delete(store: Store) -> None:
    store.put("a/b", b"x")
    store.delete("a/b")
    assert not store.exists("a/b")


def test_a_writer_publishes_at_close(store: Store) -> None:
    writer = store.open_writer("warc/x.warc.gz")
    writer.write(b"abc")
    writer.write(b"de")
    assert writer.tell() == 5
    assert not store.exists("warc/x.warc.gz")
    assert store.list("") == []
    writer.close()
    assert store.read("warc/x.warc.gz") == b"abcde"


@pytest.mark.parametrize("size", [10, 25_000_000])
def test_an_aborted_writer_leaves_nothing(store: Store, size: int, tmp_path: Path) -> None:
    writer = store.open_writer("warc/x")
    writer.write(bytes(size))
    writer.abort()
    assert store.list("") == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_arrow_reads_by_ranges(store: Store) -> None:
    table = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=100)
    store.put("t.parquet", sink.getvalue().to_pybytes())
    with store.open_input("t.parquet") as file:
        found = pq.ParquetFile(file).read_row_group(3, columns=["a"])
    assert found["a"].to_pylist() == list(range(300, 400))


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\\b"])
def test_paths_stay_in_the_lake(store: Store, path: str) -> None:
    with pytest.raises(ValueError, match="plain path"):
        store.put(path, b"")


def test_a_uri_and_its_path_are_the_same_thing(store: Store) -> None:
    assert store.relative(store.uri_of("tables/hosts/x.parquet")) == "tables/hosts/x.parquet"
    with pytest.raises(ValueError, match="not inside the lake"):
        store.relative(store.uri + "2/x")


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("s3://b/p/q/", "s3a://b/p/q"),
        ("s3a://b", "s3a://b"),
        ("file:///tmp/a%20b/", "/tmp/a b"),
        ("file:/tmp/x", "/tmp/x"),
        ("/tmp/x/", "/tmp/x"),
        ("x/y", str(Path.cwd() / "x/y")),
    ],
)
def test_one_spelling_of_a_uri(given: str, uri: str) -> None:
    assert normal_uri(given) == uri
    assert Store.open(given).uri == uri


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="not one of file, s3, s3a"):
        Store.open("gs://bucket/x")


NAMES = [
    "a b", "end ", " ", "it's", 'a "b"', "50% off", "100%", "%zz", "%4", "a#b", "a?b", "a+b", "a&b", "a=b", "a;b",
    "a,b", "a:b", "~a", "$a", "`a`", "(a)", "{a,b}", "*", "<a>", "-a", "...", "ü", "u\u0308", "日本", "😀", "\xa0",
    "\u202ea",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_lake_may_be_in_a_folder_of_almost_any_name(tmp_path: Path, name: str) -> None:
    store = Store.open(str(tmp_path / name))
    assert make_lake(store, 4)
    create_tables(store, [schemas.ROUNDS])
    rows = [{"round": 1, "state": "OPENED"}]
    append_rows(store, schemas.ROUNDS, rows, Write("test", 1))
    files = data_files(store, schemas.ROUNDS)
    assert read_rows(store, [file.path for file in files], ["round", "state"]) == rows
    assert lost_of(store, schemas.ROUNDS, None) is None
    commit_files(store, schemas.ROUNDS, files, [], Write("test", 2))
    assert data_files(store, schemas.ROUNDS) == []
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert Store.open((tmp_path / name).as_uri()).uri == store.uri


@pytest.mark.parametrize(
    "name", ["50%20off", "%25", "%2f", "a\\b", "[a", "a]", "a^b", "a|b", "a\nb", "\t", "\x7f", "\udcff"]
)
def test_names_that_tables_could_not_be_found_by_are_refused(tmp_path: Path, name: str) -> None:
    for place in (tmp_path / name, tmp_path / name / "lake"):
        with pytest.raises(
            ValueError, match=r"with which its tables could not be found again\. Take a folder whose path"
        ):
            Store.open(str(place))


@given(name=st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=20))
@hypothesis.settings(max_examples=60)
def test_what_is_not_refused_works(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    try:
        store = Store.open(str(tmp_path_factory.mktemp("names") / f"_{name}"))
    except ValueError:
        return
    create_tables(store, [schemas.ROUNDS])
    append_rows(store, schemas.ROUNDS, [{"round": 1, "state": "OPENED"}], Write("test", 1))
    assert lost_of(store, schemas.ROUNDS, None) is None
    assert open_table(store, schemas.ROUNDS).version() == 1


def test_checked_returns_the_path() -> None:
    assert checked("a/b=1/c.d") == "a/b=1/c.d"


def test_a_store_travels_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = pickle.loads(pickle.dumps(Store.open(str(tmp_path))))
    local.put("a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sehr-geheim")
    bucket = Store.open("s3://b/lake")
    assert bucket.list is not None
    packed = pickle.dumps(bucket)
    assert b"geheim" not in packed
    assert pickle.loads(packed).uri == "s3a://b/lake"


def test_one_of_many_creators_wins(tmp_path: Path) -> None:
    store, won, barrier = Store.open(str(tmp_path)), [], threading.Barrier(8)

    def race(name: int) -> None:
        for turn in range(20):
            barrier.wait()
            if store.put_new(f"lock{turn}", str(name).encode()):
                won.append((turn, name))

    threads = [threading.Thread(target=race, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turn for turn, _ in won) == list(range(20))
    assert all(store.read(f"lock{turn}") == str(name).encode() for turn, name in won)


def test_kill_9_leaves_only_open_files(tmp_path: Path) -> None:
    program = """
        import sys
        from crawler.storage import Store
        store = Store.open(sys.argv[1])
        writer = store.open_writer("warc/a.warc.gz")
        writer.write(bytes(5_000_000))
        print("written", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.warc.gz.open"]
    assert Store.open(str(tmp_path)).list("") == []
