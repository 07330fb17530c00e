"""Every setting, column, command and target is explained where a user looks for it, and nothing else is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from functools import cache

import pytest

from crawler import schemas
from crawler.settings import Settings
from crawler.settings_files import conf_folder, in_force, load_settings, presets, types
from crawler.settings_text import toml_value
from tests.house.sources import ROOT

DEFAULTS = (conf_folder() / "default.toml").read_text(encoding="utf-8")
FILES = (schemas.OUTCOMES, schemas.DISCOVERIES, schemas.HOST_STATES)
TARGET = re.compile(r"^([a-z-]+):.*## (.+)$", re.MULTILINE)


def test_the_settings_file_has_every_setting_with_its_default_and_no_other() -> None:
    in_code = {section: {k: toml_value(v) for k, v in table.items()} for section, table in asdict(Settings()).items()}
    in_file = {s: {k: toml_value(v) for k, v in table.items()} for s, table in tomllib.loads(DEFAULTS).items()}
    assert in_file == in_code
    assert [(s, list(table)) for s, table in in_file.items()] == [(s, list(table)) for s, table in in_code.items()]


def test_every_setting_has_a_sentence_above_it() -> None:
    lines = DEFAULTS.splitlines()
    above = {line.split(" = ")[0]: lines[at - 1] for at, line in enumerate(lines) if " = " in line and line[0] != "#"}
    assert [key for key, sentence in above.items() if not re.fullmatch(r"# [A-Z].{8,}\.", sentence)] == []


@pytest.mark.parametrize("suffix", ["_s", "_days", "_weeks", "_bytes", "_mb"])
def test_a_unit_in_a_name_is_said_in_the_sentence(suffix: str) -> None:
    words = {
        "_s": "second|long|duration|times",
        "_days": "Days",
        "_weeks": "Weeks",
        "_bytes": "Bytes",
        "_mb": "Megabytes",
    }
    found = re.findall(rf"^# (.+)\n(\w+{suffix}) = ", DEFAULTS, re.MULTILINE)
    assert found
    assert [key for sentence, key in found if not re.search(words[suffix], sentence, re.IGNORECASE)] == []


@pytest.mark.parametrize("preset", presets())
def test_a_preset_loads_and_changes_something(preset: str) -> None:
    assert load_settings([preset], environ={}) != Settings()
    own = tomllib.loads((conf_folder() / f"{preset}.toml").read_text(encoding="utf-8"))
    names = [f"{section}.{key}" for section, table in own.items() for key in table]
    given = in_force([preset], environ={})
    assert [name for name in names if given[name].source != f"conf/{preset}.toml" or name not in types()] == []


@pytest.mark.parametrize("table", [*schemas.TABLES, *FILES], ids=lambda table: table.name)
def test_every_column_has_a_sentence_and_a_type_both_sides_know(table: schemas.Table) -> None:
    assert table.sentence.endswith(".")
    assert [c.name for c in table.columns if not re.fullmatch(r"[^\s].{3,}\.", c.sentence)] == []
    assert schemas.arrow_schema(table.columns).names == table.names
    assert len(set(table.names)) == len(table.names)
    assert {*table.partitioned_by, *table.sorted_by} <= set(table.names)


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_target_of_the_makefile_is_in_its_help() -> None:
    phony = re.findall(r"^\.PHONY: (.+)$", makefile(), re.MULTILINE)
    assert sorted(phony) == sorted(name for name, _ in TARGET.findall(makefile()))
