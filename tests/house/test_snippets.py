"""What the documents show works: snippets run on a lake, tables of settings, exit codes and tests say what is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from crawler.settings import Settings
from crawler.settings_text import toml_value
from jobs.exits import EXIT_CODES
from tests.house.sources import ROOT
from tests.jobs.made_lake import make_lake

README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SETTING = re.compile(r"^\| `(\w+)\.(\w+)` \| (?:`(.+?)`|empty) \|", re.MULTILINE)
EXIT_CODE = re.compile(r"^\| (\d+) \| ", re.MULTILINE)
TEST = re.compile(r"`(tests/\S+?\.py)::(\w+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")

BLOCKS = BLOCK.findall(README)
SNIPPETS = [code for language, code in BLOCKS if language == "python"]
LOOPS = [code for language, code in BLOCKS if language == "sh" and code.startswith("for ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake in it, as the snippets expect."""
    folder = tmp_path_factory.mktemp("reader")
    make_lake(folder / "lake")
    return folder


def run(command: list[str], place: Path) -> str:
    """What the command prints; it must succeed."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": tools}
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=[pytest.mark.jvm] if "open_views" in code else []) for code in SNIPPETS]
)
def test_a_snippet_of_the_readme_runs_on_a_lake(code: str, place: Path) -> None:
    assert run([sys.executable, "-c", code], place).strip()


@pytest.mark.parametrize("code", LOOPS)
def test_the_tools_of_the_readme_accept_the_files(code: str, place: Path) -> None:
    run(["bash", "-euc", code], place)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 4
    assert LOOPS


def test_the_settings_of_the_readme_have_their_defaults() -> None:
    settings = asdict(Settings())
    said = {f"{section}.{key}": value or '""' for section, key, value in SETTING.findall(README)}
    assert len(said) >= 11
    assert said == {name: toml_value(settings[name.split(".")[0]][name.split(".")[1]]) for name in said}


def test_the_exit_codes_of_the_readme_are_those_there_are() -> None:
    assert [int(code) for code in EXIT_CODE.findall(README)] == list(EXIT_CODES)


def test_every_test_that_proves_an_invariant_exists() -> None:
    named = TEST.findall(ARCHITECTURE)
    assert len(named) >= 20
    assert [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text("utf-8")] == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CHANGELOG.md"])
def test_every_file_linked_to_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [target for target in LINK.findall(text) if not (ROOT / target).exists()] == []
