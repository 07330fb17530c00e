"""From files, environment and command line to one `Settings`: the only way in, with every fault said at once.

conf/default.toml, then the given files, then ORBWEAVER_SECTION__KEY, then `section.key=value`; what comes later wins.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from crawler.settings import Settings
from crawler.settings_rules import faults_by_rule, faults_by_type
from crawler.settings_text import settings_hash, settings_toml, toml_value

__all__ = ["SettingsError", "conf_folder", "in_force", "load_settings", "presets", "settings_hash", "settings_toml"]

ENVIRONMENT = re.compile(r"ORBWEAVER_([A-Z0-9_]+?)__([A-Z0-9_]+)")
DEFAULT = "default"


class SettingsError(Exception):
    """Settings that cannot be used; `faults` says each thing that is wrong, where it came from and what is allowed."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


class Given(NamedTuple):
    """A value somebody gave, by section and key, and where."""

    section: str
    key: str
    value: object
    source: str

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    def __str__(self) -> str:
        return f"{self.name} = {toml_value(self.value)} ({self.source})"


def load_settings(
    files: Sequence[str | Path] = (), overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings in force. A file is a path, or the bare name of a preset such as `strict`. SettingsError if bad."""
    given = in_force(files, overrides, environ)
    settings, faults = faults_by_type({name: one.value for name, one in given.items()})
    if settings is not None:
        faults = faults_by_rule(settings)
    if settings is None or faults:
        raise SettingsError(f"{_blame(name, given)}: {allowed}" for name, allowed in faults)
    return settings


def in_force(
    files: Sequence[str | Path] = (), overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> dict[str, Given]:
    """By `section.key`: the value that won, and who gave it. SettingsError for names that are no setting."""
    layers = [*(_from_file(_path_of(file)) for file in (DEFAULT, *files)), _from_environment(environ)]
    given = [one for layer in layers for one in layer] + [_from_override(text) for text in overrides]
    unknown = [f"{one}: there is no such setting{_nearest(one.name)}" for one in given if one.name not in types()]
    if unknown:
        raise SettingsError(unknown)
    return {one.name: one for one in given}


def conf_folder() -> Path:
    """The folder of the shipped settings: `crawler/conf` in a wheel, `conf` beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    places = (package / "conf", package.parent / "conf")
    return next((place for place in places if (place / f"{DEFAULT}.toml").is_file()), places[-1])


@cache
def types() -> dict[str, str]:
    """The type of every setting as written in `crawler.settings`, by `section.key`, in the order of the code."""
    sections = fields(Settings)
    return {
        f"{section.name}.{one.name}": str(one.type)
        for section in sections
        for one in fields(section.default_factory)  # type: ignore[arg-type]  # each section's factory is its class
    }


def presets() -> list[str]:
    """Names of the shipped presets."""
    return sorted(path.stem for path in conf_folder().glob("*.toml") if path.stem != DEFAULT)


def _path_of(file: str | Path) -> Path:
    text = str(file)
    if isinstance(file, Path) or Path(text).suffix or os.sep in text:
        return Path(file)
    path = conf_folder() / f"{text}.toml"
    if not path.is_file():
        known = ", ".join(presets())
        raise SettingsError([f"there is no preset {text!r}; there are {known}, or give a path such as ./{text}.toml"])
    return path


def _from_file(path: Path) -> list[Given]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from error
    except ValueError as error:
        raise SettingsError([f"{path}: not TOML: {error}"]) from error
    source = f"conf/{path.name}" if path.parent == conf_folder() else str(path)
    return list(_from_tables(tables, source))


def _from_tables(tables: Mapping[str, object], source: str) -> Iterator[Given]:
    for section, table in tables.items():
        if not isinstance(table, dict):
            raise SettingsError(
                [f"{section} = {toml_value(table)} ({source}): must stand in a section{_nearest(section)}"]
            )
        for key, value in table.items():
            yield Given(section, key, value, source)


def _from_environment(environ: Mapping[str, str]) -> list[Given]:
    found = ((name, ENVIRONMENT.fullmatch(name)) for name in sorted(environ))
    return [_from_text(match[1].lower(), match[2].lower(), environ[name], name) for name, match in found if match]


def _from_override(text: str) -> Given:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise SettingsError([f"--set {text}: must be section.key=value, such as fetch.delay_s=2"])
    return _from_text(section, key, value.strip(), f"--set {text}")


def _from_text(section: str, key: str, text: str, source: str) -> Given:
    """A TOML value, or the bare text: always where a string is wanted, and where it is not TOML."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    value = parsed["value"] if parsed.keys() == {"value"} else text
    wants_text = "str" in types().get(f"{section}.{key}", "") and "tuple" not in types()[f"{section}.{key}"]
    return Given(section, key, text if wants_text and not isinstance(value, str) else value, source)


def _blame(name: str, given: Mapping[str, Given]) -> str:
    return str(given[name]) if name in given else name


def _nearest(name: str) -> str:
    """The setting that was meant, as far as one can tell: the same key elsewhere, else the nearest spelling."""
    key = name.rpartition(".")[2]
    same_key = [known for known in types() if known.rpartition(".")[2] == key]
    close = same_key or get_close_matches(name, types(), n=1, cutoff=0.6)
    return f"; did you mean {' or '.join(close[:3])}?" if close else "; `orbweaver config show` lists all"
