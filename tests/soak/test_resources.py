"""What a fetch task may take: memory that grows neither with its plan nor with bodies, few files, and a disk that fills
up without harm. Tasks run in processes of their own, without Spark."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.settings import FetchSettings, SegmentSettings, Settings
from crawler.storage import Store
from tests.benchmarks import fetch_task
from tests.benchmarks.plan_files import write_plan
from tests.soak.seam import install

pytestmark = pytest.mark.soak

ADDRESS = "127.88.0.1"
MIB = 1024 * 1024
FEW, MANY = 1_000, 100_000
HOSTS = 100
TOLERANCE = 1.10
WATCH = """
import pickle, sys, threading, time, os
from pathlib import Path
most = 0
def look():
    global most
    while True:
        most = max(most, len(os.listdir("/proc/self/fd")))
        time.sleep(0.05)
threading.Thread(target=look, daemon=True).start()
from crawler.fetch.partition import fetch_partition
task, settings = pickle.loads(Path(sys.argv[1]).read_bytes())
fetch_partition(task, settings)
print(most)
"""


def settings_for(hosts_file: Path, **fetch: object) -> Settings:
    given = {"delay_s": 0.0, "only_allowed": True, "allow_addresses": ("127.88.0.0/16",), "host_map": str(hosts_file)}
    return Settings(fetch=FetchSettings(**given | fetch), segment=SegmentSettings(max_urls=500))  # type: ignore[arg-type]  # a table of cases is looser than the types


def plan_urls(count: int) -> list[str]:
    return [f"http://h{n % HOSTS:03}.test/{n}" for n in range(count)]


@pytest.fixture
def hosts_file(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_text("".join(f"127.88.1.{n + 1} h{n:03}.test\n" for n in range(HOSTS)) + f"{ADDRESS} big.test\n")
    return path


def test_memory_does_not_grow_with_the_plan(
    tmp_path: Path, hosts_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, tmp_path, "tests.soak.tiny_web:TinyWeb")
    peaks = {}
    for count in (FEW, MANY):
        task = write_plan(plan_urls(count), tmp_path / f"lake{count}")
        run = fetch_task.run(task, settings_for(hosts_file), tmp_path / f"task{count}")
        assert sum(segment.rows for segment in run.segments) == count
        peaks[count] = run.peak_rss_mb
    with capsys.disabled():
        print(f"\npeak memory by planned URLs: {peaks} MB")
    assert peaks[MANY] <= TOLERANCE * peaks[FEW]


@contextmanager
def endless_server(size: int) -> Iterator[int]:
    """Answers every path with a body of so many zeros, as fast as they are taken; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        while (await reader.readline()).strip():
            continue
        is_robots = b"/robots.txt" in line
        length = 0 if is_robots else size
        status = b"404 No" if is_robots else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\nContent-Type: image/x\r\nContent-Length: %d\r\n\r\n" % (status, length))
        try:
            for _ in range(length // MIB):
                writer.write(bytes(MIB))
                await writer.drain()
        except ConnectionError:
            pass  # the client has enough
        writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(answer, ADDRESS, 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


def test_memory_does_not_grow_with_bodies(tmp_path: Path, hosts_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stored up to the stock limit of 5 MiB, the rest is not read."""
    peaks = {}
    for size in (MIB, 1024 * MIB):
        with endless_server(size) as port:
            lake = tmp_path / f"lake{size}"
            task = write_plan([f"http://big.test:{port}/{n}" for n in range(2)], lake)
            run = fetch_task.run(task, settings_for(hosts_file), tmp_path / f"task{size}")
            rows = [segment.rows for segment in run.segments]
        assert sum(rows) == 2
        peaks[size // MIB] = run.peak_rss_mb
    with capsys.disabled():
        print(f"\npeak memory by MiB of a body: {peaks} MB")
    assert peaks[1024] <= TOLERANCE * peaks[1]


def test_open_files_are_bounded(tmp_path: Path, hosts_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path, "tests.soak.tiny_web:TinyWeb")
    most = {}
    for count in (100, 5_000):
        task = write_plan(plan_urls(count), tmp_path / f"lake{count}")
        most[count] = int(run_python(WATCH, (task, settings_for(hosts_file)), tmp_path / f"task{count}.pickle").stdout)
    assert most[5_000] <= most[100] + 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_ends_the_attempt_and_shows_nothing(
    tmp_path: Path, hosts_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "tests.soak.tiny_web:TinyWeb")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)], check=True)
    try:
        task = write_plan(plan_urls(60_000), small / "lake")
        settings = replace(settings_for(hosts_file), segment=SegmentSettings(max_urls=5_000))
        code = "import pickle, sys\nfrom pathlib import Path\nfrom crawler.fetch.partition import fetch_partition\n"
        code += "fetch_partition(*pickle.loads(Path(sys.argv[1]).read_bytes()))"
        done = run_python(code, (task, settings), tmp_path / "task.pickle")
        assert done.returncode != 0
        assert "StorageFailed: " in done.stderr
        assert "No space left on device" in done.stderr
        assert not list(small.rglob("*.open"))
        store = Store.open(str(small / "lake"))
        sealed = {Path(path).name.removesuffix(".parquet") for path in store.list("crawl-data") if "/outcomes/" in path}
        warcs = {Path(path).name.removesuffix("-warc.warc.gz") for path in store.list("crawl-data") if "/warc/" in path}
        assert sealed <= warcs
        assert len(warcs - sealed) <= 1
    finally:
        subprocess.run(["umount", str(small)], check=True)


def run_python(code: str, given: object, file: Path) -> subprocess.CompletedProcess[str]:
    import pickle

    file.write_bytes(pickle.dumps(given))
    return subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False)
