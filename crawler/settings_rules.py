"""What a settings value may be: the types and bounds of `crawler.settings`, and the few rules they cannot say."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from crawler.page.filters import BAD_PORTS
from crawler.settings import Settings

Fault = tuple[str, str]
"""`section.key`, and what is allowed there."""

MAIL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+"
WEB = r"https?://[!-'*-~]+"
SUFFIX, SUFFIXES = r"\.[^\s/?#]+", 'endings of a path that begin with a dot, such as [".iso", ".tar.gz"]'
MIME, MIMES = r"\*/\*|[\w!#$&^.+-]+/(\*|[\w!#$&^.+-]+)", 'MIME types, such as ["application/zip", "audio/*"]'


class Rule(NamedTuple):
    """A rule on one setting, which may look at the others too."""

    name: str
    holds: Callable[[Settings], bool]
    allowed: str


@cache
def _adapter() -> TypeAdapter[Settings]:
    return TypeAdapter(Settings)


def faults_by_type(values: Mapping[str, object]) -> tuple[Settings | None, list[Fault]]:
    """The settings made of values by `section.key`, or None and what is wrong. Nothing is guessed: "5" is no number."""
    tables: dict[str, dict[str, object]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        tables.setdefault(section, {})[key] = value
    try:
        return _adapter().validate_json(json.dumps(tables, default=str), strict=True), []
    except ValidationError as error:
        return None, [_fault(details["loc"], details["msg"]) for details in error.errors(include_url=False)]


def faults_by_rule(settings: Settings) -> list[Fault]:
    """The rules that settings of the right types break."""
    return [(rule.name, f"should be {rule.allowed}") for rule in RULES if not rule.holds(settings)]


def _fault(place: Sequence[int | str], message: str) -> Fault:
    section, key, *inside = map(str, place)
    said = (
        message.removeprefix("Input ")
        .replace("a valid array", "a list")
        .replace("a valid integer", "an integer")
        .replace("a valid ", "a ")
    )
    return f"{section}.{key}", f"item {inside[0]} {said}" if inside else said


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _are_patterns(patterns: Sequence[str]) -> bool:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return all(re2.compile(pattern, options) for pattern in patterns)
    except re2.error:
        return False


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _are_all(pattern: str, texts: Sequence[str]) -> bool:
    return all(_matches(pattern, text) for text in texts)


RULES = (
    Rule("crawl.name", lambda s: _matches(r"[A-Za-z0-9][A-Za-z0-9-]*", s.crawl.name), "letters, digits and hyphens"),
    Rule(
        "crawl.user_agent",
        lambda s: _matches(r"[A-Za-z][A-Za-z0-9_-]*", s.crawl.user_agent),
        "a product token of letters, digits, '-' and '_', without a version: robots.txt rules are matched against it",
    ),
    Rule(
        "crawl.contact",
        lambda s: _matches(f"|{MAIL}|{WEB}", s.crawl.contact),
        'a web address or a mail address, such as "https://example.org/bot" or "bot@example.org"',
    ),
    Rule("crawl.operator", lambda s: s.crawl.operator.isprintable(), "one line of printable characters"),
    Rule(
        "fetch.allow_addresses",
        lambda s: all(map(_is_network, s.fetch.allow_addresses)),
        'a list of addresses and networks, such as ["127.0.0.0/8", "::1"]',
    ),
    Rule("fetch.host_map", lambda s: not s.fetch.host_map or Path(s.fetch.host_map).is_file(), "a file that exists"),
    Rule(
        "filters.ports",
        lambda s: BAD_PORTS.isdisjoint(s.filters.ports),
        f"ports that no other protocol has; never asked are {', '.join(map(str, sorted(BAD_PORTS)))}",
    ),
    Rule("filters.deny_suffixes", lambda s: _are_all(SUFFIX, s.filters.deny_suffixes), SUFFIXES),
    Rule("filters.keep_suffixes", lambda s: _are_all(SUFFIX, s.filters.keep_suffixes), SUFFIXES),
    Rule("content.deny_types", lambda s: _are_all(MIME, s.content.deny_types), MIMES),
    Rule("content.unparsed_types", lambda s: _are_all(MIME, s.content.unparsed_types), MIMES),
    Rule("content.unstored_types", lambda s: _are_all(MIME, s.content.unstored_types), MIMES),
    Rule("filters.block_lists", lambda s: all(Path(f).is_file() for f in s.filters.block_lists), "files that exist"),
    Rule("filters.deny_patterns", lambda s: _are_patterns(s.filters.deny_patterns), "regular expressions (RE2)"),
    Rule("filters.allow_patterns", lambda s: _are_patterns(s.filters.allow_patterns), "regular expressions (RE2)"),
    Rule(
        "near_duplicates.bands",
        lambda s: s.near_duplicates.permutations % s.near_duplicates.bands == 0,
        "a divisor of near_duplicates.permutations",
    ),
    Rule("spark.driver_memory", lambda s: _matches(r"\d+[kmgt]", s.spark.driver_memory), 'a size such as "2g"'),
)
