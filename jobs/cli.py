"""`orbweaver`: the one command line. `--help`, `config show`, `inject` and all that only looks need no Java."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from jobs.commands import care, look, run
from jobs.exits import EXIT_CODES, explain
from jobs.interruption import Interrupted, listening
from jobs.output import say

HELP = """A web crawler that works in rounds: each one is a Spark job over Delta tables and WARC files.

A crawl lives in a lake (--lake): tables, WARC files, inbox, reports. A round plans what is due, fetches it politely,
reconciles what came with what is known, and commits.
"""
EPILOG = "\n".join(
    [
        "\b",
        "Examples:",
        "  orbweaver crawl https://example.org/ --rounds 3 --set crawl.contact=https://example.org/bot",
        "  orbweaver status",
        "  orbweaver why https://example.org/",
        "",
        "\b",
        "Exit codes:",
        *(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()),
    ]
)

app = typer.Typer(
    help=HELP, epilog=EPILOG, no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip
run.add_to(app)
look.add_to(app)
care.add_to(app)

Version = Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")]


@app.callback(invoke_without_command=True)
def options(version: Version = False) -> None:
    if version:
        import crawler

        say(f"orbweaver {crawler.__version__}")
        raise typer.Exit


def main(argv: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    sys.exit(invoke(argv))


def invoke(argv: list[str] | None = None) -> int:
    """Run a command; its exit code comes back."""
    try:
        with listening():
            typer.main.get_command(app)(args=argv, prog_name="orbweaver")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Interrupted as end:
        say(f"orbweaver: {end}", sys.stderr)
        return end.code
    except Exception as error:  # noqa: BLE001 - the one place where an error becomes a message and a code
        return explain(error)
    return 0


if __name__ == "__main__":
    main()
