"""Slots of the calendar: hours since 1970 at which a URL is due.

Near ones are hours, further ones days, far ones weeks, always rounded up, so every row of a slot that has come is due,
and a slot can be used up whole.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

HOUR_S = 3_600
NEAR_HOURS = 48
FAR_HOURS = 16 * 24  # two weeks, when most come again, and a little


def current_hour(now: float) -> int:
    """The newest slot that has come at a scheduling time (epoch seconds)."""
    return int(now // HOUR_S)


def slot_of(due_at: str, now: float) -> Column:
    """The slot of a due time (timestamp column): now for what is due, else rounded up to hour, day or week."""
    hour = current_hour(now)
    due = F.expr(f"CAST(ceil(unix_micros({due_at}) / 1e6 / {HOUR_S}) AS BIGINT)")
    is_due = F.expr(f"unix_micros({due_at}) / 1e6") <= F.lit(now)
    near, far = F.lit(hour + NEAR_HOURS), F.lit(hour + FAR_HOURS)
    rounded = F.when(due <= near, due).when(due <= far, _round_up(due, 24)).otherwise(_round_up(due, 7 * 24))
    return F.when(is_due, F.lit(hour)).otherwise(rounded).cast("int")


def _round_up(hours: Column, step: int) -> Column:
    return F.ceil(hours / F.lit(step)) * F.lit(step)
