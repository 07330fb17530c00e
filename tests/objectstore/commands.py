"""`orbweaver` in processes of its own, on a lake anywhere, against a small demo web."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jobs.demo import demo_settings
from tests.web.demo import DemoWeb
from tests.web.sites import Scale

ROOT = Path(__file__).parents[2]
TINY = Scale(pages=30, hosts=5, words=80, corners=False)
COMMAND_S = 420.0


@dataclass
class Said:
    """The end of a command."""

    code: int
    out: str
    err: str


@dataclass
class Orbweaver:
    """The command with a lake and the settings of a crawl; keeps all that it ever said."""

    lake: str
    settings: Sequence[str]
    folder: Path
    all_said: list[str] = field(default_factory=list)

    def __call__(self, *words: str, expect: int = 0) -> Said:
        """Run a command; its end comes back."""
        given = [word for setting in self.settings for word in ("--set", setting)]
        lake = [] if words[0] == "config" else ["--lake", self.lake]
        command = [sys.executable, "-m", "jobs.cli", *words, *lake, *given]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "ORBWEAVER_DEBUG": "1"}
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False, timeout=COMMAND_S
        )
        self.all_said += [done.stdout, done.stderr]
        assert done.returncode == expect, done.stderr[-4_000:]
        return Said(done.returncode, done.stdout, done.stderr)


def settings_of(web: DemoWeb, *more: str) -> list[str]:
    """Settings with which a crawl of the web finds the same on every lake."""
    fixed = ("fetch.delay_s=0.0", 'spark.master="local[2]"', "spark.shuffle_partitions=2", "lake.buckets=2")
    return [*demo_settings(web.hosts_file, web.allow_addresses, web.port), *fixed, *more]


@contextmanager
def tiny_web() -> Iterator[DemoWeb]:
    """A demo web of thirty pages."""
    with DemoWeb(scale=TINY) as web:
        yield web
