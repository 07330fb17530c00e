"""What a crawl needs of its machine, looked at before the first round: found, needed, and what to do about it."""

from __future__ import annotations

import resource
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import crawler
from crawler.jars import DELTA_VERSION, SPARK_VERSION, jar_faults, jar_folder
from crawler.java import SUPPORTED, Java, find_java, installed
from crawler.settings import Settings
from crawler.storage import Store
from jobs.java import install_command
from jobs.words import instant

SPARE_FILES = 256  # of a fetch process, beside its connections: segments, spools, libraries
CLOCK_TOLERANCE_S = 86_400.0
RACES = 50


class Check(NamedTuple):
    """One thing that was looked at. `hint` says how to mend it, empty when all is well."""

    name: str
    ok: bool
    found: str
    needed: str
    hint: str = ""


def run(settings: Settings, lake: str) -> list[Check]:
    """All checks, in the order in which a crawl would trip over them."""
    return [
        *check_spark(is_here=find_spec("pyspark") is not None),
        check_store(lake),
        check_clock(time.time()),
        check_open_files(settings, resource.getrlimit(resource.RLIMIT_NOFILE)),
    ]


def check_spark(is_here: bool) -> list[Check]:
    """What an embedded Spark needs; in an environment packed for a cluster, which has its own, there is none."""
    if not is_here:
        return [_check("Spark", True, "none in this environment", "the cluster's own, which spark-submit brings", "")]
    return [check_java(find_java(), next(installed(), None)), check_pair(_installed_version), check_jars(jar_folder())]


def check_java(java: Java | None, other: Java | None) -> Check:
    """A Java that Spark runs on; `other` is what is there instead."""
    needed = " or ".join(map(str, SUPPORTED))
    best = java or other
    found = f"{best.version} in {best.home}" if best else "none"
    return _check("Java", java is not None, found, needed, f"make setup, or {install_command()}")


def check_pair(version_of: Callable[[str], str]) -> Check:
    """Delta is built for one Spark: the pair must be the one whose jars are pinned."""
    found = (version_of("pyspark"), version_of("delta-spark"))
    return _check(
        "Spark and Delta",
        found == (SPARK_VERSION, DELTA_VERSION),
        "pyspark {}, delta-spark {}".format(*found),
        f"pyspark {SPARK_VERSION}, delta-spark {DELTA_VERSION}",
        f"pip install pyspark=={SPARK_VERSION} delta-spark=={DELTA_VERSION}",
    )


def check_jars(folder: Path) -> Check:
    """The two Delta jars, whole."""
    faults = jar_faults(folder)
    return _check(
        "Delta jars",
        not faults,
        "; ".join(faults) or f"whole, in {folder}",
        f"two jars with their checksums in {folder}",
        "make setup, or python -m jobs.jars",
    )


def check_store(lake: str) -> Check:
    """The lake can be written, and of two who create one file only one succeeds. Leaves nothing behind."""
    needed = f"{lake} can be written, and a file is created once"
    try:
        if "://" in lake and not lake.startswith("file:"):
            found = _try_store(Store.open(lake))
        else:
            with tempfile.TemporaryDirectory(prefix=".doctor-", dir=_existing(lake)) as scratch:
                found = _try_store(Store.open(scratch))
    except Exception as error:  # noqa: BLE001 - whatever a store raises is the finding
        found = f"{type(error).__name__}: {error}"
    return _check("Store", not found, found or "as needed", needed, "check the URI, permissions and free space")


def check_clock(now: float) -> Check:
    """A clock that lags behind the installed code is wrong; WARC dates and due times would be too."""
    installed_at = Path(crawler.__file__).stat().st_mtime
    return _check(
        "Clock",
        now >= installed_at - CLOCK_TOLERANCE_S,
        instant(now),
        f"not before {instant(installed_at)}, when orbweaver was installed",
        "set the clock, or run a time service",
    )


def check_open_files(settings: Settings, limits: tuple[int, int]) -> Check:
    """A fetch process holds a socket for each of its connections."""
    needed = settings.fetch.connections + SPARE_FILES
    soft = limits[0]
    is_enough = soft == resource.RLIM_INFINITY or soft >= needed
    found = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    return _check("Open files", is_enough, found, f"{needed} for a fetch process", f"ulimit -n {needed}")


def _check(name: str, ok: bool, found: str, needed: str, hint: str) -> Check:
    return Check(name, ok, found, needed, "" if ok else hint)


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _try_store(store: Store) -> str:
    """What is wrong with the store; empty when all is well."""
    path = f"doctor-{uuid4()}"
    try:
        if not store.put_new(path, b"orbweaver"):
            return "a new file could not be created"
        if store.put_new(path, b"another"):
            return "a file was created twice"
        if store.read(path) != b"orbweaver":
            return "a file read back differently"
    finally:
        store.delete(path)
    unfair = sum(_has_two_winners(store) for _ in range(RACES))
    return f"of two that created a file at once both were told that they did ({unfair} of {RACES})" if unfair else ""


def _has_two_winners(store: Store) -> bool:
    """Let two create one file at the same moment: a store that looks first and writes then lets both."""
    path, start = f"doctor-{uuid4()}", threading.Barrier(2)

    def create(content: bytes) -> bool:
        start.wait()
        return store.put_new(path, content)

    try:
        with ThreadPoolExecutor(2) as pool:
            return all(pool.map(create, (b"one", b"another")))
    finally:
        store.delete(path)


def _existing(lake: str) -> Path:
    """The lake's folder, or the nearest folder above it that exists."""
    place = Path(lake.removeprefix("file://").removeprefix("file:")).absolute()
    return next(folder for folder in (place, *place.parents) if folder.is_dir())
