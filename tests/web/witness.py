"""What the request log proves: functions from requests to figures, for tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.web.request_log import Request

Key = Callable[[Request], str]
MOST_LATE_S = 0.5  # a request may be noted, on a machine that has others to serve


def by_host(request: Request) -> str:
    return request.host


def by_address(request: Request) -> str:
    return request.address


@dataclass(frozen=True, slots=True)
class Gap:
    """Two requests in a row to one host or address, and the seconds between them."""

    key: str
    seconds: float
    first: Request
    second: Request

    def __str__(self) -> str:
        return f"{self.key}: {self.seconds:.3f} s between {self.first.url} and {self.second.url}"


def gaps(requests: Sequence[Request], key: Key = by_host) -> list[Gap]:
    """All gaps, in order of time within a key."""
    groups: defaultdict[str, list[Request]] = defaultdict(list)
    for request in sorted(requests, key=lambda request: request.time):
        groups[key(request)].append(request)
    return [Gap(name, b.time - a.time, a, b) for name, group in groups.items() for a, b in pairwise(group)]


def smallest_gaps(requests: Sequence[Request], key: Key = by_host) -> dict[str, float]:
    """Smallest gap in seconds of each host (or address) that was asked at least twice."""
    smallest: dict[str, float] = {}
    for gap in gaps(requests, key):
        smallest[gap.key] = min(gap.seconds, smallest.get(gap.key, gap.seconds))
    return smallest


def hurried(requests: Sequence[Request], promise_s: float, key: Key = by_host, tolerance_s: float = 0.05) -> list[Gap]:
    """The gaps below the promise; empty when it was kept.

    A server that was kept waiting for its core notes one request late and the next in time: the gap before is longer by
    what this one is too short. Such a pair is no breach; after a longer pause every short gap is one.
    """
    breaches: list[Gap] = []
    before: dict[str, float] = {}
    for gap in gaps(requests, key):
        missing_s, late_s = promise_s - gap.seconds, before.get(gap.key, 0.0) - promise_s
        if missing_s > tolerance_s and not missing_s - tolerance_s <= late_s <= MOST_LATE_S:
            breaches.append(gap)
        before[gap.key] = gap.seconds
    return breaches


def impatient(requests: Sequence[Request], wait_s: float, tolerance_s: float = 0.05) -> list[Gap]:
    """Gaps after an answer of 429 or 503 that were shorter than the wait the host asked for; robots files apart."""
    waiting = [gap for gap in gaps(requests) if gap.first.status in (429, 503) and not gap.first.is_robots]
    return [gap for gap in waiting if gap.seconds < wait_s - tolerance_s]


def counts(requests: Iterable[Request]) -> Counter[tuple[str, str]]:
    """Requests by (host, path)."""
    return Counter((request.host, request.path) for request in requests)


def url_counts(requests: Iterable[Request]) -> Counter[str]:
    """Requests by URL, robots files left out."""
    return Counter(request.url for request in requests if not request.is_robots)


def asked_again(requests: Iterable[Request]) -> dict[str, int]:
    """URLs asked for more than once, robots files left out."""
    return {url: count for url, count in url_counts(requests).items() if count > 1}


def missing(requests: Iterable[Request], urls: Iterable[str]) -> set[str]:
    """Those of the URLs that nobody asked for."""
    return set(urls) - {request.url for request in requests}


def wrongly_asked(requests: Iterable[Request], urls: Iterable[str], prefixes: Iterable[str] = ()) -> list[Request]:
    """Requests for URLs that must never be asked for, whole or by how they begin."""
    never, starts = set(urls), tuple(prefixes)
    return [request for request in requests if request.url in never or (starts and request.url.startswith(starts))]


def trapped(requests: Iterable[Request], trap: str = "127.0.0.1") -> list[Request]:
    """Requests that reached an address which no crawl may connect to."""
    return [request for request in requests if request.address == trap]


def misdirected(requests: Iterable[Request]) -> list[Request]:
    """Requests that reached a server that does not know their host."""
    return [request for request in requests if request.status == 421]


def pages_before_robots(requests: Iterable[Request]) -> list[Request]:
    """First requests to a host that were not for its robots file, unless they may be hops of another host's."""
    first: dict[str, Request] = {}
    for request in sorted(requests, key=lambda request: request.time):
        first.setdefault(request.host, request)
    return [request for request in first.values() if "robots" not in request.path]


def crowded(requests: Iterable[Request]) -> list[Request]:
    """Requests that came while another one to the same host was being answered."""
    return [request for request in requests if request.at_once > 1]
