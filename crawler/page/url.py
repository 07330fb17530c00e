"""What a URL is: parsed as the WHATWG URL Standard says, then made canonical by our own named rules.

`host` means, everywhere: the A-label host name, followed by `:port` where the port is not the scheme's own; IPv6 in
brackets. Two URLs are the same page address exactly when their canonical texts are equal.

Deviations from the standard's own serialisation, all but the last three switchable in the settings: the fragment and
the userinfo are dropped; session ids and tracking parameters are cut out; runs of slashes in the path become one (not
after a colon, where an archived URL begins). A final dot of the host is dropped, `^` in a path is escaped as the
standard has it since 2024, and hosts that DNS cannot hold (a label over 63 bytes, a name over 253, an empty label) or
whose `xn--` labels do not decode are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple, Protocol

import can_ada
from publicsuffixlist import PublicSuffixList
from xxhash import xxh64_intdigest

_HOST_BITS = 0xFFFFFF0000000000
_URL_BITS = 0x000000FFFFFFFFFF
_WEB = frozenset({"http:", "https:", "ftp:"})
# What sends a text through all rules: query, path parameter, userinfo, caret, run of slashes, ASP.NET session.
_UNUSUAL = re.compile(r"[?;@^]|/[/(]")
_SLASHES = re.compile(r"(?<!:)/{2,}")
# Nutch's session ids, and those of ColdFusion, ASP, osCommerce and Zen Cart.
_SESSION = r"_?(?:l|j|bv_)?(?:sid|sessionid)|phpsessid|aspsessionid[a-z]*|cfid|cftoken|oscsid|zenid"
_SESSION_PATH = re.compile(rf";(?:{_SESSION})=[^/;]*", re.IGNORECASE)
_ASP_NET_PATH = re.compile(r"/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=/)", re.IGNORECASE)
MAX_BASE_CHARS = 4_096
SEED = 42  # of every key; Spark's xxhash64 has no other


class Url(NamedTuple):
    """A canonical URL (ASCII, no spaces or control characters), its host and its signed 64-bit key."""

    url: str
    host: str
    key: int


class Refusal(NamedTuple):
    """Why a text is no URL of ours: invalid, scheme, invalid_host."""

    reason: str


class UrlRules(Protocol):
    """The named rules, each with its switch; `settings.url` is one of these."""

    @property
    def strip_fragment(self) -> bool: ...
    @property
    def strip_userinfo(self) -> bool: ...
    @property
    def strip_session_ids(self) -> bool: ...
    @property
    def strip_tracking(self) -> bool: ...
    @property
    def collapse_slashes(self) -> bool: ...
    @property
    def tracking_parameters(self) -> tuple[str, ...]: ...


class UrlPolicy:
    """Makes URLs canonical by the named rules. Canonical texts stay as they are: the policy is idempotent."""

    def __init__(self, rules: UrlRules) -> None:
        self.rules = rules
        names = [_SESSION] if rules.strip_session_ids else []
        if rules.strip_tracking:
            names += _name_patterns(rules.tracking_parameters)
        self._dropped = re.compile(rf"(?:^|[&;])(?:{'|'.join(names)})=[^&;]*", re.IGNORECASE) if names else None

    def canonical(self, raw: str, base: str | None = None) -> Url | Refusal:
        """The canonical form of `raw`, resolved against `base` where it is relative."""
        try:
            parsed = _parsed(base) + raw if base is not None else can_ada.parse(raw)
        except (ValueError, TypeError):  # TypeError: lone surrogates
            return Refusal("invalid")
        return self._settle(parsed)

    def _settle(self, parsed: can_ada.URL) -> Url | Refusal:
        scheme, host = parsed.protocol, parsed.host
        href = parsed.href.partition("#")[0] if self.rules.strip_fragment else parsed.href
        if scheme not in _WEB:
            return Refusal("scheme")
        name, high = _host_identity(host)
        if not name:
            return Refusal("invalid_host")
        if name != host or _UNUSUAL.search(href, len(scheme) + 2):
            href = self._rewritten(parsed, name)
        key = high | (xxh64_intdigest(href.encode(), SEED) & _URL_BITS)
        return Url(href, name, key - (1 << 64) if key >> 63 else key)

    def _rewritten(self, parsed: can_ada.URL, host: str) -> str:
        rules = self.rules
        before, hash_sign, fragment = parsed.href.partition("#")
        search = parsed.search or ("?" if before.endswith("?") else "")
        userinfo = "" if rules.strip_userinfo else _userinfo(parsed)
        path = self._path(parsed.pathname)
        text = f"{parsed.protocol}//{userinfo}{host}{path}{self._query(search)}"
        if path != parsed.pathname:  # a session id may have hidden a dot segment: `/a/%2e.;sid=1`
            text = can_ada.parse(text).href
        return text if rules.strip_fragment else text + hash_sign + fragment

    def _path(self, path: str) -> str:
        path = path.replace("^", "%5E")
        if self.rules.strip_session_ids:
            if ";" in path:
                path = _SESSION_PATH.sub("", path)
            if "(" in path:
                path = _ASP_NET_PATH.sub("", path)
        return _SLASHES.sub("/", path) if self.rules.collapse_slashes and "//" in path else path

    def _query(self, search: str) -> str:
        if self._dropped is None or "=" not in search:
            return search
        query, dropped = self._dropped.subn("", search[1:])
        if not dropped:
            return search
        query = query.lstrip("&;")
        return f"?{query}" if query else ""


def resolved_base(href: str | None, url: str) -> str:
    """The base that a document at `url` declares as `href`; the URL itself where that is not http(s), or so long that
    every relative link would cost a copy of it."""
    if href is None:
        return url
    try:
        base = can_ada.parse(url) + href
    except (ValueError, TypeError):
        return url
    return base.href if base.protocol in ("http:", "https:") and len(base.href) <= MAX_BASE_CHARS else url


def host_key(host: str) -> int:
    """The signed 64-bit key of a host or registered domain: XXH64, as Spark's `xxhash64` makes it."""
    key = xxh64_intdigest(host.encode(), SEED)
    return key - (1 << 64) if key >> 63 else key


