"""Java's class archive: one for each Java, used where it is there, never left half made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler.class_archive import archive_path, using_archive
from crawler.java import Java, find_java
from jobs.class_archive import make_archive

ONE, OTHER = Java(Path("/usr/lib/jvm/a"), "17.0.15"), Java(Path("/usr/lib/jvm/a"), "17.0.16")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("crawler.class_archive.jar_folder", lambda: tmp_path)
    return tmp_path


def test_it_is_used_where_it_is_there_and_by_the_java_that_made_it(kept: Path) -> None:
    assert using_archive(ONE) == ""
    archive_path(ONE).write_bytes(b"classes")
    assert str(archive_path(ONE)) in using_archive(ONE)
    assert archive_path(ONE).parent == kept
    assert using_archive(OTHER) == ""


def test_what_fails_is_told_and_leaves_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.class_archive.sys.executable", "/bin/false")
    assert make_archive(kept / "classes.jsa") == "Java left none"
    assert list(kept.iterdir()) == []


def test_a_session_maps_the_archive_that_setup_made(spark: SparkSession) -> None:
    java = find_java()
    assert java is not None
    assert archive_path(java).is_file(), "make setup makes it"
    jvm: Any = spark.sparkContext._jvm
    maps = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps")
    if not maps.exists():
        pytest.skip("this system does not show what a process has mapped")
    assert archive_path(java).name in maps.read_text()
