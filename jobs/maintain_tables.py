"""Compact the tables of a lake under its lock: few files, the same answers.

spark-submit jobs/maintain_tables.py --lake s3a://bucket/lake
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from crawler import schemas
from crawler.faults import fault
from crawler.tables.compaction import compact, crowded_files
from crawler.tables.direct import Write
from crawler.tables.lake import Lake
from jobs.driver import refuse_open_round

MAX_FILES = 4


@dataclass(frozen=True)
class Maintained:
    """What became of one table."""

    table: str
    files_before: int
    files_after: int
    partitions: int


def maintain(lake: Lake, max_files: int = MAX_FILES, tell: Callable[[str], object] = str) -> list[Maintained]:
    """Rewrite every partition that holds more than `max_files` files, forget old versions, and record the new ones.

    Refused while a round is open, since that round reads pinned versions, and for tables that others wrote to. `tell`
    hears which table is at work.
    """
    rows = lake.ledger.newest(1)
    refuse_open_round(lake.store)
    lake.settled(rows[-1].versions if rows else {})
    done = []
    for place, table in enumerate(schemas.TABLES, 1):
        tell(f"maintain: {table.name}, table {place} of {len(schemas.TABLES)}")
        done.append(_maintain_table(lake, table, max_files))
    if rows:
        lake.lock.check()
        signed = replace(rows[-1], versions=lake.versions(), token=lake.lock.token, recorded=time.time())
        once = _write_of(lake, "maintain/rounds", lake.tables.version(schemas.ROUNDS))
        lake.ledger.record(signed, once)
    forget_tokens(lake)
    return done


def _maintain_table(lake: Lake, table: schemas.Table, max_files: int) -> Maintained:
    version = lake.tables.version(table)
    before = len(lake.tables.files(table, version))
    crowded = crowded_files(lake.tables, table, version, max_files)
    if crowded:
        lake.lock.check()
        compact(lake.tables, table, crowded, _write_of(lake, f"orbweaver/maintain/{table.name}", version))
    fault("maintain.table")
    lake.tables.vacuum(table)
    fault("maintain.vacuumed")
    after = len(lake.tables.files(table, lake.tables.version(table)))
    partitions = len({tuple(file.partition.items()) for file in crowded})
    return Maintained(table.name, before, after, partitions)


def _write_of(lake: Lake, application: str, version: int) -> Write:
    """The identity of a rewrite: which version of the table it starts from."""
    return Write(application, version, note=f"token {lake.lock.token}")


def forget_tokens(lake: Lake) -> None:
    """Remove the lock files of earlier holders."""
    for path in lake.store.list("lock"):
        if int(path.rsplit("/", 1)[-1].removesuffix(".json")) < lake.lock.token:
            lake.store.delete(path)


if __name__ == "__main__":
    import sys

    from jobs.cli import main

    main(["maintain", *sys.argv[1:]])
