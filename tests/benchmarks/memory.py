"""The memory of a fetch task that has 2,000 hosts in its plan."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks import fetch_task
from tests.benchmarks.fetch_stage import loopback_settings, outcomes_of
from tests.benchmarks.plan_files import write_plan
from tests.benchmarks.results import Figure, Result
from tests.real_input.corpus import sites
from tests.real_input.origin import serving

HOSTS = 2_000
HOSTS_PER_ADDRESS = 50
PATHS = ("/", "/tutorial/index.html", "/glossary.html")


def memory(folder: Path) -> Result:
    """Peak resident memory of one task: few hosts, then 2,000, with as many URLs."""
    names = [f"site{number:04d}.test" for number in range(HOSTS)]
    others = {name: f"127.0.2.{at // HOSTS_PER_ADDRESS + 1}" for at, name in enumerate(names)}
    documentation = sites()[:1]
    runs = {}
    with serving(documentation, folder / "origin", others=others) as origin:
        settings = loopback_settings(origin.hosts_file)
        for hosts in (20, HOSTS):
            copies = HOSTS // hosts
            urls = [
                origin.url(name, path + (f"?copy={copy}" if copies > 1 else ""))
                for name in names[:hosts]
                for path in PATHS
                for copy in range(copies)
            ]
            lake = folder / f"lake{hosts}"
            run = fetch_task.run(write_plan(urls, lake), settings, folder / f"task{hosts}")
            runs[hosts] = run, outcomes_of(lake, run.segments)
    (few, few_outcomes), (many, many_outcomes) = runs.values()
    return Result(
        "memory",
        [
            Figure("URLs of each task", HOSTS * len(PATHS)),
            Figure("before the task", many.rss_before_mb, "MB"),
            Figure("peak with 20 hosts", few.peak_rss_mb, "MB"),
            Figure("peak with 2,000 hosts", many.peak_rss_mb, "MB"),
            Figure("for each further host", 1024 * (many.peak_rss_mb - few.peak_rss_mb) / (HOSTS - 20), "KiB"),
            Figure("CPU with 20 hosts", 1000 * few.cpu_s / sum(few_outcomes.values()), "ms/page"),
            Figure("CPU with 2,000 hosts", 1000 * many.cpu_s / sum(many_outcomes.values()), "ms/page"),
            Figure("wall time with 2,000 hosts", many.wall_s, "s"),
        ],
        notes=[f"outcomes: {dict(few_outcomes)}, {dict(many_outcomes)}"],
    )
