"""A WARC reader for the tests that shares nothing with the writer, and the rules of WARC 1.1 as assertions."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

EVERY_RECORD = {"WARC-Type", "WARC-Record-ID", "WARC-Date", "Content-Length"}


@dataclass(frozen=True)
class ReadRecord:
    """A record as it lies in the file."""

    offset: int
    length: int
    fields: list[tuple[str, str]]
    block: bytes

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    def get(self, name: str) -> str | None:
        return dict(self.fields).get(name)

    @property
    def type(self) -> str:
        return self["WARC-Type"]

    @property
    def head(self) -> bytes:
        """To the first empty line; lines may end with LF alone."""
        found = re.search(rb"\n\r?\n", self.block)
        assert found, self.block[:80]
        return self.block[: found.end()]

    @property
    def body(self) -> bytes:
        return self.block[len(self.head) :]


def members(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Offset, length and content of every gzip member."""
    offset, piece = 0, 65_536
    while offset < len(data):
        unpacker, at, content = zlib.decompressobj(31), offset, b""
        while not unpacker.eof:
            assert at < len(data), "the last member is cut"
            content += unpacker.decompress(data[at : at + piece])
            at = min(at + piece, len(data))
        length = at - offset - len(unpacker.unused_data)
        yield offset, length, content
        offset += length


def read_record(offset: int, length: int, content: bytes) -> ReadRecord:
    header, _, rest = content.partition(b"\r\n\r\n")
    version, *lines = header.decode().split("\r\n")
    assert version == "WARC/1.1"
    fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    size = int(dict(fields)["Content-Length"])
    assert rest[size:] == b"\r\n\r\n", "a record ends after its block, with two line ends"
    return ReadRecord(offset, length, fields, rest[:size])


def read_file(data: bytes) -> list[ReadRecord]:
    return [read_record(*member) for member in members(data)]


def read_at(data: bytes, offset: int, length: int) -> ReadRecord:
    """The record of a range, decoded from that range alone."""
    return read_record(offset, length, gzip.decompress(data[offset : offset + length]))


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def assert_rules(records: list[ReadRecord]) -> None:
    """Mandatory, repeated and forbidden fields, dates and digests of a whole file."""
    info, *others = records
    ids = [record["WARC-Record-ID"] for record in records]
    assert info.type == "warcinfo"
    assert len(set(ids)) == len(ids)
    for record in records:
        _assert_fields(record)
    for record in others:
        assert record["WARC-Warcinfo-ID"] == info["WARC-Record-ID"]
        assert re.fullmatch(r"https?://[!-~]+", record["WARC-Target-URI"])
        assert record.type != "warcinfo"
        assert record.get("WARC-Filename") is None


def _assert_fields(record: ReadRecord) -> None:
    assert not EVERY_RECORD - {name for name, _ in record.fields}
    repeated = {name for name, count in Counter(name for name, _ in record.fields).items() if count > 1}
    assert not repeated - {"WARC-Concurrent-To"}
    assert re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", record["WARC-Record-ID"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", record["WARC-Date"])
    assert record["WARC-Block-Digest"] == sha1(record.block)
    if record.type == "response":
        assert record["WARC-Payload-Digest"] == sha1(record.body)
        assert record["Content-Type"] == "application/http;msgtype=response"
    if record.type == "warcinfo":
        assert not {name for name, _ in record.fields} & {"WARC-Target-URI", "WARC-Warcinfo-ID", "WARC-Concurrent-To"}
