"""Which Java runs Spark: one of the supported versions, wherever it is installed. Needs the standard library only."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import NamedTuple

SUPPORTED = (17, 21)


class Java(NamedTuple):
    """An installed Java: what JAVA_HOME must be, and its version as it states it."""

    home: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 of `17.0.15`, 8 of `1.8.0_392`; 0 when the version says nothing."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)[:2]]
        if len(numbers) == 2 and numbers[0] == 1:
            return numbers[1]
        return numbers[0] if numbers else 0

    @property
    def is_supported(self) -> bool:
        return self.major in SUPPORTED


def find_java(environ: Mapping[str, str] = os.environ) -> Java | None:
    """The first supported Java: JAVA_HOME's, the one on PATH, then those at the usual places."""
    return next((java for java in installed(environ) if java.is_supported), None)


def option(text: str) -> str:
    """An option for a line of options that Spark splits as a shell does: a path in it may hold spaces and quotes.

    >>> print(option('-Dplace=/my "own" folder'))
    "-Dplace=/my \\"own\\" folder"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def installed(environ: Mapping[str, str] = os.environ) -> Iterator[Java]:
    """Every Java there is, supported or not, the user's choice first."""
    seen = set()
    for place in _places(environ):
        home = place.resolve()
        if home not in seen and (home / "bin" / "java").is_file():
            seen.add(home)
            yield Java(home, _version(home))


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"])
    on_path = which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    home = Path(environ.get("HOME") or "/nonexistent")
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
    yield from sorted((home / ".sdkman" / "candidates" / "java").glob("*"))


def _version(home: Path) -> str:
    try:
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(errors="replace"), re.MULTILINE)
    except OSError:
        stated = None
    return stated[1] if stated else _asked_version(home)


def _asked_version(home: Path) -> str:
    """The version `java -version` prints, for the few that come without a `release` file."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    stated = re.search(r'version "([^"]+)"', answer.stderr)
    return stated[1] if stated else ""
