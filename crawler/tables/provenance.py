"""Who wrote a table: only the crawl itself may have, since the last row of the ledger.

A round reads and pins newest versions. Whatever somebody else wrote into a table meanwhile, by Spark SQL, a notebook
or another tool, would become part of the crawl with the next commit, and nobody would know. So every entry of a table's
log that is newer than the version the ledger names is looked at: ours carry an application id (Delta's `txn` action),
those of a round the number of the one that is open. Anything else is a stranger's, and the table is refused by name
until `orbweaver restore` has taken it back. That costs a listing of the log, and reading the entries since the last
commit.

Entries that change nothing (VACUUM notes itself in the log) may be anybody's. A round's entry without its round being
open means that the ledger is older than the tables, as after half of a backup was brought back; nothing may build on
that, nor can it be taken back, because the log would call the round's writes done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deltalake.exceptions import DeltaError

from crawler import schemas
from crawler.schemas import Table
from crawler.storage import Store
from crawler.tables.direct import Write, add_columns, open_table
from crawler.tables.manifest import TableError, TableMissing

OURS = "orbweaver/"
CARE = tuple(f"{OURS}{work}/" for work in ("maintain", "repair", "columns", "restore"))
ANY_ROUND = 0
OF_LEDGER = ("rounds", "maintain/rounds", "repair/rounds")
Versions = Mapping[str, int]
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Stranger:
    """An entry of a table's log that the crawl did not write, as far as it knows."""

    table: str
    version: int
    said: str
    is_a_rounds: bool = False

    def __str__(self) -> str:
        return f"table {self.table}: version {self.version} {self.said}"


def newest_version(store: Store, table: Table) -> int:
    """The newest version, read from the names in the log; -1 before the table exists."""
    names = (path.rsplit("/", 1)[-1] for path in store.list(f"tables/{table.name}/_delta_log"))
    stems = (name.split(".")[0] for name in names if name.endswith(".json") and name[0].isdigit())
    return max((int(stem) for stem in stems if stem.isdigit()), default=-1)


def settled_versions(store: Store, since: Versions, number: int | None) -> dict[str, int]:
    """The newest version of every table but the ledger. Raises TableError where it, or the ledger, holds anything that
    the crawl did not write since these versions; `number`: the open round."""
    newest, found = {}, strangers_in_ledger(store)
    for table in schemas.TABLES:
        if table is not schemas.ROUNDS:
            newest[table.name] = newest_version(store, table)
            if newest[table.name] < since.get(table.name, 0):
                raise gone(store, table.name)
            found += strangers_since(store, table, since.get(table.name, -1), number, newest[table.name])
    refuse_strangers(store, found)
    return newest


def gone(store: Store, name: str) -> TableMissing:
    """What to say of a table, or of its newest versions, that the ledger names and that are not there."""
    return TableMissing(
        f"table {name} of {store.uri} is not there, or not as new as the newest row of `rounds`: somebody removed "
        f"files of tables/{name}. Bring that folder back from a copy of the lake; nothing else has its rows"
    )


def refuse_strangers(store: Store, found: Sequence[Stranger]) -> None:
    """Raise TableError that names each of them and says what can be done."""
    if not found:
        return
    lines = [str(one) for one in found]
    if any(one.is_a_rounds for one in found):
        advice = "`rounds` is older than the other tables: bring them all back from one copy of the lake"
    else:
        advice = (
            "The next commit would make that part of the crawl. Take it back with "
            f"`orbweaver restore --lake {store.uri}`: the tables are then as the crawl itself left them"
        )
    raise TableError("\n".join([f"{store.uri} holds what the crawl did not write.", *lines, advice]))


def strangers_since(
    store: Store, table: Table, since: int, number: int | None, newest: int | None = None
) -> list[Stranger]:
    """The entries of a table after a version, up to the newest one, that are not ours. `number`: the round that may
    have written; None for no round, ANY_ROUND for all."""
    found: list[Stranger] = []
    version = newest_version(store, table) if newest is None else newest
    while version > since:
        stranger, before = _judge(store, table, version, number)
        found += [stranger] if stranger else []
        version = before
    return found[::-1]


