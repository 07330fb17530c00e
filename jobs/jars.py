"""`python -m jobs.jars`: fetch the Delta jars once, by Spark's own Ivy, and keep them. A second run asks nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from crawler.jars import JARS, jar_faults, jar_folder
from crawler.java import find_java

TIME_LIMIT_S = 600

Resolve = Callable[[Path], list[Path]]


def main(arguments: list[str]) -> int:
    """0 when all jars are kept and whole, else 1 and the reason. `--into FOLDER` is the child that runs Ivy."""
    if arguments[:1] == ["--into"]:
        resolve_here(Path(arguments[1]))
        return 0
    folder = jar_folder()
    faults = fetch_jars(folder, resolve_in_child)
    if faults:
        print("The Delta jars could not be fetched:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    print(f"Delta jars in {folder}")
    return 0


def fetch_jars(folder: Path, resolve: Resolve) -> list[str]:
    """Bring the jars into the folder unless they are there; what is still wrong, empty when all is well.

    `resolve` fetches into a scratch folder and returns the files; they are kept only when all have their checksum.
    """
    if not jar_faults(folder):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        staged = Path(scratch) / "staged"
        staged.mkdir()
        for path in resolve(Path(scratch) / "ivy"):
            for jar in JARS:
                if path.name.endswith(jar.file_name):
                    shutil.copyfile(path, staged / jar.file_name)
        faults = jar_faults(staged)
        if not faults:
            for jar in JARS:
                (staged / jar.file_name).replace(folder / jar.file_name)
    return faults


def resolve_in_child(cache: Path) -> list[Path]:
    """The jars, fetched by a Spark that lives in a process of its own; what it printed is shown when it failed."""
    print("Fetching the Delta jars ...", flush=True)
    java = find_java()
    environ = os.environ | ({"JAVA_HOME": str(java.home)} if java else {})
    command = [sys.executable, "-m", "jobs.jars", "--into", str(cache)]
    child = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
    if child.returncode:
        print(child.stdout, child.stderr, sep="\n", file=sys.stderr)
    return sorted(cache.glob("jars/*.jar"))


def resolve_here(cache: Path) -> None:
    """Let Spark's Ivy fetch each jar without its dependencies into `cache`/jars. Mirrors: `spark.jars.ivySettings`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("orbweaver jars")
    options = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for key, value in (options | {"spark.jars.ivy": str(cache)}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        for jar in JARS:
            session.sql(f"ADD JAR 'ivy://{jar.coordinates}?transitive=false'")
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
