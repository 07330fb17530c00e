"""What `make package` makes holds all that a machine without the checkout needs, and nothing of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from crawler.jars import JARS
from jobs.exits import NOT_FOUND
from jobs.package import ENVIRONMENT
from tests.cluster.crawls import Packed
from tests.cluster.processes import plain_environ
from tests.house.sources import ROOT

pytestmark = pytest.mark.slow


def test_the_wheel_holds_every_module_and_settings_file(packed: Packed) -> None:
    (wheel,) = packed.dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    modules = {str(p.relative_to(ROOT)) for room in ("crawler", "jobs") for p in (ROOT / room).rglob("*.py")}
    settings = {f"crawler/conf/{path.name}" for path in (ROOT / "conf").iterdir() if path.is_file()}
    assert (modules | settings) - held == set()


def test_orbweaver_works_from_the_wheel(packed: Packed, tmp_path: Path) -> None:
    """Beside the installed libraries, outside of the checkout. Of all that doctor looks at only the jars, which are
    fetched into the user's cache, are missing."""
    (wheel,) = packed.dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environ = {"PYTHONPATH": str(tmp_path / "installed"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    where = run("-c", "import crawler, jobs; print(crawler.__file__, jobs.__file__)").stdout.split()
    assert [Path(path).is_relative_to(tmp_path) for path in where] == [True, True]
    doctor = run("-m", "jobs.cli", "doctor")
    bad = [line for line in doctor.stdout.splitlines() if line.startswith("BAD")]
    assert (doctor.returncode, [line.split(":")[0] for line in bad]) == (NOT_FOUND, ["BAD Delta jars"])


def test_the_archive_has_no_spark_and_no_tools_of_ours(packed: Packed) -> None:
    with tarfile.open(packed.dist / ENVIRONMENT) as archive:
        top = {name.split("/")[1] for name in archive.getnames()} - {"python", "orbweaver"}
    assert {"crawler", "jobs", "pyarrow", "deltalake", "lxml"} <= top
    assert top & {"pyspark", "py4j", "delta", "pytest", "mypy", "ruff", "uv", "hypothesis", "tests"} == set()


def test_the_environment_runs_where_nothing_is_installed(packed: Packed, tmp_path: Path) -> None:
    orbweaver = packed.environment / "bin" / "orbweaver"
    command = [str(orbweaver), "inject", "https://example.org/", "--lake", "lake"]
    subprocess.run(command, cwd=tmp_path, env=plain_environ(tmp_path), check=True, timeout=60)
    assert len(list((tmp_path / "lake" / "inbox").iterdir())) == 1
    command = [str(orbweaver), "doctor", "--lake", "lake"]
    doctor = subprocess.check_output(command, cwd=tmp_path, env=plain_environ(tmp_path), text=True, timeout=60)
    assert "none in this environment" in doctor


def test_the_texts_say_what_the_package_is_for(packed: Packed) -> None:
    guide, jars = ((packed.dist / name).read_text(encoding="utf-8") for name in ("SUBMIT.md", "jars.txt"))
    assert f"Spark {distribution('pyspark').version}" in guide
    assert "VERSION" not in guide
    assert [jar.sha256 for jar in JARS if jar.coordinates not in jars or jar.sha256 not in jars] == []
