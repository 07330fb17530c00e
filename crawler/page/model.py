"""What a document module makes of a body."""

from __future__ import annotations

from dataclasses import dataclass, field

OK = "ok"
NOT_PARSED = "not_parsed"
FAILED = "failed"
KILLED = "killed"
DEPTH_LIMITED = "depth_limited"
TRUNCATED = "truncated"


@dataclass
class Page:
    """A parsed document. All texts are valid UTF-8 without NUL.

    `hrefs` are raw, distinct and in document order, without those marked nofollow, which are in `nofollow_hrefs`.
    They are to be resolved against `base`. `refused` counts, by reason, what was found and not taken: `guessed` are
    links whose address would have to be guessed, `too_many` those over a limit of the format. Text is not normalised:
    words are separated by any white space.
    """

    mime_detected: str
    parse_status: str = OK  # ok, not_parsed, failed, killed, depth_limited, truncated
    reason: str | None = None  # why it is not ok, for people
    title: str | None = None
    text: str = ""
    hrefs: list[str] = field(default_factory=list)
    nofollow_hrefs: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    ends_open: bool = False  # the last href stands at the end of the body, which could have been cut within it
    base: str = ""
    source: str = "link"  # link, sitemap, feed: how the hrefs are found
    is_index: bool = False  # of sitemaps: the hrefs are those of sitemaps
    robots_metas: list[tuple[str, str]] = field(default_factory=list)  # (name, content), lower case
    directives: frozenset[str] = frozenset()  # of `robots` and of our product token: noindex, nofollow, noarchive, ...
    charset: str | None = None  # WHATWG name
    charset_source: str | None = None  # bom, header, meta, content, default

    def cut(self) -> None:
        """Note that the body ends early: a last line that is an address may be a part of one, and is not followed."""
        if self.parse_status == OK:
            self.parse_status = TRUNCATED
        if self.ends_open and self.hrefs:
            self.hrefs.pop()
            self.refused["guessed"] = self.refused.get("guessed", 0) + 1

    @property
    def nofollow(self) -> int:
        """How many links the page forbids us to follow."""
        return len(self.nofollow_hrefs)


class Addresses:
    """The addresses that a document gives, distinct and in its order; what is not taken is counted."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._taken: dict[str, None] = {}
        self._guessed: dict[str, None] = {}
        self._too_many = 0

    def add(self, address: str, *, is_sure: bool = True) -> None:
        """Take an address in, which `is_sure` where nothing of it had to be guessed; an empty one means nothing."""
        where = self._taken if is_sure else self._guessed
        if not address or address in where:
            return
        if len(where) < self._at_most:
            where[address] = None
        else:
            self._too_many += 1

    def fill(self, page: Page) -> None:
        """Write all of it into the page."""
        page.hrefs = list(self._taken)
        counts = {"guessed": len(self._guessed), "too_many": self._too_many}
        page.refused = {reason: count for reason, count in counts.items() if count}
