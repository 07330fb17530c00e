"""Take back what others wrote into the tables of a lake: `crawler.tables.provenance` says how it is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawler import schemas
from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from crawler.tables.lock import Lock, hold_lock
from crawler.tables.manifest import read_manifest
from crawler.tables.provenance import Stranger, strangers_in_ledger, strangers_since, take_back


class Restored(NamedTuple):
    """A table, the version that it is as of again, and how many of the later ones were not the crawl's."""

    table: str
    as_of: int
    taken_back: int


def restore(store: Store) -> list[Restored]:
    """Restore every table that somebody else wrote to, the ledger first, since it says what is the crawl's.

    Raises LockHeld, and TableError where the crawl's own rows cannot be told from the others'.
    """
    read_manifest(store)
    with hold_lock(store) as lock:
        done = _restore(store, lock, schemas.ROUNDS, strangers_in_ledger(store))
        rows = Ledger(store).newest(1)
        is_open = bool(rows) and rows[-1].state is not State.COMMITTED
        number, since = (rows[-1].round if is_open else None), (rows[-1].versions if rows else {})
        for table in schemas.TABLES:
            if table is not schemas.ROUNDS:
                done += _restore(store, lock, table, strangers_since(store, table, since.get(table.name, -1), number))
        return done


def _restore(store: Store, lock: Lock, table: schemas.Table, found: Sequence[Stranger]) -> list[Restored]:
    if not found:
        return []
    lock.check()
    return [Restored(table.name, take_back(store, table, found), len(found))]


def as_text(done: Iterable[Restored]) -> str:
    """A line a table."""
    lines = [f"{one.table}: as of version {one.as_of} again, {one.taken_back} taken back" for one in done]
    return "\n".join(lines) or "nothing to take back: the tables hold what the crawl wrote"
