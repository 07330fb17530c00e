"""Change one token of a module that keeps promises, and see whether the tests of that module notice; many times.

    make mutants ARGS="--seed 1 --sample 60"

A sample is drawn by its seed, as many from one module as from another. Each change is made in a copy of the tree, and
only the tests named for its module run, quick ones first, until one fails; one that hangs has been noticed as well.
What no test notices is either worth a test or worth a reason, in `accepted.py`. The exit code is 1 when less than
`--least` of the sample was noticed.

The reasoning of plan and reconcile is tested in a Spark session, half a minute a change: only with `--spark`, which
draws from those modules alone.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue

from tests.house.sources import ROOT, tracked
from tests.mutants.accepted import ACCEPTED
from tests.mutants.sites import Mutant, sites

FAST = "not jvm and not slow and not soak and not bench"
OF_SPARK = "not slow and not soak and not bench"
LEAST = 0.95
MOST_UNFIT = 3
SLACK = 4.0  # how much longer than usual tests may take before they count as hung
SLACK_S = 30.0

TESTS = {
    "crawler/fetch/politeness.py": "fetch/test_politeness fetch/test_pace fetch/test_ports",
    "crawler/fetch/lease.py": "fetch/test_lease",
    "crawler/fetch/robots_cache.py": "fetch/test_robots_cache fetch/test_robots_shelf fetch/test_robots_desk",
    "crawler/fetch/robots_desk.py": "fetch/test_robots_desk fetch/test_robots_shelf fetch/test_ports",
    "crawler/page/robots.py": "page/test_robots fetch/test_robots_cache page/test_suites page/test_robots_oracle",
    "crawler/fetch/addresses.py": "fetch/test_addresses fetch/test_resolver",
    "crawler/fetch/resolver.py": "fetch/test_resolver",
    "crawler/fetch/segments.py": "fetch/test_segments fetch/test_segment_seal",
    "crawler/fetch/segment_files.py": "fetch/test_segments fetch/test_segment_seal",
    "crawler/fetch/host_queue.py": "fetch/test_host_queue fetch/test_plan_file fetch/test_tarpit",
    "crawler/fetch/loop.py": "fetch/test_pace fetch/test_tarpit",
    "crawler/tables/lock.py": "test_lock",
    "crawler/tables/ledger.py": "test_lock test_provenance",
    "crawler/tables/provenance.py": "test_provenance",
}
SPARK_TESTS = {
    "crawler/transforms/select.py": "spark/test_select spark/test_place",
    "crawler/transforms/discover.py": "spark/test_discover",
    "crawler/transforms/duplicates.py": "spark/test_duplicates",
    "crawler/transforms/advance.py": "spark/test_advance",
}
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """A change that was made, and the first test that noticed it."""

    module: str
    mutant: Mutant
    noticed_by: str | None

    def __str__(self) -> str:
        verdict = f"noticed by {self.noticed_by}" if self.noticed_by else "NOT NOTICED"
        return f"{self.module}:{self.mutant.line}: {self.mutant.before}  ->  {self.mutant.after}\n    {verdict}"


@dataclass(frozen=True)
class Copy:
    """A copy of the tree, in which one change at a time is made."""

    folder: Path
    unfit: set[str]  # tests that fail on the code as it is, too, as those that measure do on a busy machine

    @classmethod
    def of(cls, root: Path, folder: Path, unfit: set[str]) -> Copy:
        for path in tracked():
            place = folder / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        if (root / ".jars").exists():
            (folder / ".jars").symlink_to(root / ".jars")
        return cls(folder, unfit)

    def noticed_by(self, tests: str, marks: str, timeout_s: float) -> str | None:
        """The first test that fails; None when all pass."""
        files = [f"tests/{name}.py" for name in tests.split()]
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", marks]
        options += [f"--deselect={test}" for test in sorted(self.unfit)]
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"a test that took longer than {timeout_s:.0f} s"
        if process.returncode == 0:
            return None
        found = FAILED.search(said)
        return found[1] if found else f"a test run that did not begin: {said.rstrip().rpartition(chr(10))[2]}"

    def try_out(self, module: str, mutant: Mutant, tests: str, marks: str, timeout_s: float) -> Trial:
        place = self.folder / module
        kept = place.read_text(encoding="utf-8")
        try:
            place.write_text(mutant.source, encoding="utf-8")
            return Trial(module, mutant, self.noticed_by(tests, marks, timeout_s))
        finally:
            place.write_text(kept, encoding="utf-8")


def sample(modules: Iterable[str], size: int, seed: int) -> list[tuple[str, Mutant]]:
    """So many changes, as many from one module as from another, without those that are accepted."""
    accepted = {(one.module, one.before, one.after) for one in ACCEPTED}
    draws = [_draw(module, accepted, random.Random(f"{seed} {module}")) for module in modules]
    in_turn = (one for row in zip_longest(*draws) for one in row if one is not None)
    return [one for one, _ in zip(in_turn, range(size), strict=False)]


def _draw(module: str, accepted: set[tuple[str, str, str]], chance: random.Random) -> Iterator[tuple[str, Mutant]]:
    """The changes of a module in a random order, each once."""
    places, drawn = sites(ROOT / module), set()
    chance.shuffle(places)
    for place in places:
        mutant = place.mutant()
        if mutant and (module, mutant.before, mutant.after) not in accepted and mutant.source not in drawn:
            drawn.add(mutant.source)
            yield module, mutant


def run(chosen: Sequence[tuple[str, Mutant]], tests: dict[str, str], marks: str, at_once: int) -> list[Trial]:
    """Try them out, some at once, and print each as it comes. Raises SystemExit where the code as it is fails."""
    with tempfile.TemporaryDirectory(prefix="orbweaver-mutants-") as folder, ThreadPoolExecutor(at_once) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        unfit: set[str] = set()
        for number in range(at_once):
            copies.put(Copy.of(ROOT, Path(folder) / str(number), unfit))

        def usual_s(files: str) -> float:
            copy = copies.get()
            try:
                for _ in range(MOST_UNFIT):
                    began = time.monotonic()
                    failed = copy.noticed_by(files, marks, 3_600.0)
                    if failed is None:
                        return time.monotonic() - began
                    print(f"{failed} fails on the code as it is, and is not asked", flush=True)
                    unfit.add(failed)
                raise SystemExit(f"too many tests of {files} fail on the code as it is; mend them first")
            finally:
                copies.put(copy)

        def try_out(one: tuple[str, Mutant]) -> Trial:
            copy = copies.get()
            try:
                files = tests[one[0]]
                return copy.try_out(*one, files, marks, SLACK * usual[files] + SLACK_S)
            finally:
                copies.put(copy)

        needed = sorted({tests[module] for module, _ in chosen})
        usual = dict(zip(needed, pool.map(usual_s, needed), strict=True))
        trials = []
        for trial in pool.map(try_out, chosen):
            print(trial, flush=True)
            trials.append(trial)
        return trials


def report(trials: Sequence[Trial]) -> float:
    """Print how many were noticed, by module; returns the share."""
    made, noticed = Counter(one.module for one in trials), Counter(one.module for one in trials if one.noticed_by)
    accepted = Counter(one.module for one in ACCEPTED)
    print(f"\n{'module':36} {'changes':>7} {'noticed':>7} {'accepted':>8}")
    for module in sorted(made):
        print(f"{module:36} {made[module]:7} {noticed[module]:7} {accepted[module]:8}")
    share = noticed.total() / max(made.total(), 1)
    print(f"{'all':36} {made.total():7} {noticed.total():7}          {share:.1%}")
    return share


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--sample", type=int, default=60, help="how many changes")
    parser.add_argument("--only", default="", help="modules whose path holds this text")
    parser.add_argument("--spark", action="store_true", help="the reasoning of plan and reconcile instead")
    parser.add_argument("--at-once", type=int, default=2, help="how many are tried out at a time")
    parser.add_argument("--least", type=float, default=LEAST, help="share that must be noticed")
    given = parser.parse_args(arguments)
    tests, marks = (SPARK_TESTS, OF_SPARK) if given.spark else (TESTS, FAST)
    modules = [module for module in tests if given.only in module]
    if not modules:
        parser.error(f"--only {given.only} is part of no module; there are {', '.join(tests)}")
    trials = run(sample(modules, given.sample, given.seed), tests, marks, given.at_once)
    return 0 if report(trials) >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
