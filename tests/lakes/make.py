"""Make `format-2.tar.gz`: a lake as Orbweaver left it at commit 597b429, before tables could grow. Not run by any test.

    git worktree add /tmp/before 597b429 && cp -r tests/lakes /tmp/before/tests/
    cd /tmp/before && PYTHONPATH=. PYTHON -m tests.lakes.make FILE

where PYTHON is that of an environment with the dependencies of that commit. Two rounds are committed, by commands; a
third, of 15 days later, was killed while its commit wrote the tables. The web was on loopback addresses and is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from jobs.demo import demo_settings
from tests.web.demo import DemoWeb
from tests.web.sites import Scale

SMALL = Scale(pages=12, hosts=3, words=40, corners=False)
KILLED_AT = "commit.content_checksums"  # the captures of the open round are written, its calendar is not


def main(file: Path) -> None:
    """Crawl, be killed, pack."""
    with tempfile.TemporaryDirectory() as folder, DemoWeb(scale=SMALL) as web:
        lake = Path(folder, "lake")
        sets = [
            *demo_settings(web.hosts_file, web.allow_addresses, web.port),
            "fetch.delay_s=0.0",
            'spark.master="local[2]"',
        ]
        given = ["--lake", str(lake), *(word for one in sets for word in ("--set", one))]
        _run(0, "inject", str(web.seeds_file), *given)
        _run(0, "crawl", "--rounds", "2", *given)
        _run(-9, "round", "--at", "+15d", *given, ORBWEAVER_FAULT=KILLED_AT)
        with tarfile.open(file, "w:gz", compresslevel=9) as tar:
            for path in sorted(lake.rglob("*")):
                tar.add(path, f"lake/{path.relative_to(lake)}", recursive=False, filter=_nobodys)


def _run(code: int, *words: str, **environ: str) -> None:
    done = subprocess.run([sys.executable, "-m", "jobs.cli", *words], check=False, env={**os.environ, **environ})
    assert done.returncode == code, f"{words[0]} ended with {done.returncode}"


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]))
