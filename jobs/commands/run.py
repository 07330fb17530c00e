"""Commands that change a lake: inject, round, crawl, maintain."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.options import (
    DEFAULT_LAKE,
    AsJson,
    At,
    ConfigFiles,
    LakeUri,
    SetValues,
    examples,
    settings_of,
    store_of,
    time_of,
)
from jobs.output import json_text, say
from jobs.words import instant

if TYPE_CHECKING:
    from crawler.settings import Settings
    from crawler.storage import Store
    from crawler.tables.ledger import RoundRow

UrlsOrFiles = Annotated[
    list[str],
    typer.Argument(metavar="URL|FILE|@URL...", help="URLs, files with one a line, or @ and where such a list is."),
]
MaybeUrlsOrFiles = Annotated[list[str] | None, typer.Argument(metavar="[URL|FILE]...", help="Injected before.")]
RoundLimit = Annotated[
    int | None, typer.Option("--rounds", metavar="N", min=1, help="Rounds at most; 3 unless --until-done.")
]
UntilDone = Annotated[bool, typer.Option("--until-done", help="Go on until nothing is due now.")]
DEFAULT_ROUNDS = 3


def inject(
    inputs: UrlsOrFiles,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Add URLs to the inbox; the next round takes them in. Makes a lake in a folder that is new or empty.

    It needs neither the lock nor Spark, so it works at any time, also while a round runs. Files are UTF-8 text, one URL
    a line; lines that begin with # are comments. A line without a scheme is taken as https://.
    """
    from crawler.settings_files import to_remember
    from jobs.inject import inject as put_into_inbox
    from jobs.inject import warnings

    given = to_remember(config or (), sets or ())
    injected = put_into_inbox(store_of(lake), settings_of(config, sets, lake), inputs, given)
    for warning in warnings(injected):
        say(f"not a URL that can be crawled: {warning}", sys.stderr)
    if as_json:
        counts = {"urls": injected.urls, "path": injected.path, "doubtful": len(injected.doubtful)}
        say(json_text(counts))
    else:
        say(f"{injected.urls:,} {'URL' if injected.urls == 1 else 'URLs'} in {injected.path}")


