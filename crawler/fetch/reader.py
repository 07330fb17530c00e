"""A response from its bytes, however they are cut into reads: no I/O, no clock (RFC 9112, section 6).

Every limit is counted across reads. Whatever comes, the reader ends in one of a few states: whole, truncated with a
WARC reason (`length`, `time`, `disconnect`, `unspecified`), or failed with a reason. A body of an unwanted type is
given up with the head, or when its first bytes have shown the type; however they are cut, the verdict is the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from crawler.faults import fault
from crawler.fetch.exchange import LEFT_OUT, Spool
from crawler.fetch.headers import BadHead, ResponseHead, head_end, may_be_response, parse_head
from crawler.page.wanted import START_BYTES, MimeTypes, named_type, shown_type
from crawler.records import Outcome

_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_DIGITS = re.compile(r"[0-9]+")
_MAX_LENGTH_DIGITS = 18
MAX_INTERIMS = 16
CHUNK_OVERHEAD = 16
"""Framing bytes allowed for each body byte, on top of one head's worth: chunks of one byte need five."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    head_bytes: int
    header_fields: int
    body_bytes: int
    unread: MimeTypes | None = None  # bodies of these types are not read


class ResponseReader:
    """Feed it what arrives until `is_done`; then head, status, body and the rest are final."""

    __slots__ = (
        "_buffer", "_chunks", "_has_length", "_interims", "_is_reusable", "_limits", "_remaining", "_seen_head_bytes",
        "_unjudged", "_wire_bytes", "body", "failure", "failure_reason", "head", "is_done", "parsed", "truncated",
        "unread_type",
    )  # fmt: skip

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._seen_head_bytes = 0
        self._interims = 0
        self._chunks: httptools.HttpResponseParser | None = None
        self._has_length = False
        self._remaining = 0
        self._wire_bytes = 0
        self._unjudged = 0  # bytes to come until the start of the body can be judged
        self._is_reusable = True
        self.head = b""
        self.parsed: ResponseHead | None = None
        self.body = Spool()
        self.truncated: str | None = None
        self.unread_type: str | None = None
        self.failure: Outcome | None = None
        self.failure_reason: str | None = None
        self.is_done = False

    @property
    def was_chunked(self) -> bool:
        return self._chunks is not None

    @property
    def is_untouched(self) -> bool:
        """True when not one byte of a response has come."""
        return self.parsed is None and not self._buffer and not self._seen_head_bytes

    @property
    def is_reusable(self) -> bool:
        """True when the next request may go over the same connection: no anomaly, framing known, nobody said close."""
        return self.is_done and self._is_reusable and self.failure is None and self.truncated is None

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes; what comes behind the end of the response is dropped and forbids reuse."""
        if self.is_done:
            self._is_reusable = False
        elif self.parsed is None:
            self._feed_head(data)
        else:
            fault("fetch.body")
            self._feed_body(data)

    def end(self, reason: str = "closed") -> None:
        """The connection is over: this ends a body without announced length, and cuts every other."""
        if self.is_done:
            return
        if self.parsed is None:
            outcome = Outcome.CONNECT_FAILED if self.is_untouched else Outcome.PROTOCOL_ERROR
            self._fail(outcome, f"{reason}_before_response" if self.is_untouched else f"{reason}_in_head")
        elif self._has_length or self._chunks is not None or reason != "closed":
            self._cut("disconnect")
        else:
            self._finish(is_reusable=False)

    def time_out(self, phase: str) -> None:
        """A deadline has passed."""
        if self.parsed is None:
            self._fail(Outcome.TIMEOUT, phase)
        else:
            self._cut("time")

    def fail(self, outcome: Outcome, reason: str) -> None:
        """Something below HTTP went wrong: a body that has begun is cut, otherwise the fetch has failed."""
        if self.parsed is None:
            self._fail(outcome, reason)
        else:
            self._cut("disconnect")

    def _feed_head(self, data: bytes | memoryview) -> None:
        scanned = max(0, len(self._buffer) - 3)
        if self._buffer:
            self._buffer += data
        source = self._buffer or data
        if not may_be_response(source):
            return self._fail(Outcome.PROTOCOL_ERROR, "no_status_line")
        end = head_end(source, scanned)
        length = self._seen_head_bytes + (len(source) if end < 0 else end)
        if length > self._limits.head_bytes:
            return self._fail(Outcome.HEADERS_TOO_LARGE, "head_bytes")
        if end < 0:
            self._buffer = self._buffer or bytearray(data)
            return None
        head, rest = bytes(source[:end]), memoryview(source)[end:]
        parsed = parse_head(head, self._limits.header_fields)
        if isinstance(parsed, BadHead):
            return self._refuse_head(parsed.reason)
        if 100 <= parsed.status < 200:
            return self._skip_interim(parsed, end, rest)
        self.head, self.parsed = head, parsed
        self._buffer = bytearray()
        self._start_body(parsed)
        if rest and self.failure is None:
            self.feed(rest)
        return None

    def _refuse_head(self, reason: str) -> None:
        if reason == "headers_too_large":
            self._fail(Outcome.HEADERS_TOO_LARGE, "header_fields")
        else:
            self._fail(Outcome.PROTOCOL_ERROR, reason)

    def _skip_interim(self, parsed: ResponseHead, end: int, rest: memoryview) -> None:
        self._interims += 1
        if parsed.status == 101 or self._interims > MAX_INTERIMS:
            return self._fail(Outcome.PROTOCOL_ERROR, "unasked_upgrade" if parsed.status == 101 else "interim_flood")
        self._seen_head_bytes += end
        self._buffer = bytearray()
        return self._feed_head(rest) if rest else None

    def _start_body(self, parsed: ResponseHead) -> None:
        """Decide how the body ends (RFC 9112, 6.3); without a sign it ends with the connection."""
        transfer = parsed.members("transfer-encoding")
        lengths = parsed.members("content-length")
        closing = "close" in parsed.members("connection") or parsed.version == "1.0"
        self._is_reusable = not closing and not parsed.is_odd
        if parsed.status in (204, 304):
            return self._finish(is_reusable=self._is_reusable)
        if self._limits.unread and self._is_unwanted(parsed, self._limits.unread):
            return None
        codings = [value for value in transfer if value not in ("identity", "")]
        if codings:
            self._is_reusable &= codings == ["chunked"] and transfer == codings and not lengths
            return self._start_transfer(codings)
        if len({*lengths}) > 1:
            return self._fail(Outcome.PROTOCOL_ERROR, "two_lengths")
        if lengths and _DIGITS.fullmatch(lengths[0]):
            return self._start_length(lengths[0])
        return None

    def _is_unwanted(self, parsed: ResponseHead, unread: MimeTypes) -> bool:
        """Give the body up when its type is named and unwanted; else its first bytes will show."""
        named = named_type(unread, parsed.first("content-type"))
        if named is not None:
            self._leave_out(named)
            return True
        self._unjudged = START_BYTES
        return False

    def _judge(self) -> None:
        """Give the body up when what there is of it shows an unwanted type."""
        self._unjudged = 0
        start, parsed, unread = self.body.start(), self.parsed, self._limits.unread
        if start and parsed is not None and unread is not None:
            shown = shown_type(unread, parsed.first("content-type"), parsed.first("content-encoding"), start)
            if shown is not None:
                self._leave_out(shown)

    def _leave_out(self, unread_type: str) -> None:
        self.unread_type, self.body = unread_type, Spool()
        self._cut(LEFT_OUT)

    def _start_transfer(self, codings: list[str]) -> None:
        if set(codings) != {"chunked"}:
            return self._fail(Outcome.PROTOCOL_ERROR, "transfer_coding")
        self._chunks = httptools.HttpResponseParser(self)
        self._chunks.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._chunks.feed_data(_CHUNKED_HEAD)
        return None

    def _start_length(self, digits: str) -> None:
        digits = digits.lstrip("0") or "0"
        self._has_length = True
        self._remaining = int(digits) if len(digits) <= _MAX_LENGTH_DIGITS else 10**_MAX_LENGTH_DIGITS
        if self._remaining == 0:
            self._finish(is_reusable=self._is_reusable)

    def _feed_body(self, data: bytes | memoryview) -> None:
        if self._chunks is not None:
            self._feed_chunks(self._chunks, data)
        elif self._has_length:
            surplus = len(data) - self._remaining
            self._remaining -= len(data)
            self._keep(data[:-surplus] if surplus > 0 else data)
            if surplus >= 0 and not self.is_done:
                self._finish(is_reusable=self._is_reusable and surplus == 0)
        else:
            self._keep(data)

    def _keep(self, data: bytes | memoryview) -> None:
        if not self._unjudged:
            return self._store(data)
        start, rest = data[: self._unjudged], data[self._unjudged :]
        self._store(start)
        if self.is_done:
            return None
        self._unjudged -= len(start)
        if self._unjudged == 0:
            self._judge()
        if rest and not self.is_done:
            self._store(rest)
        return None

    def _store(self, data: bytes | memoryview) -> None:
        room = self._limits.body_bytes - self.body.size
        if len(data) > room:
            if room:
                self.body.write(data[:room])
            self._cut("length")
        else:
            self.body.write(data)

    def _feed_chunks(self, chunks: httptools.HttpResponseParser, data: bytes | memoryview) -> None:
        self._wire_bytes += len(data)
        try:
            chunks.feed_data(data)
        except httptools.HttpParserError:
            self._is_reusable = False
            self._bad_chunk()
        if self._wire_bytes > CHUNK_OVERHEAD * self.body.size + self._limits.head_bytes:
            self._bad_chunk()

    def _bad_chunk(self) -> None:
        """What came before a framing error is kept; a page of which nothing came has failed, a redirect has not."""
        if self.is_done:
            return
        is_page = self.parsed is not None and 200 <= self.parsed.status < 300
        if is_page and not self.body.size:
            self._fail(Outcome.PROTOCOL_ERROR, "bad_chunk")
        else:
            self._cut("unspecified")

    def on_body(self, data: bytes) -> None:
        if not self.is_done:
            self._keep(data)

    def on_message_complete(self) -> None:
        if not self.is_done and self._wire_bytes:
            self._finish(is_reusable=self._is_reusable)

    def on_message_begin(self) -> None:
        if self.is_done:
            self._is_reusable = False

    def _cut(self, reason: str) -> None:
        self.truncated = reason
        self._finish(is_reusable=False)

    def _fail(self, outcome: Outcome, reason: str) -> None:
        self.failure, self.failure_reason = outcome, reason
        self._finish(is_reusable=False)

    def _finish(self, *, is_reusable: bool) -> None:
        if self._unjudged and self.failure is None:
            self._judge()
        self._is_reusable = is_reusable
        self.is_done = True
