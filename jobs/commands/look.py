"""Commands that only look, without Spark: doctor, config, status, show, why, report."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from jobs.exits import NOT_FOUND
from jobs.options import (
    DEFAULT_LAKE,
    AsJson,
    ConfigFiles,
    LakeUri,
    RoundNumber,
    SetValues,
    UrlArgument,
    examples,
    remembered,
    settings_of,
    store_of,
)
from jobs.output import json_text, say, say_bytes, say_row

MaybeLake = Annotated[
    str | None,
    typer.Option("--lake", metavar="URI", envvar="ORBWEAVER_LAKE", help="A lake, ./lake if that is one."),
]
RanRound = Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="Those that a round ran with.")]
KeyValues = Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Settings, such as fetch.delay_s=2.")]

config_app = typer.Typer(help="Settings, and what a lake remembers.", no_args_is_help=True, rich_markup_mode=None)


def doctor(
    lake: LakeUri = DEFAULT_LAKE, config: ConfigFiles = None, sets: SetValues = None, as_json: AsJson = False
) -> None:
    """Check Java, Spark and Delta, the jars, the store, the clock and the open files."""
    from jobs.doctor import run

    checks = run(settings_of(config, sets), lake)
    if as_json:
        say(json_text([check._asdict() for check in checks]))
    else:
        for check in checks:
            say(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.found}")
            if not check.ok:
                say(f"    needed: {check.needed}; to mend it: {check.hint}")
    if not all(check.ok for check in checks):
        raise typer.Exit(NOT_FOUND)


def config_show(
    lake: MaybeLake = None,
    number: RanRound = None,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Print the settings in force, as TOML; those that were given say by whom.

    What a lake remembers is in force for all commands on it. With --round, those that a round ran with.
    """
    from dataclasses import asdict

    from crawler.settings_text import tables_toml
    from crawler.tables.manifest import read_manifest
    from jobs.shown_settings import round_settings, shown_toml

    if lake is not None:
        read_manifest(store_of(lake))
    where = lake or DEFAULT_LAKE
    if number is not None:
        ran_with = round_settings(store_of(where), number)
        say(json_text(ran_with) if as_json else tables_toml(ran_with).rstrip("\n"))
        return
    settings = settings_of(config, sets, where)
    held = remembered(where)
    say(json_text(asdict(settings)) if as_json else shown_toml(settings, config or (), sets or (), held))


def config_set(values: KeyValues, lake: LakeUri = DEFAULT_LAKE, as_json: AsJson = False) -> None:
    """Change what a lake remembers: settings that hold for all later commands on it. Refused while a round runs."""
    from jobs.shown_settings import remember

    done = remember(store_of(lake), values)
    say(json_text(done) if as_json else "\n".join(f"{name} = {value}" for name, value in done.items()))


def status(
    lake: LakeUri = DEFAULT_LAKE, config: ConfigFiles = None, sets: SetValues = None, as_json: AsJson = False
) -> None:
    """How the lake stands: rounds, frontier, inbox and who holds the lock."""
    from jobs.status import lake_status, status_text

    settings_of(config, sets, lake)
    found = lake_status(store_of(lake), time.time())
    say(json_text(found) if as_json else status_text(found))


Head = Annotated[bool, typer.Option("--head", help="The HTTP head as it is stored.")]
Body = Annotated[bool, typer.Option("--body", help="The body, its content coding undone; as it is but on a terminal.")]
Text = Annotated[bool, typer.Option("--text", help="The text, as the crawl reads it.")]


