"""Numbers, times, tables and other people's text as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

_ACTS_ON_TERMINALS = re.compile(
    "[\0-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # order of writing
    "\u2028\u2029\ud800-\udfff]"  # line ends of Unicode, halves of characters
)


def visible(text: str, keep: str = "") -> str:
    """The text with escapes in place of characters that a terminal acts on instead of showing them, but for `keep`.

    >>> visible("a\x1b[2J\u202eb\\n", keep="\\n")
    'a\\\\x1b[2J\\\\u202eb\\n'
    """
    return _ACTS_ON_TERMINALS.sub(lambda found: found[0] if found[0] in keep else _escape(ord(found[0])), text)


def lines_of(lines: Iterable[str]) -> str:
    """The lines as one text. What strangers wrote in a line ends no line."""
    return "\n".join(map(visible, lines))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


LEFT_OUT = {
    "host_waiting": "the host may not be asked before the round ends",
    "host_budget": "its host gives no more in one round",
    "domain_hosts": "its domain has more new hosts than a round asks; they have their turns in later ones",
    "domain_share": "its domain had its share of a full round",
    "address_budget": "the address of its host gives no more in one round",
    "address_share": "the address of its host had its share of a full round",
    "round_budget": "the round was full before its turn",
    "not_opened": "more was due than a round looks at",
}
"""What the reasons mean for which a plan leaves URLs in the calendar."""


def number(value: float | None, digits: int = 0) -> str:
    """1234567 as `1,234,567`; nothing as `-`."""
    return "-" if value is None else f"{value:,.{digits}f}"


def size(count: float) -> str:
    """Bytes in the largest unit of 1,024 that leaves a whole number: `1.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def duration(seconds: float) -> str:
    """41 as `0:00:41`, four days as `4 d 0:00:00`."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86_400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock


def instant(value: datetime | float | None) -> str:
    """A time in UTC to the second; nothing as `-`."""
    if value is None:
        return "-"
    at = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value.astimezone(UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def count_of(many: int, one: str, more: str | None = None) -> str:
    """`1 URL`, `2 URLs`, `3 entries`."""
    return f"{many:,} {one if many == 1 else more or one + 's'}"


def columns(rows: Iterable[Sequence[object]], indent: str = "  ") -> list[str]:
    """Rows as aligned lines: the first column to the left, the others to the right, the last as it is when text."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [indent + "  ".join(_aligned(row, widths)).rstrip() for row in cells]


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else str(value)
    return number(value) if isinstance(value, int) else number(value, 1)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        text.ljust(width) if place == 0 or (place == len(row) - 1 and not _is_number(text)) else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdigit() or text == "-"
