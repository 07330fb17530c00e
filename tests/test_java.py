"""Which Java is taken, among made-up installations."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler import java as java_module
from crawler.java import Java, find_java, installed


def install(home: Path, version: str, *, has_release_file: bool = True) -> Path:
    """A Java as far as we look at one."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2025-04-15' >&2\n""")
    program.chmod(0o755)
    if has_release_file:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def _no_java_at_the_usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    only_given = java_module._places
    monkeypatch.setattr(java_module, "_places", lambda e: (p for p in only_given(e) if "/usr/lib/jvm" not in str(p)))


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21", 21), ("21.0.1+12", 21), ("1.8.0_392", 8), ("25-ea", 25), ("", 0), ("unknown", 0)],
)
def test_the_feature_release_of_a_version(version: str, major: int) -> None:
    assert Java(Path("/x"), version).major == major


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = install(tmp_path / "a", "21.0.1"), install(tmp_path / "b", "17.0.15")
    environ = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert [java.version for java in installed(environ)] == ["21.0.1", "17.0.15"]
    assert find_java(environ) == Java(home, "21.0.1")


def test_an_installation_found_twice_is_named_once(tmp_path: Path) -> None:
    home = install(tmp_path / "a", "17.0.15")
    assert [java.home for java in installed({"JAVA_HOME": str(home), "PATH": str(home / "bin")})] == [home]


def test_an_unsupported_java_is_passed_over(tmp_path: Path) -> None:
    old, new = install(tmp_path / "a", "11.0.2"), install(tmp_path / "b", "17.0.15")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == Java(new, "17.0.15")
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}) is None


def test_a_link_on_the_path_leads_to_the_installation(tmp_path: Path) -> None:
    home = install(tmp_path / "jvm", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == Java(home, "17.0.15")


def test_without_a_release_file_java_is_asked(tmp_path: Path) -> None:
    home = install(tmp_path / "a", "17.0.9", has_release_file=False)
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}) == Java(home, "17.0.9")


def test_a_folder_without_java_is_none(tmp_path: Path) -> None:
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) is None
