"""Find and remove what nothing names any more: files of attempts that died, and traces of rounds that are over.

Old data files of the tables are VACUUM's business (`orbweaver maintain`), and nothing of an open round is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from crawler import schemas
from crawler.fetch.segment_files import SUBSETS
from crawler.storage import Store, Upload
from crawler.tables.lock import hold_lock
from crawler.tables.reader import Reader, pc
from jobs.exits import BAD_USE, Stop
from jobs.options import UNITS, seconds_of
from jobs.words import count_of, instant, lines_of, size

DAY_S = 86_400.0
LEAST_OPEN_AGE_S = 3_600.0
"""Commands that take no lock, such as `inject`, have half-written files for a moment."""
UPLOAD_ID = "?uploadId="  # as S3 writes it
CHECK_EVERY = 100  # files removed between two looks at the lock
ARCHIVE, PARQUETS = "crawl-data", ("outcomes", "discoveries", "hosts")
NAMES_FILES = ("outcomes", "discoveries", "hosts", "warcs")  # columns of `segments`


@dataclass(frozen=True)
class Rubbish:
    """Something that nothing names. `modified` is in epoch seconds; a folder has no bytes."""

    kind: str  # segment file, half-written, upload, lock, progress, lease, folder
    path: str
    bytes: int
    modified: float


def age_of(text: str) -> float:
    """Seconds of `--older-than`: a number with its unit.

    >>> age_of("7d"), age_of("90m")
    (604800.0, 5400.0)
    """
    age = seconds_of(text)
    if age is None:
        raise Stop(BAD_USE, f"--older-than {text}: should be a number with a unit ({', '.join(UNITS)}), such as 7d")
    return age


def find_rubbish(store: Store, older_than_s: float, now: float) -> list[Rubbish]:
    """All that nothing names and that was not touched for so many seconds before `now` (epoch seconds), by path.

    While a round is open, nothing is listed that lies in its folders or was written since it was opened. Raises Stop
    for an age of less than a day then, TableError where there is no lake.
    """
    reader = Reader.open(store)
    until = now - older_than_s
    opened = reader.open_round
    if opened is not None:
        if older_than_s < DAY_S:
            raise Stop(
                BAD_USE, f"round {opened['round']} is open: --older-than must be 1d or more until it is finished"
            )
        rows = [row["recorded_at"] for row in reader.rounds if row["round"] == opened["round"]]
        until = min(until, min(rows).timestamp())
    found = [*orphans(store, reader), *half_written(store), *old_tokens(store), *of_past_rounds(store, reader)]
    dated = [_dated(store, kind, path) for kind, path in found] + unfinished_uploads(store)
    limits = dict.fromkeys(("half-written", "upload"), min(until, now - LEAST_OPEN_AGE_S))
    old = (one for one in dated if one is not None and one.modified < limits.get(one.kind, until))
    return sorted((one for one in old if not _is_of(opened, one.path)), key=lambda one: one.path)


def _dated(store: Store, kind: str, path: str) -> Rubbish | None:
    """None for what has gone in the meantime."""
    try:
        return Rubbish(kind, path, 0 if kind == "folder" else store.size(path), store.modified(path))
    except FileNotFoundError:
        return None


def _is_of(opened: dict[str, Any] | None, path: str) -> bool:
    """True for what lies in the folders of the open round."""
    if opened is None:
        return False
    number = opened["round"]
    return path.startswith(tuple(f"{folder}/" for folder in (opened["segment_folder"], f"leases/{number}")))


def orphans(store: Store, reader: Reader) -> Iterator[tuple[str, str]]:
    """Files of segments that no row of `segments` names, whether committed or just written, and no capture either."""
    stored = {path for path in store.list(ARCHIVE) if is_segment_file(path)}
    newest = reader.committed()
    if not reader.rounds:
        return iter(())  # before the first round there are neither segments nor tables
    versions = [newest["versions"], {}] if newest else [{}]  # {}: as they are now
    for version in versions:
        rows = reader.rows(schemas.SEGMENTS, version, NAMES_FILES).to_pylist(maps_as_pydicts="strict")
        stored -= {path for row in rows for path in (*row["warcs"].values(), *(row[name] for name in PARQUETS))}
        if stored:
            is_stored = pc.field("warc_filename").isin(sorted(stored))
            named = reader.rows(schemas.CAPTURES, version, ("warc_filename",), is_stored)["warc_filename"]
            stored -= set(named.to_pylist())
    return (("segment file", path) for path in stored)


def is_segment_file(path: str) -> bool:
    """True for the places where a segment's files are; whatever else lies in the archive is not ours to judge."""
    folder, name = path.split("/")[-2:]
    return (folder in SUBSETS and name.endswith(".warc.gz")) or (folder in PARQUETS and name.endswith(".parquet"))


