"""Second opinions on robots.txt: a matcher that follows RFC 9309 word by word, Protego, and the standard library.

The first is compared on generated files of records as the standard has them, where it must agree, and on files with
other lines thrown in, where we may be stricter and never more open. The two others read much otherwise (escapes, odd
names, the first match or the longest), so they are asked only what all must answer alike.
"""

from __future__ import annotations

import re
import urllib.robotparser
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from crawler.page.robots import Robots

US = "orbweaver"
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
RESERVED = ":/?#[]@!$&'()*+,;="


def octets(path: str) -> list[str]:
    """RFC 9309, 2.2.2: what is compared. Octets beyond ASCII and those that a URI cannot hold are escaped."""
    found: list[str] = []
    data = path.encode("utf-8", "surrogateescape")
    at = 0
    while at < len(data):
        char = chr(data[at])
        if re.match(rb"%[0-9A-Fa-f]{2}", data[at : at + 3]):
            decoded = chr(int(data[at + 1 : at + 3], 16))
            found.append(decoded if decoded in UNRESERVED else data[at : at + 3].decode().upper())
            at += 3
            continue
        found.append(char if char in UNRESERVED + RESERVED + "%" else f"%{data[at]:02X}")
        at += 1
    return found


def is_match(pattern: str, path: str) -> bool:
    """2.2.3: `*` is any run of characters, `$` at the end is the end; both escaped in a rule mean themselves."""
    is_anchored = pattern.endswith("$")
    parts = [".*" if octet == "*" else re.escape(octet) for octet in octets(pattern.removesuffix("$"))]
    parts = ["%24" if part == re.escape("$") else part for part in parts]
    target = "".join({"*": "%2A", "$": "%24"}.get(octet, octet) for octet in octets(path))
    return re.match("".join(parts) + ("$" if is_anchored else ""), target, re.DOTALL) is not None


def octets_of_rule(pattern: str) -> int:
    is_anchored = pattern.endswith("$")
    return sum(3 if octet == "$" else len(octet) for octet in octets(pattern.removesuffix("$"))) + is_anchored


def oracle(lines: Iterable[str], path: str) -> bool:
    """2.2.1 and 2.2.2: the groups that name us, else those of `*`; the longest match, allow in a tie."""
    groups: list[tuple[set[str], list[tuple[str, str]]]] = []
    for line in lines:
        record = re.fullmatch(r"\s*(user-agent|allow|disallow)\s*:\s*([^#\0]*?)\s*(?:#.*)?", line, re.IGNORECASE)
        if record is None:
            continue
        name, value = record[1].lower(), record[2]
        if name == "user-agent":
            if not groups or groups[-1][1]:
                groups.append((set(), []))
            token = re.match(r"\*$|[A-Za-z_-]*", value)
            groups[-1][0].add(token[0].lower() if token else "")
        elif groups:
            groups[-1][1].append((name, value))
    ours = [rules for agents, rules in groups if US in agents]
    if not any(US in agents for agents, _ in groups):
        ours = [rules for agents, rules in groups if "*" in agents]
    found = [
        (octets_of_rule(value), name == "allow")
        for rules in ours
        for name, value in rules
        if value and is_match(value, path)
    ]
    return max(found)[1] if found else True


