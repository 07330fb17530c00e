"""Protocol modules of the tests, installed as a package of its own would be: by entry point, from a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, module: str) -> None:
    """Let processes that are started from now on fetch `http` with this module (`package.module:Class`)."""
    info = folder / "packages" / "soak_web-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: soak-web\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[orbweaver.protocols]\nhttp = {module}\n")
    paths = [str(info.parent), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
