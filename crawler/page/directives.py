"""Robots directives that a page (meta) or its HTTP head (X-Robots-Tag) gives.

All names are lower case; `none` means noindex and nofollow. Directives with a value (`unavailable_after: ...`,
`max-snippet: 3`) keep their name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_PLAIN = {"all", "noindex", "nofollow", "none", "noarchive", "nocache", "nosnippet", "noimageindex", "notranslate"}
_RARE = {"index", "follow", "archive", "noodp", "noydir", "indexifembedded", "noai", "noimageai"}
_WITH_VALUE = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
DIRECTIVES = frozenset(_PLAIN | _RARE | _WITH_VALUE)


def from_headers(values: Iterable[str], product_token: str) -> frozenset[str]:
    """The directives for us in the values of X-Robots-Tag fields, one value a field.

    A directive that follows `token:` holds for that product only, up to the next `token:` in the same value.

    >>> sorted(from_headers(["otherbot: noindex, nofollow", "noarchive", "orbweaver: none"], "orbweaver"))
    ['noarchive', 'nofollow', 'noindex']
    """
    found: set[str] = set()
    for value in values:
        is_ours = True
        for part in value.lower().split(","):
            name, colon, rest = part.partition(":")
            if colon and name.strip() not in _WITH_VALUE:
                is_ours = name.strip() in (product_token.lower(), "*", "robots")
                part = rest
            if is_ours:
                found.update(_expanded(part))
    return frozenset(found)


def from_meta(metas: Iterable[tuple[str, str]], product_token: str) -> frozenset[str]:
    """The directives for us in the (name, content) pairs of a page's metas: those named robots or as we are."""
    ours = ("robots", product_token.lower())
    return frozenset(
        directive
        for name, content in metas
        if name.strip().lower() in ours
        for part in content.lower().split(",")
        for directive in _expanded(part)
    )


def is_robots_meta(content: str) -> bool:
    """Whether the content of a meta holds robots directives, so that its name may be a product token."""
    return any(part.partition(":")[0].strip() in DIRECTIVES for part in content.lower().split(",", 20))


def _expanded(part: str) -> Iterator[str]:
    for word in (part.partition(":")[0]).split():
        if word == "none":
            yield from ("noindex", "nofollow")
        elif word in DIRECTIVES:
            yield word
