"""Settings as text: TOML that reads back equal, and a checksum of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from crawler.settings import Settings


def settings_toml(settings: Settings) -> str:
    """All settings as TOML, a table a section, in the order of the code."""
    return tables_toml(asdict(settings))


def tables_toml(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Values by section and key as TOML, in their order."""
    texts = [
        "\n".join([f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())])
        for section, table in tables.items()
    ]
    return "\n\n".join(texts) + "\n"


def settings_json(settings: Settings) -> str:
    """All settings as JSON, by section and key, on one line."""
    return json.dumps(asdict(settings), separators=(",", ":"))


def settings_hash(settings: Settings) -> str:
    """Checksum of the settings: the first 16 hexadecimal digits of the SHA-256 of their TOML."""
    return hashlib.sha256(settings_toml(settings).encode()).hexdigest()[:16]


def toml_value(value: object) -> str:
    """A value as TOML writes it: a string, number, truth value, or a list of them."""
    if isinstance(value, str):
        return "".join(map(_readable, json.dumps(value, ensure_ascii=False)))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(str(key))} = {toml_value(one)}" for key, one in value.items()) + "}"
    return str(value)


def _readable(sign: str) -> str:
    """The character, or its escape in TOML where nothing would be seen of it."""
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
