"""Commit a round: every table once, then the one row that makes it so."""

from __future__ import annotations

from dataclasses import replace

from crawler import schemas
from crawler.faults import fault
from crawler.tables.lake import Lake, round_frame
from crawler.tables.ledger import RoundRow, State
from jobs.stages.open_round import advance
from jobs.stages.reconcile import Reconciled


def commit_round(lake: Lake, rnd: RoundRow, found: Reconciled | None) -> RoundRow:
    """Write what a round adds and record COMMITTED with the versions after it. Each write is replayed harmlessly."""
    counts = dict(rnd.counts)
    if found is not None:
        if found.seeds is not None:
            lake.append(schemas.SEEDS, found.seeds, lake.write(schemas.SEEDS.name, rnd.round))
        for table, rows in (
            (schemas.CAPTURES, found.captures),
            (schemas.CONTENT_CHECKSUMS, found.contents),
            (schemas.NEAR_DUPLICATES, found.bands),
            (schemas.URL_CHECKSUMS, found.new_keys),
            (schemas.HOSTS, found.hosts),
        ):
            lake.append(table, rows, lake.write(table.name, rnd.round))
        lake.turn_calendar(found.used, found.frontier, lake.write("frontier", rnd.round))
        counts |= {"new_urls": found.new_keys.count()}
    versions = lake.settled(rnd.versions, rnd.round)
    if found is not None:
        counts |= count_outcomes(lake, versions, rnd.round)
    committed = advance(lake, replace(rnd, state=State.COMMITTED, versions=versions, counts=counts))
    fault("round.committed")
    return committed


def count_outcomes(lake: Lake, versions: dict[str, int], number: int) -> dict[str, int]:
    """Outcomes and duplicates of a round, by kind."""
    captures = round_frame(lake, schemas.CAPTURES, versions, number)
    rows = captures.groupBy("outcome", "duplicate_kind").count().collect()
    counts: dict[str, int] = {}
    for row in rows:
        counts[f"outcome.{row['outcome']}"] = counts.get(f"outcome.{row['outcome']}", 0) + row["count"]
        if row["duplicate_kind"]:
            counts[f"duplicate.{row['duplicate_kind']}"] = (
                counts.get(f"duplicate.{row['duplicate_kind']}", 0) + row["count"]
            )
    return counts