PIECES = ["a", "b", "ab", "/", "*", "$", "?", "=", "%62", "%26", "&", "é", "%c3%a9", ".", "%2A", "%24", "<", "%3C"]
PATHS = st.lists(st.sampled_from([piece for piece in PIECES if piece != "é"]), max_size=6).map(
    lambda it: "/" + "".join(it)
)
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=6).map(lambda it: "/" + "".join(it)) | st.just("")
AGENTS = st.sampled_from(["*", US, "OrbWeaver", "other", "orb", "orbweaver-news"])
RULES = st.tuples(st.sampled_from(["Allow", "disallow", "Disallow "]), PATTERNS).map(": ".join)
RECORDS = AGENTS.map("User-agent: {}".format) | RULES | RULES
OTHERS = st.sampled_from(["", "# why", "Sitemap: http://h.org/s", "Crawl-delay: 3", "Host: h.org", "nonsense", "x: y"])
ODD_AGENTS = [
    "User-agent: a orbweaver", "User-agent: *a*", "User-agent: orbweaver, b", "User-agent orbweaver", "User-agent *",
    "\ufeffUser-agent: *", "User-agent: **", "User-agent:", "User-agent: *bingbot*", "User-agent\0: orbweaver",
]  # fmt: skip
ODD_RULES = [
    "Disallow /a", "Allow /", "Disallow: /a /b", "Allow: /a /b", "Disallow: a", "Allow: a", "Allow", "Disallow", ": /a",
    "Allow: https://h.org/a", "Disallow: https://h.org/a", "Disallow: /\udce9", "Allow: /\udce9", "Allow:\0 /a",
    "<br>Allow: /", "Alow: /", "", "Allow: \0/",
]  # fmt: skip
ODD = st.sampled_from(ODD_AGENTS) | st.sampled_from(ODD_RULES)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(max_examples=600, deadline=None)
@given(st.lists(RECORDS | OTHERS, max_size=12), ENDS, st.lists(PATHS, min_size=1, max_size=4))
def test_files_by_the_standard_are_read_as_it_says(lines: list[str], end: str, paths: list[str]) -> None:
    robots = Robots.from_bytes(end.join(lines).encode(), US)
    assert [robots.allows(f"http://h.org{path}") for path in paths] == [oracle(lines, path) for path in paths]


@settings(max_examples=600, deadline=None)
@given(st.lists(RECORDS | OTHERS | ODD, max_size=12), st.lists(PATHS, min_size=1, max_size=4))
def test_other_lines_can_only_keep_us_out(lines: list[str], paths: list[str]) -> None:
    robots = Robots.from_bytes("\n".join(lines).encode("utf-8", "surrogateescape"), US)
    opened = [path for path in paths if robots.allows(f"http://h.org{path}")]
    assert [path for path in opened if not oracle(lines, path)] == []


PLAIN = st.lists(st.sampled_from(["a", "b", "/", "c.html"]), max_size=5).map(lambda it: "/" + "".join(it).lstrip("/"))
WILD = st.lists(st.sampled_from(["a", "b", "/", "*"]), max_size=6).map(lambda it: "/" + "".join(it).lstrip("/"))
ANCHORED = st.tuples(WILD, st.sampled_from(["", "$"])).map("".join)
PLAIN_RULES = st.tuples(st.sampled_from(["Allow", "Disallow"]), ANCHORED).map(": ".join)


@settings(max_examples=400, deadline=None)
@given(st.lists(PLAIN_RULES, max_size=8), st.lists(PLAIN_RULES, max_size=8), PLAIN)
def test_protego_agrees_where_nothing_is_odd(ours: list[str], others: list[str], path: str) -> None:
    text = "\n".join(["User-agent: *", *others, "", f"User-agent: {US}", *(ours or ["Disallow:"])])
    url = f"http://h.org{path}"
    assert Robots.from_bytes(text.encode(), US).allows(url) is Protego.parse(text).can_fetch(url, US)


@settings(max_examples=200, deadline=None)
@given(st.lists(PLAIN, max_size=8), st.booleans(), PLAIN)
def test_the_standard_library_agrees_on_prefixes_that_are_forbidden(rules: list[str], is_ours: bool, path: str) -> None:
    lines = [f"User-agent: {US if is_ours else '*'}", *(f"Disallow: {rule}" for rule in rules), "Disallow:"]
    parser = urllib.robotparser.RobotFileParser()
    parser.parse(lines)
    url = f"http://h.org{path}"
    assert Robots.from_bytes("\n".join(lines).encode(), US).allows(url) is parser.can_fetch(US, url)
