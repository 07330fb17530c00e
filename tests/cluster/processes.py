"""A standalone Spark cluster of real processes on loopback: a master and two workers of two slots, so that a task which
is tried again need not wait for the other one.

Its machines know nothing of this project: no PYTHONPATH, another working directory, a plain Python. What they need
comes with each submission, from the packed environment.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from crawler.java import find_java

SPARK_HOME = Path(pyspark.__file__).parent
EXECUTOR = "CoarseGrainedExecutorBackend"
DAEMON = "pyspark.daemon"
PATIENCE_S = 120.0
SLOTS = 2
HOSTS = ("127.0.0.1", "127.0.0.2")


def plain_environ(folder: Path) -> dict[str, str]:
    """What a machine of the cluster has: a shell's paths, Java, Spark, and a Python of the same version."""
    java = find_java()
    assert java is not None
    python = Path(sys.base_prefix) / "bin"
    return {
        "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8",
        "JAVA_HOME": str(java.home), "SPARK_HOME": str(SPARK_HOME), "SPARK_CONF_DIR": str(folder),
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false", "SPARK_LOCAL_IP": HOSTS[0],
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }  # fmt: skip


def wait_until(is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Look again and again until it is so; an AssertionError that says what did not come."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s in vain: {what}"
        time.sleep(0.02)


@dataclass
class Machine:
    """A worker: its process, and the folder in which its executors keep shuffle files and blocks."""

    process: subprocess.Popen[bytes]
    local: Path

    def executor(self) -> int | None:
        """The process of its running executor."""
        found = [pid for pid in descendants(self.process.pid) if EXECUTOR in command_line(pid)]
        return found[0] if found else None

    def daemons(self) -> list[int]:
        """The processes that fork a Python worker for each task of the executor."""
        executor = self.executor()
        return [pid for pid in children(executor) if DAEMON in command_line(pid)] if executor else []

    def python_workers(self) -> list[int]:
        """The processes in which the tasks' Python runs."""
        return [pid for daemon in self.daemons() for pid in children(daemon)]

    def shuffle_files(self) -> int:
        """How many shuffle data files its executors hold."""
        return len(list(self.local.rglob("shuffle_*.data")))


@dataclass
class Cluster:
    """`with Cluster(folder) as cluster`: logs are kept in the folder; only what was started here is ended."""

    folder: Path
    master: str = ""
    machines: list[Machine] = field(default_factory=list)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, what they started, and the master."""
        for process in reversed(self._started):
            for pid in (*descendants(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def submit(self, arguments: Sequence[str], log: Path, environ: dict[str, str] | None = None) -> Submitted:
        """`spark-submit --master ...` with these arguments, in a process session of its own."""
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.master, *arguments]
        return Submitted.start(command, self.folder, plain_environ(self.folder) | (environ or {}), log)

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self._daemon("master.Master", ["--host", HOSTS[0], "--port", "0"], "master", {})
        listens = r"Starting Spark master at (\S+)"
        wait_until(lambda: bool(_said(log, listens)), "the master")
        (self.master,) = _said(log, listens)
        for number, host in enumerate(HOSTS, 1):
            name, local = f"worker-{number}", self.folder / f"local-{number}"
            local.mkdir()
            work = ["--work-dir", str(self.folder / f"work-{number}"), "--cores", str(SLOTS), "--memory", "1g"]
            own = {"SPARK_LOCAL_DIRS": str(local), "SPARK_LOCAL_IP": host}
            worker_log = self._daemon("worker.Worker", ["--host", host, *work, self.master], name, own)
            self.machines.append(Machine(self._started[-1], local))
            wait_until(lambda at=worker_log: bool(_said(at, "(Successfully registered)")), name)  # type: ignore[misc]  # the default binds the log of this turn

    def _daemon(self, kind: str, arguments: list[str], name: str, environ: dict[str, str]) -> Path:
        log = self.folder / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--webui-port", "0"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *arguments], cwd=self.folder, env=plain_environ(self.folder) | environ,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        return log


@dataclass
class Submitted:
    """A running spark-submit."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, command: list[str], folder: Path, environ: dict[str, str], log: Path) -> Submitted:
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        return cls(process, log)

    def end(self, timeout_s: float = 180.0) -> int:
        """Wait for the end; the exit code. A driver that takes longer is killed, and fails the test."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise

    def close(self) -> None:
        """Leave nothing behind."""
        for pid in (*descendants(self.process.pid), self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def _said(log: Path, pattern: str) -> list[str]:
    return re.findall(pattern, log.read_text(encoding="utf-8", errors="replace"))


def children(pid: int) -> list[int]:
    """The living children of a process, the oldest first (proc(5): state and parent in /proc/PID/stat)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid and fields[0] not in "ZX":
                found.append((int(fields[19]), int(folder.name)))
    return [number for _, number in sorted(found)]


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_line(pid: int) -> str:
    """A process's words; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
