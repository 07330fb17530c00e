"""What `make mutants` changes, what it takes for noticed, and, in the soak, how many of a small sample are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.mutants import __main__ as program
from tests.mutants.accepted import ACCEPTED, Accepted
from tests.mutants.sites import Mutant, sites

MODULE = "crawler/little.py"
TESTS = {MODULE: "test_little"}
LITTLE = '''"""A module."""

from dataclasses import dataclass

WAIT_S = 60.0


@dataclass(frozen=True)
class One:
    at: int | None = None


def later(one: int, other: int | None) -> int:
    if (found := other) is not None and one < 1:
        return max(one, found)
    return min(one, other or 0)


def turns(one: int) -> int:
    while one != 1:
        one -= 2
    return one
'''
TEST = """
from crawler.little import later, turns


def test_later():
    assert (later(0, 3), later(0, None), later(2, 5)) == (3, 0, 2)


def test_turns():
    assert turns(5) == 1
"""
CHANGES = [
    ("if (found := other) is not None and one < 1:", "if (found := other) is not None or one < 1:"),
    ("if (found := other) is not None and one < 1:", "if (found := other) is None and one < 1:"),
    ("if (found := other) is not None and one < 1:", "if (found := other) is not None and one <= 1:"),
    ("return max(one, found)", "return min(one, found)"),
    ("return min(one, other or 0)", "return max(one, other or 0)"),
    ("return min(one, other or 0)", "return min(one, other and 0)"),
    ("while one != 1:", "while one == 1:"),
    ("while one != 1:", "while not one != 1:"),
    ("one -= 2", "one -= 3"),
]


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one module and its tests."""
    for name, text in ((MODULE, LITTLE), ("tests/test_little.py", TEST)):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "tracked", lambda: [tmp_path / MODULE, tmp_path / "tests/test_little.py"])
    return tmp_path


def mutants_of(path: Path) -> list[Mutant]:
    return [mutant for site in sites(path) if (mutant := site.mutant())]


def test_one_token_is_changed_where_it_has_a_meaning(little: Path) -> None:
    found = {(one.before, " ".join(one.after.split())) for one in mutants_of(little / MODULE)}
    assert [change for change in CHANGES if change not in found] == []
    lines = {before for before, _ in found}
    assert [line for line in lines if line.startswith(("WAIT_S", "@", "at:", "def "))] == []


def test_a_sample_goes_by_its_seed_and_leaves_out_what_is_accepted(
    little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = program.sample(TESTS, 99, 1)
    assert len(whole) == len({mutant.source for _, mutant in whole}) > len(CHANGES)
    assert program.sample(TESTS, 5, 1) == whole[:5]
    assert program.sample(TESTS, 99, 2) != whole
    accepted = {Accepted(MODULE, mutant.before, mutant.after, "for this test") for _, mutant in whole[:3]}
    monkeypatch.setattr(program, "ACCEPTED", tuple(accepted))
    assert [one for one in program.sample(TESTS, 99, 1) if one in whole[:3]] == []


@pytest.mark.slow
def test_changes_are_noticed_in_a_copy_by_the_first_test_that_fails(
    little: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "SLACK_S", 3.0)
    chosen = [(MODULE, mutant) for mutant in mutants_of(little / MODULE)]
    wanted = {"return max(one, found)": None, "while one != 1:": None, "if": None}
    trials = program.run(
        [one for one in chosen if any(one[1].before.startswith(text) for text in wanted)], TESTS, program.FAST, 2
    )
    by = {(one.mutant.before, " ".join(one.mutant.after.split())): one.noticed_by for one in trials}
    assert by["return max(one, found)", "return min(one, found)"] == "tests/test_little.py::test_later"
    assert (by["while one != 1:", "while one == 1:"] or "").startswith("tests/test_little.py::test_turns")
    assert by[CHANGES[2]] is None
    assert (little / MODULE).read_text() == LITTLE
    assert program.report(trials) < 1.0
    assert "NOT NOTICED" in capsys.readouterr().out


def test_tests_that_fail_without_a_change_are_told(little: Path) -> None:
    (little / "tests/test_little.py").write_text(
        TEST.replace("def test_turns", "@pytest.mark.parametrize('n', range(9))\ndef test_turns")
        .replace("turns():", "turns(n):")
        .replace("== 1", "== 7")
        .replace("from", "import pytest\nfrom", 1)
    )
    with pytest.raises(SystemExit, match="too many tests of test_little fail on the code as it is"):
        program.run(program.sample(TESTS, 1, 1), TESTS, program.FAST, 1)


def test_every_module_and_its_tests_are_there() -> None:
    every = program.TESTS | program.SPARK_TESTS
    assert [module for module in every if not (ROOT / module).exists()] == []
    files = {f"tests/{name}.py" for names in every.values() for name in names.split()}
    assert [name for name in files if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("module", sorted({one.module for one in ACCEPTED}))
def test_what_is_accepted_is_still_a_change_of_the_code_and_has_a_reason(module: str) -> None:
    path = ROOT / module
    ours = [one for one in ACCEPTED if one.module == module]
    texts = {one.before for one in ours}
    lines = [" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines()]
    places = [site for site in sites(path) if any(lines[site.line - 1] in text for text in texts)]
    found = {(mutant.before, mutant.after) for site in places if (mutant := site.mutant())}
    assert [one for one in ours if (one.before, one.after) not in found] == []
    assert [one for one in ours if len(one.reason) < 20] == []
    assert len(ours) == len({(one.before, one.after) for one in ours})


@pytest.mark.soak
def test_of_a_small_sample_nearly_every_change_is_noticed() -> None:
    assert program.main(["--seed", "1", "--sample", "28"]) == 0
