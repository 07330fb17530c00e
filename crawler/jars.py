"""The Delta jars Spark is started with: which, where they are kept, and whether they are whole.

Only these two: resolving their dependencies would put an older Hadoop client and Parquet beside Spark's own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SPARK_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"


class Jar(NamedTuple):
    """A jar by its Maven coordinates, and the SHA-256 of its bytes."""

    coordinates: str
    sha256: str

    @property
    def file_name(self) -> str:
        return "-".join(self.coordinates.split(":")[1:]) + ".jar"


JARS = (
    Jar(
        f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(f"io.delta:delta-storage:{DELTA_VERSION}", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def jar_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the jars are kept: ORBWEAVER_JARS, else `.jars` of the checkout, else the user's cache folder."""
    if environ.get("ORBWEAVER_JARS"):
        return Path(environ["ORBWEAVER_JARS"])
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".jars"
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".cache"
    return Path(cache) / "orbweaver" / "jars"


def jar_paths(folder: Path | None = None) -> list[str]:
    """The paths for `spark.jars`. They need not exist: `jar_faults` says whether they do."""
    return [str((folder or jar_folder()) / jar.file_name) for jar in JARS]


def jar_faults(folder: Path | None = None) -> list[str]:
    """What is wrong with the kept jars, a sentence each; empty when all are there and whole."""
    kept = folder or jar_folder()
    return [fault for jar in JARS if (fault := _fault(jar, kept / jar.file_name))]


def _fault(jar: Jar, path: Path) -> str | None:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    return None if found == jar.sha256 else f"{path.name} has SHA-256 {found}, not {jar.sha256}"
