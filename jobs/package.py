"""`make package`: what a cluster needs to run rounds, in `dist/`. Needs no network.

The wheel; `orbweaver-env.tar.gz`, which executors unpack as their Python environment; the two files for spark-submit;
`jars.txt`; and `SUBMIT.md` with the command lines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from io import BytesIO
from pathlib import Path

from isal import igzip
from packaging.requirements import Requirement

from crawler.jars import JARS, SPARK_VERSION
from jobs.submit_guide import submit_guide

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("crawler", "jobs", "conf", "pyproject.toml", "README.md", "LICENSE")
COMMANDS = ("crawl_round.py", "maintain_tables.py")
ENVIRONMENT = "orbweaver-env.tar.gz"
OF_THE_CLUSTER = frozenset({"pyspark", "py4j", "delta-spark"})
"""Distributions that stay out of the archive: a cluster has its own Spark, whose Python part must fit its jars."""
NOT_NEEDED = re.compile(r"(^|/)(__pycache__|tests)/|^\.\.|^pyarrow/(include|src)/|\.(a|h|hpp|pxd|pyi|pyx)$")
COMPRESSION = 2  # of isal's 0 to 3

PYTHON = """\
#!/bin/sh
# Python {version} of this machine with the packages of this folder. ORBWEAVER_BASE_PYTHON names another one.
folder=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$folder/lib${{PYTHONPATH:+:$PYTHONPATH}}"
exec "${{ORBWEAVER_BASE_PYTHON:-python{version}}}" "$@"
"""
COMMAND = """\
#!/bin/sh
exec "$(dirname "$0")/python" -m jobs.cli "$@"
"""


def main(arguments: list[str]) -> int:
    """Fill the folder given, `dist` of the checkout where none is, and say what is in it."""
    folder = Path(arguments[0]) if arguments else ROOT / "dist"
    for path in package(folder):
        print(f"{path.stat().st_size / 1e6:9.3f} MB  {path}")
    return 0


def package(folder: Path) -> list[Path]:
    """Make all files anew; their paths come back."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("orbweaver-*"):
        old.unlink()
    wheel = build_wheel(folder)
    archive = folder / ENVIRONMENT
    pack_environment(wheel, archive)
    commands = [Path(shutil.copyfile(ROOT / "jobs" / name, folder / name)) for name in COMMANDS]
    texts = {"jars.txt": jars_text(), "SUBMIT.md": submit_guide(python_version())}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [wheel, archive, *commands, *(folder / name for name in texts)]


def build_wheel(folder: Path) -> Path:
    """The wheel, built from a copy: setuptools keeps what it once saw in `build/`, and would pack removed modules."""
    with tempfile.TemporaryDirectory(prefix="orbweaver-wheel-") as scratch:
        source, built = Path(scratch) / "source", Path(scratch) / "built"
        source.mkdir()
        for name in SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, source / name)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", str(built), str(source)], check=True)
        (wheel,) = built.glob("*.whl")
        return Path(shutil.copy(wheel, folder / wheel.name))


def pack_environment(wheel: Path, archive: Path) -> None:
    """A gzipped tar: `bin/python`, `bin/orbweaver`, and in `lib` our wheel and all it imports, Spark left out."""
    packed = igzip.open(archive, "wb", COMPRESSION)  # type: ignore[no-untyped-call]  # its stub leaves a return type out
    with packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in {"python": PYTHON.format(version=python_version()), "orbweaver": COMMAND}.items():
            _add(tar, f"bin/{name}", text.encode(), 0o755)
        with zipfile.ZipFile(wheel) as ours:
            for name in ours.namelist():
                _add(tar, f"lib/{name}", ours.read(name), 0o644)
        for found in dependencies("orbweaver"):
            for file in found.files or ():
                if not NOT_NEEDED.search(str(file)):
                    tar.add(str(file.locate()), f"lib/{file}")


def dependencies(name: str) -> Iterator[Distribution]:
    """Every installed distribution that this one needs, itself and those of the cluster left out, each once."""
    waiting, seen = [name], {name}
    while waiting:
        for line in distribution(waiting.pop()).requires or ():
            needed = Requirement(line)
            plain = re.sub(r"[-_.]+", "-", needed.name).lower()
            is_wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if is_wanted and plain not in seen | OF_THE_CLUSTER:
                seen.add(plain)
                waiting.append(plain)
                yield distribution(plain)


def jars_text() -> str:
    """Which jars a cluster needs, and for what."""
    delta = "\n".join(f"{jar.coordinates}  sha256:{jar.sha256}" for jar in JARS)
    return f"""\
# A round, maintenance and all that only looks: none.

# `orbweaver sql`, with Spark {SPARK_VERSION}, each without its dependencies:
{delta}

# `orbweaver sql` on S3, besides: hadoop-aws and the AWS bundle it names, of the cluster's own Hadoop version
# (SPARK_HOME/jars/hadoop-client-api-VERSION.jar says which):
org.apache.hadoop:hadoop-aws:VERSION
"""


def python_version() -> str:
    """As in the name of the interpreter: `3.11`. Compiled packages fit this one only."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, BytesIO(data))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
