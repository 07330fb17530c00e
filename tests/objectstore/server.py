"""An S3 server of its own for the tests: versitygw over a temporary folder, on a loopback port nobody else has.

The program is built once from the Go module proxy, which takes about a minute, and kept in `~/.cache/orbweaver-tests`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.7.0"
CACHE = Path.home() / ".cache/orbweaver-tests"
BUILD_S, START_S, STOP_S = 900.0, 20.0, 10.0
BUCKET, REGION = "lakes", "xx-test-1"
ATTEMPTS = 5


class ServerMissing(RuntimeError):
    """The server can neither be found nor built; the message says what to do."""


class ObjectServer:
    """A running server with one empty bucket: `with ObjectServer(folder, key, secret) as server: ...`."""

    def __init__(self, folder: Path, key: str, secret: str) -> None:
        self.folder, self._key, self._secret = folder, key, secret
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bucket(self) -> Path:
        """The folder in which the server keeps the bucket's objects as files."""
        return self.folder / "objects" / BUCKET

    @property
    def log(self) -> Path:
        """What the server said; a line a request."""
        return self.folder / "server.log"

    def environment(self) -> dict[str, str]:
        """What a client needs; the test gives it to itself and its children, and to nobody else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self._key,
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def __enter__(self) -> ObjectServer:
        self.bucket.mkdir(parents=True)
        program = server_program()
        for _ in range(ATTEMPTS):
            if self._start(program):
                return self
        raise RuntimeError(f"the server did not start: {self.log.read_text()[-2_000:]}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _start(self, program: Path) -> bool:
        """Start on a port that is free just now; False when somebody else was faster."""
        self.port = free_port()
        keys = {"ROOT_ACCESS_KEY": self._key, "ROOT_SECRET_KEY": self._secret}
        command = [str(program), "--port", f"127.0.0.1:{self.port}", "--region", REGION, "--keep-alive"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "posix", str(self.bucket.parent)],
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **keys},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            if listens(self.port):
                return True
            time.sleep(0.05)
        self.stop()
        return False


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """True when somebody accepts connections at the loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def server_program() -> Path:
    """The program, built where it is not there yet. Raises ServerMissing."""
    program = CACHE / f"versitygw-{VERSION}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise ServerMissing(f"no {program} and no Go to build it with")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        built = subprocess.run(
            [go, "install", f"{MODULE}@{VERSION}"],
            env={**os.environ, "GOBIN": folder},
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_S,
        )
        if built.returncode:
            raise ServerMissing(f"{MODULE}@{VERSION} cannot be built: {built.stderr[-1_000:]}")
        Path(folder, "versitygw").replace(program)
    return program
