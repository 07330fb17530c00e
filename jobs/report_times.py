"""When a round made its requests, and when its URLs come due."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crawler import schemas
from crawler.tables.manifest import TableError
from crawler.tables.reader import Rows
from jobs.report_round import Round
from jobs.words import instant

Facts = dict[str, Any]
TIME_BINS = 60
SHOWN_WEEKS = 8


def over_time(asked: Rows) -> Facts:
    """Requests by time, in equal steps from the first to the last."""
    if not asked.num_rows:
        return {"began_at": None, "step_s": 0.0, "requests": []}
    seconds = asked["fetch_time"].cast(pa.int64()).to_numpy() / 1e6
    began, span = float(seconds.min()), max(float(np.ptp(seconds)), 1.0)
    counts, _ = np.histogram(seconds - began, bins=TIME_BINS, range=(0.0, span))
    return {"began_at": instant(began), "step_s": round(span / TIME_BINS, 3), "requests": counts.tolist()}


def due_days(rnd: Round) -> Facts:
    """The calendar after the round: URLs by the day they come due, counted from the scheduling time.

    Needs nothing of the calendar's version but its log; where that is gone too, there are no days.
    """
    hour = int(rnd.end["now_at"].timestamp() // 3600)
    days = [0] * (SHOWN_WEEKS * 7)
    facts: Facts = {"now": 0, "days": days, "later": 0}
    try:
        parts = rnd.reader.partitions(schemas.FRONTIER, rnd.end["versions"])
    except TableError:
        return {"now": 0, "days": [], "later": 0}
    for part in parts:
        ahead = part["slot"] - hour
        many = part["num_records"] or 0
        if ahead <= 0:
            facts["now"] += many
        elif (ahead - 1) // 24 < len(days):
            days[(ahead - 1) // 24] += many
        else:
            facts["later"] += many
    return facts
