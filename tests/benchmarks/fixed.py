"""What a round costs before its first page: an empty one in a warm session, and a cold start to the first request."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from crawler.settings import Settings
from crawler.spark import open_session
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from jobs.crawl_round import crawl_round
from tests.benchmarks.results import Figure, Result
from tests.real_input.corpus import sites
from tests.real_input.origin import Origin, serving

EMPTY_TARGET_S = 5.0
COLD_TARGET_S = 15.0
EMPTY_ROUNDS = 3


def fixed(folder: Path) -> Result:
    """Seconds of an empty round, and from the start of `orbweaver round` to the first line of the server's log."""
    with serving(sites()[:1], folder / "origin") as origin:
        fresh, lake_made = _cold_start(origin, folder / "lake", "/bugs.html")
        cold, _ = _cold_start(origin, folder / "lake", "/about.html")
    empty = _empty_rounds(folder / "lake")
    return Result(
        "fixed",
        [
            Figure("empty round, warm session (best)", min(empty[1:]), "s", at_most=EMPTY_TARGET_S),
            Figure("empty round, first in the session", empty[0], "s"),
            Figure("cold start to the first request", cold, "s", at_most=COLD_TARGET_S),
            Figure("the same on a lake not yet made", fresh, "s"),
            Figure("whole first `orbweaver round`", lake_made, "s"),
        ],
    )


def _cold_start(origin: Origin, lake: Path, path: str) -> tuple[float, float]:
    """Seconds from the start of the process to the first request, and to its end."""
    sets = ["fetch.delay_s=0", 'fetch.allow_addresses=["127.0.0.0/8"]', f"fetch.host_map={origin.hosts_file}",
            "fetch.only_allowed=true", "filters.max_depth=0"]  # fmt: skip
    command = ["--lake", str(lake), *(part for one in sets for part in ("--set", one))]
    _orbweaver(["inject", origin.url("python.docs.test", path), *command])
    origin.forget()
    start = time.time()
    _orbweaver(["round", *command])
    first = origin.requests()[0]
    return first.at - first.took_s - start, time.time() - start


def _orbweaver(arguments: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "jobs.cli", *arguments], check=True, stdout=subprocess.DEVNULL)


def _empty_rounds(lake: Path) -> list[float]:
    settings = Settings()
    spark = open_session(settings, "fixed")
    taken = []
    try:
        with hold_lake(spark, Store.open(str(lake)), settings.lake.buckets) as held:
            for _ in range(EMPTY_ROUNDS + 1):
                start = time.perf_counter()
                rnd = crawl_round(held, settings, time.time())
                taken.append(time.perf_counter() - start)
                if rnd.counts.get("planned"):
                    raise RuntimeError(f"{rnd.counts}: nothing was to be planned")
    finally:
        spark.stop()
    return taken
