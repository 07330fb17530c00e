"""The stored capture of a URL: what was said over the wire, read back from its WARC file."""

from __future__ import annotations

from typing import Any, NamedTuple

from crawler.page.url import Refusal, Url, UrlPolicy
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.manifest import read_manifest, require_same_keys
from crawler.tables.reader import Reader, Row
from jobs.exits import BAD_USE, NOT_FOUND, Stop
from jobs.stored import Record, captures_of, http_headers, original_of, read_record
from jobs.words import instant, lines_of, number, visible

HIDDEN = frozenset({"signature"})


class Shown(NamedTuple):
    """A capture, its record, and the capture and record that hold the body: others for a revisit."""

    capture: Row
    record: Record
    holder: Row
    holding: Record


def canonical_url(raw: str, settings: Settings) -> Url:
    """The URL as the crawl knows it. Raises Stop for what is none."""
    found = UrlPolicy(settings.url).canonical(raw if "://" in raw else f"https://{raw}")
    if isinstance(found, Refusal):
        raise Stop(BAD_USE, f"{raw}: no URL that can be crawled ({found.reason})")
    return found


def find_capture(store: Store, settings: Settings, raw: str, number: int | None) -> Shown:
    """The newest stored capture of a URL, or that of one round. Raises Stop when there is none."""
    url = canonical_url(raw, settings)
    require_same_keys(store, read_manifest(store))
    reader = Reader.open(store)
    newest = reader.committed()
    captures = captures_of(reader, newest["versions"], url.key) if newest else []
    stored = [row for row in captures if row["warc_filename"] and number in {None, row["round"]}]
    if newest is None or not stored:
        raise Stop(NOT_FOUND, _nothing_stored(url.url, captures, number))
    capture = stored[-1]
    record = read_record(store, capture)
    if capture["warc_record_type"] != "revisit":
        return Shown(capture, record, capture, record)
    earlier = [row for row in captures if row["round"] <= capture["round"]]
    holder = original_of(reader, newest["versions"], record, earlier)
    if holder is None:
        return Shown(capture, record, capture, record)
    return Shown(capture, record, holder, read_record(store, holder))


def body_of(shown: Shown, max_bytes: int) -> bytes:
    """The body with its content coding undone, up to `max_bytes`; as it is where the coding cannot be undone."""
    from crawler.page.coding import decode_content

    coding = http_headers(shown.holding).get("content-encoding")
    decoded = decode_content(shown.holding.body, coding, max_bytes, limit_s=60)
    return decoded.body if decoded.body or not shown.holding.body else shown.holding.body


def text_of(shown: Shown, settings: Settings) -> str:
    """Title and text of the page, as the crawl's own document modules read it."""
    from crawler.page.documents import parse

    body = body_of(shown, settings.fetch.max_decoded_bytes)
    content_type = http_headers(shown.holding).get("content-type")
    return parse(body, shown.holder["url"], content_type, settings.page.html_module).text


def summary(shown: Shown) -> str:
    """Which capture it is, where it lies, and the HTTP head."""
    row, holder = shown.capture, shown.holder
    lines = [
        f"{row['url']}",
        f"  round {row['round']}, {instant(row['fetch_time'])}: {row['outcome']}, status {row['fetch_status']}",
        f"  {_place(row)}",
    ]
    if holder is not row:
        lines.append(f"  body from the capture of round {holder['round']}: {holder['url']}")
        lines.append(f"  {_place(holder)}")
    if row["title"]:
        lines.append(f"  title: {row['title']}")
    if row["duplicate_kind"]:
        lines.append(f"  duplicate: {row['duplicate_kind']}, similarity {row['similarity']:.2f}; see `orbweaver why`")
    head = shown.record.head.decode("latin-1").replace("\r\n", "\n").rstrip().expandtabs()
    return lines_of([*lines, "", *head.split("\n")])


def as_json(shown: Shown) -> dict[str, Any]:
    """The capture's row, the head, and where the body was found."""
    return {
        **plain(shown.capture),
        "head": shown.record.head.decode("latin-1"),
        "body_from": {name: plain(shown.holder)[name] for name in _PLACE},
        "warc_headers": shown.record.headers,
    }


_PLACE = ("url", "round", "warc_filename", "warc_record_offset", "warc_record_length", "warc_record_id")


def plain(row: Row) -> dict[str, Any]:
    """A table row for people and for JSON: times as text; binary columns are left out."""
    return {
        name: instant(value) if hasattr(value, "tzinfo") else value
        for name, value in row.items()
        if name not in HIDDEN and not isinstance(value, bytes)
    }


def _place(row: Row) -> str:
    where = f"offset {number(row['warc_record_offset'])}, {number(row['warc_record_length'])} bytes"
    return f"{row['warc_record_type']} in {row['warc_filename']}, {where}"


def _nothing_stored(url: str, captures: list[Row], number: int | None) -> str:
    if number is not None:
        return f"{url}: nothing is stored from round {number}; `orbweaver why {url}` tells all that is known"
    if captures:
        last = captures[-1]
        detail = visible(last["reason"] or "no detail")
        said = f"the last visit ended as {last['outcome']} ({detail}) in round {last['round']}"
        return f"{url}: nothing is stored; {said}"
    return f"{url}: never visited; `orbweaver why {url}` tells what is known of it"
