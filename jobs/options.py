"""Options that all commands share, and the way from their texts to values."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.exits import BAD_USE, Stop
from jobs.output import say

if TYPE_CHECKING:
    from crawler.settings import Settings
    from crawler.storage import Store

DEFAULT_LAKE = "./lake"
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

LakeUri = Annotated[
    str,
    typer.Option("--lake", metavar="URI", envvar="ORBWEAVER_LAKE", help="The lake: a folder, or s3://bucket/folder."),
]
ConfigFiles = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="FILE", help="Settings file or preset: laptop, cluster, strict. Repeatable."),
]
SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as fetch.delay_s=2 (TOML value). Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Scheduling time instead of now: ISO 8601 (UTC where no zone is given), or from now on: +90m, +15d, +2w. "
        "Politeness runs on the real clock.",
    ),
]
UrlArgument = Annotated[str, typer.Argument(metavar="URL", show_default=False)]
RoundNumber = Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="Round; the newest by default.")]


def settings_of(
    config: Sequence[str] | None, sets: Sequence[str] | None, lake: str | None = None, reads: Sequence[str] = ()
) -> Settings:
    """The settings in force, with what the lake remembers where there is one; what was given otherwise is told on
    stderr, a line each. Raises SettingsError.

    `reads`: settings that name files which the command reads; files that only the lake names may be missing else.
    """
    from crawler.settings_files import differences, in_force, load_settings

    held = remembered(lake) if lake else None
    settings = load_settings(config or (), sets or (), lake=held, reads=reads)
    for line in differences(in_force(config or (), sets or (), lake=held), held or {}):
        say(f"orbweaver: {line}", sys.stderr)
    return settings


def remembered(lake: str) -> dict[str, object] | None:
    """The settings that a lake remembers, by `section.key`; None where there is no lake."""
    from crawler.tables.manifest import find_manifest

    manifest = find_manifest(store_of(lake))
    return manifest.remembered() if manifest else None


def store_of(lake: str) -> Store:
    """The lake's store; a URI of an unknown kind is bad usage."""
    from crawler.storage import Store

    try:
        return Store.open(lake)
    except ValueError as error:
        raise Stop(BAD_USE, str(error)) from error


def time_of(text: str | None, now: float) -> float | None:
    """Epoch seconds of `--at`; None stays None.

    >>> time_of("+2h", 1000.0), time_of("1970-01-02", 0.0), time_of("1970-01-01T01:00:00+01:00", 5.0)
    (8200.0, 86400.0, 0.0)
    """
    if text is None:
        return None
    later = seconds_of(text.removeprefix("+")) if text.startswith("+") else None
    if later is not None:
        return now + later
    try:
        stated = datetime.fromisoformat(text)
    except ValueError as error:
        allowed = "ISO 8601 such as 2026-11-21T06:00 or 2026-11-21T06:00+01:00, or an offset such as +15d"
        raise Stop(BAD_USE, f"--at {text}: should be {allowed} (units: {', '.join(UNITS)})") from error
    return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()


def seconds_of(text: str) -> float | None:
    """Seconds of a number with its unit; None for anything else.

    >>> seconds_of("7d"), seconds_of("90m"), seconds_of("7")
    (604800.0, 5400.0, None)
    """
    given = DURATION.fullmatch(text)
    return float(given[1]) * UNITS[given[2]] if given else None


def examples(*lines: str) -> str:
    """The Examples part of a command's help. Each line is a command, `#` and what it does."""
    pairs = [line.partition("#")[::2] for line in lines]
    width = max(len(command.rstrip()) for command, _ in pairs)
    shown = [f"  {command.rstrip():<{width}}  {said.strip()}".rstrip() for command, said in pairs]
    return "\n".join(["\b", "Examples:", *shown])
