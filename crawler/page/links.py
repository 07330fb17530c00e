"""From the raw hrefs of a page to the distinct URLs that may be followed.

Pages of a site share most of their links, so each raw href is settled once for a site (root-relative and absolute
hrefs) or once for a directory (relative ones) and remembered: the usual href costs a look-up in a dict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.page.filters import FoundAs, UrlFilters
from crawler.page.url import Refusal, Url, UrlPolicy

# An href that means the page it stands on, so that it differs from page to page of a folder.
_MEANS_THE_PAGE = re.compile(r"[\x00-\x20]*(?:https?:)?[\x00-\x20]*(?:[?#]|$)", re.IGNORECASE)
HREFS_A_STEP = 1_000
_ENTRY_BYTES = 400  # about what a remembered href takes beside the characters of it and of its URL


class _Refused(NamedTuple):
    """A refused href: `text` tells one refused link from another."""

    text: str
    reason: str


_Verdict = Url | _Refused


@dataclass
class Links:
    """The links of a page. `found` counts the distinct ones before any filter: accepted and refused together."""

    urls: list[Url] = field(default_factory=list)  # distinct by key, in document order
    found: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # by reason; too_many: hrefs beyond `max_links`


class LinkReader:
    """Reads hrefs by one policy and one set of filters. Not thread-safe; one for a fetch partition.

    `memory_bytes` bounds roughly what is remembered.
    """

    def __init__(self, policy: UrlPolicy, filters: UrlFilters, max_links: int, memory_bytes: int = 64 << 20) -> None:
        self._policy = policy
        self._filters = filters
        self._max_links = max_links
        self._memory_bytes = memory_bytes
        self._known: dict[str, dict[str, _Verdict]] = {}
        self._room = memory_bytes

    def read(self, hrefs: Sequence[str], base: str, depth: int, found_as: FoundAs = "link") -> Links:
        """The links that `hrefs` mean on a page whose base is `base`; `depth` is theirs, the page's own plus one."""
        return next(links for links in self.steps(hrefs, base, depth, found_as) if links is not None)

    def steps(self, hrefs: Sequence[str], base: str, depth: int, found_as: FoundAs = "link") -> Iterator[Links | None]:
        """The same in steps of a thousand hrefs, None after each but the last: an event loop may do something else
        between them. Only the first `max_links` distinct hrefs are looked at, so no page costs more than these."""
        if self._policy.rules.strip_fragment:
            hrefs = list(dict.fromkeys([href.partition("#")[0] for href in hrefs]))
        left_out = max(0, len(hrefs) - self._max_links)
        hrefs = hrefs[: self._max_links]
        verdicts: list[_Verdict] = []
        for at in range(0, len(hrefs), HREFS_A_STEP):
            if at:
                yield None
            some = hrefs[at : at + HREFS_A_STEP]
            if found_as == "link":
                verdicts += self._verdicts(some, base)
            else:  # seldom, and not to be remembered: of a link the verdict may be another
                verdicts += [self._settle(href, base, found_as) for href in some]
        if len(hrefs) > HREFS_A_STEP:
            yield None
        accepted: dict[int, Url] = {}
        refused: dict[str, str] = {}
        for verdict in verdicts:
            if type(verdict) is Url:
                accepted[verdict.key] = verdict
            else:
                refused[verdict[0]] = verdict[1]
        urls = self._by_depth(list(accepted.values()), depth, found_as, refused)
        links = Links(urls, len(urls) + len(refused) + left_out)
        for reason in refused.values():
            links.refused[reason] = links.refused.get(reason, 0) + 1
        if left_out:
            links.refused["too_many"] = left_out
        yield links

    def _verdicts(self, hrefs: Sequence[str], base: str) -> list[_Verdict]:
        page = base.partition("#")[0].partition("?")[0]
        if page.count("/") < 3:
            page += "/"
        root = page.index("/", page.index("//") + 2) + 1
        of_site = self._known_of(page[:root])
        of_folder = self._known_of(page[: page.rfind("/") + 1])
        verdicts: list[_Verdict] = []
        for href in hrefs:
            known = of_site if href.startswith(("/", "http://", "https://")) else of_folder
            verdict = known.get(href)
            if verdict is None:
                verdict = self._settle(href, base)
                self._remember(known, href, verdict)
            verdicts.append(verdict)
        return verdicts

    def _known_of(self, context: str) -> dict[str, _Verdict]:
        """What is remembered of a site or folder; all of it is forgotten when there is no more room."""
        if self._room <= 0:
            self._known.clear()
            self._room = self._memory_bytes
        known = self._known.get(context)
        if known is None:
            known = self._known[context] = {}
            self._room -= _ENTRY_BYTES
        return known

    def _remember(self, known: dict[str, _Verdict], href: str, verdict: _Verdict) -> None:
        if len(href) > self._filters.max_raw_length or _MEANS_THE_PAGE.match(href):
            return
        if "\n" in href or "\t" in href or "\r" in href:  # dropped wherever they stand, so the test above is blind
            return
        known[href] = verdict
        self._room -= _ENTRY_BYTES + 2 * len(href)

    def _settle(self, href: str, base: str, found_as: FoundAs = "link") -> _Verdict:
        if len(href) > self._filters.max_raw_length:
            return _Refused(href, "raw_too_long")
        url = self._policy.canonical(href, base)
        if isinstance(url, Refusal):
            return _Refused(href, url.reason)
        reason = self._filters.refuse_at_any_depth(url, found_as)
        return url if reason is None else _Refused(url.url, reason)

    def _by_depth(self, urls: list[Url], depth: int, found_as: FoundAs, refused: dict[str, str]) -> list[Url]:
        """What depends on the depth is not remembered. Refusals are added to `refused`."""
        filters = self._filters
        if depth <= filters.max_depth and not filters.has_further:
            return urls
        kept = []
        for url in urls:
            reason = filters.refuse(url, depth, found_as)
            if reason is None:
                kept.append(url)
            else:
                refused[url.url] = reason
        return kept
