"""What commands print. A web server's words may drive a terminal; what people read here cannot.

Titles, header fields, URLs, reasons and seeds are written by strangers, and a terminal acts on control characters: it
would move the cursor, clear lines, or show letters in another order than they have. So everything that a command says
goes through `say`, which leaves line ends alone and makes all other such characters visible, as `\\x1b`. Texts of
several lines are put together by `jobs.words.lines_of`, so that a value in a line cannot begin one of its own. Bytes
are written as they are to files and pipes, and made visible on terminals. JSON is ASCII, and one writer knows how keys,
numbers and times look in it. Nothing else in `jobs` prints, but the programs that set a machine up.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, TextIO

from jobs.words import instant, visible

MOST_EXACT = 2**53 - 1
"""The largest integer up to which all readers of JSON agree (RFC 8259, section 6)."""

_KEY = re.compile(r"(.*_)?(key|checksum|payload)")
_KEY_LISTS = frozenset({"links", "bands"})
_TIME = re.compile(r".*_at|not_before|modified")


def say(text: str, stream: TextIO | None = None) -> None:
    """Print lines, by default to standard output."""
    _put(visible(text, keep="\n"), stream or sys.stdout)


def say_row(cells: Iterable[object]) -> None:
    """Print cells with tabs between them; None is empty. A cell holds neither tab nor line end then."""
    _put("\t".join("" if cell is None else visible(str(cell)) for cell in cells), sys.stdout)


def _put(text: str, stream: TextIO) -> None:
    """Print the text; characters that the encoding of the stream has not are escaped as well."""
    coding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(coding, "backslashreplace").decode(coding), file=stream, flush=True)


def say_bytes(data: bytes) -> None:
    """Bytes as they are to a file or pipe; on a terminal as text, with visible escapes for what is none."""
    if sys.stdout.isatty():
        say(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").expandtabs())
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def json_text(value: object, indent: int | None = None) -> str:
    """A value as JSON in ASCII.

    64-bit keys, known by their names in the tables, are always strings, and so is any other integer that a reader with
    53 bits would round. Times are ISO 8601 in UTC to the second, with Z: datetimes, and epoch seconds in fields named
    as times. Numbers that JSON has not become null; what it has no form for becomes text.

    >>> json_text({"url_key": 7, "rows": 2**53, "due_at": 0.0, "links": [1], "share": float("nan")})
    '{"url_key": "7", "rows": "9007199254740992", "due_at": "1970-01-01T00:00:00Z", "links": ["1"], "share": null}'
    """
    return json.dumps(_plain("", value), indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def _plain(name: str, value: object) -> object:
    """The value as JSON knows it, by the name of the field that holds it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(str(key), one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [str(one) if name in _KEY_LISTS and _is_integer(one) else _plain(name, one) for one in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, int | float):
        return _number(name, value)
    return str(value)


def _number(name: str, value: float) -> object:
    if not math.isfinite(value):
        return None
    if _TIME.fullmatch(name):
        with suppress(OverflowError, ValueError, OSError):  # no time that a calendar has
            return instant(value)
    is_key = _is_integer(value) and _KEY.fullmatch(name)
    return str(value) if is_key or (_is_integer(value) and abs(value) > MOST_EXACT) else value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
