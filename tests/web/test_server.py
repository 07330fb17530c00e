"""The server of the demo web: conditional requests, second visits, its log, and how it ends."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.web import DemoWeb
from tests.web.answers import LAST_MODIFIED
from tests.web.ask import ask, send
from tests.web.demo import ROOT, DemoWebError
from tests.web.web import TRAP


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb() as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DemoWeb]:
    with DemoWeb(log=tmp_path / "own.jsonl") as running:
        yield running


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/etag", {"If-None-Match": '"kept-1"'}, 304),
        ("/etag", {"If-None-Match": '"other"'}, 200),
        ("/etag", {"If-Modified-Since": LAST_MODIFIED}, 200),
        ("/date", {"If-Modified-Since": LAST_MODIFIED}, 304),
        ("/date", {"If-None-Match": '"kept-1"'}, 200),
        ("/steady", {"If-None-Match": '"kept-1"', "If-Modified-Since": LAST_MODIFIED}, 200),
    ],
)
def test_conditional_requests(web: DemoWeb, path: str, fields: dict[str, str], status: int) -> None:
    reply = ask(web, "keeper.test", path, fields=fields)
    assert (reply.status, bool(reply.body)) == (status, status == 200)
    assert web.requests()[-1].is_conditional


@pytest.mark.parametrize(
    ("host", "path", "first", "second", "is_same"),
    [
        ("keeper.test", "/fickle", 200, 200, False),
        ("keeper.test", "/clock", 200, 200, False),
        ("keeper.test", "/steady", 200, 200, True),
        ("keeper.test", "/vanishes", 200, 404, False),
        ("keeper.test", "/returns", 404, 200, False),
        ("keeper.test", "/new-links", 200, 200, False),
        ("busy.test", "/later", 429, 200, False),
        ("busy.test", "/tired", 503, 200, False),
        ("meadow.test", "/", 200, 200, True),
    ],
)
def test_second_visits(own: DemoWeb, host: str, path: str, first: int, second: int, *, is_same: bool) -> None:
    one, two = ask(own, host, path), ask(own, host, path)
    assert (one.status, two.status, one.body == two.body) == (first, second, is_same)


def test_log_tells_when_what_and_where(own: DemoWeb) -> None:
    before = time.time()
    ask(own, "wren.nest.test", "/?a=1", fields={"If-None-Match": '"x"'})
    request = own.requests()[-1]
    assert before <= request.time <= time.time()
    assert (request.host, request.path, request.status) == (f"wren.nest.test:{own.port}", "/?a=1", 404)
    assert (request.address, request.user_agent, request.is_conditional) == ("127.77.3.1", "tester", True)
    assert request.url == own.url("wren.nest.test", "/?a=1")


def test_connections_are_kept_and_counted(own: DemoWeb) -> None:
    connection = http.client.HTTPConnection(own.web.addresses["meadow.test"], own.port)
    for path in ("/", "/robots.txt", "/nowhere"):
        connection.request("GET", path, headers={"Host": f"meadow.test:{own.port}"})
        connection.getresponse().read()
    connection.close()
    assert [(r.path, r.connection) for r in own.requests()] == [("/", 1), ("/robots.txt", 1), ("/nowhere", 1)]


def test_log_shows_two_at_once(own: DemoWeb) -> None:
    slow = threading.Thread(target=ask, args=(own, "snail.test", "/slow"))
    slow.start()
    while not own.requests():
        time.sleep(0.01)
    ask(own, "snail.test", "/")
    assert [request.at_once for request in own.requests()] == [1, 2]
    slow.join()


@pytest.mark.parametrize("address", [TRAP, "127.77.2.1"])
def test_wrong_address_is_refused_and_seen(own: DemoWeb, address: str) -> None:
    request = f"GET /x HTTP/1.1\r\nHost: meadow.test:{own.port}\r\nConnection: close\r\n\r\n"
    assert send(address, own.port, request.encode()).status == 421
    assert (own.requests()[-1].address, own.requests()[-1].status) == (address, 421)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [(b"POST / HTTP/1.1\r\n\r\n", 405), (b"nonsense\r\n\r\n", 400), (b"GET /" + b"x" * 70_000, 431)],
)
def test_bad_requests_do_no_harm(web: DemoWeb, request_bytes: bytes, status: int) -> None:
    assert send(TRAP, web.port, request_bytes, 0.5).status == status
    assert ask(web, "meadow.test").status == 200


def _close_stdin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("end", [_close_stdin, subprocess.Popen.terminate, lambda p: p.send_signal(signal.SIGINT)])
def test_server_ends_when_told(tmp_path: Path, end: Callable[[subprocess.Popen[str]], None]) -> None:
    process = _command(tmp_path, stdin=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        assert "demo web is ready: port" in process.stdout.readline()
        end(process)
        try:
            assert process.wait(5) == 0
        finally:
            process.kill()


def test_server_ends_with_its_parent(tmp_path: Path) -> None:
    """The middle process dies by SIGKILL; its standard input was no pipe."""
    middle = (
        "import os, sys; from subprocess import DEVNULL, PIPE, Popen\n"
        "server = Popen(sys.argv[1:], stdin=DEVNULL, stdout=PIPE); server.stdout.readline()\n"
        "print(server.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", middle, *_words(tmp_path)]
    server = int(subprocess.run(command, stdout=subprocess.PIPE, check=False, cwd=ROOT).stdout)
    ends_at = time.monotonic() + 5
    while _is_alive(server) and time.monotonic() < ends_at:
        time.sleep(0.05)
    was_alive = _is_alive(server)
    if was_alive:
        os.kill(server, signal.SIGKILL)
    assert not was_alive


def test_port_in_use_is_said(web: DemoWeb) -> None:
    with pytest.raises(DemoWebError, match="cannot listen"), DemoWeb(port=web.port):
        pass


def test_starts_again_on_its_port_with_its_log(own: DemoWeb) -> None:
    port = own.port
    ask(own, "meadow.test")
    own.stop()
    own.start()
    ask(own, "meadow.test")
    assert (own.port, len(own.requests())) == (port, 2)


def _words(folder: Path) -> list[str]:
    files = {name: folder / name for name in ("log", "hosts-file", "seeds-file")}
    return [sys.executable, "-m", "tests.web", *(f"--{name}={path}" for name, path in files.items())]


def _command(folder: Path, stdin: int) -> subprocess.Popen[str]:
    return subprocess.Popen(_words(folder), stdin=stdin, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
