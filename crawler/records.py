"""The values that travel between the rooms: plain, frozen, picklable, free of any library.

A failed fetch is such a value, with a reason; it is never an exception.
Times are UTC epoch seconds (float) unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What happened to a planned URL in this round (Nutch's `fetch_*` family)."""

    SUCCESS = "success"
    NOT_MODIFIED = "not_modified"  # 304, or a 200 whose payload is the one we hold
    REDIRECT_TEMP = "redirect_temp"
    REDIRECT_PERM = "redirect_perm"
    GONE = "gone"  # 404 and 410
    CLIENT_ERROR = "client_error"  # any other 4xx
    SERVER_ERROR = "server_error"
    ASKED_TO_WAIT = "asked_to_wait"  # 429, or 503 with Retry-After
    ROBOTS_DENIED = "robots_denied"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    ADDRESS_REFUSED = "address_refused"  # resolves to an address, or is at a port, that we must not ask
    DNS_FAILED = "dns_failed"
    CONNECT_FAILED = "connect_failed"
    TLS_FAILED = "tls_failed"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol_error"
    HEADERS_TOO_LARGE = "headers_too_large"
    UNSUPPORTED_SCHEME = "unsupported_scheme"
    UNWANTED_TYPE = "unwanted_type"  # its body was not read: `content.deny_types` has its type
    QUARANTINED = "quarantined"  # its content stopped our own code
    HOST_FAILED = "host_failed"  # not asked: its host was out of the round
    NOT_REACHED = "not_reached"  # not asked: the time box of the partition was over

    @property
    def is_untried(self) -> bool:
        """True when no request for this very URL was made."""
        return self in UNTRIED


UNTRIED = frozenset(
    {Outcome.ROBOTS_DENIED, Outcome.ROBOTS_UNREACHABLE, Outcome.ADDRESS_REFUSED, Outcome.UNSUPPORTED_SCHEME}
    | {Outcome.DNS_FAILED, Outcome.HOST_FAILED, Outcome.NOT_REACHED}
)

HOST_FAULTS = frozenset(
    {Outcome.SERVER_ERROR, Outcome.DNS_FAILED, Outcome.CONNECT_FAILED, Outcome.TLS_FAILED, Outcome.TIMEOUT}
    | {Outcome.PROTOCOL_ERROR, Outcome.HEADERS_TOO_LARGE, Outcome.ADDRESS_REFUSED}
)
"""Outcomes that count against the host: after `fetch.max_host_failures` of them in a row it is out of the round."""


@dataclass(frozen=True, slots=True)
class PlannedUrl:
    """One URL of the plan as a fetch partition sees it."""

    url_key: int
    url: str
    host: str
    depth: int = 0
    tier: int = 0
    etag: str | None = None
    last_modified: str | None = None
    content_digest: str | None = None  # sha1 of the stored payload, base32, without label
    digest_record_id: str | None = None  # WARC record that holds it, `<urn:uuid:...>`
    digest_date: str | None = None  # WARC-Date of that record, `2026-01-31T12:00:00Z`
    seed_hops: int | None = None  # of a seed: the redirects from a line of the inbox to here
    source: str | None = None  # seed, link, redirect, sitemap, feed

    @property
    def is_seed(self) -> bool:
        """True when no link led here."""
        return self.depth == 0


@dataclass(frozen=True, slots=True)
class KnownAddress:
    """An answer of the resolver and the time until which it is trusted."""

    address: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """What a server last said to `/robots.txt` under one scheme.

    `status` is the final HTTP status, 0 when the server could not be reached; the last copy that told us anything is
    kept beside it then (RFC 9309, 2.3.1.4).
    """

    scheme: str
    fetched_at: float
    status: int
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HostState:
    """All that politeness must remember of a host between two rounds. `host` is name[:port], the port only when it is
    not the scheme's own."""

    host: str
    addresses: tuple[KnownAddress, ...] = ()
    robots: tuple[RobotsCopy, ...] = ()
    robots_hosts: tuple[str, ...] = ()  # other hosts to which its robots.txt led
    crawl_delay_s: float | None = None  # as robots.txt says it, not capped
    not_before: float = 0.0  # no request before this time (Retry-After, back-off)
    last_request_at: float = 0.0  # start of the last request
    last_fetch_s: float = 0.0  # how long the last exchange took
    failures: int = 0  # consecutive rounds that ended with the host out of the round
    is_out: bool = False  # out of this round
    gap_factor: int = 1  # the host's partition keeps this many times the gap to its addresses


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One fetch task: which plan rows, where the results go. Times are real time, never the scheduling clock."""

    lake: str  # URI
    round: int
    partition: int
    segment_folder: str  # `crawl-data/CRAWL/segments/SEGMENT`, relative to the lake
    plan_files: tuple[str, ...]  # Parquet files with this partition's plan rows, relative to the lake
    deadline_at: float  # end of the time box
    scope: bytes = b""  # sorted little-endian int64 keys of the allowed hosts or domains; empty in mode `web`
    ports: bytes = b""  # sorted little-endian int64 keys of the hosts that seeds named with a port of their own
    partitions: int = 1  # of the round: an address unknown to the plan may be asked from each of them
    earlier_until: float = 0.0  # end of the fetch stage of the round before: any host may have been asked until then
    started14: str = ""  # start of the fetch stage as YYYYMMDDhhmmss, for file names
    driver: int = 0  # lock token of the driver that gives the task: whose request to stop counts


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A segment whose outcomes file exists. Paths are relative to the lake."""

    name: str
    partition: int
    attempt: int
    outcomes: str
    discoveries: str
    hosts: str
    warcs: Mapping[str, str] = field(default_factory=dict)  # subset -> path; only subsets that hold a record
    warc_bytes: Mapping[str, int] = field(default_factory=dict)
    warc_sha256: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
