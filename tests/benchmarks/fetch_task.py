"""One fetch task in a process of its own, without Spark: `python -m tests.benchmarks.fetch_task FOLDER`.

The folder holds `task.pickle` (task and settings); `figures.json` is left in it.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from crawler.records import PartitionTask, SealedSegment
from crawler.settings import Settings


@dataclass(frozen=True)
class TaskRun:
    """What a task took. CPU of the task and its children; `process_cpu_s` has interpreter start and imports too."""

    segments: list[SealedSegment]
    cpu_s: float
    process_cpu_s: float
    wall_s: float
    rss_before_mb: float
    peak_rss_mb: float


def run(task: PartitionTask, settings: Settings, folder: Path) -> TaskRun:
    """Run the task in a fresh interpreter and measure it."""
    from tests.benchmarks.scrapy_peer import measured

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.pickle").write_bytes(pickle.dumps((task, settings)))
    process_cpu_s = measured([sys.executable, "-m", "tests.benchmarks.fetch_task", str(folder)])
    figures = json.loads((folder / "figures.json").read_text())
    segments = [SealedSegment(**segment) for segment in figures.pop("segments")]
    return TaskRun(segments=segments, process_cpu_s=process_cpu_s, **figures)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    task, settings = pickle.loads((folder / "task.pickle").read_bytes())
    from crawler.fetch.partition import fetch_partition

    before, start, rss = _cpu_s(), perf_counter(), _peak_mb()
    segments = fetch_partition(task, settings)
    figures = {
        "segments": [_plain(segment) for segment in segments],
        "cpu_s": _cpu_s() - before,
        "wall_s": perf_counter() - start,
        "rss_before_mb": rss,
        "peak_rss_mb": _peak_mb(),
    }
    (folder / "figures.json").write_text(json.dumps(figures))


def _plain(segment: SealedSegment) -> dict[str, object]:
    return {name: getattr(segment, name) for name in SealedSegment.__dataclass_fields__}


def _cpu_s() -> float:
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _peak_mb() -> float:
    """By the kernel's own mark: `ru_maxrss` would begin with what the parent had when it started us."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    main(sys.argv[1:])
