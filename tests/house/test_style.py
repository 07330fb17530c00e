"""What reading this code may cost: few parameters, names that say something, silencers with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.sources import ROOT, functions, modules, python_files, texts

MAX_PARAMETERS = 5

SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "lib"}

SILENCER = re.compile(r"#\s*(?:noqa|type: ignore|nosec|pragma: no cover|ruff: noqa|mypy: ignore-errors)\b(?P<rest>.*)")
REASON = re.compile(r"[-:,#\[\]\sA-Z0-9a-z]*?(?:\s[-#]+\s)(?!noqa|type: ignore)\S.{8,}")

CODE = python_files("crawler", "jobs")


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODE, ids=short)
def test_functions_take_few_parameters(path: Path) -> None:
    is_command = "commands" in path.parts  # of a command each option is a parameter
    assert [f for f in functions(path) if f.parameters > MAX_PARAMETERS and not is_command] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name for name in modules() if set(re.split(r"[._]", name)) & SAY_NOTHING] == []


def test_a_silenced_linter_says_why() -> None:
    silenced = [
        f"{name}: {match[0]}"
        for name, text in texts()
        if name.endswith(".py") and name != "tests/house/test_style.py"
        for match in SILENCER.finditer(text)
        if not REASON.fullmatch(match["rest"])
    ]
    assert silenced == []


@pytest.mark.parametrize(
    ("comment", "has_reason"),
    [
        ("# noqa: BLE001", False),
        ("# noqa: BLE001 - whatever a store raises is the finding", True),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore[arg-type]  # each section's factory is its class", True),
        ("# type: ignore[arg-type]  # noqa: E501", False),
        ("# noqa", False),
    ],
)
def test_the_rule_knows_a_reason_from_a_code(comment: str, has_reason: bool) -> None:
    silencer = SILENCER.search(comment)
    assert silencer
    assert bool(REASON.fullmatch(silencer["rest"])) is has_reason


def test_no_package_registry_is_named() -> None:
    registries = [("pypi", "org"), ("pythonhosted", "org"), ("maven", "org"), ("maven.apache", "org")]
    registries += [
        ("npmjs", "org"),
        ("crates", "io"),
        ("golang", "org"),
        ("deb.debian", "org"),
        ("mvnrepository", "com"),
    ]
    hosts = [".".join(pair) for pair in registries]
    assert [f"{name}: {host}" for name, text in texts() for host in hosts if host in text] == []
