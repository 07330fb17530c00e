"""S3 is configured from the environment or the profile, seen by a server that speaks a little of it."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from crawler import storage_s3
from crawler.storage import Store
from crawler.storage_s3 import BucketStore, read_profile, s3_config


class _Bucket(BaseHTTPRequestHandler):
    """As much of S3 as a create needs: `If-None-Match: *` and 412."""

    seen: list[tuple[str, str, str]]
    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(("PUT", self.path, self.headers["Authorization"]))
        refused = self.headers.get("If-None-Match") == "*" and self.path in self.objects
        if not refused:
            self.objects[self.path] = body
        self.send_response(412 if refused else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def bucket_server() -> Iterator[ThreadingHTTPServer]:
    _Bucket.seen, _Bucket.objects = [], {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Bucket)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def _clear_aws(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))


@pytest.mark.parametrize("source", ["environment", "profile"])
def test_s3_is_configured_from_outside(
    source: str, bucket_server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endpoint = f"http://127.0.0.1:{bucket_server.server_port}"
    _clear_aws(monkeypatch, tmp_path)
    if source == "environment":
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_REGION", "xx-east-7")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEYID")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s-e-c-r-e-t")
    else:
        monkeypatch.setenv("AWS_PROFILE", "spider")
        (tmp_path / "config").write_text(f"[profile spider]\nregion = xx-east-7\nendpoint_url = {endpoint}\n")
        (tmp_path / "credentials").write_text("[spider]\naws_access_key_id=KEYID\naws_secret_access_key=s-e-c-r-e-t\n")
    store = Store.open("s3://bucket/lake")
    options = store.delta_options()
    assert (options["aws_endpoint"], options["aws_region"]) == (endpoint, "xx-east-7")
    assert (options["aws_access_key_id"], options["aws_secret_access_key"]) == ("KEYID", "s-e-c-r-e-t")
    assert (options["allow_http"], options["aws_conditional_put"]) == ("true", "etag")
    assert store.put_new("a/b", b"1")
    assert not store.put_new("a/b", b"2")
    method, path, authorization = _Bucket.seen[0]
    assert (method, path) == ("PUT", "/bucket/lake/a/b")
    assert "KEYID/" in authorization
    assert "/xx-east-7/s3/" in authorization
    assert _Bucket.objects == {"/bucket/lake/a/b": b"1"}
    assert b"s-e-c-r-e-t" not in pickle.dumps(store)
    assert "s-e-c-r-e-t" not in f"{store!r} {vars(store)!r}"


def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _clear_aws(monkeypatch, tmp_path)
    assert read_profile("default") == {}
    (tmp_path / "config").write_text("[default]\nregion = r1\n")
    assert read_profile("default") == {"region": "r1"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"AWS_DEFAULT_REGION": "r1"}, {"region": "r1"}),
        ({"AWS_DEFAULT_REGION": "r1", "AWS_REGION": "r2"}, {"region": "r2"}),
        ({"AWS_ENDPOINT": "e1"}, {"endpoint": "e1"}),
        ({"AWS_ENDPOINT": "e1", "AWS_ENDPOINT_URL": "e2"}, {"endpoint": "e2"}),
        ({"AWS_ENDPOINT_URL": "e2", "AWS_ENDPOINT_URL_S3": "e3"}, {"endpoint": "e3"}),
        ({"AWS_PROFILE": "spider"}, {"access_key_id": "p", "secret_access_key": "q", "session_token": "t"}),
        (
            {"AWS_PROFILE": "spider", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
            {"access_key_id": "k", "secret_access_key": "s"},
        ),
    ],
)
def test_the_environment_comes_before_the_profile_and_their_keys_are_not_mixed(
    given: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _clear_aws(monkeypatch, tmp_path)
    keys = "aws_access_key_id=p\naws_secret_access_key=q\naws_session_token=t\n"
    (tmp_path / "credentials").write_text(f"[spider]\n{keys}")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert s3_config() == {**found, "conditional_put": "etag"}


def test_an_object_is_read_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_s3, "WINDOW_BYTES", 64)
    store, content = BucketStore("s3://bucket/lake", MemoryStore()), bytes(range(256)) * 4
    store.put("x", content)
    store.put("empty", b"")
    file = store.open_input("x")
    for start, length in ((0, 10), (5, 3), (1_000, 24), (60, 200), (1_020, 100), (500, 0)):
        file.seek(start)
        assert file.read(length) == content[start : start + length]
    assert (file.size(), store.open_input("empty").read()) == (len(content), b"")
