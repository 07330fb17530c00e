"""robots.txt (RFC 9309): which lines speak to us, and what they say of a URL.

**Reading.** A body is decoded (UTF-8; UTF-16 and UTF-32 with or without a mark), and its lines are put into groups. Of
these only the ones that speak to our product token are kept. A record is a known field, a colon and a value; what is no
record neither ends a group nor stands in it.

**Two readings.** People write what the standard has no words for: `User-agent: a, b`, `Disallow /x`, `Disallow: /x
/y`. A file with such lines is read twice: by the standard, which passes them over, and as they were meant. A URL is
allowed when both readings allow it, so a doubtful line can only keep us out. Ordinary files have one reading.

**Matching.** Paths and patterns are brought to one spelling first (2.2.2): escapes of unreserved characters are undone,
what must be escaped is escaped, and escapes of reserved characters stay, so `%2F` is no `/`. In a query `:`, `/`, `?`,
`@` and `'` delimit nothing; there both spellings are equal. Rules without wildcards are one sorted text, and the
longest of them that a path begins with is found by bisection. Those with wildcards are tried from the longest to the
shortest, if the path has the last four characters of their longest literal piece at all. Their pieces are looked for
from left to right and never again, so no pattern blows up, and what a judgement may cost in all is bounded
(`MOST_WORK`).

Rules remember where their line begins, so that a verdict can name it.
"""

from __future__ import annotations

import codecs
import math
import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain, zip_longest
from typing import NamedTuple

import can_ada

PARSED_BYTES = 512_000
MOST_WORK = 50_000_000
"""Characters of patterns, times those of a path, that a judgement may try wildcards on. Beyond it the answer is no."""

_ALL, _US = 1, 2  # whom a line of user agents names; 0 is somebody else
_FLAGS = re.IGNORECASE | re.MULTILINE
_SPACE = r"[^\S\n]"
_AGENT = "user[- ]?agent"
_DISALLOW = "disallow|dissallow|dissalow|disalow|diasllow|disallaw"  # misspelled as Google's parser takes it, too
_DELAY = "crawl[- ]?delay"


class _Form(NamedTuple):
    """How records look in a reading."""

    agent: re.Pattern[str]
    rule: re.Pattern[str]  # 1: allow, 2: disallow, neither: a delay; 3: value
    end: re.Pattern[str]  # what ends the agents of a group

    @classmethod
    def of(cls, line: str) -> _Form:
        fields = (f"(?:{_AGENT})", f"(?:(allow)|({_DISALLOW})|(?:{_DELAY}))", f"(?:allow|{_DISALLOW})")
        return cls(*(re.compile(line.replace("FIELD", field), _FLAGS) for field in fields))


_RULES = f"(?:{_AGENT}|allow|{_DISALLOW})"
_BY_THE_STANDARD = _Form.of(rf"^{_SPACE}*+FIELD{_SPACE}*+:([^#\n]*)")
_AS_MEANT = _Form.of(rf"^(?:{_SPACE}|\ufeff)*+FIELD{_SPACE}*+(?::|(?<=\s))([^#\n]*)")
_IN_MARKUP = _Form.of(rf"(?:^|(?<=>)){_SPACE}*+FIELD{_SPACE}*+:([^#\n<]*)")
_DOUBTFUL = re.compile(rf"^{_SPACE}*+(?:{_RULES}{_SPACE}++[^\s:]|\ufeff)", _FLAGS)  # no colon; a mark of a file joined
_SITEMAP = re.compile(rf"^(?:{_SPACE}|\ufeff)*+sitemap{_SPACE}*+:([^#\n]*)", _FLAGS)
_RECORD = re.compile(rf"^{_SPACE}*+{_RULES}{_SPACE}*+:", _FLAGS)

