"""What was decided when a lake was made, and the error of a lake that cannot be built on. Needs no Spark."""

from __future__ import annotations

import json

from crawler.storage import Store

FORMAT = 2
MANIFEST = "lake.json"


class TableError(Exception):
    """A table, or the lake, is not in the state that the work can build on."""


def read_manifest(store: Store) -> dict[str, int]:
    """What was decided when the lake was made. Raises TableError for a lake of another format or none."""
    try:
        manifest: dict[str, int] = json.loads(store.read(MANIFEST))
    except FileNotFoundError as error:
        hint = "Start one with: orbweaver crawl URL --lake URI"
        raise TableError(f"{store.uri} is no lake: it has no {MANIFEST}. {hint}") from error
    if manifest.get("format") != FORMAT:
        raise TableError(f"{store.uri} has format {manifest.get('format')}; this version reads format {FORMAT}.")
    return manifest
