"""What the Makefile hands on when names of files and folders hold what a shell gives a meaning to."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.house.sources import ROOT

ODD = ["la ke", "it's", 'a "b"', "50% off", "a#b", "a?b", "a&b;c", "ü", "*", "end ", "-x", "a\\b", "`a`", "(a)"]
PRINTER = """#!/bin/sh
# JSON of the arguments, by the interpreter that runs the tests
exec {python} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@"
"""
BY_PIP = """#!/bin/sh
'''exec' "{folder}/.venv/bin/python" "$0" "$@"
' '''
import sys
print(sys.argv[1:])
"""


OURS = (
    "SEEDS",
    "LAKE",
    "ROUNDS",
    "ARGS",
    "PYTHON",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
)  # of the make that runs the tests
ENVIRON = {name: value for name, value in os.environ.items() if name not in OURS}


def crawl_words(folder: Path, **variables: str) -> list[str]:
    """The words with which `make crawl` starts Python, once all is set up."""
    printer = folder / "python"
    printer.write_text(PRINTER.format(python=os.path.realpath(ROOT / ".venv/bin/python")))
    printer.chmod(0o755)
    given = [f"{name}={value.replace('$', '$$')}" for name, value in variables.items()]
    made = subprocess.run(
        ["make", "-s", "-f", ROOT / "Makefile", "-o", "setup", "crawl", f"PY={printer}", "VENV=.", *given],
        cwd=folder, env=ENVIRON, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    words: list[str] = json.loads(made.stdout)
    return words


@pytest.mark.parametrize("name", [*ODD, "$x"])
def test_a_lake_may_have_any_name(tmp_path: Path, name: str) -> None:
    words = crawl_words(tmp_path, LAKE=name, ROUNDS="1")
    assert words == ["-m", "jobs.demo", "--rounds", "1", "--lake", name]


@pytest.mark.parametrize("name", [*ODD, "$x"])
def test_a_file_of_seeds_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("http://a.test/\n")
    words = crawl_words(tmp_path, SEEDS=name, ROUNDS="2")
    assert words == ["-m", "jobs.cli", "crawl", "--rounds", "2", "--lake", "lake", "--", name]


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ("http://a.test/ b.test", ["http://a.test/", "b.test"]),
        ("'my seeds.txt' @http://a.test/", ["my seeds.txt", "@http://a.test/"]),
        ("http://a.test/?b=1", ["http://a.test/?b=1"]),
    ],
)
def test_seeds_that_are_no_file_are_words_of_the_shell(tmp_path: Path, seeds: str, words: list[str]) -> None:
    given = crawl_words(tmp_path, SEEDS=seeds, ARGS="--set 'crawl.name=\"X\"'")
    assert given == [
        "-m",
        "jobs.cli",
        "crawl",
        "--rounds",
        "3",
        "--lake",
        "lake",
        "--set",
        'crawl.name="X"',
        "--",
        *words,
    ]


@pytest.mark.parametrize("name", ["plain", "a b", "a b'ü\"c", "a `b` $c", "a \\ b"])
def test_commands_start_in_a_checkout_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text('#!/bin/sh\necho by python: "$@"\n')
    (programs / "orbweaver").write_text(BY_PIP.format(folder=folder))
    (programs / "other").write_bytes(b"\x7fELF\n'''exec' \xff")
    for program in programs.iterdir():
        program.chmod(0o755)
    for source in ("requirements.lock", "pyproject.toml", ".venv/.locked"):
        (folder / source).touch()
    subprocess.run(
        ["make", "-s", "-f", ROOT / "Makefile", "PY=/bin/true", ".venv/.installed"], cwd=folder, env=ENVIRON, check=True
    )
    said = subprocess.run([programs / "orbweaver", "a b"], capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == (f"by python: {programs / 'orbweaver'} a b\n", "")
