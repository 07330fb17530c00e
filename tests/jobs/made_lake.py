"""A lake as two committed rounds and one open round leave it, written without Spark: rows, WARC files, lock, inbox."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from crawler import schemas
from crawler.fetch.warc import CaptureRecord, Revisit, WarcFile, WarcInfo, payload_digest
from crawler.page.url import Url, UrlPolicy, host_key
from crawler.settings import UrlSettings
from crawler.storage import Store
from crawler.tables.manifest import FORMAT

BUCKETS = 4
ROUND_1 = datetime(2026, 11, 2, 6, tzinfo=UTC).timestamp()
ROUND_2 = ROUND_1 + 14 * 86_400
HOUR_2 = int(ROUND_2 // 3_600)
BODY = b"<html><head><title>Wren</title></head><body><p>The wren is a small bird.</p></body></html>"
HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n' % len(BODY)
HEAD_304 = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
Row = dict[str, Any]
WEB_TEXT = frozenset(
    {"url", "host", "registered_domain", "title", "reason", "line", "etag", "last_modified", "fetch_redirect"}
    | {"content_mime_type", "content_mime_detected", "content_charset", "address", "tls_verdict"}
)
"""Columns whose texts strangers write, or could."""


def url(text: str) -> Url:
    """The canonical URL."""
    found = UrlPolicy(UrlSettings()).canonical(text)
    assert isinstance(found, Url)
    return found


HOME, COPY, NEAR, GONE, SECRET, LATE, MOVED = (
    url(f"https://a.test/{path}") for path in ("", "copy", "near", "gone", "private/secret", "late", "moved")
)
OTHER = url("https://b.test/")


class LakeMaker:
    """Collects rows, then writes each table once a round. `dirt` is put behind all text of strangers."""

    def __init__(self, folder: Path, dirt: str = "") -> None:
        self.dirt = dirt
        self.store = Store.open(str(folder))
        self.store.put_new("lake.json", json.dumps({"format": FORMAT, "buckets": BUCKETS}).encode())

    def write(self, table: schemas.Table, rows: list[Row]) -> None:
        """Append the rows; columns that a row does not name are null."""
        data = pa.Table.from_pylist(self._dirty(rows), schema=schemas.arrow_schema(table.columns))
        write_deltalake(self._place(table), data, mode="append", partition_by=list(table.partitioned_by))

    def replace(self, table: schemas.Table, rows: list[Row]) -> None:
        """Put the rows in place of all."""
        data = pa.Table.from_pylist(self._dirty(rows), schema=schemas.arrow_schema(table.columns))
        write_deltalake(self._place(table), data, mode="overwrite", partition_by=list(table.partitioned_by))

    def versions(self) -> dict[str, int]:
        tables = [table for table in schemas.TABLES if table is not schemas.ROUNDS]
        return {table.name: DeltaTable(self._place(table)).version() for table in tables}

    def state(self, number: int, state: str, now: float, after_s: float, counts: dict[str, int]) -> None:
        """A row of the ledger."""
        row = {
            "round": number,
            "state": state,
            "now_at": _time(now),
            "recorded_at": _time(now + after_s),
            "segment_folder": f"crawl-data/ORB-MAIN-2026-45/segments/{number}",
            "versions": self.versions(),
            "inbox": ["inbox/first.urls"] if number == 1 else [],
            "counts": counts,
            "settings_hash": "0",
            "holder": "here:1",
            "token": 1,
        }
        self.write(schemas.ROUNDS, [row])

    def warc(self, name: str) -> WarcFile:
        path = f"crawl-data/ORB-MAIN-2026-45/segments/1/warc/{name}.warc.gz"
        return WarcFile(self.store.open_writer(path), WarcInfo("ORB-MAIN", "orbweaver"))

    def head(self, head: bytes) -> bytes:
        """The head with the dirt in a field of its own, as UTF-8 and as single bytes."""
        if not self.dirt:
            return head
        field = self.dirt.replace("\r", "").replace("\n", "").replace("\0", "")
        lone = bytes(set(range(1, 256)) - {10, 13})
        return head.replace(b"ETag", b"X-Dirt: " + field.encode() + b"\r\nX-Bytes: " + lone + b"\r\nETag")

    def _dirty(self, rows: list[Row]) -> list[Row]:
        is_text = {name for row in rows for name, value in row.items() if name in WEB_TEXT and isinstance(value, str)}
        return [{name: value + self.dirt if name in is_text and value else value for name, value in row.items()}
                for row in rows]  # fmt: skip

    def _place(self, table: schemas.Table) -> str:
        return self.store.uri_of(f"tables/{table.name}")


def make_lake(folder: Path, dirt: str = "") -> Store:
    """Round 1 found and visited pages of a.test; round 2 asked again for the home page, and got a 304."""
    maker = LakeMaker(folder, dirt)
    for table in schemas.TABLES:
        maker.write(table, [])
    home = _first_round(maker)
    _second_round(maker, home)
    maker.state(3, "OPENED", ROUND_2 + 3_600, 0.0, {})
    maker.store.put_new("inbox/more.urls", b"https://c.test/\n")
    return maker.store


def _first_round(maker: LakeMaker) -> Row:
    warc = maker.warc("first")
    home = _stored(maker, warc, HOME, 1, {"links_refused": {"scheme": 2}, "links_found": 7, "links_kept": 5})
    copied = {"duplicate_kind": "payload", "duplicate_of_key": HOME.key, "duplicate_of_round": 1, "similarity": 1.0}
    copied |= {"parse_status": "killed", "reason": "the parser needed more than 10 s of CPU"}
    near = {"duplicate_kind": "near", "duplicate_of_key": HOME.key, "duplicate_of_round": 1, "similarity": 0.91}
    captures = [
        home,
        _stored(maker, warc, COPY, 2, copied),
        _stored(maker, warc, NEAR, 2.5, near),
        _visit(GONE, 1, ROUND_1 + 4, "gone", fetch_status=404, reason="404 Not Found", fetch_s=0.1),
        _visit(SECRET, 1, ROUND_1 + 4, "robots_denied", reason="robots.txt"),
        _visit(LATE, 1, ROUND_1 + 5, "not_reached", reason="time_limit"),
    ]
    warc.close()
    if maker.dirt:
        moved = {"fetch_status": 301, "fetch_redirect": HOME.url, "retry_at": ROUND_1}
        captures.append(_visit(MOVED, 1, ROUND_1 + 3, "redirect_perm", **moved))
    maker.write(schemas.CAPTURES, captures)
    seed = {"line": HOME.url, "url_key": HOME.key, "url": HOME.url, "host": "a.test", "registered_domain": "a.test"}
    refused = {"line": "ftp://a.test/", "verdict": "scheme", "inbox_file": "inbox/first.urls", "round": 1}
    led_to = {**seed, "line": None, "url_key": LATE.key, "url": LATE.url, "redirected_from": HOME.url, "seed_hops": 1}
    admitted = {**seed, "verdict": "admitted", "inbox_file": "inbox/first.urls", "round": 1}
    maker.write(schemas.SEEDS, [admitted, refused, {**led_to, "verdict": "admitted", "round": 1}])
    known = (HOME, COPY, NEAR, GONE, SECRET, LATE, OTHER)
    maker.write(schemas.URL_CHECKSUMS, [_checksum(one, 1) for one in known])
    left_out = {"host": "a.test", "kind": "left_out", "reason": "host_budget", "rows": 3, "partition": -1, "round": 1}
    maker.write(schemas.PLANS, [*(_planned(one, 1, at) for at, one in enumerate((HOME, COPY, NEAR))), left_out])
    maker.write(schemas.HOSTS, [_host(1)])
    for state, after_s in (("OPENED", 0.0), ("PLANNED", 1.0), ("FETCHED", 11.0)):
        maker.state(1, state, ROUND_1, after_s, {"planned": 6, "planned_hosts": 1})
    maker.replace(schemas.FRONTIER, [due_row(HOME, HOUR_2, "fetched")])
    maker.state(
        1, "COMMITTED", ROUND_1, 13.0, {"planned": 6, "planned_hosts": 1, "new_urls": 6, "left_out.host_budget": 3}
    )
    return home


def _second_round(maker: LakeMaker, home: Row) -> None:
    warc = maker.warc("second")
    revisit = Revisit("server-not-modified", home["warc_record_id"], HOME.url, home["warc_date"])
    head = maker.head(HEAD_304)
    capture = CaptureRecord(HOME.url, ROUND_2 + 1, "127.0.0.2", b"GET / HTTP/1.1\r\n\r\n", head, revisit=revisit)
    place = warc.write_exchange(capture)
    warc.close()
    row = _visit(HOME, 2, ROUND_2 + 1, "not_modified", fetch_status=304, fetch_s=0.1, is_changed=False)
    maker.write(schemas.CAPTURES, [{**row, **_where(warc, place)}])
    maker.write(schemas.PLANS, [_planned(HOME, 2, 0)])
    maker.replace(
        schemas.FRONTIER,
        [
            due_row(HOME, HOUR_2 + 14 * 24, "not_modified", visits=2, etag='"1"'),
            due_row(LATE, HOUR_2, "unfetched", source_key=HOME.key, source="link", depth=1),
            due_row(GONE, HOUR_2 + 100, "gone", failures=1, source_key=HOME.key, source="link", depth=1),
        ],
    )
    for state, after_s in (("OPENED", 0.0), ("PLANNED", 1.0), ("FETCHED", 3.0), ("COMMITTED", 4.0)):
        maker.state(2, state, ROUND_2, after_s, {"planned": 1, "planned_hosts": 1, "new_urls": 0, "outcomes": 1})


def _stored(maker: LakeMaker, warc: WarcFile, at: Url, after_s: float, more: Row) -> Row:
    when, body, head = ROUND_1 + after_s, BODY + maker.dirt.encode(), maker.head(HEAD)
    place = warc.write_exchange(CaptureRecord(at.url, when, "127.0.0.2", b"GET / HTTP/1.1\r\n\r\n", head, body))
    row = _visit(at, 1, when, "success", fetch_status=200, fetch_s=0.05, title="Wren", content_length=len(BODY))
    digest = {"content_digest": payload_digest(BODY), "content_mime_detected": "text/html"}
    return {**row, **_where(warc, place), **digest, "links_found": 0, "links_kept": 0, **more}


def _where(warc: WarcFile, place: Any) -> Row:
    return {
        "warc_filename": warc.path,
        "warc_record_offset": place.offset,
        "warc_record_length": place.length,
        "warc_record_id": place.record_id,
        "warc_record_type": place.record_type,
        "warc_date": place.date,
    }


def _visit(at: Url, number: int, when: float, outcome: str, **more: Any) -> Row:
    named = {"url_key": at.key, "url": at.url, "host": at.host, "outcome": outcome}
    return {**named, "fetch_time": _time(when), "partition": 0, "round": number, **more}


def _checksum(at: Url, number: int) -> Row:
    return {"url_key": at.key, "round": number, "bucket": _bucket(at.key)}


def _planned(at: Url, number: int, position: int) -> Row:
    row = {"url_key": at.key, "url": at.url, "host": at.host, "tier": 0, "position": position, "kind": "url"}
    return {**row, "rows": 1, "partition": 0, "round": number}


def due_row(at: Url, slot: int, status: str, **more: Any) -> Row:
    row = {"url_key": at.key, "url": at.url, "host": at.host, "depth": 0, "source": "seed", "status": status}
    counts = {"failures": 0, "visits": 1, "changes": 0, "tier": 0, "slot": slot, "due_at": _time(slot * 3_600.0)}
    return {**row, **counts, **more}


def _host(number: int) -> Row:
    robots = {"scheme": "https", "fetched_at": ROUND_1, "status": 200, "body": b"User-agent: *\nDisallow: /private/\n"}
    row = {"host_key": host_key("a.test"), "host": "a.test", "registered_domain": "a.test", "robots": [robots]}
    addresses = [{"address": "127.0.0.2", "expires_at": ROUND_1 + 60}]
    state = {"crawl_delay_s": None, "not_before": 0.0, "last_request_at": ROUND_1 + 4, "failures": 0}
    return {**row, **state, "addresses": addresses, "round": number, "bucket": _bucket(host_key("a.test"))}


def _bucket(key: int) -> int:
    return ((key & (2**64 - 1)) >> 40) * BUCKETS >> 24


def _time(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)
