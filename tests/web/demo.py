"""`DemoWeb`: the demo web in a process of its own, for tests and for `make crawl`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from types import TracebackType

from tests.web.expected import Expected, expect
from tests.web.request_log import Request, read_log
from tests.web.sites import Scale
from tests.web.web import ALLOWED, Web

ROOT = Path(__file__).parents[2]
READY = "demo web is ready"
_STOP_S = 5.0


class DemoWebError(RuntimeError):
    """The server did not start; the message holds what it said."""


class DemoWeb:
    """The running demo web: `with DemoWeb() as web: ...`. It ends with the block, or with this process.

    Settings that a crawl of it needs: `fetch.host_map` = `hosts_file`, `fetch.allow_addresses` = `allow_addresses`,
    `filters.ports` = the one `port` of all hosts.
    """

    allow_addresses = (ALLOWED,)

    def __init__(self, seed: int = 1, scale: Scale | None = None, log: Path | None = None, port: int = 0) -> None:
        self.seed = seed
        self.scale = scale or Scale()
        self.port = port
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="demo-web-")

    @property
    def log(self) -> Path:
        """One JSON line a request."""
        return self._log or Path(self._folder.name, "requests.jsonl")

    @property
    def hosts_file(self) -> Path:
        """All names in hosts(5) format."""
        return Path(self._folder.name, "hosts")

    @property
    def seeds_file(self) -> Path:
        """The seeds, one URL a line."""
        return Path(self._folder.name, "seeds.txt")

    def __enter__(self) -> DemoWeb:
        try:
            self.start()
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Starts the server, on the port it had before if it is started again, and waits until it listens."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.web", *self._arguments()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(rf"{READY}: port (\d+)", line)
        if not found:
            self.stop()
            raise DemoWebError(f"the demo web did not start: {line.strip() or 'it said nothing'}")
        self.port = int(found[1])

    def stop(self) -> None:
        """Ends the server. Pages that change by visit begin anew when it is started again."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _arguments(self) -> list[str]:
        scale = self.scale
        numbers = {"port": self.port, "seed": self.seed, "pages": scale.pages, "hosts": scale.hosts}
        numbers["words"] = scale.words
        files = {"log": self.log, "hosts-file": self.hosts_file, "seeds-file": self.seeds_file}
        arguments = [f"--{name}={value}" for name, value in (numbers | files).items()]
        return arguments if scale.corners else [*arguments, "--no-corners"]

    @property
    def process_id(self) -> int:
        """For benchmarks that measure the server's own CPU time."""
        assert self._process is not None
        return self._process.pid

    @cached_property
    def web(self) -> Web:
        """The same web in this process: what it would answer."""
        return Web(self.seed, self.scale, self.port)

    @cached_property
    def expected(self) -> Expected:
        return expect(self.web)

    @property
    def seeds(self) -> list[str]:
        return self.web.seeds()

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def requests(self) -> list[Request]:
        """All requests so far, by time of arrival."""
        return read_log(self.log)
