"""Other people's programs that the tests hold our files against: made on demand, pinned, and kept for the next time.

A Python program gets a virtual environment of its own, a Java one is fetched by its coordinates and checked by its
SHA-256. Both lie in `~/.cache/orbweaver-tests`. Only tests that are marked `soak` or `bench` may ask for one, since the
first time needs the package registries.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

CACHE = Path.home() / ".cache/orbweaver-tests"
FETCH_S = 600.0


class PeerMissing(RuntimeError):
    """The program can neither be found nor fetched; the message says why."""


def environment(*pins: str) -> Path:
    """The folder `bin` of an environment with these pins, the first of which names it. Raises PeerMissing.

    An environment is whole when its marker is there.
    """
    home = CACHE / pins[0].replace("==", "-")
    marker = home / ".installed"
    if not marker.exists() or marker.read_text() != " ".join(pins):
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        _run([str(home / "bin" / "pip"), "install", "--quiet", *pins])
        marker.write_text(" ".join(pins))
    return home / "bin"


def jar(coordinates: str, sha256: str) -> Path:
    """The jar `group:name:version` without its dependencies, by the Ivy that Spark brings. Raises PeerMissing."""
    group, name, version = coordinates.split(":")
    kept = CACHE / f"{name}-{version}.jar"
    if not kept.exists():
        (ivy,) = Path(pyspark.__path__[0], "jars").glob("ivy-*.jar")
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            wanted = ["-dependency", group, name, version, "-notransitive"]
            _run(["java", "-jar", str(ivy), "-cache", scratch, *wanted])
            found = next(Path(scratch).rglob(kept.name), None)
            if found is None or hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
                raise PeerMissing(f"{coordinates} was not fetched, or its SHA-256 is not {sha256}")
            found.replace(kept)
    return kept


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_S)
    if done.returncode:
        raise PeerMissing(f"{' '.join(command)}: exit code {done.returncode}: {(done.stdout + done.stderr)[-1_000:]}")
