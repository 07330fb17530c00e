"""The doctor finds each thing that can be wrong, and leaves no trace."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.jars import DELTA_VERSION, SPARK_VERSION
from crawler.java import Java
from crawler.settings import FetchSettings, Settings
from crawler.storage_local import LocalStore
from jobs import doctor
from jobs.java import install_command

JAVA_17 = Java(Path("/jvm/17"), "17.0.15")
JAVA_8 = Java(Path("/jvm/8"), "1.8.0_392")
NEEDED = {"pyspark": SPARK_VERSION, "delta-spark": DELTA_VERSION}


def test_all_checks_are_made_in_order(tmp_path: Path) -> None:
    checks = doctor.run(Settings(), str(tmp_path / "lake"))
    names = ["Java", "Spark and Delta", "Delta jars", "Store", "Clock", "Open files"]
    assert [check.name for check in checks] == names
    assert [check.name for check in checks if check.ok == bool(check.hint)] == []
    assert list(tmp_path.iterdir()) == []


def test_java_that_is_too_old_is_named() -> None:
    assert doctor.check_java(JAVA_17, JAVA_17).ok
    bad = doctor.check_java(None, JAVA_8)
    assert (bad.ok, bad.found, bad.needed) == (False, "1.8.0_392 in /jvm/8", "17 or 21")
    assert doctor.check_java(None, None).found == "none"


@pytest.mark.parametrize(("package", "found"), [("pyspark", "4.3.0"), ("delta-spark", "none")])
def test_another_pair_of_spark_and_delta_is_refused(package: str, found: str) -> None:
    assert doctor.check_pair(NEEDED.__getitem__).ok
    bad = doctor.check_pair((NEEDED | {package: found}).__getitem__)
    assert not bad.ok
    assert f"{package} {found}" in bad.found


def test_missing_jars_are_named(tmp_path: Path) -> None:
    bad = doctor.check_jars(tmp_path)
    assert not bad.ok
    assert bad.found.count(".jar is missing") == 2


@pytest.mark.parametrize("lake", ["", "new/lake", "file:{}/new"])
def test_a_folder_that_can_be_written_is_a_store(lake: str, tmp_path: Path) -> None:
    assert doctor.check_store(lake.format(tmp_path) if "{}" in lake else str(tmp_path / lake)).ok
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("lake", "said"), [("/proc/lake", "[Errno "), ("gs://bucket/x", "scheme 'gs'")])
def test_a_store_that_cannot_be_used_says_why(lake: str, said: str) -> None:
    bad = doctor.check_store(lake)
    assert not bad.ok
    assert said in bad.found


def test_a_store_that_creates_a_file_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "put_new", lambda store, path, data: store.put(path, data) is None)
    assert doctor.check_store(str(tmp_path)).found == "a file was created twice"


def test_a_store_that_looks_first_and_writes_then_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_and_write(store: LocalStore, path: str, data: bytes) -> bool:
        if store.exists(path):
            return False
        time.sleep(0.002)
        store.put(path, data)
        return True

    monkeypatch.setattr(LocalStore, "put_new", look_and_write)
    bad = doctor.check_store(str(tmp_path))
    assert not bad.ok
    assert bad.found.startswith("of two that created a file at once both were told that they did (")
    assert list(tmp_path.iterdir()) == []


def test_a_clock_before_the_installation_is_wrong() -> None:
    assert not doctor.check_clock(0.0).ok
    assert doctor.check_clock(4e9).ok


def test_connections_need_open_files() -> None:
    settings = replace(Settings(), fetch=FetchSettings(connections=1_000))
    assert not doctor.check_open_files(settings, (1_024, 4_096)).ok
    assert doctor.check_open_files(settings, (4_096, 4_096)).ok
    assert doctor.check_open_files(settings, (resource.RLIM_INFINITY, 0)).ok


@pytest.mark.parametrize(
    ("tool", "said"), [("apt-get", "openjdk-17-jre-headless"), ("brew", "temurin@17"), ("none", "set JAVA_HOME")]
)
def test_the_command_that_installs_java_fits_the_system(tool: str, said: str) -> None:
    assert said in install_command(lambda name: name if name == tool else None)
