"""Robots directives that a page (meta) or its HTTP head (X-Robots-Tag) gives.

All names are lower case; `none` means noindex and nofollow. Directives with a value (`unavailable_after: ...`,
`max-snippet: 3`) keep their name only. They are separated by commas, semicolons or white space; a date may hold all of
these and colons, so it is read as a row of words that mean nothing, up to one that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PLAIN = {"all", "noindex", "nofollow", "none", "noarchive", "nocache", "nosnippet", "noimageindex", "notranslate"}
_RARE = {"index", "follow", "archive", "noodp", "noydir", "indexifembedded", "noai", "noimageai"}
_ONE_WORD_VALUE = {"max-snippet", "max-image-preview", "max-video-preview"}
DIRECTIVES = frozenset(_PLAIN | _RARE | _ONE_WORD_VALUE | {"unavailable_after"})
_SEPARATOR = re.compile("[,;]")
_WORD = re.compile(r"([^\s:]+)\s*(:?)")
_DIGIT = re.compile("[0-9]")  # in a word before a colon within a date: a time of day
_TOKEN = re.compile(r"\*|[a-z0-9_./-]+")


def from_headers(values: Iterable[str], product_token: str) -> frozenset[str]:
    """The directives for us in the values of X-Robots-Tag fields, one value a field.

    A directive that follows `token:` holds for that product only, up to the next `token:` in the same value.

    >>> sorted(from_headers(["otherbot: noindex, nofollow", "noarchive", "orbweaver: none"], "orbweaver"))
    ['noarchive', 'nofollow', 'noindex']
    """
    return frozenset(directive for value in values for directive in _directives(value, product_token))


def from_meta(metas: Iterable[tuple[str, str]], product_token: str) -> frozenset[str]:
    """The directives for us in the (name, content) pairs of a page's metas: those named robots or as we are."""
    ours = ("robots", product_token.lower())
    return frozenset(
        directive
        for name, content in metas
        if name.strip().lower() in ours
        for directive in _directives(content, product_token)
    )


def is_robots_meta(content: str) -> bool:
    """Whether the content of a meta holds robots directives, so that its name may be a product token."""
    parts = _SEPARATOR.split(content.lower(), 20)
    return any(words and DIRECTIVES.issuperset(words) for words in (part.partition(":")[0].split() for part in parts))


def _directives(value: str, product_token: str) -> Iterator[str]:
    is_ours, in_date = True, False
    for part in _SEPARATOR.split(value.lower()):
        in_value = False
        for word, colon in _WORD.findall(part):
            if in_value:
                in_value = False
            elif word in DIRECTIVES:
                in_date, in_value = word == "unavailable_after", word in _ONE_WORD_VALUE and colon == ":"
                if is_ours:
                    yield from ("noindex", "nofollow") if word == "none" else (word,)
            elif colon and _TOKEN.fullmatch(word) and not (in_date and _DIGIT.search(word)):
                is_ours, in_date = word in (product_token.lower(), "*", "robots"), False
