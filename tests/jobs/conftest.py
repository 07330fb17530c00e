"""A small lake for the tests of commands that only look."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.cli import invoke
from tests.jobs.made_lake import make_lake


@pytest.fixture(scope="session")
def made_lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two committed rounds and an open one. Tests read it, and write at most reports."""
    return make_lake(tmp_path_factory.mktemp("made") / "lake").uri


class Said:
    """How a command ended and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Run = Callable[..., Said]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `orbweaver` in this process, away from settings of the environment."""
    monkeypatch.delenv("ORBWEAVER_LAKE", raising=False)
    monkeypatch.delenv("ORBWEAVER_DEBUG", raising=False)

    def command(*words: str) -> Said:
        code = invoke(list(words))
        captured = capfd.readouterr()
        return Said(code, captured.out, captured.err)

    return command
