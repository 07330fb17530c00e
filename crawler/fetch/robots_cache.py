"""robots.txt by RFC 9309: what an answer means, how long it is trusted, and what holds while a server is unreachable.

A host keeps at most two copies a scheme: the last answer that told us anything, and, while the server is unreachable,
the first of the failures since (status 0, 429 or 5xx), whose time says since when. As long as that is less than 30 days
ago everything is forbidden (2.3.1.4), even where a good copy is held that is older than the cache allows; from then on
the good copy holds, and without one everything is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

from crawler.fetch.exchange import Exchange
from crawler.page.coding import decode_content
from crawler.page.robots import ALLOW_ALL, Robots
from crawler.page.url import Refusal, UrlPolicy
from crawler.records import RobotsCopy

UNREACHABLE_S = 30 * 86_400
MAX_REDIRECTS = 5
MAX_RETRIES = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})

Copies = tuple[RobotsCopy, ...]
Verdict = Literal["follow", "unreachable"] | RobotsCopy


def tells(status: int) -> bool:
    """True for a final status that settles what is allowed: 2xx by its rules, 3xx and 4xx (not 429) everything."""
    return 200 <= status < 500 and status != 429


def good_copy(copies: Copies, scheme: str) -> RobotsCopy | None:
    """The last answer under the scheme that told us anything."""
    return next((copy for copy in copies if copy.scheme == scheme and tells(copy.status)), None)


def fresh_copy(copies: Copies, scheme: str, now: float, ttl_s: float) -> RobotsCopy | None:
    """The copy that still holds: fetched less than `ttl_s` ago."""
    copy = good_copy(copies, scheme)
    return copy if copy is not None and 0 <= now - copy.fetched_at < ttl_s else None


def with_copy(copies: Copies, new: RobotsCopy) -> Copies:
    """The copies after an answer or a failure. An answer ends the time of failures; of failures the first is kept."""
    others = tuple(copy for copy in copies if copy.scheme != new.scheme)
    if tells(new.status):
        return (*others, new)
    good = good_copy(copies, new.scheme)
    since = next((copy for copy in copies if copy.scheme == new.scheme and not tells(copy.status)), new)
    return (*others, *((good,) if good else ()), since)


def rules_of(copy: RobotsCopy) -> Robots:
    """What an answer that told us anything allows."""
    return _parsed(copy.body) if 200 <= copy.status < 300 and copy.body else ALLOW_ALL


def rules_when_unreachable(copies: Copies, scheme: str, now: float) -> Robots | None:
    """What holds of a server that cannot be reached; None for nothing is allowed."""
    since = next((copy for copy in copies if copy.scheme == scheme and not tells(copy.status)), None)
    if since is None or now - since.fetched_at < UNREACHABLE_S:
        return None
    good = good_copy(copies, scheme)
    return rules_of(good) if good else ALLOW_ALL


def crawl_delay(copies: Copies, token: str) -> float | None:
    """The longest Crawl-delay that the host's copies ask of us, in seconds."""
    delays = [rules_of(copy).crawl_delay(token) for copy in copies if 200 <= copy.status < 300]
    return max((delay for delay in delays if delay is not None), default=None)


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
        decoded = decode_content(exchange.body_bytes(), exchange.content_encoding, max_bytes + 1)
        is_cut = exchange.truncated not in (None, "length") or decoded.error is not None
        if is_cut and len(decoded.body) < max_bytes:
            return "unreachable"
        return self.copy(exchange, _whole_lines(decoded.body, max_bytes))

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


@lru_cache(maxsize=256)
def _parsed(body: bytes) -> Robots:
    """Many hosts say the same."""
    return Robots.from_bytes(body)


def _whole_lines(body: bytes, max_bytes: int) -> bytes:
    """The first bytes; a last line that they cut could mean anything and goes."""
    if len(body) <= max_bytes:
        return body
    body = body[:max_bytes]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
