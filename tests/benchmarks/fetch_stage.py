"""The fetch stage beside Scrapy: the same real pages from the same server, delay 0, on one core each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crawler.fetch.segments import read_outcomes
from crawler.records import SealedSegment
from crawler.settings import Settings
from crawler.storage import Store
from tests.benchmarks import fetch_task, page_steps, scrapy_peer
from tests.benchmarks.plan_files import write_plan
from tests.benchmarks.results import Figure, Result
from tests.real_input.corpus import sites
from tests.real_input.origin import serving

TARGET = 5.0
MIN_PAGES = 1_500


def loopback_settings(hosts_file: Path, **fetch: object) -> Settings:
    """Stock settings that may ask the loopback network and map its made-up hosts."""
    stock = Settings()
    changed = {"delay_s": 0.0, "allow_addresses": ("127.0.0.0/8",), "host_map": str(hosts_file), **fetch}
    return replace(stock, fetch=replace(stock.fetch, **changed))  # type: ignore[arg-type]  # a table of cases is looser than the types


def fetch_stage(folder: Path) -> Result:
    """Pages per core-second of our fetch stage and of Scrapy."""
    documentation = sites()[:2]
    with serving(documentation, folder / "origin") as origin:
        peer = scrapy_peer.crawl(origin, documentation, folder / "peer")
        task = write_plan(peer.pages, folder / "lake")
        ours = fetch_task.run(task, loopback_settings(origin.hosts_file), folder / "ours")
    outcomes = outcomes_of(folder / "lake", ours.segments)
    pages = outcomes["success"]
    warc_bytes = sum(sum(segment.warc_bytes.values()) for segment in ours.segments)
    ours_ms, peer_ms = 1000 * ours.cpu_s / pages, 1000 * peer.cpu_s / len(peer.pages)
    return Result(
        "fetch_stage",
        [
            Figure("pages", pages, at_least=max(MIN_PAGES, len(peer.pages))),
            Figure("CPU of ours", ours_ms, "ms/page"),
            Figure("CPU of Scrapy", peer_ms, "ms/page"),
            Figure("pages per core-second, ours", pages / ours.cpu_s, "1/s"),
            Figure("pages per core-second, Scrapy", len(peer.pages) / peer.cpu_s, "1/s"),
            Figure("ratio", peer_ms / ours_ms, "x", at_least=TARGET),
            Figure("ratio with process start", peer.process_cpu_s / ours.process_cpu_s, "x"),
            Figure("wall time of ours", ours.wall_s, "s"),
            Figure("wall time of Scrapy", peer.wall_s, "s"),
            Figure("WARC bytes of ours / Scrapy's", warc_bytes / peer.warc_bytes, "x"),
            Figure("peak memory of ours", ours.peak_rss_mb, "MB"),
        ],
        notes=[f"outcomes: {dict(outcomes)}"],
    )  # fmt: skip


def page_path(folder: Path) -> Result:
    """CPU time of each step of a page's path, on the same pages."""
    documentation = sites()[:2]
    with serving(documentation, folder / "origin") as origin:
        urls = [
            origin.url(site.host, f"/{path.relative_to(site.root)}")
            for site in documentation
            for path in sorted(site.root.rglob("*.html"))
        ]
        steps = page_steps.measure(origin, urls, loopback_settings(origin.hosts_file), folder)
    figures = [Figure("pages", steps.pages), Figure("mean size", steps.bytes / steps.pages / 1024, "KiB")]
    figures += [Figure(name, ms, "ms/page") for name, ms in steps.ms.items()]
    figures += [Figure("sum", sum(ms for name, ms in steps.ms.items() if not name.startswith("(")), "ms/page")]
    return Result("page_path", figures)


def outcomes_of(lake: Path, segments: Sequence[SealedSegment]) -> Counter[str]:
    store = Store.open(str(lake))
    counts: Counter[str] = Counter()
    for segment in segments:
        counts.update(str(value) for value in read_outcomes(store, segment, ["outcome"])["outcome"].to_pylist())
    return counts