def strangers_in_ledger(store: Store) -> list[Stranger]:
    """The same of the ledger, whose version no row names: its entries since the last of ours."""
    found: list[Stranger] = []
    version = newest_version(store, schemas.ROUNDS)
    while version >= 0:
        stranger, before = _judge(store, schemas.ROUNDS, version, None)
        if stranger is None and _signatures(read_entry(store, schemas.ROUNDS, version) or ()):
            break
        found += [stranger] if stranger else []
        version = before
    return found[::-1]


def _judge(store: Store, table: Table, version: int, number: int | None) -> tuple[Stranger | None, int]:
    """Whose an entry is, and the version to look at before it: one that took others back leads past them."""
    actions = read_entry(store, table, version)
    if actions is None:
        return Stranger(table.name, version, "has no entry in the log any more"), version - 1
    as_of = [of for app, of in _signatures(actions) if app == f"{OURS}restore/{table.name}"]
    return _stranger(table, version, actions, number), min([version - 1, *as_of])


def _stranger(table: Table, version: int, actions: Sequence[Action], number: int | None) -> Stranger | None:
    kinds = {kind for action in actions for kind in action}
    if kinds <= {"commitInfo"} or (version == 0 and "add" not in kinds):
        return None  # VACUUM's note, or the making of the table
    signed = _signatures(actions)
    if any(app.startswith(CARE) or (app in OF_LEDGER and table is schemas.ROUNDS) for app, _ in signed):
        return None
    rounds = [of for app, of in signed if app.startswith(OURS)]
    if rounds and number != ANY_ROUND and rounds != [number]:
        return Stranger(table.name, version, f"was written by round {rounds[0]}, which is not open", is_a_rounds=True)
    return None if rounds else Stranger(table.name, version, _who(actions))


def _signatures(actions: Sequence[Action]) -> list[tuple[str, int]]:
    return [(one["txn"]["appId"], one["txn"]["version"]) for one in actions if "txn" in one]


def _who(actions: Sequence[Action]) -> str:
    info: Mapping[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    engine = info.get("engineInfo") or info.get("clientVersion") or "an unnamed engine"
    at = info.get("timestamp")
    when = f" at {datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(at, int) else ""
    return f"was written by a stranger: {info.get('operation', 'an unnamed operation')} by {engine}{when}"


def read_entry(store: Store, table: Table, version: int) -> list[dict[str, Any]] | None:
    """The actions of an entry of a table's log; None where there is none. Raises TableError for a damaged one."""
    path = f"tables/{table.name}/_delta_log/{version:020d}.json"
    try:
        return [json.loads(line) for line in store.read(path).splitlines() if line.strip()]
    except FileNotFoundError:
        return None
    except ValueError as error:
        said = f"table {table.name} of {store.uri}: {path} is damaged ({error}): bring it back from a copy of the lake"
        raise TableError(said) from error


def take_back(store: Store, table: Table, found: Sequence[Stranger]) -> int:
    """Make a table what it was before the first of its strangers, in one entry of ours; that version comes back.

    Columns that were added since are added again: a newer Orbweaver may have done so before it looked.

    Raises TableError where the crawl has written on top of what they wrote, or files of that time are gone.
    """
    first, newest = found[0].version, newest_version(store, table)
    strange = {one.version for one in found}
    ours = [
        version for version in range(first, newest + 1) if version not in strange and _builds(store, table, version)
    ]
    if ours or first == 0 or any(one.is_a_rounds for one in found):
        said = f"in version {ours[0]} the crawl built on it" if ours else "there is nothing of ours before it"
        raise TableError(f"{found[0]}, and cannot be taken back: {said}. Go on with a copy of the lake from before it")
    write = Write(f"{OURS}restore/{table.name}", first - 1, note=f"as of version {first - 1}")
    try:
        delta = open_table(store, table)
        delta.restore(first - 1, protocol_downgrade_allowed=True, commit_properties=write.commit)
        add_columns(store, table)
    except DeltaError as error:
        said = str(error).splitlines()[0][:200]
        raise TableError(
            f"{found[0]}, and cannot be taken back ({said}). Go on with a copy of the lake from before it"
        ) from error
    return first - 1


def _builds(store: Store, table: Table, version: int) -> bool:
    """True for an entry of ours whose rows may go back to those before it."""
    return any(not app.startswith(f"{OURS}columns/") for app, _ in _signatures(read_entry(store, table, version) or ()))
