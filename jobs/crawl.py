"""Several rounds in a row, until their number is reached or nothing is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader, due_urls, of_round, pc

if TYPE_CHECKING:
    from crawler.tables.lake import Lake
    from crawler.tables.ledger import RoundRow
    from jobs.progress import Progress

HOUR_S = 3_600
TRIES = 4  # as many as Spark gives a task


def run_round(lake: Lake, settings: Settings, at: float | None, progress: Progress) -> RoundRow:
    """One round with its progress shown; the committed round comes back. `at`: scheduling time, epoch seconds.

    A round that loses intermediate results with an executor goes on from its last recorded state, as after a crash.
    """
    from crawler.spark import is_lost_result
    from jobs.crawl_round import crawl_round

    progress.begin()
    for tries_left in reversed(range(TRIES)):
        try:
            rnd = crawl_round(lake, settings, at, watch=progress.watch)
            break
        except Exception as error:
            if not tries_left or not is_lost_result(error):
                raise
            progress.lost_results()
    progress.end(rnd)
    return rnd


def run_rounds(
    lake: Lake, settings: Settings, at: float | None, limit: int | None, progress: Progress
) -> Iterator[RoundRow]:
    """Rounds one after the other, at most `limit`; ends when nothing is due, or what is due cannot be asked now.

    With `at` the scheduling clock starts there and goes on as the real one does.
    """
    ahead = None if at is None else at - time.time()
    done = 0
    while limit is None or done < limit:
        now = time.time() + (ahead or 0.0)
        if not is_work_left(lake.store, now):
            return
        rnd = run_round(lake, settings, None if ahead is None else now, progress)
        done += 1
        yield rnd
        if not rnd.counts.get("planned"):
            return


def is_work_left(store: Store, now: float) -> bool:
    """True when a round is open, the inbox holds something, or a URL is due at `now` (epoch seconds)."""
    reader = Reader.open(store)
    newest = reader.committed()
    taken = set(newest["inbox"]) if newest else set()
    is_new_in_inbox = any(path not in taken for path in store.list("inbox"))
    return is_new_in_inbox or reader.open_round is not None or due_urls(reader, int(now // HOUR_S)) > 0


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