def show(  # noqa: PLR0913 - each option is one
    url: UrlArgument,
    head: Head = False,
    body: Body = False,
    text: Text = False,
    number: RoundNumber = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest stored capture of a URL: where it lies, its head, body or text.

    A capture that was stored as a revisit shows the body of the one it refers to.
    """
    from jobs.show import as_json as facts_of
    from jobs.show import body_of, find_capture, summary, text_of

    if head + body + text > 1:
        raise typer.BadParameter("--head, --body and --text exclude each other")
    settings = settings_of(config, sets, lake)
    shown = find_capture(store_of(lake), settings, url, number)
    if as_json:
        extra = {"text": text_of(shown, settings)} if text else {}
        if body:
            extra = {"body": body_of(shown, settings.fetch.max_decoded_bytes).decode("utf-8", "replace")}
        say(json_text({**facts_of(shown), **extra}))
    elif head:
        say_bytes(shown.record.head)
    elif body:
        say_bytes(body_of(shown, settings.fetch.max_decoded_bytes))
    else:
        say(text_of(shown, settings).expandtabs() if text else summary(shown))


def why(
    url: UrlArgument,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Tell all that the tables know of a URL: found where, planned when, what came of it, or why it is not crawled."""
    from jobs.why import why as ask
    from jobs.why_text import why_text

    facts = ask(store_of(lake), settings_of(config, sets, lake, ["filters.block_lists"]), url, time.time())
    say(json_text(facts) if as_json else why_text(facts))
    if not facts["known"]:
        raise typer.Exit(NOT_FOUND)


def report(
    number: RoundNumber = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Report on a committed round, and keep the report in the lake as text, JSON and HTML."""
    from jobs.report import make_report

    store = store_of(lake)
    made = make_report(store, settings_of(config, sets, lake), number)
    say(json_text(made.facts) if as_json else made.text)
    say(f"As pictures: {store.uri_of(made.files[-1])}", sys.stderr)


Statement = Annotated[str, typer.Argument(metavar="STATEMENT", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Rows to print at the most.")]


def sql(  # noqa: PLR0913 - each option is one
    statement: Statement,
    limit: Limit = 100,
    number: RoundNumber = None,
    lake: LakeUri = DEFAULT_LAKE,
    config: ConfigFiles = None,
    sets: SetValues = None,
    as_json: AsJson = False,
) -> None:
    """Ask the tables in Spark SQL, as a round committed them: every table is a view of its name.

    Needs no lock: it may run beside a round. A lake on S3 needs a Spark that has hadoop-aws.
    """
    from jobs.sql import open_views, query

    with open_views(store_of(lake), settings_of(config, sets, lake), number, statement) as spark:
        names, rows = query(spark, statement, limit)
    if as_json:
        say(json_text([dict(zip(names, row, strict=True)) for row in rows]))
    else:
        for row in (names, *rows):
            say_row(row)


def add_to(app: typer.Typer) -> None:
    """Register the commands with their examples."""
    app.command(epilog=examples("orbweaver doctor", "orbweaver doctor --lake s3://bucket/lake --json"))(doctor)
    config_app.command(
        "show",
        epilog=examples(
            "orbweaver config show --config strict",
            "orbweaver config show --set fetch.delay_s=2 --json",
            "orbweaver config show --lake lake --round 2  # what the second round ran with",
        ),
    )(config_show)
    config_app.command(
        "set",
        epilog=examples("orbweaver config set fetch.delay_s=2 crawl.contact=https://example.org/bot --lake lake"),
    )(config_set)
    app.add_typer(config_app, name="config")
    app.command(epilog=examples("orbweaver status", "orbweaver status --lake s3://bucket/lake --json"))(status)
    app.command(
        epilog=examples(
            "orbweaver show https://example.org/  # summary and head",
            "orbweaver show https://example.org/ --text",
            "orbweaver show https://example.org/logo.png --body --round 2 > logo.png",
        )
    )(show)
    app.command(epilog=examples("orbweaver why https://example.org/a", "orbweaver why example.org --json"))(why)
    app.command(epilog=examples("orbweaver report", "orbweaver report --round 2 --json"))(report)
    app.command(
        epilog=examples(
            "orbweaver sql 'SELECT outcome, count(*) FROM captures GROUP BY outcome'",
            "orbweaver sql 'SELECT url FROM captures WHERE fetch_status = 404' --round 2 --json",
        )
    )(sql)
