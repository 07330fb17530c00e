"""A driver in a process of its own that can be told where to die: `python -m tests.spark.driver LAKE SETTINGS`.

It opens its Spark session, says `ready`, and waits for a line with an order as JSON: the round to reach, the hours
between rounds, the fault to die of (`crawler.faults`), if any, and whether to maintain the tables instead, after the
open round. SETTINGS is a pickled `Settings`.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import State

ROOT = Path(__file__).parents[2]
BUCKETS = 4
NOW = 1_800_000_000.0
READY = "ready"
FAULT_NAMES = ("ORBWEAVER_FAULT", "ORBWEAVER_FAULT_ONCE")


def main() -> None:
    """The command."""
    from crawler.spark import open_session

    lake_uri, settings_file = sys.argv[1:]
    settings = pickle.loads(Path(settings_file).read_bytes())
    spark = open_session(settings, "orbweaver-killed")
    print(READY, flush=True)
    order = json.loads(sys.stdin.readline())
    environ = {name: order[name] for name in FAULT_NAMES if order.get(name)}
    os.environ.update(environ)
    spark.sparkContext.environment.update(environ)  # of the Python workers
    with hold_lake(spark, Store.open(lake_uri), BUCKETS) as lake:
        if order.get("maintain"):
            finish_and_maintain(lake, settings, order["hours"])
        else:
            run_to(lake, settings, order["round"], order["hours"])
    spark.stop()


def finish_and_maintain(lake: Lake, settings: Settings, hours: float) -> None:
    """Compact whatever can be, as soon as no round is open."""
    from jobs.maintain_tables import maintain

    begun = lake.ledger.newest(1)
    run_to(lake, settings, begun[-1].round if begun else 1, hours)
    maintain(lake, max_files=1)


def run_to(lake: Lake, settings: Settings, last: int, hours: float = 1.0) -> None:
    """Rounds until this one is committed; the same call goes on after any crash."""
    from jobs.crawl_round import crawl_round

    while True:
        rows = lake.ledger.newest()
        if rows and rows[-1].round >= last and rows[-1].state is State.COMMITTED:
            return
        crawl_round(lake, settings, now_of(rows[-1].round + 1 if rows else 1, hours))


def now_of(number: int, hours: float = 1.0) -> float:
    """The scheduling time of a round: so many hours after the one before."""
    return NOW + 3_600.0 * hours * number


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

    def go(self, order: Mapping[str, object]) -> None:
        """Give the order, as soon as the session is open."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        line = self.process.stdout.readline()
        assert line.strip() == READY, f"the driver did not start: {line}{self.said()}"
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def end(self, timeout_s: float = 120.0) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        timer = threading.Timer(timeout_s, self.kill_all)
        timer.start()
        code = self.process.wait()
        timer.cancel()
        return code

    def said(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text()[-3_000:]

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
    """The living processes of a session, oldest first."""
    members = [(int(stat[19]), number) for number, stat in living().items() if int(stat[3]) == session]
    return [number for _, number in sorted(members)]


def cpu_seconds(root: int) -> float:
    """CPU time of a process, of all that it started and that lives, and of their children that have ended."""
    stats = living()
    family = {root}
    while more := {number for number, stat in stats.items() if int(stat[1]) in family} - family:
        family |= more
    ticks = sum(int(n) for number in family & stats.keys() for n in stats[number][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def living() -> dict[int, list[str]]:
    """What /proc/PID/stat says of every living process, from its state on (proc(5))."""
    stats = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stats[int(folder.name)] = (folder / "stat").read_text().rsplit(")", 1)[1].split()
    return {number: stat for number, stat in stats.items() if stat[0] not in "ZX"}


if __name__ == "__main__":
    main()
