"""What a document module makes of a body."""

from __future__ import annotations

from dataclasses import dataclass, field

OK = "ok"
NOT_PARSED = "not_parsed"
FAILED = "failed"
KILLED = "killed"
DEPTH_LIMITED = "depth_limited"


@dataclass
class Page:
    """A parsed document. All texts are valid UTF-8 without NUL.

    `hrefs` are raw, distinct and in document order, without those marked nofollow, which are in `nofollow_hrefs`.
    They are to be resolved against `base`. Text is not normalised: words are separated by any white space.
    """

    mime_detected: str
    parse_status: str = OK  # ok, not_parsed, failed, killed, depth_limited
    reason: str | None = None  # why it is not ok, for people
    title: str | None = None
    text: str = ""
    hrefs: list[str] = field(default_factory=list)
    nofollow_hrefs: list[str] = field(default_factory=list)
    base: str = ""
    source: str = "link"  # link, sitemap, feed: how the hrefs are found
    is_index: bool = False  # of sitemaps: the hrefs are those of sitemaps
    robots_metas: list[tuple[str, str]] = field(default_factory=list)  # (name, content), lower case
    directives: frozenset[str] = frozenset()  # of `robots` and of our product token: noindex, nofollow, noarchive, ...
    charset: str | None = None  # WHATWG name
    charset_source: str | None = None  # bom, header, meta, default

    @property
    def nofollow(self) -> int:
        """How many links the page forbids us to follow."""
        return len(self.nofollow_hrefs)
