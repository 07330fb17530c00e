"""pywb replays our files, and jwarc validates them: real programs, real requests on a loopback port."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.objectstore.server import free_port, listens
from tests.peers import environment, jar

PYWB = (
    "pywb==2.10.0", "warcio==1.8.1", "gevent==26.9.0", "greenlet==3.5.6", "cryptography==47.0.0", "Jinja2==3.1.6",
    "MarkupSafe==3.0.4", "Werkzeug==3.1.7", "requests==2.34.2", "surt==0.3.1", "PyYAML==6.0.3", "brotlipy==0.7.0",
    "fakeredis==0.16.0", "redis==2.10.6", "tldextract==5.4.0", "webassets==2.0", "wsgiprox==1.5.2", "Py3AMF==0.9.1",
)  # fmt: skip
JWARC = ("org.netpreserve:jwarc:0.36.0", "b472300077903e33c1efcb05d94e62bef8abe3179c6166c9597e6ec6d7c426da")
COLLECTION = "crawl"
START_S, ANSWER_S, STOP_S = 60.0, 10.0, 10.0


@dataclass(frozen=True)
class Answer:
    """What pywb served."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Replay:
    """A running pywb with one collection."""

    port: int

    def get(self, url: str, at14: str, kind: str = "id_") -> Answer:
        """The capture of a URL that is nearest to a time; `id_` is as archived, `mp_` as people see it.

        OSError or http.client.HTTPException when the server keeps its client waiting or ends in the middle.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request("GET", f"/{COLLECTION}/{at14}{kind}/{url}", headers={"Accept-Encoding": "identity"})
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
        finally:
            connection.close()


@contextmanager
def replay(folder: Path, files: Sequence[Path]) -> Iterator[Replay]:
    """Index the files with pywb's own tools and serve them. Raises PeerMissing."""
    programs, port = environment(*PYWB), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8"}
    for words in (["init", COLLECTION], ["add", COLLECTION, *map(str, files)]):
        manager = str(programs / "wb-manager")
        done = subprocess.run([manager, *words], cwd=folder, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    with (folder / "pywb.log").open("wb") as log:
        server = subprocess.Popen(
            [str(programs / "wayback"), "-b", "127.0.0.1", "-p", str(port)],
            cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        while not listens(port):
            assert server.poll() is None, (folder / "pywb.log").read_text()
            assert time.monotonic() < end, "pywb does not listen"
            time.sleep(0.1)
        yield Replay(port)
    finally:
        server.terminate()
        server.wait(STOP_S)


def jwarc_complaints(files: Sequence[Path]) -> str:
    """What `jwarc validate` has against the files; nothing when all are valid. Raises PeerMissing."""
    java = shutil.which("java") or "java"
    command = [java, "-XX:TieredStopAtLevel=1", "-jar", str(jar(*JWARC)), "validate", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else ""
