"""Which URLs may enter the crawl. Every refusal has a reason, and the reasons are counted.

Reasons: scheme, port, raw_too_long, too_long, too_deep, path_segments, path_repeats, denied_domain, block_list,
denied_prefix, denied_suffix, denied_pattern, not_allowed_pattern, out_of_scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np
import re2

from crawler.page.url import Url, host_key, host_name, host_port, is_address, registered_domain

BAD_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})  # fmt: skip
"""Ports of other protocols, to whose servers a request could mean something else: never asked, whoever wants it (Fetch
Standard, "port blocking", as of 2026)."""

WEB_PORTS = frozenset({80, 443})

OUT_OF_SCOPE = "out_of_scope"

FoundAs = Literal["link", "seed", "sitemap"]


class FilterRules(Protocol):
    """The values of the filters; `settings.filters` is one of these. Lengths are in characters."""

    @property
    def schemes(self) -> tuple[str, ...]: ...
    @property
    def ports(self) -> tuple[int, ...]: ...
    @property
    def max_raw_length(self) -> int: ...
    @property
    def max_length(self) -> int: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def max_path_segments(self) -> int: ...
    @property
    def max_segment_repeats(self) -> int: ...
    @property
    def deny_domains(self) -> tuple[str, ...]: ...
    @property
    def deny_prefixes(self) -> tuple[str, ...]: ...
    @property
    def deny_suffixes(self) -> tuple[str, ...]: ...
    @property
    def keep_suffixes(self) -> tuple[str, ...]: ...
    @property
    def deny_patterns(self) -> tuple[str, ...]: ...
    @property
    def allow_patterns(self) -> tuple[str, ...]: ...


class Scope(NamedTuple):
    """What seeds opened, as sorted little-endian int64 keys: hosts (mode `hosts`) or registered domains (`domains`),
    mode `web` has no bounds; and hosts with a port of their own, None for any that is not bad."""

    mode: str = "web"
    keys: bytes = b""
    ports: bytes | None = None


ANYWHERE = Scope()


class UrlFilter(Protocol):
    """A filter of a third party: a reason to refuse the URL, or None. It must be pure."""

    def refuse(self, url: Url, depth: int) -> str | None: ...


class UrlFilters:
    """The filters of the settings, block lists and scope, in the order that costs least, then those of third parties.

    `block_lines` are the lines of block lists: a domain (with all below it), a hosts(5) line, or a URL prefix; `#`
    starts a comment. Ports other than 80 and 443 are refused unless `filters.ports` or a seed of that very host opened
    them: a page must not make us try the ports of a server of its choice.
    """

    def __init__(
        self,
        rules: FilterRules,
        block_lines: Iterable[str] = (),
        scope: Scope = ANYWHERE,
        further: Sequence[UrlFilter] = (),
    ) -> None:
        self.rules = rules
        self.max_raw_length = rules.max_raw_length
        self.max_depth = rules.max_depth
        self._schemes = tuple(f"{scheme}://" for scheme in rules.schemes)
        self._denied = frozenset(domain.lower().strip(".") for domain in rules.deny_domains)
        domains, prefixes = _block_list(block_lines)
        self._blocked, self._blocked_prefixes = frozenset(domains), tuple(prefixes)
        self._denied_prefixes = tuple(rules.deny_prefixes)
        self._denied_suffixes = frozenset(suffix.lower() for suffix in rules.deny_suffixes)
        self._kept_suffixes = frozenset(suffix.lower() for suffix in rules.keep_suffixes)
        self._deny = _any_of(rules.deny_patterns, "filters.deny_patterns")
        self._allow = _any_of(rules.allow_patterns, "filters.allow_patterns")
        self._mode, self._scope = scope.mode, np.frombuffer(scope.keys, dtype="<i8")
        self._ports = None if scope.ports is None else np.frombuffer(scope.ports, dtype="<i8")
        self._open_ports = WEB_PORTS.union(rules.ports)
        self._further = tuple(further)
        self.refuse_host = lru_cache(maxsize=65_536)(self._host_verdict)

    def refuse(self, url: Url, depth: int, found_as: FoundAs = "link") -> str | None:
        """The reason why `url`, at `depth` links from a seed, may not be fetched; None when it may.

        A seed opens its scope; a sitemap may have any suffix.
        """
        if depth > self.max_depth:
            return "too_deep"
        return self.refuse_at_any_depth(url, found_as) or self._refused_further(url, depth)

    def refuse_at_any_depth(self, url: Url, found_as: FoundAs = "link") -> str | None:
        """The same without the depth and without third parties' filters: it depends on nothing but the URL."""
        text = url.url
        if not text.startswith(self._schemes):
            return "scheme"
        if len(text) > self.rules.max_length:
            return "too_long"
        reason = self.refuse_host(url.host)
        if reason is not None and not (found_as == "seed" and reason == OUT_OF_SCOPE):
            return reason
        if self._denied_suffixes and found_as != "sitemap" and self._is_denied_suffix(text):
            return "denied_suffix"
        return self._refused_path(text) or self._refused_text(text)

    def _refused_further(self, url: Url, depth: int) -> str | None:
        return next((reason for one in self._further if (reason := one.refuse(url, depth))), None)

    @property
    def has_further(self) -> bool:
        """Whether filters of third parties take part."""
        return bool(self._further)

    def refuse_port(self, host: str) -> str | None:
        """The reason why nobody may ask at the port of `host`, None when that is open."""
        port = host_port(host)
        if port is None:
            return None
        if port in BAD_PORTS:
            return "port"
        is_open = port in self._open_ports or self._ports is None or _holds(self._ports, host_key(host))
        return None if is_open else "port"

    def _host_verdict(self, host: str) -> str | None:
        if (reason := self.refuse_port(host)) is not None:
            return reason
        name = host_name(host)
        if self._denied and not self._denied.isdisjoint(_domains_of(name)):
            return "denied_domain"
        if self._blocked and not self._blocked.isdisjoint(_domains_of(name)):
            return "block_list"
        return None if self._is_in_scope(host) else OUT_OF_SCOPE  # last: a seed is refused for all else

    def _is_in_scope(self, host: str) -> bool:
        if self._mode == "web":
            return True
        return _holds(self._scope, host_key(host if self._mode == "hosts" else registered_domain(host)))

    def _refused_path(self, text: str) -> str | None:
        slashes = text.count("/") - 2
        if slashes <= self.rules.max_segment_repeats and slashes <= self.rules.max_path_segments:
            return None
        segments = text.partition("?")[0].split("/")[3:]
        if not segments[-1]:
            segments.pop()
        if len(segments) > self.rules.max_path_segments:
            return "path_segments"
        return "path_repeats" if _repeats(segments, self.rules.max_segment_repeats) else None

    def _is_denied_suffix(self, text: str) -> bool:
        """By what begins at a dot in the last segment of the path; the longest suffix that is in a list counts."""
        path = text.partition("?")[0] if "?" in text else text
        path = path.partition("#")[0] if "#" in path else path
        name = path[path.rfind("/") + 1 :]
        dot = name.find(".")
        if "%" in name:
            name = unquote(name)
            dot = name.find(".")
        while dot >= 0:
            suffix = name[dot:].lower()
            if suffix in self._kept_suffixes or suffix in self._denied_suffixes:
                return suffix not in self._kept_suffixes
            dot = name.find(".", dot + 1)
        return False

    def _refused_text(self, text: str) -> str | None:
        if self._denied_prefixes and _has_prefix(text, self._denied_prefixes):
            return "denied_prefix"
        if self._blocked_prefixes and _has_prefix(text, self._blocked_prefixes):
            return "block_list"
        if self._deny is not None and self._deny.search(text):
            return "denied_pattern"
        if self._allow is not None and not self._allow.search(text):
            return "not_allowed_pattern"
        return None


