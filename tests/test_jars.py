"""The Delta jars are kept whole or not at all, and fetched once."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from crawler import jars
from crawler.jars import Jar, jar_faults, jar_folder, jar_paths
from jobs.jars import fetch_jars

CONTENT = {"delta-spark_4.2_2.13-4.4.0.jar": b"spark side", "delta-storage-4.4.0.jar": b"storage side"}


@pytest.fixture(autouse=True)
def _small_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars of a few bytes under the real names."""
    small = tuple(Jar(jar.coordinates, sha256(CONTENT[jar.file_name]).hexdigest()) for jar in jars.JARS)
    monkeypatch.setattr(jars, "JARS", small)
    monkeypatch.setattr("jobs.jars.JARS", small)


class Source:
    """Stands for Ivy: names files as Ivy does, counts how often it was asked."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.asked = 0

    def __call__(self, scratch: Path) -> list[Path]:
        self.asked += 1
        scratch.mkdir()
        for name, data in self.content.items():
            (scratch / f"io.delta_{name}").write_bytes(data)
        return sorted(scratch.iterdir())


def test_a_second_fetch_asks_nothing(tmp_path: Path) -> None:
    source = Source(CONTENT)
    assert [fetch_jars(tmp_path / "kept", source) for _ in range(2)] == [[], []]
    assert source.asked == 1
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == sorted(CONTENT)
    assert {Path(path).name: Path(path).read_bytes() for path in jar_paths(tmp_path / "kept")} == CONTENT


def test_a_forged_jar_is_not_kept(tmp_path: Path) -> None:
    faults = fetch_jars(tmp_path, Source(CONTENT | {"delta-storage-4.4.0.jar": b"forged"}))
    assert len(faults) == 1
    assert faults[0].startswith("delta-storage-4.4.0.jar has SHA-256 ")
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_fetched_is_named(tmp_path: Path) -> None:
    assert fetch_jars(tmp_path, Source({})) == [f"{name} is missing" for name in CONTENT]


def test_a_damaged_jar_is_fetched_again(tmp_path: Path) -> None:
    source = Source(CONTENT)
    fetch_jars(tmp_path, source)
    (tmp_path / "delta-storage-4.4.0.jar").write_bytes(b"cut")
    assert len(jar_faults(tmp_path)) == 1
    assert fetch_jars(tmp_path, source) == []
    assert source.asked == 2


def test_the_folder_is_the_users_choice_or_the_checkouts() -> None:
    assert jar_folder({"ORBWEAVER_JARS": "/some/where"}) == Path("/some/where")
    assert jar_folder({}).name == ".jars"


@pytest.mark.parametrize(
    ("environ", "folder"),
    [({"XDG_CACHE_HOME": "/c"}, "/c/orbweaver/jars"), ({"HOME": "/home/me"}, "/home/me/.cache/orbweaver/jars")],
)
def test_an_installed_wheel_keeps_them_in_the_users_cache(
    environ: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jars, "__file__", str(tmp_path / "site-packages" / "crawler" / "jars.py"))
    assert jar_folder(environ) == Path(folder)
