"""What is installed is what is here: packages, pins, and every module importable."""

from __future__ import annotations

import importlib
import re
import tomllib

import pytest

import crawler
from crawler.jars import DELTA_VERSION, SPARK_VERSION
from crawler.java import SUPPORTED
from tests.house.sources import ROOT, modules

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = dict(
    re.findall(r"^([a-z][a-z0-9-]*)==(\S+)$", (ROOT / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE)
)
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.split(".")[0] in {"crawler", "jobs"}))
def test_a_module_can_be_imported(module: str) -> None:
    assert importlib.import_module(module).__name__ == module


def test_every_package_is_in_the_wheel() -> None:
    packages = {name for name, path in modules().items() if path.name == "__init__.py" and not name.startswith("tests")}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) - {"crawler.conf"} == packages


def test_every_dependency_is_pinned_and_locked_with_hashes() -> None:
    needed = {re.split(r"[<>=; ]", requirement)[0] for requirement in PROJECT["project"]["dependencies"]}
    locked = dict(re.findall(r"^([a-z][a-z0-9-]*)==([^ \\]+)", LOCK, re.MULTILINE))
    assert needed - PINNED.keys() == set()
    assert {name: version for name, version in PINNED.items() if locked.get(name) != version} == {}
    entries = re.split(r"\n(?=[a-z])", LOCK.strip())
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_jars_belong_to_the_pinned_pair() -> None:
    assert (PINNED["pyspark"], PINNED["delta-spark"]) == (SPARK_VERSION, DELTA_VERSION)


def test_the_lock_names_no_index() -> None:
    assert re.findall(r"https?://\S+|^--(?:extra-)?index.*$", LOCK, re.MULTILINE) == []


def test_the_versions_that_are_supported_are_the_same_everywhere() -> None:
    """Those of Python in README, the package and the search of `make setup`; those of Java in README and the code."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"You need Linux, Python ([^;]+?), and\s+Java ([^.;]+)[.;]", readme)
    assert stated, "README says which Python and which Java are needed"
    pythons, javas = (tuple(re.findall(r"[\d.]+", part)) for part in stated.groups())
    classified = [re.search(r"Python :: (\d+\.\d+)$", line) for line in PROJECT["project"]["classifiers"]]
    assert pythons == tuple(match[1] for match in classified if match)
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == pythons[0]
    searched = re.search(r"for name in \$\(PYTHON\) (.*) python3; do", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert searched
    assert tuple(searched[1].split()) == tuple(f"python{version}" for version in pythons)
    assert tuple(map(int, javas)) == SUPPORTED


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {crawler.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