def _holds(keys: Any, key: int) -> bool:
    """Whether a sorted array has the key."""
    at = int(np.searchsorted(keys, key))
    return at < len(keys) and int(keys[at]) == key


def _has_prefix(text: str, prefixes: tuple[str, ...]) -> bool:
    """A prefix may leave out the scheme."""
    return text.startswith(prefixes) or text.startswith(prefixes, text.index("//") + 2)


def _domains_of(name: str) -> Iterator[str]:
    """The name and all domains above it."""
    yield name
    if not is_address(name):
        while "." in name:
            name = name.partition(".")[2]
            yield name


def _repeats(segments: Sequence[str], allowed: int) -> bool:
    """Whether some group of neighbouring segments comes more than `allowed` times in a row: /a/b/a/b/a/b."""
    count = len(segments)
    if count - len(set(segments)) < allowed:
        return False
    for size in range(1, count // (allowed + 1) + 1):
        run = 0
        for at in range(size, count):
            run = run + 1 if segments[at] == segments[at - size] else 0
            if run >= size * allowed:
                return True
    return False


def _block_list(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Domains and URL prefixes of block list lines."""
    domains: list[str] = []
    prefixes: list[str] = []
    for line in lines:
        words = line.partition("#")[0].split()
        if not words:
            continue
        if "/" in words[0]:
            prefixes.append(words[0])
        else:
            names = words[1:] if len(words) > 1 and is_address(words[0]) else words[:1]
            domains += [name.lower().strip(".") for name in names]
    return domains, prefixes


def _any_of(patterns: Sequence[str], setting: str) -> Any:
    """One linear-time expression for all patterns, None for none of them."""
    if not patterns:
        return None
    options = re2.Options()
    options.log_errors = False
    for pattern in patterns:
        try:
            re2.compile(pattern, options)
        except re2.error as error:
            raise ValueError(f"{setting}: {pattern!r} is no RE2 expression ({error})") from error
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns), options)
