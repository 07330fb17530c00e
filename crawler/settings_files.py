"""From files, environment and command line to one `Settings`: the only way in, with every fault said at once.

conf/default.toml, then what the lake remembers, then the given files, then ORBWEAVER_SECTION__KEY, then
`section.key=value`; what comes later wins. A lake remembers who runs the crawl, what may be crawled, the rules of its
URLs, and whatever else was given when it was made. It knows URLs by keys, so what these depend on stays as it was.
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

PREFIX = "ORBWEAVER_"
ENVIRONMENT = re.compile(rf"{PREFIX}([A-Z0-9_]+?)__([A-Z0-9_]+)")
SPECIAL = tuple(f"{PREFIX}{name}" for name in ("BASE_PYTHON", "DEBUG", "FAULT", "FAULT_ONCE", "JARS", "LAKE"))
"""Variables that are no settings."""
OF_A_SERVICE = re.compile(rf"{PREFIX}(SERVICE_(HOST|PORT)|PORT)(_\w+)?")
"""What Kubernetes tells every container of a service that has our name."""
DEFAULT = "default"
LAKE = "lake"
ALWAYS = re.compile(r"crawl\..*|scope\..*|url\..*")
"""Settings that a lake remembers though nobody gave them, unless they are empty."""
FIXED = re.compile(r"lake\.buckets|url\..*")
"""Settings that the keys of a lake depend on."""
PATHS = ("fetch.host_map", "filters.block_lists")
"""Settings that name files of this machine; of a lake they matter only to a command that reads these files."""
Remembered = Mapping[str, object]


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

    @property
    def is_default(self) -> bool:
        return self.source == f"conf/{DEFAULT}.toml"

    @property
    def is_of_a_preset(self) -> bool:
        return self.source in {f"conf/{name}.toml" for name in presets()}

    def __str__(self) -> str:
        return f"{self.name} = {toml_value(self.value)} ({self.source})"


def load_settings(
    files: Sequence[str | Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    lake: Remembered | None = None,
    reads: Sequence[str] = PATHS,
) -> Settings:
    """The settings in force. A file is a path, or the bare name of a preset such as `strict`. SettingsError if bad.

    `lake`: what it remembers, by `section.key`; of the files that it names, those of `reads` must be there.
    """
    given = in_force(files, overrides, environ, lake)
    settings, faults = faults_by_type({name: one.value for name, one in given.items()})
    if settings is not None:
        faults = faults_by_rule(settings)
    spared = {name for name in PATHS if name not in reads and given[name].source == LAKE}
    faults = [fault for fault in faults if fault[0] not in spared]
    if settings is None or faults:
        raise SettingsError(f"{_blame(name, given)}: {allowed}{_way_out(name, given)}" for name, allowed in faults)
    return settings


def in_force(
    files: Sequence[str | Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    lake: Remembered | None = None,
) -> dict[str, Given]:
    """By `section.key`: the value that won, and who gave it. SettingsError for names that are no setting, and for what
    cannot change in a lake; a shipped preset, which is advice for many lakes, gives way there instead."""
    default, *others = (_from_file(_path_of(file)) for file in (DEFAULT, *files))
    remembered = [_given(name, value, LAKE) for name, value in (lake or {}).items() if name in types()]
    after = [one for layer in (*others, _from_environment(environ)) for one in layer]
    after += [_from_override(text) for text in overrides]
    unknown = [f"{one}: there is no such setting{_nearest(one.name)}" for one in after if one.name not in types()]
    if unknown:
        raise SettingsError(unknown)
    after = [one for one in after if not (_is_against(one, lake) and one.is_of_a_preset)]
    refused = [_refusal(one, lake) for one in after if lake and _is_against(one, lake)]
    if refused:
        raise SettingsError(refused)
    return {one.name: one for one in (*default, *remembered, *after)}


def differences(given: Mapping[str, Given], lake: Remembered) -> list[str]:
    """What a command was given that the lake remembers otherwise, and what it remembers in vain; a line each."""
    otherwise = [
        f"{one}: the lake's is {toml_value(lake[name])}; to make it the lake's, `orbweaver config set`"
        for name, one in given.items()
        if name in lake and _lasting(one) != lake[name]
    ]
    unknown = [name for name in lake if name not in given]
    return otherwise + [
        f"{name} = {toml_value(lake[name])} (lake): this version has no such setting" for name in unknown
    ]


def to_remember(
    files: Sequence[str | Path] = (), overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> dict[str, object]:
    """What a lake remembers that is made with these: all that was given, and what it always does; by `section.key`."""
    given = in_force(files, overrides, environ).values()
    wanted = (one for one in given if not one.is_default or (ALWAYS.fullmatch(one.name) and one.value not in ("", [])))
    return {one.name: _lasting(one) for one in wanted if one.name != "lake.buckets"}


def changed(lake: Remembered, overrides: Sequence[str]) -> dict[str, object]:
    """What a lake remembers after these `section.key=value`. SettingsError for what may not be, or may not change."""
    given = in_force((), overrides, {}, lake)
    load_settings((), overrides, {}, lake, reads=())
    named = {_from_override(text).name for text in overrides}
    return {**lake, **{name: _lasting(given[name]) for name in named}}


def _lasting(one: Given) -> object:
    """The value as it is remembered: a path from the root, since a later command may begin elsewhere."""
    if one.name not in PATHS or not one.value:
        return one.value
    if isinstance(one.value, list):
        return [str(Path(str(path)).absolute()) for path in one.value]
    return str(Path(str(one.value)).absolute())


def _is_against(one: Given, lake: Remembered | None) -> bool:
    """True for a value that differs from one that cannot change."""
    return lake is not None and FIXED.fullmatch(one.name) is not None and lake.get(one.name, one.value) != one.value


def _refusal(one: Given, lake: Remembered) -> str:
    return (
        f"{one}: this lake was made with {toml_value(lake[one.name])}, which its keys depend on. Leave it out, or make "
        "another lake"
    )


def _way_out(name: str, given: Mapping[str, Given]) -> str:
    if name not in given or given[name].source != LAKE:
        return ""
    return f"; the lake remembers it: give another with --set {name}=..., or for good with `orbweaver config set`"


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
    ours = sorted(name for name in environ if name.startswith(PREFIX))
    found = {name: ENVIRONMENT.fullmatch(name) for name in ours if name not in SPECIAL}
    strange = [name for name, match in found.items() if match is None and not OF_A_SERVICE.fullmatch(name)]
    if strange:
        raise SettingsError(f"{name}: there is no such variable{_nearest_variable(name)}" for name in strange)
    given = [(name, match) for name, match in found.items() if match]
    return [_from_text(match[1].lower(), match[2].lower(), environ[name], name) for name, match in given]


def _nearest_variable(name: str) -> str:
    """The variable that was meant: one of the same letters, that of the same key, else of the nearest spelling."""
    of_settings = {setting: f"{PREFIX}{setting.replace('.', '__').upper()}" for setting in types()}
    known = {_letters(one): one for one in (*SPECIAL, *of_settings.values())}
    by_key = {_letters(f"{PREFIX}{setting.partition('.')[2]}"): one for setting, one in of_settings.items()}
    letters = _letters(name)
    near = get_close_matches(letters, known, n=1, cutoff=0.6)
    meant = known.get(letters) or by_key.get(letters) or (known[near[0]] if near else None)
    return f"; did you mean {meant}?" if meant else f"; settings are {PREFIX}SECTION__KEY"


def _letters(variable: str) -> str:
    return variable.removeprefix(PREFIX).replace("_", "").upper()


def _given(name: str, value: object, source: str) -> Given:
    section, _, key = name.partition(".")
    return Given(section, key, value, source)


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
