"""What a running round shows: a bar on a terminal, else a plain line now and then; a line a stage with its duration."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from crawler.storage import Store
from jobs.output import say
from jobs.words import duration, number, size, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress as Bar

    from crawler.tables.lake import Lake
    from crawler.tables.ledger import RoundRow

POLL_S = 1.0
OFTEN_S, OFTEN_UNTIL_S, SELDOM_S = 10.0, 60.0, 60.0
RATE_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True)
class Counts:
    """What the fetch partitions have done so far, together. `done` counts outcomes of all kinds."""

    done: int = 0
    pages: int = 0
    bytes: int = 0
    failures: int = 0
    hosts_waiting: int = 0
    urls_left: int = 0


def read_counts(store: Store, round_number: int) -> Counts:
    """The sum of the progress files of a round. A file that is not there any more, or not whole, counts nothing."""
    sums = dict.fromkeys(("pages", "bytes", "failures", "hosts_waiting", "urls_left"), 0)
    done = 0
    for path in store.list(f"progress/{round_number}"):
        try:
            said = json.loads(store.read(path))
        except (OSError, ValueError):
            continue
        for name in sums:
            sums[name] += int(said.get(name, 0))
        done += sum(said.get("outcomes", {}).values())
    return Counts(done=done, **sums)


@dataclass
class Meter:
    """Speed over the last half minute, and from it the time that is left."""

    began_at: float
    _seen: deque[tuple[float, Counts]] = field(default_factory=deque)

    def add(self, now: float, counts: Counts) -> None:
        self._seen.append((now, counts))
        while now - self._seen[0][0] > RATE_WINDOW_S:
            self._seen.popleft()

    def speed(self, name: str) -> float:
        """How much one of the counts grows a second."""
        if not self._seen:
            return 0.0
        (first_at, first), (at, last) = self._seen[0], self._seen[-1]
        if at == first_at:
            first_at, first = self.began_at, Counts()
        grown = getattr(last, name) - getattr(first, name)
        return max(0.0, float(grown)) / max(at - first_at, 1e-3)

    def left_s(self, planned: int) -> float | None:
        """Seconds to the end at this speed; None while nothing moves."""
        speed = self.speed("done")
        done = self._seen[-1][1].done if self._seen else 0
        return max(0, planned - done) / speed if speed > 0 else None


def line_of(round_number: int, planned: int, counts: Counts, meter: Meter) -> str:
    """`round 2 fetch: 120/300 URLs, 41.0 pages/s, 12 hosts waiting, 0:00:41 left`."""
    left = meter.left_s(planned)
    parts = [
        f"{number(min(counts.done, planned))}/{number(planned)} URLs",
        f"{meter.speed('pages'):.1f} pages/s",
        f"{meter.speed('bytes') / 1000:.0f} KB/s",
        f"{number(counts.failures)} failures",
        f"{number(counts.hosts_waiting)} hosts waiting",
        f"{duration(left)} left" if left is not None else "time left unknown",
    ]
    return f"round {round_number} fetch: {', '.join(parts)}"


@dataclass
class Progress:
    """Shows the stages of the rounds of one command on a stream."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    poll_s: float = POLL_S
    _mark: float = 0.0
    _shown: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """A round begins now."""
        self._mark = self.clock()
        self._shown = set()

    @contextmanager
    def watch(self, lake: Lake, rnd: RoundRow) -> Iterator[None]:
        """Show the fetch stage of a round for the block; what came before it was the plan."""
        planned = rnd.counts.get("planned", 0)
        self._say(rnd.round, "plan", f"{number(planned)} URLs of {number(rnd.counts.get('planned_hosts', 0))} hosts")
        stop, meter = threading.Event(), Meter(self.clock())
        show = self._show_bar if self.stream.isatty() else self._show_lines
        thread = threading.Thread(target=show, args=(lake.store, rnd.round, planned, meter, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        counts = read_counts(lake.store, rnd.round)
        done = f"{number(counts.pages)} pages, {size(counts.bytes)}, {number(counts.failures)} failures"
        self._say(rnd.round, "fetch", done)

    def end(self, rnd: RoundRow) -> None:
        """A round has been committed."""
        counts = rnd.counts
        new = f"{number(counts.get('new_urls', 0))} new URLs" if counts.get("planned") else "nothing was due"
        self._say(rnd.round, "reconcile and commit", new)

    def lost_results(self) -> None:
        """A stage begins again."""
        self.line("an executor was lost with its results: the stage begins again")

    def line(self, text: str) -> None:
        """A line of its own."""
        say(text, self.stream)

    def _say(self, round_number: int, stage: str, what: str) -> None:
        now = self.clock()
        self.line(f"round {round_number} {stage}: {what}, {now - self._mark:.1f} s")
        self._mark = now

    def _show_lines(self, store: Store, round_number: int, planned: int, meter: Meter, stop: threading.Event) -> None:
        next_at = meter.began_at + OFTEN_S
        while not stop.wait(self.poll_s):
            now, counts = self.clock(), read_counts(store, round_number)
            meter.add(now, counts)
            if now >= next_at:
                self.line(line_of(round_number, planned, counts, meter))
                next_at = now + (OFTEN_S if now - meter.began_at < OFTEN_UNTIL_S else SELDOM_S)

    def _show_bar(self, store: Store, round_number: int, planned: int, meter: Meter, stop: threading.Event) -> None:
        with make_bar(self.stream) as bar:
            task = bar.add_task(f"round {round_number} fetch", total=planned or None, said="starting")
            while not stop.wait(self.poll_s):
                counts = read_counts(store, round_number)
                meter.add(self.clock(), counts)
                said = visible(line_of(round_number, planned, counts, meter).partition("URLs, ")[2])
                bar.update(task, completed=min(counts.done, planned), said=said)


@contextmanager
def watch_parts(what: str, count: Callable[[], tuple[int, int]], watcher: Progress | None = None) -> Iterator[None]:
    """Show how many parts of some long work are done, of how many, for the block. `count` says both."""
    watcher = watcher or Progress()
    stop = threading.Event()
    thread = threading.Thread(target=_show_parts, args=(what, count, watcher, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show_parts(what: str, count: Callable[[], tuple[int, int]], watcher: Progress, stop: threading.Event) -> None:
    began_at, most = watcher.clock(), (0, 0)
    next_at = began_at + OFTEN_S
    with make_bar(watcher.stream) if watcher.stream.isatty() else nullcontext() as bar:
        task = bar.add_task(what, total=None, said="starting") if bar else None
        while not stop.wait(watcher.poll_s):
            now, (done, parts) = watcher.clock(), count()
            most = (max(done, most[0]), parts) if parts >= most[1] else most  # a stage that is over is told of no more
            left = (now - began_at) * (most[1] - most[0]) / most[0] if most[0] else None
            said = f"{duration(left)} left" if left is not None else "time left unknown"
            if bar and task is not None:
                bar.update(task, completed=most[0], total=most[1] or None, said=said)
            elif now >= next_at:
                watcher.line(f"{what}: {number(most[0])}/{number(most[1])} parts, {said}")
                next_at = now + (OFTEN_S if now - began_at < OFTEN_UNTIL_S else SELDOM_S)


def spark_tasks(spark: SparkSession) -> tuple[int, int]:
    """Tasks of the running stages of a session that are done, and all of them."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def make_bar(stream: TextIO) -> Bar:
    """A bar that vanishes when the stage is over; the line that follows says the same. Brackets are no markup in it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(file=stream)
    description, said = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[said]}"))
    columns = (description, BarColumn(), MofNCompleteColumn(), said)
    return Bar(*columns, console=console, transient=True, refresh_per_second=4)
