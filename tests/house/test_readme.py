"""What README.md tells a stranger to type exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from tests.house.sources import ROOT
from tests.house.test_documented import TARGET, makefile

CODE = re.compile(r"```.*?\n(.*?)```|`([^`\n]+)`", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@cache
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def code_lines() -> Iterator[str]:
    """Lines in code blocks and inline code, continued lines joined, comments dropped."""
    for block, inline in CODE.findall(readme()):
        for line in (block or inline).replace("\\\n", " ").splitlines():
            yield line.split(" # ")[0].strip().removeprefix("$ ")


def commands(program: str) -> list[list[str]]:
    """The words after the program's name, up to the end of the command."""
    pattern = re.compile(rf"(?:^|[\s/;&|(]){program} ([^;&|>)]+)")
    return [match[1].split() for line in code_lines() for match in pattern.finditer(line)]


def test_every_make_target_exists() -> None:
    named = {word for words in commands("make") for word in words if re.fullmatch(r"[a-z][a-z-]*", word)}
    assert named
    assert named - {name for name, _ in TARGET.findall(makefile())} == set()


def test_every_orbweaver_command_and_option_exists() -> None:
    from jobs.cli import app

    root = typer.main.get_command(app)
    used = commands("orbweaver")
    assert used
    assert [fault for words in used if (fault := _fault(root, words))] == []


def test_every_file_linked_to_exists() -> None:
    assert [target for target in LINK.findall(readme()) if not (ROOT / target).exists()] == []


def _fault(command: Any, words: list[str]) -> str | None:
    """What is wrong with a command line, by the names of its commands and options."""
    options: set[str] = set()
    rest = list(words)
    while True:
        options |= {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        inner = getattr(command, "commands", None)
        if inner is None or not rest or rest[0].startswith("-"):
            break
        name = rest.pop(0)
        if name not in inner:
            return f"orbweaver {' '.join(words)}: no command {name}"
        command = inner[name]
    given = {word.split("=")[0] for word in rest if word.startswith("--")}
    unknown = given - options - {"--help"}
    return f"orbweaver {' '.join(words)}: no option {', '.join(sorted(unknown))}" if unknown else None
