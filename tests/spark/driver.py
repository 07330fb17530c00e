"""A driver in a process of its own that can be told where to die: `python -m tests.spark.driver LAKE SETTINGS`.

It opens its Spark session, says `ready`, and waits for a line with an order as JSON: the round to reach, the scheduling
time of each round, and the step after which it kills itself. Nothing in the code under test knows of this: the steps
are wrapped from outside. SETTINGS is a pickled `Settings`.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import Ledger, State

ROOT = Path(__file__).parents[2]
BUCKETS = 4
NOW = 1_800_000_000.0
READY = "ready"


def main() -> None:
    """The command."""
    from crawler.spark import open_session

    lake_uri, settings_file = sys.argv[1:]
    settings = pickle.loads(Path(settings_file).read_bytes())
    spark = open_session(settings, "orbweaver-killed")
    print(READY, flush=True)
    order = json.loads(sys.stdin.readline())
    if order.get("die_after"):
        wrap_steps(order["die_after"])
    with hold_lake(spark, Store.open(lake_uri), BUCKETS) as lake:
        run_to(lake, settings, order["round"])
    spark.stop()


def run_to(lake: Lake, settings: Settings, last: int) -> None:
    """Rounds until this one is committed; the same call goes on after any crash."""
    from jobs.crawl_round import crawl_round

    while True:
        rows = lake.ledger.newest()
        if rows and rows[-1].round >= last and rows[-1].state is State.COMMITTED:
            return
        crawl_round(lake, settings, now_of(rows[-1].round + 1 if rows else 1))


def now_of(number: int) -> float:
    """The scheduling time of a round: an hour after the one before."""
    return NOW + 3_600.0 * number


def wrap_steps(die_after: str) -> None:
    """Let the process die right after the durable step of this name: `ROUND:WRITE` or `ROUND:STATE`."""

    def after(wrapped: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
        def step(*given: Any) -> Any:
            done = wrapped(*given)
            if name_of(*given) == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return step

    def of_write(*given: Any) -> str:
        write = given[-1]
        return f"{write.version}:{write.application.removeprefix('orbweaver/')}"

    for name in ("append", "note", "turn_calendar"):
        setattr(Lake, name, after(getattr(Lake, name), of_write))
    Ledger.record = after(Ledger.record, lambda _, row: f"{row.round}:{row.state}")  # type: ignore[method-assign]  # a test's wrapper


class Driver:
    """A started driver process, in a session of its own so that all it starts can be found and killed."""

    def __init__(self, lake: Path, settings_file: Path, log: Path) -> None:
        command = [sys.executable, "-m", "tests.spark.driver", str(lake), str(settings_file)]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = log
        with log.open("a") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            )  # fmt: skip

    def go(self, round_number: int, die_after: str | None = None) -> None:
        """Give the order, as soon as the session is open."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        line = self.process.stdout.readline()
        assert line.strip() == READY, f"the driver did not start: {line}{self._log.read_text()[-2_000:]}"
        self.process.stdin.write(json.dumps({"round": round_number, "die_after": die_after}) + "\n")
        self.process.stdin.flush()

    def end(self, timeout_s: float = 120.0) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        timer = threading.Timer(timeout_s, self.kill_all)
        timer.start()
        code = self.process.wait()
        timer.cancel()
        return code

    def kill(self) -> None:
        """Kill the driver itself, and let its JVM and workers find out."""
        self.process.kill()
        self.process.wait()

    def kill_all(self) -> None:
        """Kill everything that the driver started, the driver first."""
        while members := session_members(self.process.pid):
            for member in members:
                try:
                    os.kill(member, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.process.wait()

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill_all()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def session_members(session: int) -> Sequence[int]:
    """The living processes of a session, oldest first (proc(5): state and session in /proc/PID/stat)."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            members.append((int(fields[19]), int(folder.name)))
    return [number for _, number in sorted(members)]


if __name__ == "__main__":
    main()
