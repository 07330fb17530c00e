"""Places in the code where a test can let the process die: `ORBWEAVER_FAULT=POINT[:N]` kills it there, as `kill -9`
would, when it comes there for the Nth time.

With `ORBWEAVER_FAULT_ONCE=FILE` only the first process that comes so far dies: it creates the file, which says so.
Only a crawl that cannot leave this machine takes a fault (`refuse_faults`).
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_network

TABLES = (
    *("seeds", "url_checksums", "frontier", "plans", "segments", "captures", "content_checksums", "near_duplicates"),
    *("hosts", "rounds"),
)
POINTS = {
    "fetch.begin": "a fetch task has read its plan and asked nobody yet",
    "fetch.body": "the first bytes of a response have come",
    "warc.record": "a part of a WARC record is written",
    "segment.unflushed": "a segment is due, its WARC files are not closed",
    "segment.unsealed": "the WARC files of a segment are closed, it has no outcomes file yet",
    "segment.sealed": "a segment has its outcomes file, the task goes on",
    "fetch.end": "a fetch task is done and has not returned",
    "fetch.returned": "the driver has all manifests and has written nothing of them",
    **{f"files.{table}": f"the data files of a write to {table} are there, their log entry is not" for table in TABLES},
    **{f"commit.{table}": f"a write to {table} is committed" for table in TABLES},
    "round.committed": "the row COMMITTED is written, nothing is cleaned up",
    "maintain.table": "a table is compacted and its old files are not removed",
    "maintain.vacuumed": "the old files of a table are removed",
}
"""Every point, and what has happened when the process dies there."""

_seen: Counter[str] = Counter()


def fault(point: str) -> None:
    """Die here if this is the place that was named."""
    wanted = os.environ.get("ORBWEAVER_FAULT")
    if not wanted or point != wanted.partition(":")[0]:
        return
    _seen[point] += 1
    if _seen[point] >= int(wanted.partition(":")[2] or 1) and _is_first():
        os.kill(os.getpid(), signal.SIGKILL)


def _is_first() -> bool:
    mark = os.environ.get("ORBWEAVER_FAULT_ONCE")
    if not mark:
        return True
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def refuse_faults(allow_addresses: Iterable[str], *, only_allowed: bool) -> str | None:
    """Why the fault that the environment asks for is refused; None when there is none, or when it may be."""
    wanted = os.environ.get("ORBWEAVER_FAULT")
    if not wanted:
        return None
    point, _, count = wanted.partition(":")
    if point not in POINTS or (count and not count.isdigit()):
        return f"ORBWEAVER_FAULT={wanted}: should be POINT[:N], where POINT is one of {', '.join(POINTS)}"
    if only_allowed and all(ip_network(allowed).is_loopback for allowed in allow_addresses):
        return None
    return (
        f"ORBWEAVER_FAULT={wanted}: faults are for tests. Only a crawl that cannot leave this machine takes one "
        "(fetch.only_allowed=true, and loopback addresses alone in fetch.allow_addresses). Unset the variable."
    )
