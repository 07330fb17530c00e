"""The settings in force as TOML, each that somebody gave with its source."""

from __future__ import annotations

from collections.abc import Sequence

from crawler.settings import Settings
from crawler.settings_files import in_force
from crawler.settings_text import settings_toml

DEFAULT_SOURCE = "conf/default.toml"


def shown_toml(settings: Settings, files: Sequence[str], overrides: Sequence[str]) -> str:
    """TOML that reads back as the same settings; comments say who gave what is not the default."""
    sources = {name: given.source for name, given in in_force(files, overrides).items()}
    lines, section = [], ""
    for line in settings_toml(settings).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        source = sources.get(f"{section}.{line.partition(' = ')[0]}", DEFAULT_SOURCE)
        lines.append(line if source == DEFAULT_SOURCE else f"{line}  # {source}")
    return "\n".join(lines)
