"""Raw responses, good and bad, and the one outcome of each. The cases follow the ones that Apache Nutch (TestBadServer-
Responses) and llhttp (test/response) test; where those disagree the choice is ours and is written beside the case."""

from __future__ import annotations

from typing import NamedTuple

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Seen(NamedTuple):
    """What must come out: a status with body and truncation, or a failure with its reason."""

    status: int = 0
    body: bytes = b""
    truncated: str | None = None
    failure: str | None = None


class Vector(NamedTuple):
    name: str
    raw: bytes
    seen: Seen
    end: str = "closed"


def bad(reason: str, outcome: str = "protocol_error") -> Seen:
    return Seen(failure=f"{outcome}: {reason}")


VECTORS = [
    Vector("length", OK + b"Content-Length: 5\r\n\r\nhello", Seen(200, b"hello")),
    Vector("no length", OK + b"\r\nhello", Seen(200, b"hello")),
    Vector("version 1.0", b"HTTP/1.0 200 OK\r\n\r\nhello", Seen(200, b"hello")),
    Vector("no reason", b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", Seen(200, b"hi")),
    Vector("reason with spaces", b"HTTP/1.1 404  Not  There\r\nContent-Length: 0\r\n\r\n", Seen(404)),
    Vector("colon behind the status", b"HTTP/1.1 200: OK\r\n\r\nhello", Seen(200, b"hello")),
    Vector("two spaces before the status", b"HTTP/1.1  200 OK\r\n\r\nhello", Seen(200, b"hello")),
    Vector("lone line feeds", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", Seen(200, b"hello")),
    Vector("non-ASCII in a field", OK + b"X: \xe4\xff\r\nContent-Length: 1\r\n\r\nx", Seen(200, b"x")),
    Vector("line without colon", OK + b"nonsense\r\nContent-Length: 1\r\n\r\nx", Seen(200, b"x")),
    Vector("line without name", OK + b": nonsense\r\nContent-Length: 1\r\n\r\nx", Seen(200, b"x")),
    Vector("space before colon", OK + b"Content-Length : 1\r\n\r\nxy", Seen(200, b"x")),
    Vector("204 has no body", b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", Seen(204)),
    Vector("304 has no body", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Seen(304)),
    Vector("interim heads", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"\r\nhello", Seen(200, b"hello")),
    Vector("interim flood", b"HTTP/1.1 100 \r\n\r\n" * 4000, bad("interim_flood")),
    Vector("unasked upgrade", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", bad("unasked_upgrade")),
    # What is no response at all.
    Vector("HTTP/0.9", b"<!DOCTYPE html>\n<html>hello</html>", bad("no_status_line")),
    Vector("text", b"This is a text\r\n\r\n", bad("no_status_line")),
    Vector("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", bad("no_status_line")),
    Vector("ICY", b"ICY 200 OK\r\n\r\nmp3", bad("no_status_line")),
    Vector("HTP", b"HTP/1.1 200 OK\r\n\r\n", bad("no_status_line")),
    Vector("lower case", b"http/1.1 200 OK\r\n\r\n", bad("no_status_line")),
    Vector("empty line first", b"\r\nHTTP/1.1 200 OK\r\n\r\n", bad("no_status_line")),
    Vector("version 01.1", b"HTTP/01.1 200 OK\r\n\r\n", bad("bad_status_line")),
    Vector("version 11.1", b"HTTP/11.1 200 OK\r\n\r\n", bad("bad_status_line")),
    Vector("version 1.01", b"HTTP/1.01 200 OK\r\n\r\n", bad("bad_status_line")),
    Vector("version 5.6", b"HTTP/5.6 200 OK\r\n\r\n", bad("bad_status_line")),
    Vector("version 2", b"HTTP/2 200\r\n\r\n", bad("bad_status_line")),
    Vector("tab behind version", b"HTTP/1.1\t200 OK\r\n\r\n", bad("bad_status_line")),
    Vector("one-digit status", b"HTTP/1.1 2 OK\r\n\r\n", bad("bad_status_line")),
    Vector("four-digit status", b"HTTP/1.1 2000 OK\r\n\r\n", bad("bad_status_line")),
    Vector("status 099", b"HTTP/1.1 099 OK\r\n\r\n", bad("bad_status_line")),
    Vector("no status", b"HTTP/1.1 OK\r\n\r\n", bad("bad_status_line")),
    Vector("bare CR between fields", OK + b"Foo: 1\rBar: 2\r\n\r\n", bad("bare_cr")),
    Vector("CR CR LF", OK + b"Foo: 1\r\r\n\r\n", bad("bare_cr")),
    Vector("NUL in a field", OK + b"Foo: a\0b\r\n\r\n", bad("nul_in_head")),
    # Folded lines (RFC 9112, 5.2) go on with the field before; one right after the status line is left out (2.2).
    Vector("folded field", OK + b"Set-Cookie: a;\r\n  b\r\n\r\nhello", Seen(200, b"hello")),
    Vector("folded length", OK + b"Content-Length:\r\n\t5\r\n\r\nhello!", Seen(200, b"hello")),
    Vector("folded length of two", OK + b"Content-Length: 5\r\n 6\r\n\r\nhello!", Seen(200, b"hello!")),
    Vector("folded coding", OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", Seen(200, b"hi")),
    Vector("fold of nothing", OK + b"X: y\r\n \r\nContent-Length: 2\r\n\r\nhi!", Seen(200, b"hi")),
    Vector("space after the status line", OK + b" Content-Length: 1\r\n\r\nhello", Seen(200, b"hello")),
    Vector("nothing", b"", bad("closed_before_response", "connect_failed")),
    Vector("reset at once", b"", bad("reset_before_response", "connect_failed"), "reset"),
    Vector("half a status line", b"HTTP/1.", bad("closed_in_head")),
    Vector("half a head", OK + b"Content-Le", bad("closed_in_head")),
    # Lengths. One that is no number is ignored, and the body ends with the connection.
    Vector("length not a number", OK + b"Content-Length: thousand\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length with plus", OK + b"Content-Length: +2\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length negative", OK + b"Content-Length: -2\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length hexadecimal", OK + b"Content-Length: 0x2\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length with digits of Arabic", OK + "Content-Length: ٢\r\n\r\nhello".encode(), Seen(200, b"hello")),
    Vector("length empty", OK + b"Content-Length:\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length in tabs", OK + b"Content-Length:\t5\t\r\n\r\nhello", Seen(200, b"hello")),
    Vector("length with zeros", OK + b"Content-Length: 0005\r\n\r\nhello", Seen(200, b"hello")),
    Vector(
        "length of 5000 digits", OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nhi", Seen(200, b"hi", "disconnect")
    ),
    Vector("length twice, same", OK + b"Content-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello!", Seen(200, b"hello")),
    Vector("length twice, different", OK + b"Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello", bad("two_lengths")),
    Vector("length zero", OK + b"Content-Length: 0\r\n\r\nhello", Seen(200)),
    Vector("body too short", OK + b"Content-Length: 9\r\n\r\nhello", Seen(200, b"hello", "disconnect")),
    Vector("no body came", OK + b"Content-Length: 9\r\n\r\n", Seen(200, b"", "disconnect")),
    Vector("reset in an open body", OK + b"\r\nhello", Seen(200, b"hello", "disconnect"), "reset"),
    Vector("surplus", OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", Seen(200, b"hello")),
    # Chunks.
    Vector("chunks", CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", Seen(200, b"hello world")),
    Vector("chunk extensions", CHUNKED + b'5;a;b=c;d="e; f"\r\nhello\r\n0\r\n\r\n', Seen(200, b"hello")),
    Vector("trailer", CHUNKED + b"5\r\nhello\r\n0\r\nX-Time: 77\r\n\r\n", Seen(200, b"hello")),
    Vector(
        "framing in a trailer", CHUNKED + b"2\r\nhi\r\n0\r\nContent-Length: 7\r\n\r\n", Seen(200, b"hi", "unspecified")
    ),
    Vector("spaces behind a size", CHUNKED + b"5  \r\nhello\r\n0  \r\n\r\n", Seen(200, b"hello")),
    Vector("size in capitals", CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n", Seen(200, b"0123456789")),
    Vector("chunks with lone line feeds", CHUNKED + b"5\nhello\n0\n\n", bad("bad_chunk")),
    Vector("chunked twice", OK + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n2\r\nhi\r\n0\r\n\r\n", Seen(200, b"hi")),
    Vector("identity", OK + b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi!", Seen(200, b"hi")),
    Vector("empty coding", OK + b"Transfer-Encoding:\r\nContent-Length: 2\r\n\r\nhi!", Seen(200, b"hi")),
    Vector(
        "chunked and length",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        Seen(200, b"hi"),
    ),
    Vector("Client-Transfer-Encoding", OK + b"Client-Transfer-Encoding: chunked\r\n\r\nhello", Seen(200, b"hello")),
    Vector("gzip in transfer", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", bad("transfer_coding")),
    Vector("chunked, deflate", OK + b"Transfer-Encoding: chunked, deflate\r\n\r\nx", bad("transfer_coding")),
    Vector("chunkedchunked", OK + b"Transfer-Encoding: chunkedchunked\r\n\r\n2\r\nhi", bad("transfer_coding")),
    Vector("announced, but no chunks", CHUNKED + b"<html>hello</html>", bad("bad_chunk")),
    Vector("chunk without size", CHUNKED + b"\r\nhello\r\n", bad("bad_chunk")),
    Vector("size over 64 bits", CHUNKED + b"FFFFFFFFFFFFFFFFF\r\nhello", bad("bad_chunk")),
    Vector("size negative", CHUNKED + b"-5\r\nhello", bad("bad_chunk")),
    Vector("size 0x5", CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", bad("bad_chunk")),
    Vector("huge size", CHUNKED + b"7FFFFFFFFFFFFFF\r\nhello", Seen(200, b"hello", "disconnect")),
    Vector("chunk longer than its size", CHUNKED + b"3\r\nhello\r\n0\r\n\r\n", Seen(200, b"hel", "unspecified")),
    Vector("bad second chunk", CHUNKED + b"5\r\nhello\r\nzz\r\n", Seen(200, b"hello", "unspecified")),
    Vector("last chunk missing", CHUNKED + b"5\r\nhello\r\n", Seen(200, b"hello", "disconnect")),
    Vector("end of last chunk missing", CHUNKED + b"5\r\nhello\r\n0\r\n", Seen(200, b"hello", "disconnect")),
    Vector("cut in a chunk", CHUNKED + b"5\r\nhel", Seen(200, b"hel", "disconnect")),
    Vector("endless extension", CHUNKED + b"5;" + b"x" * 70_000, bad("bad_chunk")),
    Vector("endless trailer", CHUNKED + b"2\r\nhi\r\n0\r\n" + b"X: y\r\n" * 12_000, Seen(200, b"hi", "unspecified")),
    Vector("surplus behind chunks", CHUNKED + b"2\r\nhi\r\n0\r\n\r\nsurplus", Seen(200, b"hi")),
    Vector(
        "redirect with a body that is none",
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\nNot a valid chunk.",
        Seen(302, b"", "unspecified"),
    ),
    # Sizes.
    Vector("head over 64 KiB", OK + b"X: " + b"y" * 66_000, bad("head_bytes", "headers_too_large")),
    Vector("80 fields of 10 kB", OK + (b"X: " + b"y" * 10_000 + b"\r\n") * 80, bad("head_bytes", "headers_too_large")),
    Vector("201 fields", OK + b"X: y\r\n" * 201 + b"\r\n", bad("header_fields", "headers_too_large")),
    Vector("200 fields", OK + b"X: y\r\n" * 200 + b"\r\nhello", Seen(200, b"hello")),
    Vector(
        "large interim heads",
        b"HTTP/1.1 103 Hints\r\nX: " + b"y" * 40_000 + b"\r\n\r\n" + OK + b"X: " + b"y" * 40_000 + b"\r\n\r\n",
        bad("head_bytes", "headers_too_large"),
    ),
]
