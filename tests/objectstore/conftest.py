"""A running S3 server, and what its clients find in their environment."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objectstore.fault_proxy import FaultProxy, no_faults
from tests.objectstore.server import ObjectServer, ServerMissing, server_program


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """One server for the session; each test uses a folder of the bucket of its own."""
    try:
        server_program()
    except ServerMissing as missing:
        pytest.skip(str(missing))
    key, secret = f"key{secrets.token_hex(8)}", f"secret{secrets.token_hex(16)}"
    with ObjectServer(tmp_path_factory.mktemp("server"), key, secret) as running:
        yield running


@pytest.fixture
def as_client(server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectServer:
    """The server, with its keys in the environment of this test and nothing else of AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def proxy(as_client: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """A proxy before the server, for this test and its children. It spoils nothing until told to."""
    with FaultProxy(as_client.port, no_faults) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        yield running