_SAMPLE_BYTES = 16_384
_MARKS = (  # the little-endian mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")

_PLAIN_PATTERN = re.compile(r"/[\w\-.~/:@!&'()+,;=*?]*\$?", re.ASCII)
_PLAIN_URL = re.compile(r"(?:https?://[^/?#]*)?(/[\w\-.~/:@!&'()+,;=?]*)", re.ASCII)
_TO_SPELL = re.compile(r"%[0-9A-Fa-f]{2}|[^\w\-.~/:@!$&'()*+,;=?%]", re.ASCII)
_UNRESERVED = re.compile(r"[\w\-.~]", re.ASCII)
_IN_QUERY = re.compile("%(?:3A|2F|3F|40|27)")
_NO_TEXT = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, decoded
_TOKEN = re.compile(r"[\w-]+", re.ASCII)
_ANYBODY = re.compile(r"^[\W_]*$|(?<![^\s,;|\"'])\*(?![^\s,;|\"'])")
_MARK = 4
_STARS = re.compile(r"\*{2,}")
_ORIGIN = re.compile(r"^[a-z][a-z0-9+.-]*://[^/?#]*", re.IGNORECASE)


class Verdict(NamedTuple):
    """What robots.txt says of a URL. `at`: the place of the deciding rule in the text, None when none applies."""

    allowed: bool
    at: int | None = None


class Line(NamedTuple):
    number: int
    text: str


class Robots:
    """The rules for one product token. `size` is an estimate of the bytes they take in memory."""

    __slots__ = ("_readings", "crawl_delay", "size")

    def __init__(self, readings: list[_Rules]) -> None:
        self._readings = readings
        delays = [rules.crawl_delay for rules in readings if rules.crawl_delay is not None]
        self.crawl_delay = max(delays, default=None)  # seconds between requests that are asked of us
        self.size = 200 + sum(rules.size for rules in readings)

    @classmethod
    def from_bytes(cls, body: bytes, product_token: str) -> Robots:
        """Read the body of a successful robots.txt. It never raises; what is no record is passed over."""
        text = _decoded(body)
        has_nul = "\0" in text
        plain = "\n".join(map(_hushed, text.split("\n"))) if has_nul else text
        text = text.replace("\0", "")
        standard, is_doubtful = _read(plain, product_token, _BY_THE_STANDARD)
        if text[:1_000].lstrip().startswith("<"):
            return cls([standard, _read(text, product_token, _IN_MARKUP)[0]])
        if is_doubtful or has_nul or _DOUBTFUL.search(text):
            return cls([standard, _read(text, product_token, _AS_MEANT)[0]])
        return cls([standard])

    def allows(self, url: str) -> bool:
        """Whether a canonical URL may be fetched. The longest rule wins, allow in a tie; no rule: yes."""
        return self.judge(url).allowed

    def judge(self, url: str) -> Verdict:
        """The same, with the rule that decides."""
        paths = _paths(url)
        if paths[0] == "/robots.txt":  # implicitly allowed (2.2.2)
            return Verdict(True)
        verdicts = [rules.judge(paths) for rules in self._readings]
        return next((verdict for verdict in verdicts if not verdict.allowed), verdicts[0])


class _Rules:
    """The rules of one reading, ready for matching."""

    __slots__ = ("_ends", "_marks", "_plain", "_plain_at", "_wild", "_wild_at", "_wild_length", "crawl_delay", "size")

    def __init__(self, rules: dict[str, int], crawl_delay: float | None) -> None:
        """`rules`: where each pattern stands, times two, plus one for allow."""
        self.crawl_delay = crawl_delay
        plain = sorted([pattern for pattern in rules if "*" not in pattern and pattern[-1] != "$"])
        self._plain = "".join(plain)
        self._ends = array("I", accumulate(map(len, plain)))
        self._plain_at = array("I", map(rules.__getitem__, plain))
        wild = [pattern for pattern in rules if "*" in pattern or pattern[-1] == "$"]
        wild.sort(key=lambda pattern: 2 * len(pattern) + (rules[pattern] & 1), reverse=True)
        self._wild = [_STARS.sub("*", pattern) if "**" in pattern else pattern for pattern in wild]
        self._wild_length = array("I", map(len, wild))
        self._wild_at = array("I", map(rules.__getitem__, wild))
        kept: dict[str, str] = {}
        self._marks = [kept.setdefault(mark, mark) for mark in map(_mark, self._wild)]
        self.size = 500 + len(self._plain) + 8 * len(plain) + 24 * len(wild)
        self.size += sum(map(sys.getsizeof, self._wild)) + sum(map(sys.getsizeof, kept))

    def judge(self, paths: list[str]) -> Verdict:
        """The verdict on a path, given in its spellings."""
        length, at = max(map(self._longest, paths), key=_rank)
        for path in paths if self._wild else ():
            found = self._first_wild(path, length, at)
            if found is None:
                return Verdict(False)
            length, at = found
        return Verdict(bool(at & 1), at >> 1) if length else Verdict(True)

    def _longest(self, path: str) -> tuple[int, int]:
        """Length and place of the longest rule without wildcards that the path begins with; zeros for none.

        What a path begins with stands at or before the path in the sorted rules. The last of them may differ from the
        path; then the longest one that fits begins both, so the search goes on with what the two have in common.
        """
        high, probe = len(self._ends), path
        while high := bisect_right(range(high), probe, key=self._plain_rule):
            rule = self._plain_rule(high - 1)
            if path.startswith(rule):
                return len(rule), self._plain_at[high - 1]
            probe = path[: _shared(rule, path)]
            high -= 1
        return 0, 0

    def _plain_rule(self, number: int) -> str:
        return self._plain[self._ends[number - 1] if number else 0 : self._ends[number]]

    def _first_wild(self, path: str, length: int, at: int) -> tuple[int, int] | None:
        """The first rule with wildcards that beats the best so far, else that one; None when looking costs too much."""
        work, present = 0, path if len(self._wild) < len(path) else _marks_in(path)
        for number in [number for number, mark in enumerate(self._marks) if mark in present]:
            if _rank((self._wild_length[number], self._wild_at[number])) <= (length, at & 1):
                break
            work += len(self._wild[number]) * len(path)
            if work > MOST_WORK:
                return None
            if _fits(self._wild[number], path):
                return self._wild_length[number], self._wild_at[number]
        return length, at


def sitemaps(body: bytes) -> list[str]:
    """The http(s) URLs of the sitemap lines, distinct, in their order."""
    found = dict.fromkeys(match[1].strip() for match in _SITEMAP.finditer(_text(body)))
    return [url for url in found if _is_web_url(url)]


def line_at(body: bytes, at: int) -> Line:
    """The line at a place that a verdict on the same body names."""
    text = _text(body)
    return Line(text.count("\n", 0, at) + 1, text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0].strip())


