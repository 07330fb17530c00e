"""From a response to an outcome, and the rows that say so."""

from __future__ import annotations

from typing import Any

from crawler.fetch.exchange import Exchange
from crawler.fetch.politeness import retry_after_s
from crawler.records import HOST_FAULTS, Outcome, PlannedUrl
from crawler.schemas import OUTCOMES

Row = dict[str, Any]
_BLANK: Row = dict.fromkeys(OUTCOMES.names)
_REDIRECTS = {
    301: Outcome.REDIRECT_PERM,
    302: Outcome.REDIRECT_TEMP,
    303: Outcome.REDIRECT_TEMP,
    307: Outcome.REDIRECT_TEMP,
    308: Outcome.REDIRECT_PERM,
}
IS_REDIRECT = frozenset({Outcome.REDIRECT_TEMP, Outcome.REDIRECT_PERM})
MAX_REASON_CHARS = 300


def outcome_of(exchange: Exchange, planned: PlannedUrl) -> Outcome:
    """What the answer to the request for `planned` means (RFC 9110, 15). A page that was cut by time has failed: it is
    kept as far as it came, and asked for again as after any failure."""
    if exchange.failure is not None:
        return exchange.failure
    status = exchange.status
    if 200 <= status < 300:
        if exchange.unread_type is not None:
            return Outcome.UNWANTED_TYPE
        return Outcome.TIMEOUT if exchange.truncated == "time" else Outcome.SUCCESS
    if status == 304:
        is_asked_for = bool(planned.etag or planned.last_modified)
        return Outcome.NOT_MODIFIED if is_asked_for else Outcome.PROTOCOL_ERROR
    if status in _REDIRECTS:
        return _REDIRECTS[status]
    if status in (404, 410):
        return Outcome.GONE
    if status == 429 or (status == 503 and wait_asked_for(exchange) is not None):
        return Outcome.ASKED_TO_WAIT
    return Outcome.SERVER_ERROR if 500 <= status < 600 else Outcome.CLIENT_ERROR


def is_host_fault(outcome: Outcome, exchange: Exchange) -> bool:
    """Whether an answer counts against its host: a failure of the server, or a body of whatever status that it did not
    send in time."""
    return outcome in HOST_FAULTS or exchange.truncated == "time"


def wait_asked_for(exchange: Exchange) -> float | None:
    """Seconds that the Retry-After of an answer asks for."""
    values = [value for name, value in exchange.headers if name == "retry-after"]
    return retry_after_s(values, exchange.started_at + exchange.duration_s) if values else None


def blank_row(planned: PlannedUrl, outcome: Outcome, reason: str | None, at: float) -> Row:
    """An outcome with nothing but what was planned, decided at `at`."""
    return _BLANK | {
        "url_key": planned.url_key,
        "url": planned.url,
        "host": planned.host,
        "outcome": str(outcome),
        "reason": reason[:MAX_REASON_CHARS] if reason else None,
        "fetch_time": at,
    }


def answered_row(planned: PlannedUrl, outcome: Outcome, exchange: Exchange) -> Row:
    """An outcome with what the exchange says of itself; the content is for others to fill in."""
    row = blank_row(planned, outcome, exchange.failure_reason, exchange.started_at)
    row["fetch_s"] = exchange.duration_s
    row["address"] = exchange.address
    row["tls_verdict"] = exchange.tls.verdict if exchange.tls else None
    if exchange.failure is not None:
        return row
    row["fetch_status"] = exchange.status
    row["http_version"] = exchange.http_version
    row["content_truncated"] = exchange.truncated
    row["content_length"] = exchange.body_size
    row["etag"] = _bounded(exchange.header("etag"))
    row["last_modified"] = _bounded(exchange.header("last-modified"))
    if exchange.unread_type is not None:
        row["reason"] = f"body not read: {exchange.unread_type}"
    if outcome is Outcome.PROTOCOL_ERROR:
        row["reason"] = "not_modified_unasked"
    elif outcome is Outcome.TIMEOUT:
        row["reason"] = "body"
    return row


def _bounded(value: str | None) -> str | None:
    """A validator that can be sent back; an endless one is no use."""
    return value if value and len(value) <= 1_024 else None
