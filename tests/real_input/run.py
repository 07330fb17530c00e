"""Crawl the documentation sites to the end and check the result: `python -m tests.real_input.run [--delay S …]`.

For every delay: a crawl with the stock settings, but of all contents, until nothing is due, then a second one fifteen
days ahead. Prints the figures and the checks; exit code 1 when a check failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from deltalake import DeltaTable

from tests.real_input import checks, metered
from tests.real_input.checks import Check
from tests.real_input.corpus import Site, sites
from tests.real_input.oracle import walk
from tests.real_input.origin import Origin, serving

DELAYS_S = (0.2, 0.0)
STAGES = ("OPENED", "PLANNED", "FETCHED", "COMMITTED")


@dataclass(frozen=True)
class Crawl:
    """What one `orbweaver crawl` took. `stages_s`: seconds spent up to each state, over all its rounds."""

    rounds: int
    requests: int
    wall_s: float
    cpu_s: float
    stages_s: dict[str, float]

    def figures(self, pages: int) -> dict[str, float]:
        fetching = self.stages_s["FETCHED"]
        return {
            "pages": pages,
            "requests": self.requests,
            "rounds": self.rounds,
            "wall time, s": self.wall_s,
            "fetch stages, s": fetching,
            "pages/s of the fetch stages": pages / fetching,
            "pages/s of the crawl": pages / self.wall_s,
            "CPU ms/page, everything": 1000 * self.cpu_s / pages,
            "plan, s/round": self.stages_s["PLANNED"] / self.rounds,
            "reconcile and commit, s/round": self.stages_s["COMMITTED"] / self.rounds,
            "fixed, s/round": (self.stages_s["PLANNED"] + self.stages_s["COMMITTED"]) / self.rounds,
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_input.run", description=__doc__)
    parser.add_argument("--delay", type=float, action="append", help="seconds; repeatable; 0.2 and 0 when not given")
    parser.add_argument("--keep", type=Path, help="folder for lakes and logs, which is kept")
    arguments = parser.parse_args()
    documentation = sites()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="orbweaver-real-") as temporary:
        folder = arguments.keep or Path(temporary)
        for delay_s in arguments.delay or DELAYS_S:
            with serving(documentation, folder / f"origin-{delay_s:g}") as origin:
                failed += crawl_twice(documentation, origin, delay_s, folder / f"lake-{delay_s:g}")
    return 1 if failed else 0


def crawl_twice(documentation: Sequence[Site], origin: Origin, delay_s: float, lake: Path) -> int:
    """Crawl, check, crawl again when all is due, check; the number of failed checks."""
    expected = walk(documentation, origin)
    seeds = [origin.url(site.host) for site in documentation]
    first = crawl(origin, lake, delay_s, seeds)
    _print_figures(f"delay {delay_s:g} s", first.figures(len(expected.pages)))
    done = checks.asked_once(origin.requests(), expected)
    done += [checks.gaps_kept(origin.requests(), delay_s), *checks.warcs_accepted(lake), checks.tables_open(lake)]
    before = checks.count_records(lake)
    failed = _print_checks(done)
    origin.forget()
    second = crawl(origin, lake, delay_s, ["--at", "+15d"])
    _print_figures(f"delay {delay_s:g} s, second visit", second.figures(len(expected.pages)))
    revisits = (checks.count_records(lake) - before)["revisit"]
    again = checks.asked_conditionally(origin.requests(), expected, revisits)
    return failed + _print_checks([*again, checks.gaps_kept(origin.requests(), delay_s), *checks.warcs_accepted(lake)])


def crawl(origin: Origin, lake: Path, delay_s: float, arguments: Sequence[str]) -> Crawl:
    """Run `orbweaver crawl --until-done` and measure it."""
    sets = {
        "fetch.delay_s": f"{delay_s:g}",
        "fetch.host_map": str(origin.hosts_file),
        "fetch.allow_addresses": '["127.0.0.0/8"]',
        "fetch.only_allowed": "true",
        "filters.ports": f"[{origin.port}]",
        "filters.deny_suffixes": "[]",  # the oracle follows every link
        "content.deny_types": "[]",
    }
    options = [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "jobs.cli", "crawl", *arguments, "--until-done", "--lake", str(lake), *options]
    rounds_before = len(_ledger(lake))
    used = metered.run(command, origin.folder / "used.json")
    rounds = _ledger(lake)[rounds_before:]
    stages_s = {stage: sum(times[stage] - times[earlier] for times in rounds) for earlier, stage in pairwise(STAGES)}
    return Crawl(len(rounds), len(origin.requests()), used.wall_s, used.cpu_s, stages_s)


def _ledger(lake: Path) -> list[dict[str, float]]:
    """For every round, oldest first, the time at which it reached each state, epoch seconds."""
    folder = lake / "tables" / "rounds"
    if not folder.is_dir():
        return []
    reached: dict[int, dict[str, float]] = {}
    for row in DeltaTable(str(folder)).to_pyarrow_table(columns=["round", "state", "recorded_at"]).to_pylist():
        reached.setdefault(row["round"], {})[row["state"]] = row["recorded_at"].timestamp()
    return [times for _, times in sorted(reached.items())]


def _print_figures(title: str, figures: dict[str, float]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:<32} {value:>10,.2f}".replace(".00", "   "))


def _print_checks(done: Sequence[Check]) -> int:
    for check in done:
        print(f"  {'ok    ' if check.is_kept else 'FAILED'} {check.promise}: {check.seen}", flush=True)
    return sum(not check.is_kept for check in done)


if __name__ == "__main__":
    sys.exit(main())