def first_lines(body: bytes, max_bytes: int) -> bytes:
    """The first bytes of a longer body, without the line that the limit cuts: it could mean anything."""
    if len(body) <= max_bytes:
        return body
    body = body[: max_bytes - max_bytes % 4]
    codec, start = _codec(body)
    if codec == "utf-8":
        return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    text = body[start:].decode(codec, "replace")
    text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return body[: start + len(text.encode(codec, "replace"))]


def is_text(body: bytes) -> bool:
    """False for bytes that are surely no text: then they can hold rules that we are unable to read."""
    text = _text(body)
    start = text[:1_000]
    return not _CONTROLS.search(start) or _RECORD.search(text) is not None


def _text(body: bytes) -> str:
    """The body decoded, without NUL, its lines ended by LF."""
    return _decoded(body).replace("\0", "")


def _decoded(body: bytes) -> str:
    codec, start = _codec(body)
    text = body[start:].decode(codec, "surrogateescape" if codec == "utf-8" else "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _hushed(line: str) -> str:
    """A line with NUL is no record by the standard; something as long without NUL stands in its place."""
    return "#" * (len(line) - line.count("\0")) if "\0" in line else line


def _codec(body: bytes) -> tuple[str, int]:
    """The encoding, and the length of the mark. Where there are NULs or a mark of a wide encoding, the one counts by
    which most records can be read: marks are missing, or stand before what is UTF-8 after all."""
    marked = [(codec, len(mark)) for mark, codec in _MARKS if body.startswith(mark)][:1]
    if not marked and b"\0" not in body:
        return "utf-8", next((size for size in (3, 2, 1) if body.startswith(codecs.BOM_UTF8[:size])), 0)
    start = marked[0][1] if marked else len(codecs.BOM_UTF8) * body.startswith(codecs.BOM_UTF8)
    sample = body[start:]
    if len(sample) > 2 * _SAMPLE_BYTES:
        sample = sample[:_SAMPLE_BYTES] + sample[len(sample) // 4 * 4 - _SAMPLE_BYTES :]
    named = [codec for codec, _ in marked]
    counts = {codec: _records(sample, codec) for codec in (*named, *(codec for _, codec in _MARKS), "utf-8")}
    best = max(counts, key=counts.__getitem__)  # of equal ones the first
    return best if counts[best] else (*named, "utf-8")[0], start


def _records(sample: bytes, codec: str) -> int:
    return len(_RECORD.findall(sample.decode(codec, "replace").replace("\0", "").replace("\r", "\n")))


def _read(text: str, product_token: str, form: _Form) -> tuple[_Rules, bool]:
    """The rules of a reading, and whether there are lines that a reading as meant would take otherwise."""
    names, has_doubts = _Names(product_token, is_lenient=form is not _BY_THE_STANDARD), False
    groups = [(max(map(names.whom, agents)), start, end) for agents, start, end in _groups(text, form)]
    wanted = max((whom for whom, _, _ in groups), default=0) or _ALL
    rules: dict[str, int] = {}
    delays = []
    ours = [form.rule.finditer(text, start, end) for whom, start, end in groups if whom == wanted]
    for match in chain.from_iterable(ours):
        allow, disallow, value = match.groups()
        value, at = value.strip(), 2 * match.start()
        if allow:
            for pattern in _allowed(value):
                if not rules.get(pattern, 0) & 1:  # of the same rules the first counts, of both kinds allow
                    rules[pattern] = at + 1
        elif disallow:
            paths = _listed(value)
            has_doubts |= paths != [value]
            for pattern in chain.from_iterable(map(_disallowed, paths if names.is_lenient else [value])):
                rules.setdefault(pattern, at)
        else:
            delays.append(_seconds(value))
    delay = max((delay for delay in delays if delay is not None), default=None)
    return _Rules(rules, delay), has_doubts or names.has_doubts


class _Names:
    """Whom lines of user agents name. `has_doubts`: one of them might have meant us."""

    def __init__(self, product_token: str, *, is_lenient: bool) -> None:
        token = product_token if _TOKEN.fullmatch(product_token) else "(?!)"
        more = "0-9" if re.search("[0-9]", product_token) else ""
        self._named = re.compile(rf"\s*+(?:(\*)(?!\S)|{token}(?![a-z{more}_-]))", re.IGNORECASE)
        self._meant = re.compile(rf"(?<![\w-]){token}(?![\w-])", re.IGNORECASE)
        self.is_lenient = is_lenient
        self.has_doubts = False

    def whom(self, value: str) -> int:
        """A product token ends at the first character that is no letter, `_` or `-` (2.2.1); digits belong to it only
        where they belong to ours."""
        if found := self._named.match(value):
            return _ALL if found[1] else _US
        meant = _US if self._meant.search(value) else _ALL if _ANYBODY.search(value) else 0
        self.has_doubts |= meant > 0
        return meant if self.is_lenient else 0


def _groups(text: str, form: _Form) -> Iterator[tuple[list[str], int, int]]:
    """The user agents of each group, and from where to where its rules stand."""
    agents: list[str] = []
    start = 0
    found = list(form.agent.finditer(text))
    for match, after in zip_longest(found, found[1:]):
        start = start if agents else match.end()
        agents.append(match[1])
        if after is None or form.end.search(text, match.end(), after.start()):
            yield agents, start, after.start() if after else len(text)
            agents = []


def _seconds(value: str) -> float | None:
    """A finite number of seconds that is not negative."""
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _listed(value: str) -> list[str]:
    """A value, and all its paths if it lists several."""
    if " /" not in value and "\t/" not in value:
        return [value]
    return [value, *(path.rstrip(",;") for path in value.split())]


def _allowed(value: str) -> list[str]:
    """The patterns of an allow line. A path that is none (no slash, bytes that are no UTF-8) allows nothing."""
    if _PLAIN_PATTERN.fullmatch(value) and "?" not in value:
        return [value]
    return _patterns(value) if value[:1] in ("/", "*") and not _NO_TEXT.search(value) else []


def _disallowed(value: str) -> list[str]:
    """The patterns of a disallow line. What is missing is put in: we are slowed, at the most."""
    if _PLAIN_PATTERN.fullmatch(value) and "?" not in value:
        return [value]
    if not value:
        return []
    value = _ORIGIN.sub("", value, count=1) or "/"
    return _patterns(value if value[0] in "/*" else f"/{value}")


def _patterns(value: str) -> list[str]:
    """A pattern in one spelling; a query in two, if it has escapes there that mean the same undone."""
    is_anchored = value.endswith("$")
    spelled = _spelled(value.removesuffix("$")).replace("$", "%24")
    return [pattern + "$" * is_anchored for pattern in _with_plain_query(spelled)]


def _paths(url: str) -> list[str]:
    """Path and query of a canonical URL in the spellings that rules are compared with."""
    if plain := _PLAIN_URL.fullmatch(url):
        return [plain[1]]
    path = _ORIGIN.sub("", url.partition("#")[0], count=1)
    spelled = _spelled(path).replace("$", "%24").replace("*", "%2A")
    return _with_plain_query(spelled if spelled.startswith("/") else f"/{spelled}")


def _spelled(path: str) -> str:
    """Escapes of unreserved characters undone, all others in upper case, and what must be escaped escaped."""
    return _TO_SPELL.sub(_one_spelling, path)


def _one_spelling(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 1:
        return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "surrogateescape"))
    char = chr(int(found[1:], 16))
    return char if _UNRESERVED.match(char) else found.upper()


def _with_plain_query(path: str) -> list[str]:
    before, mark, query = path.partition("?")
    if "%" not in query:
        return [path]
    undone = _IN_QUERY.sub(lambda match: chr(int(match[0][1:], 16)), query)
    return [path] if undone == query else [path, before + mark + undone]


def _mark(pattern: str) -> str:
    """The end of the longest literal piece: a path without it is not for this pattern."""
    return max(pattern.removesuffix("$").split("*"), key=len)[-_MARK:]


def _marks_in(path: str) -> set[str]:
    return {path[at : at + size] for size in range(_MARK + 1) for at in range(len(path) - size + 1)}


def _fits(pattern: str, path: str) -> bool:
    """Whether a pattern with wildcards matches."""
    head, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(head):
        return False
    at, is_anchored = len(head), pattern.endswith("$")
    if not rest:
        return at == len(path)
    for piece in rest[:-1]:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return path.endswith(rest[-1], at) if is_anchored else path.find(rest[-1], at) >= 0


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _rank(rule: tuple[int, int]) -> tuple[int, int]:
    """Length first, then allow."""
    return rule[0], rule[1] & 1


def _is_web_url(text: str) -> bool:
    try:
        return can_ada.parse(text).protocol in ("http:", "https:")
    except (ValueError, TypeError):
        return False


ALLOW_ALL = Robots([_Rules({}, None)])
DENY_ALL = Robots([_Rules({"/": 0}, None)])
