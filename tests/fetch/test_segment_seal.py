"""The seal comes last, whatever happens, and a resumed task finds what is sealed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import obstore.store
import pytest

from crawler.fetch.segments import read_outcomes, sealed_segments
from crawler.storage import Store
from crawler.storage_s3 import BucketStore
from tests.fetch.segment_samples import ROBOTS, TASK, capture, host, row, sealed, writer


@pytest.fixture(params=["local", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return Store.open(str(tmp_path))
    return BucketStore("s3://bucket/lake", obstore.store.MemoryStore())


def test_nothing_is_not_sealed(store: Store) -> None:
    segments = writer(store)
    assert segments.seal() is None
    segments.add_robots(ROBOTS)
    assert sealed(segments).rows == 0
    assert segments.seal() is None
    assert len(sealed_segments(store, TASK)) == 1


def test_a_resumed_task_finds_all_attempts_of_its_partition_oldest_first(store: Store) -> None:
    made = []
    for second, (attempt, task) in enumerate([(1, TASK), (0, TASK), (0, replace(TASK, partition=8)), (2, TASK)]):
        segments = writer(store, attempt, task, after=second)
        segments.add(row(second), capture(second))
        segments.add_robots(ROBOTS)
        made.append(sealed(segments))
    assert sealed_segments(store, TASK) == [made[0], made[1], made[3]]
    assert sealed_segments(store, replace(TASK, partition=8)) == [made[2]]
    assert sealed_segments(store, replace(TASK, round=4)) == []
    assert read_outcomes(store, made[3], ["url_key"]).to_pylist() == [{"url_key": 3}]


def test_an_aborted_segment_leaves_nothing(store: Store) -> None:
    segments = writer(store)
    segments.add(row(1), capture(1))
    segments.note_host(host(1, 1.0))
    segments.abort()
    assert store.list("") == []
    assert segments.seal() is None


class _Refusing(BucketStore):
    """Takes everything until the first path that holds a word."""

    word = ""

    def put(self, path: str, data: bytes) -> None:
        self._refuse(path)
        super().put(path, data)

    def put_new(self, path: str, data: bytes) -> bool:
        self._refuse(path)
        return super().put_new(path, data)

    def _refuse(self, path: str) -> None:
        if self.word in path:
            raise OSError("no space left")


@pytest.mark.parametrize("word", ["discoveries", "hosts", "outcomes"])
def test_the_seal_comes_last(word: str) -> None:
    store = _Refusing("s3://bucket/lake", obstore.store.MemoryStore())
    store.word = word
    segments = writer(store)
    segments.add(row(1), capture(1))
    with pytest.raises(OSError, match="no space"):
        segments.seal()
    segments.abort()
    assert sealed_segments(store, TASK) == []
    written = {path.split("/")[4] for path in store.list("")}
    assert written == set(["warc", "discoveries", "hosts"][: 1 + ["discoveries", "hosts", "outcomes"].index(word)])


class _Deaf(BucketStore):
    """Creates the object and hears only the refusal of the request it repeated."""

    def put_new(self, path: str, data: bytes) -> bool:
        super().put_new(path, data)
        return super().put_new(path, data)


def test_a_seal_whose_first_answer_was_lost_is_a_seal() -> None:
    store = _Deaf("s3://bucket/lake", obstore.store.MemoryStore())
    segments = writer(store)
    segments.add(row(1), None)
    segment = sealed(segments)
    assert sealed_segments(store, TASK) == [segment]


def test_kill_9_leaves_sealed_segments_and_open_files_only(tmp_path: Path) -> None:
    program = """
        import sys
        from crawler.storage import Store
        from tests.fetch.segment_samples import capture, row, writer
        segments = writer(Store.open(sys.argv[1]))
        for key in range(2):
            segments.add(row(key), capture(key, bytes(3_000_000)))
            key or segments.seal()
        print("written", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    store = Store.open(str(tmp_path))
    [segment] = sealed_segments(store, TASK)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    left = files - {segment.outcomes, segment.discoveries, segment.hosts, *segment.warcs.values()}
    assert len(left) == 1
    assert left.pop().endswith(".warc.gz.open")
    assert set(store.list("")) < files
