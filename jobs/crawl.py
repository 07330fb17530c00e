"""Several rounds in a row, until their number is reached or nothing is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader, due_urls, of_round, pc
from jobs.interruption import sealing
from jobs.stages.clock import not_before

if TYPE_CHECKING:
    from crawler.tables.lake import Lake
    from crawler.tables.ledger import RoundRow
    from jobs.progress import Progress

HOUR_S = 3_600
TRIES = 4  # as many as Spark gives a task


def run_round(lake: Lake, settings: Settings, at: float | None, progress: Progress) -> RoundRow:
    """One round with its progress shown and its report made; the committed round comes back. `at`: scheduling time,
    epoch seconds.

    A round that loses intermediate results with an executor goes on from its last recorded state, as after a crash.
    """
    from crawler.spark import is_lost_result
    from jobs.crawl_round import crawl_round

    progress.begin()
    for tries_left in reversed(range(TRIES)):
        try:
            rnd = crawl_round(lake, settings, at, watch=partial(_watch, progress))
            break
        except Exception as error:
            if not tries_left or not is_lost_result(error):
                raise
            progress.lost_results()
    progress.end(rnd)
    report_what_is_missing(lake.store, settings)
    return rnd


@contextmanager
def _watch(progress: Progress, lake: Lake, rnd: RoundRow) -> Iterator[None]:
    """What goes on beside a fetch stage: people look, and signals let it seal."""
    with sealing(lake, rnd), progress.watch(lake, rnd):
        yield


class Ended(StrEnum):
    """Why no further round was run."""

    NOTHING_DUE = "nothing_due"
    HOSTS_WAIT = "hosts_wait"
    ROUNDS = "rounds"


def run_rounds(
    lake: Lake, settings: Settings, at: float | None, limit: int | None, progress: Progress
) -> tuple[list[RoundRow], Ended]:
    """Rounds one after the other, at most `limit`, and what ended them: their number, that nothing is due, or that
    what is due cannot be asked now.

    With `at` the scheduling clock starts there and goes on as the real one does.
    """
    ahead = None if at is None else at - time.time()
    done: list[RoundRow] = []
    while limit is None or len(done) < limit:
        now = time.time() + (ahead or 0.0)
        if not is_work_left(lake.store, now):
            return done, Ended.NOTHING_DUE
        done.append(run_round(lake, settings, None if ahead is None else now, progress))
        if not done[-1].counts.get("planned"):
            return done, Ended.HOSTS_WAIT
    return done, Ended.ROUNDS


def scheduled_for(store: Store, at: float | None) -> float | None:
    """The scheduling time of the next round, as its stage will see it, checked before Java starts; None for now.

    The clock of a lake never goes back: after a round that was run ahead of time (`--at +15d`) the next one without a
    time of its own is scheduled no earlier. Raises Stop where `at` lies before the last round.
    """
    reader = Reader.open(store)
    if not reader.rounds or reader.open_round is not None:
        return at
    last = reader.rounds[-1]
    return not_before(last["round"], last["now_at"].timestamp(), at)


def is_work_left(store: Store, now: float) -> bool:
    """True when a round is open, the inbox holds something, or a URL is due at `now` (epoch seconds)."""
    reader = Reader.open(store)
    newest = reader.committed()
    taken = set(newest["inbox"]) if newest else set()
    is_new_in_inbox = any(path not in taken for path in store.list("inbox"))
    return is_new_in_inbox or reader.open_round is not None or due_urls(reader, int(now // HOUR_S)) > 0


def due_now_and_next(store: Store, now: float) -> tuple[int, float | None]:
    """How many URLs are due at `now`, and when the first of the others comes due (epoch seconds; None: never)."""
    reader = Reader.open(store)
    newest = reader.committed()
    if newest is None:
        return 0, None
    parts = reader.partitions(schemas.FRONTIER, newest["versions"])
    later = [part["slot"] for part in parts if part["slot"] > now // HOUR_S and part["num_records"]]
    return due_urls(reader, int(now // HOUR_S)), min(later) * float(HOUR_S) if later else None


def report_what_is_missing(store: Store, settings: Settings) -> None:
    """Make the report of the newest committed round, and of the one before, where it is not there: a driver may have
    died between a commit and its report."""
    from jobs.report import make_report, report_paths

    newest = Reader.open(store).committed()
    if newest is None:
        return
    for number in range(max(1, newest["round"] - 1), newest["round"] + 1):
        if not all(store.exists(path) for path in report_paths(number).values()):
            make_report(store, settings, number)


def next_commands(lake: str, url: str | None, quote: Callable[[str], str]) -> list[str]:
    """Three commands to try after a crawl."""
    target = quote(url or "URL")
    option = "" if lake == "./lake" else f" --lake {quote(lake)}"
    return [
        f"orbweaver status{option}",
        f"orbweaver show {target}{option} --text",
        f"orbweaver why {target}{option}",
    ]


def sample_url(store: Store) -> str | None:
    """A page that the newest round stored, for the examples."""
    reader = Reader.open(store)
    newest = reader.committed()
    if newest is None:
        return None
    is_page = (pc.field("outcome") == "success") & (pc.field("content_mime_detected") == "text/html")
    stored = of_round(newest["round"]) & is_page
    urls = reader.rows(schemas.CAPTURES, newest["versions"], ("url",), stored)["url"]
    return str(pc.min(urls).as_py()) if len(urls) else None
