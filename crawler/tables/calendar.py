"""The calendar: `frontier` as a timing wheel, partitioned by slot (when due) and tier (front queue)."""

from __future__ import annotations

from collections.abc import Iterable


def condition_of(opened: Iterable[tuple[int, int]]) -> str:
    """SQL over the partition columns that matches exactly these (slot, tier) pairs; nothing when there are none."""
    return " OR ".join(f"(slot = {slot} AND tier = {tier})" for slot, tier in sorted(opened)) or "slot = -1"
