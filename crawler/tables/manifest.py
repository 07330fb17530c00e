"""`lake.json`: what was decided when a lake was made, and what it remembers since. Needs no Spark and no lock to read.

Who creates the file makes the lake, so of two that try one does; the tables come with the first round. The file holds
the number of key ranges, the settings that later commands start from, and the versions of everything that stored keys
and tables depend on. A newer Orbweaver adds the columns that its tables have more (`crawler.tables.lake`), and notes
their checksum here, so that this is looked at once; keys cannot be made anew, so a lake of other keys is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import crawler
from crawler.storage import Store

FORMAT = 2
MANIFEST = "lake.json"
KEYS = 1
"""Version of how keys and checksums are made of canonical URLs, hosts, payloads and texts."""
URL_POLICY = 1
"""Version of the rules of `crawler.page.url`, as far as settings do not switch them: raised when URLs get another
canonical form, since their keys are others then. A test holds examples against it."""
BEGUN = ("inbox", "lock")
"""What may lie in a folder that becomes a lake: a lake of before the manifest came first, or the trace of a driver."""


class TableError(Exception):
    """A table, or the lake, is not in the state that the work can build on."""


class TableMissing(TableError):
    """A table is not there."""


@dataclass(frozen=True)
class Manifest:
    """The content of `lake.json`. `settings`, by `section.key`, is None where a lake remembers none yet; `schemas` is
    the checksum of the tables' columns, empty before they were made, and in lakes of before it was noted."""

    buckets: int
    settings: Mapping[str, Any] | None = None
    schemas: str = ""
    made_by: str = ""
    keys: int = 1
    url_policy: int = 1

    def remembered(self) -> dict[str, Any]:
        """The settings that hold for later commands, by `section.key`."""
        return {**(self.settings or {}), "lake.buckets": self.buckets}


def read_manifest(store: Store) -> Manifest:
    """What was decided when the lake was made. Raises TableError for a lake of another format or none."""
    found = find_manifest(store)
    if found is None:
        way = f"`orbweaver crawl SEEDS --lake {store.uri}` makes one"
        raise TableError(f"there is no lake at {store.uri} (it has no {MANIFEST}): {way}")
    return found


def find_manifest(store: Store) -> Manifest | None:
    """The same; None where there is no lake."""
    try:
        stored = store.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        values = json.loads(stored)
        if values.get("format") != FORMAT:
            raise TableError(f"{store.uri} has format {values.get('format')}; this version reads format {FORMAT}.")
        names = Manifest.__dataclass_fields__
        return Manifest(**{name: value for name, value in values.items() if name in names})
    except (ValueError, AttributeError, TypeError) as error:
        raise TableError(
            f"{store.uri}/{MANIFEST} is damaged ({error}): bring it back from a copy, or write it anew as "
            f'{{"format": {FORMAT}, "buckets": N}}, where N is the number of buckets of the table url_checksums'
        ) from error


def make_lake(store: Store, buckets: int, settings: Mapping[str, Any] | None = None) -> bool:
    """Make a lake where there is nothing; False where there is one already, or where somebody else made it just now.

    Raises TableError for a folder that holds anything else.
    """
    if find_manifest(store) is not None:
        return False
    try:
        others = [name for name in store.top() if name not in BEGUN]
    except NotADirectoryError as error:
        raise TableError(f"{store.uri} is no folder: a lake is made in an empty or a new one") from error
    if others and MANIFEST not in others:  # it may have come in this moment
        more = ", ..." if len(others) > 3 else ""
        raise TableError(
            f"there is no lake at {store.uri}, and it holds {', '.join(sorted(others)[:3])}{more}: a lake is made in "
            "an empty or a new folder. Name another one"
        )
    made = Manifest(buckets, settings, made_by=crawler.__version__, keys=KEYS, url_policy=URL_POLICY)
    content = _encode(made)
    # A store may answer that the file is there to the very writer whose first answer was lost.
    return store.put_new(MANIFEST, content) or store.read(MANIFEST) == content


def change_manifest(store: Store, **values: Any) -> None:
    """Note other values. Only the holder of the lock does this."""
    store.put(MANIFEST, _encode(replace(read_manifest(store), **values)))


def require_unbegun(store: Store) -> None:
    """Raise TableMissing where the table of rounds, which is missing, must have been: others were written, or all were
    made once."""
    manifest = find_manifest(store)
    was_made = manifest is not None and bool(manifest.schemas)
    if was_made or any(not path.endswith(f"/_delta_log/{0:020d}.json") for path in store.list("tables")):
        raise TableMissing(
            f"table rounds of {store.uri} is not there, and with it is gone what the crawl has committed: bring the "
            "folder tables/rounds back from a copy of the lake"
        )


def require_same_keys(store: Store, manifest: Manifest) -> None:
    """Raise TableError for a lake in which a URL has another key than this version would give it."""
    if (manifest.keys, manifest.url_policy) != (KEYS, URL_POLICY):
        maker = f"Orbweaver {manifest.made_by}" if manifest.made_by else "the Orbweaver that made it"
        listing = "`orbweaver sql 'SELECT DISTINCT url FROM captures'`"
        raise TableError(
            f"{store.uri} was made with keys {manifest.keys} and URL policy {manifest.url_policy}, this version has "
            f"{KEYS} and {URL_POLICY}: it would take known URLs for new ones. Go on with {maker}, or begin another "
            f"lake with the URLs of this one, which {listing} lists"
        )


def _encode(manifest: Manifest) -> bytes:
    values = {name: value for name, value in asdict(manifest).items() if value is not None}
    return (json.dumps({"format": FORMAT, **values}, indent=1) + "\n").encode()


def file_gone(store: Store, path: str) -> TableError:
    """What to say of a data file that the log of its table names and that is not there."""
    return TableError(
        f"table {path.split('/')[1]} of {store.uri}: its file {path} is not there. VACUUM or somebody's hand removed "
        "it; bring it back from a copy of the lake"
    )
