"""Commands that look after a lake: verify, gc, repair, restore."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer

from jobs.exits import BAD_USE, NOT_FOUND, Stop
from jobs.options import (
    DEFAULT_LAKE,
    AsJson,
    ConfigFiles,
    LakeUri,
    SetValues,
    examples,
    settings_of,
    store_of,
)
from jobs.output import json_text, say

OfRound = Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="This round only; all by default.")]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="SHARE",
        help="Read this share of the rows only, such as 0.05 or 5%, always the same ones; and look at no SHA-256.",
    ),
]
Delete = Annotated[bool, typer.Option("--delete", help="Remove what is found, under the lock.")]
OlderThan = Annotated[
    str,
    typer.Option("--older-than", metavar="AGE", help="Leave what was written since: 90m, 36h, 7d, 2w."),
]
WarcFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="WARC files as `verify` names them; all by default."),
]


def verify(
    number: OfRound = None,
    sample: Sample = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Check every stored record against the tables, and every WARC file against its size and SHA-256.

    Needs no lock: it may run beside a round. Ends with code 1 when anything is found.
    """
    from jobs.driver import spark_session
    from jobs.progress import spark_tasks, watch_parts
    from jobs.verify import as_json as facts_of
    from jobs.verify import as_text, committed_versions
    from jobs.verify import verify as check

    settings, store, share = settings_of(config, sets, lake), store_of(lake), share_of(sample)
    committed_versions(store, number)  # before Java starts
    with spark_session(settings) as spark, watch_parts("verify", partial(spark_tasks, spark)):
        done = check(spark, store, number, share)
    say(json_text(facts_of(done)) if as_json else as_text(done))
    if done.findings:
        raise typer.Exit(NOT_FOUND)


def gc(
    delete: Delete = False,
    older_than: OlderThan = "7d",
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """List, or remove, what nothing names: files of attempts that died, half-written files, old tokens of the lock.

    Nothing of an open round is touched, nor are the files of tables, which `maintain` cleans up. Needs no Java.
    """
    from jobs.gc import age_of, as_text, find_rubbish, remove_rubbish
    from jobs.gc import as_json as facts_of

    settings_of(config, sets, lake)
    store, age, now = store_of(lake), age_of(older_than), time.time()
    found = remove_rubbish(store, age, now) if delete else find_rubbish(store, age, now)
    say(json_text(facts_of(found, is_removed=delete)) if as_json else as_text(found, is_removed=delete))


def repair(
    files: WarcFiles = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Mend WARC files that were cut or damaged at their end; what was lost is due again.

    The file ends after its last whole record then, and the tables know the lost ones no more. A file that is missing,
    or damaged before records that can still be read, is only told of: name it, and those records are given up. A repair
    that was killed is finished by the same command. Ends with code 1 when a damaged file is left.
    """
    from jobs.driver import drive, refuse_open_round
    from jobs.progress import spark_tasks, watch_parts
    from jobs.repair import as_json as facts_of
    from jobs.repair import as_text
    from jobs.repair import repair as mend

    settings, store = settings_of(config, sets, lake), store_of(lake)
    refuse_open_round(store)
    with drive(store, settings) as held, watch_parts("repair", partial(spark_tasks, held.spark)):
        done = mend(held, files or (), time.time())
    say(json_text(facts_of(done)) if as_json else as_text(done))
    if done.left:
        raise typer.Exit(NOT_FOUND)


def restore(
    lake: LakeUri = DEFAULT_LAKE, config: ConfigFiles = None, sets: SetValues = None, as_json: AsJson = False
) -> None:
    """Take back what others wrote into the tables since the crawl itself last did.

    Rounds and maintenance refuse such a lake, and name the tables. What the others wrote is gone then; their versions
    of the tables can still be read by number until `maintain` removes old files. Needs no Java.
    """
    from jobs.restore import as_text
    from jobs.restore import restore as take_back

    settings_of(config, sets, lake)
    done = take_back(store_of(lake))
    say(json_text([one._asdict() for one in done]) if as_json else as_text(done))


def share_of(text: str | None) -> float | None:
    """The share that `--sample` asks for, more than 0 and up to 1.

    >>> share_of("5%"), share_of("0.5"), share_of(None)
    (0.05, 0.5, None)
    """
    if text is None:
        return None
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise Stop(BAD_USE, f"--sample {text}: should be more than 0 and up to 1, such as 0.05 or 5%")
    return share


def add_to(app: typer.Typer) -> None:
    """Register the commands with their examples."""
    app.command(
        epilog=examples(
            "orbweaver verify",
            "orbweaver verify --round 3 --json",
            "orbweaver verify --sample 5% --lake s3://bucket/lake  # a twentieth of the records, always the same",
        )
    )(verify)
    app.command(
        epilog=examples(
            "orbweaver gc  # list what is older than a week",
            "orbweaver gc --delete --older-than 30d",
        )
    )(gc)
    app.command(
        epilog=examples(
            "orbweaver repair",
            "orbweaver repair crawl-data/ORB-2026-47/segments/1795500000000.2/warc/NAME.warc.gz --json",
        )
    )(repair)
    app.command(epilog=examples("orbweaver restore", "orbweaver restore --lake s3://bucket/lake --json"))(restore)
