"""Plan a round: the table of what will be asked, written before the first request."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crawler import schemas
from crawler.settings import Settings
from crawler.spark import suit_to
from crawler.tables.lake import Lake, round_frame
from crawler.tables.ledger import RoundRow, State
from crawler.tables.runs import find
from crawler.transforms import select
from crawler.transforms.slots import current_hour
from jobs.stages.open_round import advance
from jobs.stages.place import placement


def plan_round(lake: Lake, settings: Settings, rnd: RoundRow, versions: dict[str, int]) -> RoundRow:
    """Write the plan and record PLANNED with the versions the rest of the round reads."""
    waiting = rows_by_slot(lake, versions, current_hour(rnd.now))
    opened = select.choose_slots(waiting, settings.round.max_urls)
    if not opened:
        return advance(lake, replace(rnd, state=State.PLANNED, versions=versions, counts={"planned": 0}))
    suit_to(lake.spark, sum(waiting[slot] for slot in opened))
    due = lake.read(schemas.FRONTIER, versions, lambda slot: (slot["slot"], slot["tier"]) in opened)
    rows = plan_of(lake, settings, rnd, versions, due)
    lake.append(schemas.PLANS, rows, lake.write("plans", rnd.round))
    planned = {**versions, schemas.PLANS.name: lake.tables.version(schemas.PLANS)}
    counts = count_plan(lake, planned, rnd.round) | _unopened(waiting, opened)
    return advance(lake, replace(rnd, state=State.PLANNED, versions=planned, counts=counts))


def plan_of(lake: Lake, settings: Settings, rnd: RoundRow, versions: dict[str, int], due: DataFrame) -> DataFrame:
    """The plan's rows: due URLs under budgets, placed in fetch partitions by server."""
    hosts = due.select(select.host_key().alias("host_key")).distinct()
    known = find(lake.run(schemas.HOSTS, versions), hosts, keep="newest")
    keyed = select.with_host_state(due, known)
    ranked = select.rank_in_budgets(keyed, settings, time.time()).localCheckpoint()
    boundary = select.boundary_of(select.step_sizes(ranked).collect(), settings.round.max_urls)
    within = select.within_round(ranked, boundary).localCheckpoint() if boundary else ranked
    return select.plan_rows(within, placement(lake, settings, within), rnd.round)


def count_plan(lake: Lake, versions: dict[str, int], number: int) -> dict[str, int]:
    """How many URLs and hosts are planned, and how many URLs were left out, by reason."""
    rows = (
        round_frame(lake, schemas.PLANS, versions, number)
        .groupBy("kind", "reason")
        .agg(F.sum("rows").alias("rows"), F.count_if(F.col("position") == 0).alias("hosts"))
        .collect()
    )
    counts = {"planned": 0, "planned_hosts": 0}
    for row in rows:
        if row["kind"] == "url":
            counts |= {"planned": row["rows"], "planned_hosts": row["hosts"]}
        else:
            counts[f"left_out.{row['reason']}"] = row["rows"]
    return counts


def rows_by_slot(lake: Lake, versions: dict[str, int], hour: int) -> dict[tuple[int, int], int]:
    """The (slot, tier) pairs that have come, with their row counts; the log of the calendar knows both."""
    counts: Counter[tuple[int, int]] = Counter()
    for file in lake.files(schemas.FRONTIER, versions):
        if file.partition["slot"] <= hour:
            counts[file.partition["slot"], file.partition["tier"]] += file.rows
    return dict(counts)


def _unopened(waiting: dict[tuple[int, int], int], opened: list[tuple[int, int]]) -> dict[str, int]:
    rest = sum(rows for slot, rows in waiting.items() if slot not in set(opened))
    return {"left_out.not_opened": rest} if rest else {}
