"""A crawl by many drivers that are killed one after the other."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from crawler.settings import SegmentSettings, Settings, SparkSettings
from crawler.storage import Store
from tests.spark.crawled import settings_for
from tests.spark.driver import Driver, session_members
from tests.web import DemoWeb, Scale
from tests.web.sites import PORTAL

SMALL = Scale(pages=60, hosts=13, words=300, corners=False)
SEEDS = 6  # so few that the second round, too, finds URLs which nobody knew
DELAY_S = 0.4
SLACK_S = 0.15  # between the start of a request and its line in the log, on a machine that has others to serve
SEGMENT_URLS, PARTITIONS = 4, 2
PATIENCE_S = 120.0
DRIVER, JVM, WORKER, ALL = "driver", "executor", "worker", "all"
"""Who is killed. In one JVM the executor is the driver's as well."""


@dataclass(frozen=True)
class Kill:
    """What was killed where, and how many requests the web had seen by then."""

    where: str
    requests: int


@dataclass
class KilledCrawl:
    """Runs the drivers, each of which opens its session while the one before it works."""

    web: DemoWeb
    folder: Path
    settings: Settings
    rounds: int
    hours: float = 1.0
    kills: list[Kill] = field(default_factory=list)
    _started: list[Driver] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._settings_file = self.folder / "settings.pickle"
        self._settings_file.write_bytes(pickle.dumps(self.settings))
        self._seen = len(self.web.requests())
        self._start()

    @property
    def lake(self) -> Path:
        return self.folder / "killed"

    def die_at(self, fault: str, *, maintaining: bool = False) -> bool:
        """Let a driver, or one of its workers, die at a fault point; False when it came to the end of its rounds, or of
        its maintenance."""
        mark = self.folder / f"died-{len(self._started)}"
        driver = self._next(ORBWEAVER_FAULT=fault, ORBWEAVER_FAULT_ONCE=str(mark), maintain=maintaining)
        code = driver.end()
        driver.kill_all()
        if mark.exists():
            self._note(fault)
        assert code == 0 or mark.exists(), f"the driver ended with {code} before {fault}: {driver.said()}"
        return mark.exists()

    def die_when(self, is_so: Callable[[], bool], who: str, where: str) -> bool:
        """Kill when the time has come; False when the driver came to its end before."""
        driver = self._next()
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"the driver did not come to {where}"
            if driver.process.poll() is not None:
                assert driver.process.returncode == 0, f"the driver ended by itself: {driver.said()}"
                return False
            time.sleep(0.02)
        self._kill(driver, who)
        self._note(where)
        return True

    def finish(self) -> None:
        """Let the last driver come to the end."""
        driver = self._started[-1]
        driver.go(self._order())
        assert driver.end() == 0, driver.said()

    def close(self) -> None:
        """Leave no process behind."""
        for driver in self._started:
            driver.close()

    def _start(self) -> None:
        number = len(self._started)
        self._started.append(Driver(self.lake, self._settings_file, self.folder / f"driver-{number}.log"))

    def _order(self, **more: object) -> dict[str, object]:
        return {"round": self.rounds, "hours": self.hours, **more}

    def _next(self, **more: object) -> Driver:
        """Let the waiting driver go, and start the one that waits for its end."""
        driver = self._started[-1]
        driver.go(self._order(**more))
        self._start()
        return driver

    def _kill(self, driver: Driver, who: str) -> None:
        if who == ALL:
            driver.kill_all()
        elif who == DRIVER:
            driver.kill()
        else:
            members = processes_of(driver.process.pid, who)
            if members:
                os.kill(random.Random(len(self.kills)).choice(members), signal.SIGKILL)
            driver.end()
            driver.kill_all()

    def _note(self, where: str) -> None:
        self.kills.append(Kill(where, len(self.web.requests()) - self._seen))


def chain_settings(web: DemoWeb) -> Settings:
    """Of all drivers of a chain, and of the crawl it is held against."""
    base = settings_for(web, delay_s=DELAY_S, max_crawl_delay_s=1.0)
    spark = SparkSettings(master="local[2]", driver_memory="1g", shuffle_partitions=2)
    return replace(base, segment=SegmentSettings(max_urls=SEGMENT_URLS), spark=spark)


def seeded_lake(folder: Path, web: DemoWeb) -> Store:
    """A lake with a few seeds in its inbox."""
    store = Store.open(str(folder))
    homes = [web.url(host) for host in web.web.addresses if host != PORTAL]
    store.put_new("inbox/seeds.urls", "\n".join(homes[:SEEDS]).encode())
    return store


def processes_of(session: int, who: str) -> list[int]:
    """The JVMs, or the Python workers, of a driver's session."""
    wanted = b"java" if who == JVM else b"worker_daemon"
    commands = {member: Path(f"/proc/{member}/cmdline") for member in session_members(session)}
    return [member for member, path in commands.items() if path.exists() and wanted in path.read_bytes()]
