"""robots.txt by RFC 9309: what an answer means, how long it is trusted, and what holds while a server is unreachable.

A host keeps at most two copies a scheme: the last answer that told us anything, and, while the server is unreachable,
the first of the failures since (status 0, 429 or 5xx), whose time says since when. As long as that is less than 30 days
ago everything is forbidden (2.3.1.4), even where a good copy is held that is older than the cache allows; from then on
the good copy holds, and without one everything is allowed. `standing` says so, to the fetch and to whoever asks why.

Copies and rules take little memory, however many hosts there are and however long their files: a text is kept once for
all hosts that have it, a long one in a nameless file, and parsed rules within a bound of bytes for the whole partition.
What was used longest ago goes first and is parsed again when its host has its turn; long texts are parsed in a thread,
so that the loop goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary, finalize

from crawler.fetch.exchange import Exchange
from crawler.page.coding import LIMIT_S, decode_content, gunzip
from crawler.page.robots import ALLOW_ALL, Robots, first_lines, is_text
from crawler.page.url import Refusal, UrlPolicy
from crawler.records import RobotsCopy

UNREACHABLE_S = 30 * 86_400
MAX_REDIRECTS = 5
MAX_RETRIES = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_UNDONE = 3

RULES_BYTES = 32 * 1024 * 1024
"""Of parsed rules that a partition keeps, by their own estimate. Those of an ordinary file take some 2 KB."""
MEMORY_BYTES = 4_096
"""Longer texts are kept in a file."""
INLINE_BYTES = 32_768
"""Longer texts are parsed in a thread; this many bytes take 2 ms."""


class Answer(Protocol):
    """What a server said to `/robots.txt` under a scheme, wherever its text is."""

    @property
    def scheme(self) -> str: ...
    @property
    def fetched_at(self) -> float: ...
    @property
    def status(self) -> int: ...


A = TypeVar("A", bound=Answer)
Verdict = Literal["follow", "unreachable"] | RobotsCopy


@dataclass(frozen=True, slots=True)
class Standing(Generic[A]):
    """What holds of a server at a time. `how`: `fresh` and `outlived` (unreachable for 30 days) follow `copy`, and
    allow everything where there is none; `unreachable` allows nothing; with `expired` and `unknown` the server is to be
    asked. `failure`: the first one after the copy, if there was any."""

    how: Literal["fresh", "expired", "outlived", "unknown", "unreachable"]
    copy: A | None = None
    failure: A | None = None


def tells(status: int) -> bool:
    """True for a final status that settles what is allowed: 2xx by its rules, 3xx and 4xx (not 429) everything."""
    return 200 <= status < 500 and status != 429


def has_rules(copy: Answer) -> bool:
    """True for an answer whose text counts. Any other that tells anything allows everything."""
    return 200 <= copy.status < 300


def standing(copies: Iterable[A], scheme: str, now: float, ttl_s: float) -> Standing[A]:
    """What the copies of a host say of a scheme. An answer counts for `ttl_s` from its fetch on."""
    good = failure = None
    for copy in copies:
        if copy.scheme == scheme and tells(copy.status):
            good = good or copy
        elif copy.scheme == scheme:
            failure = failure or copy
    if good is not None and 0 <= now - good.fetched_at < ttl_s:
        return Standing("fresh", good, failure)
    if failure is not None:
        return Standing("unreachable" if now - failure.fetched_at < UNREACHABLE_S else "outlived", good, failure)
    return Standing("unknown" if good is None else "expired", good)


def with_copy(copies: tuple[A, ...], new: A) -> tuple[A, ...]:
    """The copies after an answer or a failure. An answer ends the time of failures; of failures the first is kept."""
    others = tuple(copy for copy in copies if copy.scheme != new.scheme)
    if tells(new.status):
        return (*others, new)
    known = standing(copies, new.scheme, 0.0, 0.0)
    return (*others, *((known.copy,) if known.copy is not None else ()), known.failure or new)


class _Text:
    """A body that copies hold: in memory, or at a place in the shelf's file. The delay is known once it was read."""

    __slots__ = ("__weakref__", "_content", "_file", "_place", "crawl_delay", "digest", "is_read", "size")

    def __init__(self, digest: bytes, content: bytes, file: IO[bytes] | None, place: int) -> None:
        self.digest, self.size = digest, len(content)
        self._content, self._file, self._place = content if file is None else b"", file, place
        self.crawl_delay: float | None = None
        self.is_read = False

    def content(self) -> bytes:
        return self._content if self._file is None else os.pread(self._file.fileno(), self.size, self._place)


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A copy whose text is on the shelf."""

    scheme: str
    fetched_at: float
    status: int
    text: _Text

    def for_tables(self) -> dict[str, object]:
        """The fields of a `RobotsCopy`."""
        fields: dict[str, object] = {"scheme": self.scheme, "fetched_at": self.fetched_at, "status": self.status}
        return fields | {"body": self.text.content()}


class RobotsShelf:
    """What the servers of a partition said to `/robots.txt`, and what that means for one product token."""

    def __init__(self, product_token: str, max_bytes: int = RULES_BYTES) -> None:
        self.product_token = product_token
        self._max_bytes = max_bytes
        self._rules: OrderedDict[bytes, Robots] = OrderedDict()
        self._rules_bytes = 0
        self._texts: WeakValueDictionary[bytes, _Text] = WeakValueDictionary()
        self._file: IO[bytes] | None = None
        self._file_bytes = 0

    def hold(self, copy: RobotsCopy) -> HeldCopy:
        """Take a copy over."""
        digest = hashlib.blake2b(copy.body, digest_size=16).digest()
        text = self._texts.get(digest)
        if text is None:
            text = self._texts[digest] = self._put(digest, copy.body)
        return HeldCopy(copy.scheme, copy.fetched_at, copy.status, text)

    async def rules(self, copy: HeldCopy | None) -> Robots:
        """What an answer that told us anything allows; None stands for one that allows everything."""
        if copy is None or not has_rules(copy) or not copy.text.size:
            return ALLOW_ALL
        rules = self._rules.get(copy.text.digest)
        if rules is not None:
            self._rules.move_to_end(copy.text.digest)
            return rules
        arguments = copy.text.content(), self.product_token
        is_long = copy.text.size > INLINE_BYTES
        rules = await asyncio.to_thread(Robots.from_bytes, *arguments) if is_long else Robots.from_bytes(*arguments)
        self._keep(copy.text.digest, rules)
        return rules

    async def crawl_delay(self, copies: Iterable[HeldCopy]) -> float | None:
        """The longest Crawl-delay that the copies ask of us, in seconds."""
        for copy in (counting := [copy for copy in copies if has_rules(copy)]):
            if not copy.text.is_read:
                copy.text.crawl_delay, copy.text.is_read = (await self.rules(copy)).crawl_delay, True
        delays = [copy.text.crawl_delay for copy in counting]
        return max((delay for delay in delays if delay is not None), default=None)

    def _put(self, digest: bytes, body: bytes) -> _Text:
        if len(body) <= MEMORY_BYTES:
            return _Text(digest, body, None, 0)
        if self._file is None:
            self._file = TemporaryFile(buffering=0)  # noqa: SIM115 - closed when the shelf goes
            finalize(self, self._file.close)
        place = self._file_bytes
        self._file.write(body)
        self._file_bytes += len(body)
        return _Text(digest, body, self._file, place)

    def _keep(self, digest: bytes, rules: Robots) -> None:
        """Rules that alone are over the bound are not kept, and push out no others."""
        if rules.size > self._max_bytes or digest in self._rules:
            return
        self._rules[digest] = rules
        self._rules_bytes += rules.size
        while self._rules_bytes > self._max_bytes:
            self._rules_bytes -= self._rules.popitem(last=False)[1].size


@dataclass(slots=True)
class RobotsQuest:
    """The way to one robots.txt: from the host's own URL over at most five redirects, wherever they lead."""

    scheme: str
    host: str
    url: str = ""
    target: str = ""  # the host that is asked now
    hops: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin again at the host itself."""
        self.url, self.target, self.hops = f"{self.scheme}://{self.host}/robots.txt", self.host, 0

    def judge(self, exchange: Exchange, policy: UrlPolicy, max_bytes: int) -> Verdict:
        """What an answer means: another hop (`url` and `target` are then the next ones), failure, or a final copy.

        A body that was cut before `max_bytes` could forbid anything, so it counts as unreachable. More than five
        redirects, or one that leads nowhere, count as "there is none".
        """
        if exchange.failure is not None or not tells(exchange.status):
            return "unreachable"
        if exchange.status in REDIRECTS:
            return self._redirected(exchange, policy)
        if not 200 <= exchange.status < 300:
            return self.copy(exchange)
        is_cut = exchange.truncated not in (None, "length")
        body = readable(exchange.body_bytes(), exchange.content_encoding, max_bytes + 1)
        if body is None or (is_cut and len(body) < max_bytes):
            return "unreachable"
        return self.copy(exchange, first_lines(body, max_bytes))

    def copy(self, exchange: Exchange, body: bytes = b"") -> RobotsCopy:
        """The copy that the host keeps of an answer."""
        return RobotsCopy(self.scheme, exchange.started_at, exchange.status, body)

    def _redirected(self, exchange: Exchange, policy: UrlPolicy) -> Verdict:
        self.hops += 1
        target = policy.canonical(exchange.location or "", self.url)
        if self.hops > MAX_REDIRECTS or isinstance(target, Refusal) or not exchange.location:
            return self.copy(exchange)
        if urlsplit(target.url).scheme not in ("http", "https"):
            return self.copy(exchange)
        self.url, self.target = target.url, target.host
        return "follow"


def readable(body: bytes, content_encoding: str, max_bytes: int) -> bytes | None:
    """The text of a body, at most `max_bytes` of it; None where there may be rules that cannot be read.

    Servers forget to name a coding, name one that they did not apply, or name what is none. So a body that is not what
    its field says is taken as it came, the codings that bytes show are undone, and the result must be a text.
    """
    decoded = decode_content(body, content_encoding, max_bytes)
    is_plain = body.isascii() and is_text(body)
    is_undone = decoded.error is None or decoded.is_as_sent
    if not is_undone and decoded.body not in (b"", body) and not is_plain:
        return decoded.body if len(decoded.body) >= max_bytes else None
    found = decoded.body[:max_bytes] if is_undone else body[:max_bytes]
    for _ in range(MAX_UNDONE):
        if found.startswith(b"\x1f\x8b"):
            decoded = gunzip(found, max_bytes, LIMIT_S)
        elif found[:1] == b"\x78" and not is_text(found):
            decoded = decode_content(found, "deflate", max_bytes)
        else:
            break
        if decoded.error is not None and len(decoded.body) < max_bytes:
            return None
        found = decoded.body
    return found if is_text(found) else None
