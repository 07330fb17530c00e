"""The settings in force as TOML, each that somebody gave with its source; those of a lake, and of its rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crawler.settings import Settings
from crawler.settings_files import changed, in_force
from crawler.settings_text import settings_toml, toml_value
from crawler.storage import Store
from crawler.tables.lock import hold_lock
from crawler.tables.manifest import change_manifest, read_manifest
from crawler.tables.reader import Reader
from jobs.exits import NOT_FOUND, Stop


def shown_toml(
    settings: Settings, files: Sequence[str], overrides: Sequence[str], lake: Mapping[str, object] | None = None
) -> str:
    """TOML that reads back as the same settings; comments say who gave what is not the default."""
    given = in_force(files, overrides, lake=lake)
    lines, section = [], ""
    for line in settings_toml(settings).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        one = given.get(f"{section}.{line.partition(' = ')[0]}")
        lines.append(line if one is None or one.is_default else f"{line}  # {one.source}")
    return "\n".join(lines)


def round_settings(store: Store, number: int) -> dict[str, Any]:
    """By section and key, the settings with which the newest state of a round was reached. Raises Stop."""
    rows = [row for row in Reader.open(store).rounds if row["round"] == number]
    if not rows:
        raise Stop(NOT_FOUND, f"{store.uri}: there is no round {number}; `orbweaver status` shows what is")
    if not rows[-1]["settings"]:
        raise Stop(NOT_FOUND, f"{store.uri}: round {number} was run by an Orbweaver that did not keep its settings")
    kept: dict[str, Any] = json.loads(rows[-1]["settings"])
    return kept


def remember(store: Store, overrides: Sequence[str]) -> dict[str, str]:
    """Change what the lake remembers to these `section.key=value`; the new values as TOML come back.

    Raises SettingsError for what cannot be, or cannot change, and LockHeld while somebody works on the lake.
    """
    changed(read_manifest(store).remembered(), overrides)
    with hold_lock(store) as lock:
        before = read_manifest(store).remembered()
        after = changed(before, overrides)
        lock.check()
        change_manifest(store, settings={name: value for name, value in after.items() if name != "lake.buckets"})
    named = {text.partition("=")[0].strip() for text in overrides}
    return {name: toml_value(after[name]) for name in after if name in named}
