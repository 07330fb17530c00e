"""How a lake stands: the committed round, the frontier, the open round, the inbox and who holds the lock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from crawler import schemas
from crawler.storage import Store
from crawler.tables.lock import current_holder, is_alive
from crawler.tables.reader import Reader, Row, Rows, pc
from jobs.words import columns, count_of, duration, instant, lines_of, number

HOUR_S = 3_600
STATUSES = ("unfetched", "fetched", "not_modified", "redir_temp", "redir_perm", "gone", "unwanted")
TERMS = (("now", 0), ("within a day", 24), ("within a week", 7 * 24), ("within four weeks", 28 * 24))
LATER = "later"


def lake_status(store: Store, now: float) -> dict[str, Any]:
    """Everything `orbweaver status` says. Raises TableError where there is no lake."""
    reader = Reader.open(store)
    inbox = store.list("inbox")
    newest = reader.committed()
    taken = set(newest["inbox"]) if newest else set()
    return {
        "lake": store.uri,
        "committed": _round_of(reader, newest),
        "open": _round_of(reader, reader.open_round),
        "frontier": frontier_counts(reader, newest, now) if newest else None,
        "inbox": len([path for path in inbox if path not in taken]),
        "lock": _lock_of(store, now),
    }


def frontier_counts(reader: Reader, newest: Row, now: float) -> dict[str, Any]:
    """Known URLs by status, by failures in a row and by when they are due."""
    wanted = ("status", "failures", "slot", "tier", "due_at")
    rows = reader.rows(schemas.FRONTIER, newest["versions"], wanted)
    return {
        "urls": rows.num_rows,
        "by_status": _counts(rows, "status", STATUSES),
        "by_failures": _counts(rows, "failures"),
        "by_tier": _counts(rows, "tier"),
        "due": _due_counts(rows["slot"], int(now // HOUR_S)),
        "earliest_due": _iso(pc.min(rows["due_at"]).as_py()),
        "latest_due": _iso(pc.max(rows["due_at"]).as_py()),
    }


def status_text(status: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"lake      {status['lake']}"]
    lines.append(f"committed {_round_line(status['committed'])}" if status["committed"] else "committed no round yet")
    if status["open"]:
        lines.append(f"open      {_round_line(status['open'])}; `orbweaver round` finishes it")
    lines.append(f"inbox     {count_of(status['inbox'], 'file')} for the next round")
    lines.append(f"lock      {_lock_line(status['lock'])}")
    return lines_of(lines + (_frontier_lines(status["frontier"]) if status["frontier"] else []))


def _round_of(reader: Reader, row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    opened = next(one for one in reader.rounds if one["round"] == row["round"])
    took = (row["recorded_at"] - opened["recorded_at"]).total_seconds()
    return {
        "round": row["round"],
        "state": row["state"],
        "scheduled_at": _iso(row["now_at"]),
        "recorded_at": _iso(row["recorded_at"]),
        "duration_s": round(took, 3),
        "counts": dict(sorted(row["counts"].items())),
        "holder": row["holder"],
    }


def _lock_of(store: Store, now: float) -> dict[str, Any] | None:
    holder = current_holder(store)
    if holder is None or holder.is_released:
        return None
    alive = is_alive(holder, max(now, time.time()))
    return {"holder": holder.name, "token": holder.token, "since": instant(holder.since), "is_alive": alive}


def _counts(rows: Rows, name: str, order: Sequence[str] = ()) -> dict[str, int]:
    """Rows by the values of a column, in the given order first."""
    found = {row["values"]: row["counts"] for row in rows[name].value_counts().to_pylist()}
    first = [value for value in order if value in found]
    rest = sorted((value for value in found if value not in order), key=lambda value: (value is None, value))
    return {str(value): found[value] for value in (*first, *rest)}


def _due_counts(slots: Rows, hour: int) -> dict[str, int]:
    """URLs by the term in which they come due; each is counted once."""
    within = [pc.sum(pc.less_equal(slots, hour + hours)).as_py() or 0 for _, hours in TERMS]
    terms = {name: many - before for (name, _), many, before in zip(TERMS, within, [0, *within], strict=False)}
    return {**terms, LATER: len(slots) - within[-1]}


def _round_line(row: dict[str, Any]) -> str:
    counts = row["counts"]
    done = f", {count_of(counts['outcomes'], 'outcome')}" if "outcomes" in counts else ""
    return (
        f"round {row['round']} {row['state']} {row['recorded_at']} after {duration(row['duration_s'])} "
        f"(scheduled {row['scheduled_at']}; {count_of(counts.get('planned', 0), 'URL')} planned{done})"
    )


def _lock_line(lock: dict[str, Any] | None) -> str:
    if lock is None:
        return "free"
    state = "held by" if lock["is_alive"] else "left behind by (the next driver takes it over)"
    return f"{state} {lock['holder']} since {lock['since']}, token {lock['token']}"


def _frontier_lines(frontier: dict[str, Any]) -> list[str]:
    sections = (
        ("status", "by_status"),
        ("failures in a row", "by_failures"),
        ("due", "due"),
        ("tier", "by_tier"),
    )
    lines = [f"frontier  {number(frontier['urls'])} URLs known"]
    for title, key in sections:
        lines += [f"  {title}:", *columns(frontier[key].items(), "    ")] if frontier[key] else []
    if frontier["urls"]:
        lines.append(f"  due from {frontier['earliest_due']} to {frontier['latest_due']}")
    return lines


def _iso(value: Any) -> str | None:
    return None if value is None else instant(value)
