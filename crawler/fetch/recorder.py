"""What a partition writes down: outcomes, captures, discoveries, the hosts it touched; sealed a segment at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crawler.fetch.attempt import AttemptOver, StorageFailed
from crawler.fetch.capture import Capture
from crawler.fetch.host_queue import HostRun
from crawler.fetch.outcomes import blank_row
from crawler.fetch.segments import SegmentWriter
from crawler.fetch.warc import CaptureRecord
from crawler.page.model import KILLED
from crawler.page.url import Url, host_key, registered_domain
from crawler.records import Outcome, PlannedUrl, SealedSegment

Row = dict[str, Any]
_FAILED = frozenset(Outcome) - {Outcome.SUCCESS, Outcome.NOT_MODIFIED, Outcome.REDIRECT_PERM, Outcome.REDIRECT_TEMP}
_NO_FAILURE = {Outcome.ROBOTS_DENIED, Outcome.UNWANTED_TYPE, Outcome.NOT_REACHED}


class _Storing:
    """Tells failures of the storage from bugs: whatever is raised inside, but ValueError, becomes StorageFailed."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, ValueError | AttemptOver):
            raise StorageFailed(f"{type(error).__name__}: {error}") from error


_STORING = _Storing()


@dataclass
class Recorder:
    """The one way from the loop to the segments. Each planned URL is settled or kept exactly once."""

    writer: SegmentWriter
    clock: Callable[[], float]
    sealed: list[SealedSegment] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    body_bytes: int = 0
    _touched: set[HostRun] = field(default_factory=set)

    def count_earlier(self, done: pa.Table) -> None:
        """Watchers see one partition, whichever attempt did what. `done`: rows of outcomes of earlier attempts."""
        self.outcomes.update(Outcome(str(outcome)) for outcome in done["outcome"].to_pylist())
        self.body_bytes += pc.sum(done["content_length"]).as_py() or 0

    def settle(self, host: HostRun, outcome: Outcome, reason: str | None) -> None:
        """The current URL of the host has this outcome, without an exchange; the host goes on to its next."""
        assert host.current is not None
        self._settle(host.current, outcome, reason)
        host.advance()

    def settle_rest(self, host: HostRun, outcome: Outcome, reason: str) -> None:
        """All URLs that the host has left have this outcome."""
        while host.current is not None:
            self.settle(host, outcome, reason)

    def keep(self, host: HostRun, capture: Capture) -> None:
        """The current URL of the host came to this; the host goes on to its next."""
        assert host.current is not None
        try:
            with _STORING:
                self.writer.add(capture.row, capture.record, capture.subset)
        except ValueError as error:  # nothing was written: a capture that no archive may hold
            self._settle(host.current, Outcome.QUARANTINED, f"{type(error).__name__}: {error}")
        else:
            self.outcomes[capture.outcome] += 1
            self.body_bytes += capture.row["content_length"] or 0
            self.discover(capture.found, capture.source)
        host.advance()
        if capture.row["parse_status"] == KILLED:
            self.seal()  # whatever happens to this process next, nobody asks for that document again
        else:
            self.seal_if_due()

    def keep_robots(self, record: CaptureRecord) -> None:
        """Archive an answer to `/robots.txt`, unless it is one that no archive may hold."""
        with suppress(ValueError), _STORING:
            self.writer.add_robots(record)

    def discover(self, urls: Iterable[Url], source: str) -> None:
        """Keep the text of those URLs that are new to this task."""
        knows, add = self.writer.knows, self.writer.add_discovery
        for url in urls:
            if not knows(url.key):
                add(_discovery(url, source))

    def touch(self, host: HostRun) -> None:
        """The state of the host has changed; it is noted before the segment is sealed."""
        self._touched.add(host)

    def seal_if_due(self) -> None:
        """Seal the open segment when it is time."""
        if self.writer.is_due(self.clock()):
            self.seal()

    def seal(self) -> None:
        """Note the touched hosts and seal the open segment, if there is one."""
        for host in self._touched:
            self.writer.note_host(host_row(host))
        try:
            segment = self.writer.seal()
        except AttemptOver:
            raise
        except Exception as error:
            raise StorageFailed(f"{type(error).__name__}: {error}") from error
        self._touched.clear()
        if segment:
            self.sealed.append(segment)

    def progress(self, hosts_waiting: int, urls_left: int) -> bytes:
        """The numbers of now, for people who watch."""
        counts = self.outcomes
        return json.dumps(
            {
                "at": self.clock(),
                "pages": counts[Outcome.SUCCESS] + counts[Outcome.NOT_MODIFIED],
                "bytes": self.body_bytes,
                "failures": sum(counts[outcome] for outcome in _FAILED - _NO_FAILURE),
                "outcomes": {str(outcome): number for outcome, number in counts.items()},
                "hosts_waiting": hosts_waiting,
                "urls_left": urls_left,
                "segments": len(self.sealed),
            }
        ).encode()

    def _settle(self, planned: PlannedUrl, outcome: Outcome, reason: str | None) -> None:
        self.writer.add(blank_row(planned, outcome, reason, self.clock()), None)
        self.outcomes[outcome] += 1
        self.seal_if_due()


def host_row(host: HostRun) -> Row:
    """The state of a host as HOST_STATES has it."""
    return {
        "host_key": host_key(host.host),
        "host": host.host,
        "registered_domain": registered_domain(host.host),
        "addresses": [asdict(address) for address in host.addresses],
        "robots": [copy.for_tables() for copy in host.robots],
        "robots_hosts": list(host.robots_hosts),
        "crawl_delay_s": host.turn.crawl_delay_s,
        "not_before": host.turn.not_before,
        "last_request_at": host.turn.last_request_at,
        "last_fetch_s": host.turn.last_fetch_s,
        "failures": host.state.failures,
        "is_out": host.is_out,
    }


def _discovery(url: Url, source: str) -> Row:
    return {
        "url_key": url.key,
        "url": url.url,
        "host": url.host,
        "host_key": host_key(url.host),
        "registered_domain": registered_domain(url.host),
        "source": source,
    }
