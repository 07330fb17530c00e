"""How commands end: one exit code a kind of trouble, one clear message, no traceback."""

from __future__ import annotations

import errno
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
NO_STORAGE = 6
ROUND_OPEN = 7
FAULT = 70
INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES = {
    OK: "all well",
    NOT_FOUND: "a check failed, or the URL or round is not there",
    BAD_USE: "bad usage or bad settings",
    LAKE_HELD: "the lake is held by another driver",
    BAD_TABLE: "there is no lake, or a table cannot be read as needed",
    NO_CONTACT: "the crawl could touch public addresses and has no crawl.contact",
    NO_STORAGE: "the lake's storage refuses: not writable, no credentials, full, or out of reach",
    ROUND_OPEN: "a round is open: `orbweaver round` finishes it",
    FAULT: "a fault of orbweaver or of the machine; ORBWEAVER_DEBUG=1 shows where",
    INTERRUPTED: "interrupted by Ctrl-C; the same command goes on with the open round",
    TERMINATED: "the same by SIGTERM",
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


_REFUSING = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR}


def _code_of(error: Exception) -> int:
    if isinstance(error, Stop):
        return error.code
    if isinstance(error, OSError) and error.errno in _REFUSING:
        return NO_STORAGE
    return next((code for kind, code in _known_errors() if isinstance(error, kind)), FAULT)


def _words_of(error: Exception, code: int) -> str:
    text = str(error).strip()
    first = text.splitlines()[0] if text else "no message"
    if code == NO_STORAGE:
        return _storage_words(error, first)
    if code != FAULT:
        return text
    return f"{type(error).__name__}: {first[:500]} (ORBWEAVER_DEBUG=1 shows where)"


def _storage_words(error: Exception, first: str) -> str:
    """What the storage said, and what to look at."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the disk'}: {error.strerror}. The folder must be writable and have room"
    if "/latest/api/token" in first or "/latest/meta-data" in first:
        return (
            "no credentials for S3: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor a profile in ~/.aws "
            f"(AWS_PROFILE) has any, and this machine has no role that could be asked ({first[:200]})"
        )
    return f"{first[:500]}. `orbweaver doctor --lake URI` checks region, endpoint and credentials"


def _known_errors() -> Iterator[tuple[type[Exception], int]]:
    """Errors of rooms, without importing a room that the command did not use."""
    for module, name, code in (
        ("crawler.settings_files", "SettingsError", BAD_USE),
        ("crawler.spark", "UnsafeSession", BAD_USE),
        ("crawler.tables.lock", "LockHeld", LAKE_HELD),
        ("crawler.tables.lock", "LockLost", LAKE_HELD),
        ("crawler.tables.manifest", "TableError", BAD_TABLE),
        ("crawler.tables.delta", "TableError", BAD_TABLE),
        ("obstore.exceptions", "BaseError", NO_STORAGE),
    ):
        if module in sys.modules:
            yield getattr(sys.modules[module], name), code
