"""Real pages that nobody here wrote: HTML documentation from Debian packages, one made-up host name a package.

The packages are unpacked into a cache folder, so the system stays as it is and no root is needed once its package lists
are there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orbweaver-corpus"


class CorpusError(Exception):
    """The documentation packages cannot be had here."""


@dataclass(frozen=True)
class Source:
    """A package to take pages from, as this or that Debian release names it, and the robots.txt it is served with."""

    host: str
    packages: tuple[str, ...]
    robots: str | None


@dataclass(frozen=True)
class Site:
    """A host name with its pages and its robots.txt (None: the server answers 404)."""

    host: str
    root: Path
    robots: str | None
    package: str


# Denials that cut off pages nothing else leads to, folders with an Allow inside, and a host without a robots.txt.
SOURCES = (
    Source("python.docs.test", ("python3.11-doc", "python3.13-doc", "python3-doc"),
           "User-agent: *\nDisallow: /whatsnew/\nAllow: /whatsnew/index.html\nDisallow: /*.rst.txt$\n"),
    Source("postgresql.manuals.test", ("postgresql-doc-15", "postgresql-doc-17", "postgresql-doc"), None),
    Source("cmake.tools.test", ("cmake-doc",),
           "User-agent: otherbot\nDisallow: /\n\nUser-agent: *\nDisallow: /_sources/\nDisallow: /release/\n"),
)  # fmt: skip


def sites(sources: Sequence[Source] = SOURCES) -> list[Site]:
    """The documentation sites, fetched and unpacked where they are not yet. Raises CorpusError."""
    return [_site(source) for source in sources]


def unpacked(packages: Sequence[str]) -> tuple[str, Path]:
    """The first of the packages that this Debian has, unpacked in the cache: its name and its folder."""
    for package in packages:
        if (folder := CACHE / package).is_dir():
            return package, folder
    _require_debian()
    for package in packages:
        if _is_offered(package):
            return package, _unpack(package)
    raise CorpusError(f"none of the packages {', '.join(packages)} is offered here; is `apt-get update` needed?")


def _site(source: Source) -> Site:
    package, folder = unpacked(source.packages)
    indexes = sorted(folder.rglob("index.html"), key=lambda path: (len(path.parts), str(path)))
    if not indexes:
        raise CorpusError(f"{package} holds no index.html")
    return Site(source.host, indexes[0].parent, source.robots, package)


def _require_debian() -> None:
    missing = [tool for tool in ("apt-get", "apt-cache", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise CorpusError(
            f"the pages come from Debian packages and {', '.join(missing)} is not here: run this on Debian, or unpack "
            f"{', '.join(source.packages[0] for source in SOURCES)} and nginx into {CACHE}/PACKAGE"
        )
    if not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        if os.geteuid() != 0:
            raise CorpusError("no package lists yet; as root: apt-get update")
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)


def _is_offered(package: str) -> bool:
    answer = subprocess.run(["apt-cache", "show", "--no-all-versions", package], capture_output=True, check=False)
    return answer.returncode == 0 and bool(answer.stdout.strip())


def _unpack(package: str) -> Path:
    """Unpack beside, then rename, so that a folder in the cache is whole."""
    fresh = CACHE / f"{package}.{os.getpid()}"
    fresh.mkdir(parents=True)
    downloaded = subprocess.run(
        ["apt-get", "download", package], cwd=fresh, capture_output=True, text=True, check=False
    )
    archives = list(fresh.glob("*.deb"))
    if downloaded.returncode != 0 or not archives:
        raise CorpusError(f"apt-get download {package}: {downloaded.stderr.strip()}")
    subprocess.run(["dpkg-deb", "-x", archives[0], fresh / "files"], check=True)
    final = CACHE / package
    (fresh / "files").rename(final)
    shutil.rmtree(fresh)
    return final
