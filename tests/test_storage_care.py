"""What a store says of files for those who clean up: when they were written, what is half-written, what is empty."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from crawler.storage import Store
from crawler.storage_s3 import BucketStore


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_a_store_says_when_a_file_was_written(tmp_path: Path, kind: str) -> None:
    store = Store.open(str(tmp_path)) if kind == "folder" else BucketStore("s3://bucket/lake", MemoryStore())
    before = time.time()
    store.put("a/b", b"1")
    assert before - 2 <= store.modified("a/b") <= time.time() + 2
    assert (store.unfinished(""), store.empty_folders("a")) == ([], [])
    with pytest.raises(FileNotFoundError):
        store.modified("no/such")


def test_a_folder_is_removed_when_it_is_empty_and_only_then(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    store.put("progress/1/a", b"1")
    (tmp_path / "progress" / "2" / "inner").mkdir(parents=True)
    assert store.empty_folders("progress") == ["progress/2/inner"]
    for folder in ("progress/1", "progress/2", "progress/2/inner", "progress/3"):
        store.remove_folder(folder)
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["progress", "1", "a", "2"]
    assert store.empty_folders("progress") == ["progress/2"]
    (tmp_path / "leases").mkdir()
    assert store.empty_folders("leases") == store.empty_folders("none") == []


def test_half_written_files_are_found_below_a_folder(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    writer = store.open_writer("warc/b/x.warc.gz")
    store.put("warc/a", b"1")
    assert store.unfinished("warc") == store.unfinished("") == ["warc/b/x.warc.gz.open"]
    assert store.unfinished("tables") == []
    assert store.list("") == ["warc/a"]
    writer.close()
    assert store.unfinished("") == []
