"""Open a round, or find the open one; close a committed one."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from crawler import schemas
from crawler.settings import Settings
from crawler.settings_text import settings_hash, settings_json
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow, State
from jobs.stages.clock import not_before

INBOX = "inbox"


def open_round(lake: Lake, settings: Settings, now: float | None) -> RoundRow:
    """The open round as far as it came, or a new one with its clock, inbox and table versions recorded.

    Raises TableError where the tables hold what the crawl did not write. What is left of an open round goes by today's
    settings, and its next rows say so.
    """
    rows = lake.ledger.newest(2)
    asked, checksum = settings_json(settings), settings_hash(settings)
    if rows and rows[-1].state is not State.COMMITTED:
        tables = [table for table in schemas.TABLES if table is not schemas.ROUNDS]
        pinned = {table.name: 0 for table in tables} | rows[-1].versions  # a newer Orbweaver may have made a table more
        lake.tables.require_versions(pinned, tables)
        lake.settled(pinned, rows[-1].round)
        return replace(rows[-1], versions=pinned, settings=asked, settings_hash=checksum)
    last = rows[-1] if rows else None
    versions = lake.settled(last.versions if last else {})  # what is committed, and what care has made of it since
    if last:
        close_round(lake, last)  # its driver may have died between its commit and this
    if last and now is None:
        now = not_before(last.round, last.now, None)
    scheduled = float(int(time.time() if now is None else now))  # whole seconds come back from the ledger as they were
    number = last.round + 1 if last else 1
    opened = RoundRow(
        round=number,
        state=State.OPENED,
        now=scheduled,
        segment_folder=segment_folder(settings.crawl.name, number, time.time()),
        versions=versions,
        inbox=tuple(lake.store.list(INBOX)),
        settings=asked,
        settings_hash=checksum,
    )
    return advance(lake, opened)


def advance(lake: Lake, row: RoundRow) -> RoundRow:
    """Record the state a round has reached."""
    signed = replace(row, holder=lake.lock.holder.name, token=lake.lock.token, recorded=time.time())
    lake.lock.check()
    lake.ledger.record(signed)
    return signed


def close_round(lake: Lake, rnd: RoundRow) -> None:
    """Remove what a committed round no longer needs: the inbox files it took in, its progress files and leases."""
    folders = (f"progress/{rnd.round}", f"leases/{rnd.round}")
    for path in (*rnd.inbox, *(path for folder in folders for path in lake.store.list(folder))):
        lake.store.delete(path)


def segment_folder(crawl: str, number: int, now: float) -> str:
    """Folder of a round's WARC files in Common Crawl's layout: `crawl-data/NAME-YYYY-WW/segments/MILLIS.ROUND`.

    `now` is real time, epoch seconds: an archive says when it was made, whatever the scheduling clock said.
    """
    year, week, _ = datetime.fromtimestamp(now, UTC).isocalendar()
    return f"crawl-data/{crawl}-{year}-{week:02d}/segments/{int(now * 1000)}.{number}"
