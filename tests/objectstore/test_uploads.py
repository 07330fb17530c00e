"""Uploads of writers that were killed: `gc` finds them, and removes them when they are old enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from crawler import schemas
from crawler.storage import Store
from crawler.tables.direct import create_tables
from crawler.tables.manifest import make_lake
from jobs.gc import find_rubbish, remove_rubbish
from tests.objectstore.server import BUCKET, ObjectServer

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
PATH = "crawl-data/X/segments/1/warc/a b.warc.gz"
WRITER = """
import sys, time
from crawler.storage import Store
writer = Store.open(sys.argv[1]).open_writer(sys.argv[2])
for _ in range(3):
    writer.write(bytes(12_000_000))
print("written", flush=True)
time.sleep(600)
"""
HOUR_S = 3_600.0


@pytest.fixture
def lake(as_client: ObjectServer) -> Store:
    """An empty lake, beside another one whose writer was killed as well."""
    bucket = f"s3://{BUCKET}/{uuid4()}"
    killed_writer(Store.open(f"{bucket}/other"))
    store = Store.open(f"{bucket}/a lake")
    make_lake(store, 1)
    create_tables(store, schemas.TABLES)
    return store


def killed_writer(store: Store) -> None:
    """Leave an upload behind."""
    command = [sys.executable, "-c", WRITER, store.uri, PATH]
    writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"written\n"
    end = time.monotonic() + 20.0
    while not store.uploads():
        assert time.monotonic() < end, "no upload has begun"
        time.sleep(0.1)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()


def test_the_upload_of_a_killed_writer_is_found_and_removed(lake: Store, as_client: ObjectServer) -> None:
    began = time.time()
    killed_writer(lake)
    other = Store.open(lake.uri.removesuffix("a lake") + "other")
    (upload,) = lake.uploads()
    assert upload.path == PATH
    assert began - 2 <= upload.started <= time.time() + 2  # the server knows whole seconds
    assert [one for one in find_rubbish(lake, 0.0, time.time()) if one.kind == "upload"] == [], "it may be under way"
    (found,) = [one for one in remove_rubbish(lake, 0.0, time.time() + HOUR_S + 5) if one.kind == "upload"]
    assert found.path == f"{PATH}?uploadId={upload.id}"
    assert lake.uploads() == []
    assert len(other.uploads()) == 1, "another lake's upload was given up"
    lake.abort_upload(upload)  # once more does no harm