def half_written(store: Store) -> Iterator[tuple[str, str]]:
    """Writes that did not finish, anywhere in the lake."""
    return (("half-written", path) for path in store.unfinished(""))


def unfinished_uploads(store: Store) -> list[Rubbish | None]:
    """Files that were sent in parts and never completed, each with its id behind its path."""
    return [Rubbish("upload", f"{one.path}{UPLOAD_ID}{one.id}", 0, one.started) for one in store.uploads()]


def old_tokens(store: Store) -> Iterator[tuple[str, str]]:
    """The lock's tokens but the highest, which says who holds it."""
    return (("lock", path) for path in store.list("lock")[:-1])


def of_past_rounds(store: Store, reader: Reader) -> Iterator[tuple[str, str]]:
    """What committed rounds have left in their folders, and those folders that are empty."""
    committed = {row["round"] for row in reader.rounds if row["state"] == "COMMITTED"}

    def is_past(path: str) -> bool:
        number = path.split("/")[1]
        return number.isdigit() and int(number) in committed

    for folder, kind in (("progress", "progress"), ("leases", "lease")):
        yield from ((kind, path) for path in filter(is_past, store.list(folder)))
        yield from (("folder", path) for path in filter(is_past, store.empty_folders(folder)))


def remove_rubbish(store: Store, older_than_s: float, now: float) -> list[Rubbish]:
    """Remove it, under the lock; what was removed comes back. Raises LockHeld, and LockLost in the middle."""
    Reader.open(store)  # no lock is made where there is no lake
    with hold_lock(store) as lock:
        found = find_rubbish(store, older_than_s, now)
        for count, one in enumerate(found):
            if count % CHECK_EVERY == 0:
                lock.check()
            _remove(store, one)
        return found


def _remove(store: Store, one: Rubbish) -> None:
    if one.kind == "folder":
        store.remove_folder(one.path)
    elif one.kind == "upload":
        path, _, number = one.path.rpartition(UPLOAD_ID)
        store.abort_upload(Upload(path, number, one.modified))
    else:
        store.delete(one.path)


def as_text(found: Iterable[Rubbish], *, is_removed: bool) -> str:
    """A line each, and the sum."""
    rubbish = list(found)
    lines = [f"{one.kind:<12}  {instant(one.modified)}  {one.bytes:>12,} B  {one.path}" for one in rubbish]
    what = f"{count_of(len(rubbish), 'thing')}, {size(sum(one.bytes for one in rubbish))}"
    hint = "" if is_removed or not rubbish else "; --delete removes what is listed"
    return lines_of([*lines, f"{what} {'removed' if is_removed else 'that nothing names'}{hint}"])


def as_json(found: Iterable[Rubbish], *, is_removed: bool) -> dict[str, Any]:
    """The same as JSON knows values."""
    rubbish = [asdict(one) for one in found]
    return {"removed": is_removed, "bytes": sum(one["bytes"] for one in rubbish), "found": rubbish}
