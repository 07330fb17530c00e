"""Corners that fail, stall or answer with something that is no HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tests.web.answers import Answer, Step, Visit, at, fixed, page

_FAILED = Answer(500, b"<html><body>Something broke.</body></html>\n")
_BODY = b"<html><head><title>Cut</title></head><body><p>" + b"These words are the beginning of a page. " * 20
PATIENCE_S = 180.0
"""How long a server that never answers holds the connection."""


def _wire(status: int, *steps: Step) -> Answer:
    return Answer(status, steps=lambda: steps)


def _head(length: int | None = None, *fields: tuple[str, str]) -> bytes:
    return Answer(headers=fields).wire_head(keep=False, length=length)


def _play(status: int, steps: Callable[[], Iterable[Step]]) -> Answer:
    return Answer(status, steps=steps)


def _dripped(head: bytes, body: bytes, pause_s: float) -> Callable[[], Iterator[Step]]:
    def steps() -> Iterator[Step]:
        yield head
        for byte in body:
            yield pause_s
            yield bytes([byte])

    return steps


def _endless_head() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nX-Long: "
    for _ in range(int(PATIENCE_S / 0.1)):
        yield 0.1
        yield b"a"


def _many_fields() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\n"
    yield b"".join(b"X-Field-%d: %s\r\n" % (number, b"v" * 40) for number in range(3_000))
    yield b"\r\n"


@at("snail.test", "/slow")
def _slow(visit: Visit) -> Answer:
    answer = page(visit, "/")
    return _wire(200, 1.0, answer.wire_head(keep=False), answer.body)


@at("broken.test", "/")
def _broken(visit: Visit) -> Answer:
    return page(visit, *(f"/fails/{number}" for number in range(1, 9)))


@at("broken.test", "/fails/*")
def _fails(visit: Visit) -> Answer:
    return _FAILED


@at("faulty.test", "/fine")
def _fine(visit: Visit) -> Answer:
    return page(visit, "/")


_CHUNKED = ("Transfer-Encoding", "chunked")
_FIRST_CHUNK = b"%x\r\n%b\r\n" % (len(_BODY), _BODY)

fixed("snail.test", "/drip", _play(200, _dripped(_head(40), b"<html><body>Drop by drop.</body></html>\n", 0.2)))
fixed("snail.test", "/never", _wire(0, PATIENCE_S))
fixed("snail.test", "/stall", _wire(200, _head(4 * len(_BODY)), _BODY, PATIENCE_S))
fixed("snail.test", "/endless-head", _play(0, _endless_head))
fixed("faulty.test", "/500", _FAILED)
fixed("faulty.test", "/reset", _wire(0, "reset"))
fixed("faulty.test", "/nothing", _wire(0))
fixed("faulty.test", "/short", _wire(200, _head(2 * len(_BODY)), _BODY))
fixed("faulty.test", "/cut-chunks", _wire(200, _head(None, _CHUNKED), _FIRST_CHUNK))
fixed("garbled.test", "/garbage", _wire(0, bytes(range(128, 256)) * 4))
fixed("garbled.test", "/http09", _wire(0, _BODY))
fixed("garbled.test", "/many-fields", _play(200, _many_fields))
fixed("garbled.test", "/bad-chunks", _wire(200, _head(None, _CHUNKED), _FIRST_CHUNK, b"nonsense\r\nmore\r\n"))
fixed("attic.test", "/gone", Answer(410, b"<html><body>Gone for good.</body></html>\n"))
fixed("attic.test", "/missing", Answer(404, b"<html><body>Not here.</body></html>\n"))
fixed("attic.test", "/forbidden", Answer(403, b"<html><body>Not for you.</body></html>\n"))
fixed("attic.test", "/legal", Answer(451, b"<html><body>The law forbids it.</body></html>\n"))
fixed("attic.test", "/strange", Answer(499, b"<html><body>Unheard of.</body></html>\n"))
fixed("attic.test", "/no-content", Answer(204, content_type=None))
