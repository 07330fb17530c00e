from __future__ import annotations

import pytest

from crawler.fetch.exchange import Exchange
from crawler.fetch.headers import BadHead, ResponseHead, parse_head, prepare
from crawler.fetch.http import Request


@pytest.mark.parametrize(
    ("url", "lines"),
    [
        ("http://a.example/x?y", ["GET /x?y HTTP/1.1", "Host: a.example"]),
        ("http://a.example", ["GET / HTTP/1.1", "Host: a.example"]),
        ("http://a.example?q", ["GET /?q HTTP/1.1", "Host: a.example"]),
        ("http://a.example:80/", ["GET / HTTP/1.1", "Host: a.example"]),
        ("https://a.example:80/", ["GET / HTTP/1.1", "Host: a.example:80"]),
        ("http://[::1]:8080/", ["GET / HTTP/1.1", "Host: [::1]:8080"]),
        ("http://user:secret@a.example/#part", ["GET / HTTP/1.1", "Host: a.example"]),
    ],
)
def test_a_request_is_a_fixed_set_of_fields(url: str, lines: list[str]) -> None:
    prepared = prepare(Request(url, "8.8.8.8", "orbweaver/1", etag='"x"', last_modified="Sat", accept="text/html"))
    assert not isinstance(prepared, str)
    assert prepared.head.decode().split("\r\n") == [
        *lines,
        "User-Agent: orbweaver/1",
        "Accept: text/html",
        "Accept-Encoding: gzip, deflate",
        'If-None-Match: "x"',
        "If-Modified-Since: Sat",
        "Connection: close",
        "",
        "",
    ]


@pytest.mark.parametrize("value", ['"a\r\nCookie: x"', "a\0", "a\nb", "ä€", ""])
def test_a_value_that_could_forge_a_field_is_not_sent(value: str) -> None:
    prepared = prepare(Request("http://a.example/", "8.8.8.8", "agent", etag=value, last_modified=value))
    assert not isinstance(prepared, str)
    assert b"If-" not in prepared.head
    assert b"Cookie" not in prepared.head


@pytest.mark.parametrize(
    ("fields", "coding"),
    [
        ([], ""),
        ([("content-encoding", "gzip")], "gzip"),
        ([("content-encoding", "br"), ("vary", "x"), ("content-encoding", "gzip")], "br, gzip"),
        ([("content-encoding", "br, deflate"), ("content-encoding", "")], "br, deflate, "),
    ],
)
def test_several_content_encodings_are_one_list(fields: list[tuple[str, str]], coding: str) -> None:
    assert Exchange(b"", "192.0.2.1", 0.0, headers=fields).content_encoding == coding


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (b"Content-Encoding:\r\n gzip", [("content-encoding", "gzip")]),
        (b"A: b \t\r\n \t c\r\n\td\r\nE: f", [("a", "b c d"), ("e", "f")]),
        (b"A: b\n c", [("a", "b c")]),
        (b"A: b\r\n  : c", [("a", "b : c")]),
        (b"A: b\r\n ", [("a", "b")]),
        (b" A: b\r\n\tC: d\r\nE: f", [("e", "f")]),
        (b": b\r\n c\r\nE: f", [("e", "f")]),
        (b"nonsense\r\n c: d\r\nE: f", [("e", "f")]),
    ],
)
def test_folded_lines_are_joined_with_a_space(lines: bytes, fields: list[tuple[str, str]]) -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\n", 100)
    assert isinstance(head, ResponseHead)
    assert (head.headers, head.is_odd) == (fields, True)


def test_folded_lines_count_as_fields() -> None:
    assert parse_head(b"HTTP/1.1 200 OK\r\nA: b\r\n" + b" c\r\n" * 100 + b"\r\n", 100) == BadHead("headers_too_large")
