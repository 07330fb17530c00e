"""How commands end: one exit code a kind of trouble, one clear message, no traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator

from jobs.output import say

OK = 0
NOT_FOUND = 1
BAD_USE = 2
LAKE_HELD = 3
BAD_TABLE = 4
NO_CONTACT = 5
FAULT = 70
INTERRUPTED = 130

EXIT_CODES = {
    OK: "all well",
    NOT_FOUND: "a check failed, or the URL or round is not there",
    BAD_USE: "bad usage or bad settings",
    LAKE_HELD: "the lake is held by another driver",
    BAD_TABLE: "there is no lake, or a table cannot be read as needed",
    NO_CONTACT: "the crawl could touch public addresses and has no crawl.contact",
    FAULT: "a fault of orbweaver or of the machine; ORBWEAVER_DEBUG=1 shows where",
    INTERRUPTED: "interrupted; the same command goes on with the open round",
}


class Stop(Exception):
    """A command ends here, with this message and exit code."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


def explain(error: Exception) -> int:
    """Say on stderr what went wrong; the exit code comes back."""
    code = _code_of(error)
    say(f"orbweaver: {_words_of(error, code)}", sys.stderr)
    if os.environ.get("ORBWEAVER_DEBUG"):
        say("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
    return code


def _code_of(error: Exception) -> int:
    if isinstance(error, Stop):
        return error.code
    return next((code for kind, code in _known_errors() if isinstance(error, kind)), FAULT)


def _words_of(error: Exception, code: int) -> str:
    text = str(error).strip()
    if code != FAULT:
        return text
    first = text.splitlines()[0] if text else "no message"
    return f"{type(error).__name__}: {first[:500]} (ORBWEAVER_DEBUG=1 shows where)"


def _known_errors() -> Iterator[tuple[type[Exception], int]]:
    """Errors of rooms, without importing a room that the command did not use."""
    for module, name, code in (
        ("crawler.settings_files", "SettingsError", BAD_USE),
        ("crawler.spark", "UnsafeSession", BAD_USE),
        ("crawler.tables.lock", "LockHeld", LAKE_HELD),
        ("crawler.tables.lock", "LockLost", LAKE_HELD),
        ("crawler.tables.manifest", "TableError", BAD_TABLE),
        ("crawler.tables.delta", "TableError", BAD_TABLE),
    ):
        if module in sys.modules:
            yield getattr(sys.modules[module], name), code
