"""One round: partition what is due by host hash, fetch it politely into WARC files, join the outcomes with what is
known, and write the next frontier. The same command after any crash finishes the open round.

    spark-submit jobs/crawl_round.py --lake s3a://bucket/lake --set crawl.contact=https://example.org/bot
"""

from __future__ import annotations

from crawler.settings import Settings
from crawler.tables.lake import Lake
from crawler.tables.ledger import RoundRow, State
from jobs.stages.admit import admit_inbox
from jobs.stages.commit import commit_round
from jobs.stages.fetch import Watch, fetch_plan
from jobs.stages.open_round import close_round, open_round
from jobs.stages.plan import plan_round
from jobs.stages.reconcile import reconcile_round


def crawl_round(lake: Lake, settings: Settings, now: float | None = None, watch: Watch | None = None) -> RoundRow:
    """Visit what is due, keep what is new, decide what comes next; the committed round comes back.

    Every stage reads pinned versions, writes once, and records the state it reached, so it may be killed anywhere.
    `now`: scheduling time of a new round, epoch seconds; an open round keeps its own. Without it the round is scheduled
    now, and never before the last one.
    """
    rnd = open_round(lake, settings, now)  # pins clock, inbox and table versions: a rerun sees the same world

    if rnd.state is State.OPENED:
        versions = admit_inbox(lake, settings, rnd)  # seeds -> url_checksums, frontier
        rnd = plan_round(lake, settings, rnd, versions)  # what is due, under budgets, by server -> plans

    if rnd.state is State.PLANNED:
        rnd = fetch_plan(lake, settings, rnd, watch)  # one action; plain Python in every partition -> segments

    if rnd.state is State.FETCHED:
        found = reconcile_round(lake, settings, rnd)  # duplicates, new URLs, next visits: no network, deterministic
        rnd = commit_round(lake, rnd, found)  # every table once; the row COMMITTED is the commit

    close_round(lake, rnd)
    return rnd


if __name__ == "__main__":
    import sys

    from jobs.cli import main

    main(["round", *sys.argv[1:]])
