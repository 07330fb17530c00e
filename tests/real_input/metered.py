"""The CPU time of a command with all its descendants, those it left behind too: `metered.py FIGURES.json COMMAND…`.

A Java process that a driver starts is not waited for by it, so its time is counted only where somebody adopts it: this
process does (Linux, PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Used:
    """What a command used; seconds."""

    wall_s: float
    cpu_s: float


def run(command: list[str], figures: Path) -> Used:
    """Run a command to its end, its output on our standard error. Raises CalledProcessError when it fails."""
    subprocess.run([sys.executable, __file__, str(figures), *command], check=True, stdout=sys.stderr)
    return Used(**json.loads(figures.read_text()))


def main(figures: str, command: list[str]) -> int:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    wall_s = time.perf_counter() - start
    _await_orphans()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(figures).write_text(json.dumps({"wall_s": wall_s, "cpu_s": usage.ru_utime + usage.ru_stime}))
    return code


def _await_orphans() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
