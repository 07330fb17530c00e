"""Scrapy as the peer: its own virtual environment outside of the project, made on demand, and one run measured."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers import environment
from tests.real_input.corpus import Site
from tests.real_input.origin import Origin

PINS = ("scrapy==2.19.0", "warcio==1.8.1", "twisted==26.10.0", "lxml==6.1.3", "protego==0.7.0")
SPIDER = Path(__file__).with_name("peer_spider.py")


@dataclass(frozen=True)
class PeerRun:
    """What a run took. `cpu_s` is from the start of the engine to its end, `process_cpu_s` of the whole process."""

    pages: list[str]
    links: int
    cpu_s: float
    process_cpu_s: float
    wall_s: float
    warc_bytes: int


def crawl(origin: Origin, sites: list[Site], folder: Path) -> PeerRun:
    """Crawl the sites to the end with Scrapy and measure it."""
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "seeds": [origin.url(site.host) for site in sites],
        "hosts": [site.host for site in sites],
        "addresses": {site.host: origin.addresses[site.host] for site in sites},
        "warc": str(folder / "peer.warc.gz"),
        "result": str(folder / "peer.json"),
    }
    (folder / "job.json").write_text(json.dumps(job))
    process_cpu_s = measured([str(environment(*PINS) / "python"), str(SPIDER), str(folder / "job.json")])
    figures = json.loads((folder / "peer.json").read_text())
    return PeerRun(
        figures["pages"], figures["links"], figures["cpu_s"], process_cpu_s, figures["wall_s"],
        (folder / "peer.warc.gz").stat().st_size,
    )  # fmt: skip


def measured(command: list[str]) -> float:
    """Run a command to its end; the CPU seconds of it and of its children, user and system."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime
