"""Java's archive of the classes a round loads: with it a session starts some seconds sooner, without it just as well.

Java itself refuses an archive that was made by another Java or of other jars, and goes on without. A file that was cut
would crash it, so the name is given to whole files only.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from crawler.jars import SPARK_VERSION, jar_folder
from crawler.java import Java, option


def archive_path(java: Java) -> Path:
    """Where the archive for this Java and the installed Spark is kept, whether it is there or not."""
    spark = find_spec("pyspark")
    made_of = f"{java.home} {java.version} {SPARK_VERSION} {spark.origin if spark else ''}"
    return jar_folder() / f"classes-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.jsa"


def using_archive(java: Java) -> str:
    """The Java options with which a session uses the archive; none where there is no archive."""
    path = archive_path(java)
    return f"{option(f'-XX:SharedArchiveFile={path}')} -Xlog:disable" if path.is_file() else ""


def making_archive(path: Path) -> str:
    """The Java options with which a session leaves an archive when Java ends."""
    return f"{option(f'-XX:ArchiveClassesAtExit={path}')} -Xlog:disable"