def round_(
    at: At = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Run one round, or finish the one that is open.

    plan, fetch, reconcile, commit. A round that was killed anywhere is finished by the same command.
    """
    from crawler.settings_files import PATHS, to_remember
    from jobs.crawl import Ended, is_work_left, report_what_is_missing, run_round, scheduled_for
    from jobs.driver import drive, require_contact
    from jobs.progress import Progress

    settings, store, now = settings_of(config, sets, lake, PATHS), store_of(lake), time_of(at, time.time())
    require_contact(settings)
    now = scheduled_for(store, now)
    if not is_work_left(store, now or time.time()):
        report_what_is_missing(store, settings)
        end = _end(store, Ended.NOTHING_DUE, now)
        say(json_text({"round": None, **end}) if as_json else f"no round was run: {_end_words(end)}")
        return
    with drive(store, settings, to_remember(config or (), sets or ())) as held:
        rnd = run_round(held, settings, now, Progress())
    if as_json:
        say(json_text(_as_dict(rnd)))
    else:
        say(f"round {rnd.round} {rnd.state} in {store.uri}; `orbweaver report` says what it did")


def crawl(  # noqa: PLR0913 - each option is one
    inputs: MaybeUrlsOrFiles = None,
    rounds: RoundLimit = None,
    until_done: UntilDone = False,
    at: At = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Inject URLs, run rounds, and report. With URLs, makes a lake in a folder that is new or empty.

    Ends before its number of rounds when nothing is due any more.
    """
    from crawler.settings_files import PATHS, to_remember
    from crawler.tables.manifest import find_manifest, read_manifest
    from jobs.crawl import Ended, is_work_left, report_what_is_missing, run_rounds, scheduled_for
    from jobs.driver import drive, require_contact
    from jobs.inject import inject as put_into_inbox
    from jobs.progress import Progress

    settings, store, start = settings_of(config, sets, lake, PATHS), store_of(lake), time_of(at, time.time())
    is_new = find_manifest(store) is None
    if is_new and not inputs:
        read_manifest(store)  # says how to make one
    require_contact(settings)
    given = to_remember(config or (), sets or ())
    if inputs:
        put_into_inbox(store, settings, inputs, given)
    if is_new:
        settings = settings_of(config, sets, lake, PATHS)  # of two that make a lake, one finds what the other decided
    start = scheduled_for(store, start)
    limit = rounds or (None if until_done else DEFAULT_ROUNDS)
    done: list[RoundRow] = []
    if is_work_left(store, start or time.time()):
        with drive(store, settings, given) as held:
            done, ended = run_rounds(held, settings, start, limit, Progress())
    else:
        report_what_is_missing(store, settings)
        ended = Ended.NOTHING_DUE
    _tell(store, settings, lake, (done, _end(store, ended, start)), as_json)


def maintain(
    lake: LakeUri = DEFAULT_LAKE, config: ConfigFiles = None, sets: SetValues = None, as_json: AsJson = False
) -> None:
    """Compact the tables under the lock; every answer stays the same."""
    from jobs.driver import drive, refuse_open_round
    from jobs.maintain_tables import maintain as compact
    from jobs.progress import Progress

    settings, store = settings_of(config, sets, lake), store_of(lake)
    refuse_open_round(store)
    with drive(store, settings) as held:
        done = compact(held, tell=Progress().line)
    if as_json:
        say(json_text([asdict(one) for one in done]))
    else:
        for one in done:
            say(f"{one.table}: {one.files_before} files before, {one.files_after} after")


def _end(store: Store, ended: str, at: float | None) -> dict[str, object]:
    """What ended the rounds, how many URLs are due, and when the next ones are."""
    from jobs.crawl import due_now_and_next

    due, next_at = due_now_and_next(store, at or time.time())
    return {"ended_by": str(ended), "due": due, "next_due_at": None if next_at is None else instant(next_at)}


def _end_words(end: dict[str, object]) -> str:
    """The same as a sentence."""
    after = f"; the next is at {end['next_due_at']}" if end["next_due_at"] else ""
    if end["ended_by"] == "nothing_due":
        return f"nothing is due{after or ', now or later'}"
    if end["ended_by"] == "hosts_wait":
        return f"{end['due']:,} URLs are due, but their hosts may not be asked now{after}"
    return f"the number of rounds is reached; {end['due']:,} URLs are due{after}"


def _tell(
    store: Store, settings: Settings, lake: str, run: tuple[list[RoundRow], dict[str, object]], as_json: bool
) -> None:
    """The report of the last round, what ended the crawl, and what to try next."""
    from jobs.crawl import next_commands, sample_url
    from jobs.report import count_report, report_paths

    done, end = run
    report = count_report(store, settings, done[-1].round) if done else None
    if as_json:
        facts = report[0] if report else None
        rounds = [_as_dict(rnd) for rnd in done]
        say(json_text({"rounds": rounds, **end, "report": facts}))
        return
    if report is None:
        say(f"no round was run: {_end_words(end)}")
        return
    say(report[1])
    say(f"Ended after {len(done)} {'round' if len(done) == 1 else 'rounds'}: {_end_words(end)}")
    pictures = report_paths(done[-1].round)["html"]
    say(f"As pictures: {store.uri_of(pictures)}\n\nTry next:")
    for command in next_commands(lake, sample_url(store), shlex.quote):
        say(f"  {command}")


def _as_dict(rnd: RoundRow) -> dict[str, object]:
    return {"round": rnd.round, "state": str(rnd.state), "counts": rnd.counts, "scheduled_at": instant(rnd.now)}


def add_to(app: typer.Typer) -> None:
    """Register the commands with their examples."""
    contact = "--set crawl.contact=https://example.org/bot"
    app.command(
        epilog=examples(
            "orbweaver inject https://example.org/",
            "orbweaver inject seeds.txt more.txt --lake s3://bucket/lake",
        )
    )(inject)
    app.command(
        "round",
        epilog=examples(
            f"orbweaver round {contact}",
            "orbweaver round --config my.toml --at +15d  # what will be due in 15 days",
            "spark-submit jobs/crawl_round.py --lake s3a://bucket/lake --config my.toml",
        ),
    )(round_)
    app.command(
        epilog=examples(
            f"orbweaver crawl https://example.org/ --rounds 3 {contact}",
            "orbweaver crawl seeds.txt --until-done --config my.toml",
            "orbweaver crawl --rounds 1 --at 2026-12-24T06:00+01:00 --config my.toml",
        )
    )(crawl)
    app.command(epilog=examples("orbweaver maintain --lake s3://bucket/lake"))(maintain)
