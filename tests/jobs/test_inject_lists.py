"""Seed lists on the web, from a server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from crawler.storage import Store
from tests.jobs.conftest import Run

LIST = "\ufeff# seeds\nhttps://a.test/\n\nb.test/x\nhttps://[bad\n".encode()


class Lists(BaseHTTPRequestHandler):
    """`/list` is a list, `/bytes` no text; nothing else is there."""

    def do_GET(self) -> None:
        body = {"/list": LIST, "/bytes": b"\xff\xfe\x00"}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Lists) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_list_on_the_web_is_taken_in_line_by_line(run: Run, origin: str, tmp_path: Path) -> None:
    said = run("inject", f"@{origin}/list", "--lake", str(tmp_path))
    assert said.code == 0
    assert "invalid" in said.err
    store = Store.open(str(tmp_path))
    assert store.read(store.list("inbox")[0]) == b"https://a.test/\nb.test/x\nhttps://[bad\n"


@pytest.mark.parametrize("path", ["/none", "/bytes"])
def test_a_list_that_cannot_be_had_is_said_and_nothing_is_added(
    run: Run, origin: str, tmp_path: Path, path: str
) -> None:
    said = run("inject", f"@{origin}{path}", "--lake", str(tmp_path))
    assert said.code == 2
    assert f"{origin}{path}" in said.err
    assert Store.open(str(tmp_path)).list("inbox") == []


def test_a_list_that_is_too_long_is_refused_whole(
    run: Run, origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.inject.MAX_LIST_BYTES", len(LIST) - 1)
    said = run("inject", f"@{origin}/list", "--lake", str(tmp_path))
    assert said.code == 2
    assert "longer than" in said.err
    assert Store.open(str(tmp_path)).list("inbox") == []