def url_key(url: str, host: str) -> int:
    """The signed 64-bit key of a canonical URL: the high 24 bits of its host's key, the low 40 of its own hash."""
    key = (xxh64_intdigest(host.encode(), SEED) & _HOST_BITS) | (xxh64_intdigest(url.encode(), SEED) & _URL_BITS)
    return key - (1 << 64) if key >> 63 else key


def bucket_of(key: int, buckets: int) -> int:
    """The range, of `buckets` equal ones, that a key lies in by its high 24 bits: those of its host."""
    return ((key & 0xFFFFFFFFFFFFFFFF) >> 40) * buckets >> 24


def host_name(host: str) -> str:
    """A host without its port; IPv6 keeps its brackets.

    >>> host_name("example.org:8080"), host_name("[::1]:80"), host_name("[::1]")
    ('example.org', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and not port.endswith("]") else host


def host_port(host: str) -> int | None:
    """The port of a host, None where it is the scheme's own.

    >>> host_port("example.org:8080"), host_port("[::1]:81"), host_port("[::1]")
    (8080, 81, None)
    """
    port = host[len(host_name(host)) + 1 :]
    return int(port) if port else None


@lru_cache(maxsize=65_536)
def registered_domain(host: str) -> str:
    """The registered domain by the ICANN part of the public suffix list, without port.

    An address, a single label or a public suffix is its own domain.
    """
    name = host_name(host)
    if is_address(name):
        return name
    return _suffixes().privatesuffix(name) or name


def private_domain(host: str) -> str:
    """The registered domain by the whole public suffix list, without port: below the private suffix of a hosting
    platform every customer has one.

    >>> registered_domain("www.someone.github.io"), private_domain("www.someone.github.io")
    ('github.io', 'someone.github.io')
    """
    name = host_name(host)
    return name if is_address(name) else _suffixes(only_icann=False).privatesuffix(name) or name


@lru_cache(maxsize=65_536)
def is_address(name: str) -> bool:
    """Whether a host name is an IPv4 address or a bracketed IPv6 one."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=2)
def _suffixes(*, only_icann: bool = True) -> PublicSuffixList:
    return PublicSuffixList(only_icann=only_icann)


@lru_cache(maxsize=4_096)
def _parsed(base: str) -> can_ada.URL:
    return can_ada.parse(base)


@lru_cache(maxsize=65_536)
def _host_identity(host: str) -> tuple[str, int]:
    """The host as we name it and the high bits of its keys; an empty name where DNS cannot hold it."""
    name, port = host_name(host), host[len(host_name(host)) :]
    name = name.removesuffix(".")
    if len(name) > 253 or not all(0 < len(label) <= 63 for label in name.split(".")):
        return "", 0
    identity = name + port
    return identity, xxh64_intdigest(identity.encode(), SEED) & _HOST_BITS


def _userinfo(parsed: can_ada.URL) -> str:
    if not parsed.has_credentials():
        return ""
    return f"{parsed.username}:{parsed.password}@" if parsed.password else f"{parsed.username}@"


def _name_patterns(names: Iterable[str]) -> list[str]:
    """Regular expressions of parameter names; a final `*` stands for any rest."""
    return [re.escape(n.removesuffix("*")) + ("[^=&;]*" if n.endswith("*") else "") for n in names]
