"""`python -m jobs.class_archive`: make Java's archive of the classes that a round loads, once, by a round of one URL.

The URL is a loopback address that this crawl may not ask, so the round goes through every stage and sends no request.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from crawler.class_archive import archive_path, making_archive
from crawler.java import find_java
from crawler.settings import Settings
from crawler.storage import Store

TIME_LIMIT_S = 600


def main(arguments: list[str]) -> int:
    """Always 0: without an archive rounds only start later. `--into FILE` is the child whose Java leaves it."""
    if arguments[:1] == ["--into"]:
        train(Path(arguments[1]))
        return 0
    java = find_java()
    if java is None or archive_path(java).is_file():
        return 0
    print("Preparing Java for faster starts (once, about half a minute) ...", flush=True)
    reason = make_archive(archive_path(java))
    if reason:
        print(f"No archive of Java classes, so a session starts some seconds later: {reason}", file=sys.stderr)
    return 0


def make_archive(path: Path) -> str:
    """Make the archive in a process of its own; what went wrong, empty when it is there. No half archive is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        command = [sys.executable, "-m", "jobs.class_archive", "--into", str(made)]
        try:  # its output ends when Java has ended, and so has the archive
            child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"it was not done after {TIME_LIMIT_S} s"
        if child.returncode or not made.is_file():
            return child.stderr.strip()[-1_000:] or "Java left none"
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(path)
    return ""


def train(archive: Path) -> None:
    """One round of a lake that is thrown away, in a Java that notes which classes it loads."""
    from crawler.spark import open_session
    from jobs.crawl_round import crawl_round
    from jobs.driver import drive, find_java_home
    from jobs.inject import inject

    stock = Settings()
    settings = replace(stock, fetch=replace(stock.fetch, only_allowed=True))
    find_java_home()
    spark = open_session(settings, "orbweaver classes", java_options=making_archive(archive))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        inject(store, settings, ["http://127.0.0.1/"])
        with drive(store, settings) as lake:
            crawl_round(lake, settings)
    spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
