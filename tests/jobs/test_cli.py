"""The command line without Java: help, settings, inbox, exit codes and messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.lock import acquire
from crawler.tables.manifest import make_lake
from jobs import exits
from jobs.cli import EPILOG
from jobs.exits import Stop
from jobs.options import time_of
from tests.jobs.conftest import Run

COMMANDS = (
    *("inject", "round", "crawl", "maintain", "doctor", "config show", "config set", "status", "show", "why", "report"),
    "restore",
)

NO_SUCH = "/nonexistent/lake"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_that_name_the_command(run: Run, command: str) -> None:
    said = run(*command.split(), "--help")
    assert said.code == 0
    assert f"Examples:\n    orbweaver {command}" in said.out


@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith("config")])
def test_every_command_on_a_lake_takes_the_common_options(run: Run, command: str) -> None:
    said = run(command, "--help")
    assert all(option in said.out for option in ("--lake", "--config", "--set", "--json"))


def test_the_help_lists_all_exit_codes(run: Run) -> None:
    said = run("--help")
    assert all(f"{code:>3}  {meaning}" in said.out for code, meaning in exits.EXIT_CODES.items())
    assert "Exit codes" in EPILOG


@pytest.mark.parametrize("words", [["--help"], ["config", "show"], ["inject", "https://a.test/", "--lake", "LAKE"]])
def test_commands_that_need_no_java_load_no_spark(tmp_path: Path, words: list[str]) -> None:
    script = (
        "import sys; from jobs.cli import invoke; code = invoke(sys.argv[1:]); print('pyspark' in sys.modules, code)"
    )
    given = [word.replace("LAKE", str(tmp_path)) for word in words]
    done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False 0"


def test_help_answers_in_half_a_second_of_cpu() -> None:
    before = os.times()
    subprocess.run([sys.executable, "-m", "jobs.cli", "--help"], capture_output=True, check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 0.5


USAGE = [
    (["crawl", "--rounds", "0"], "rounds"),
    (["nonsense"], "nonsense"),
    (["status", "--set", "fetch.delay=1"], "did you mean fetch.delay_s"),
    (["config", "show", "--set", 'fetch.delay_s="slow"'], "fetch.delay_s"),
    (["config", "show", "--config", "no-such-preset"], "there is no preset"),
    (["inject", "no-such-file.txt"], "neither a file nor a URL"),
    (["inject", "ftp//a.test/"], "neither a file nor a URL"),
    (["inject", "mailto://a@b.test"], "no URL that can be crawled (scheme)"),
    (["inject", "http://a.test:25/"], "no URL that can be crawled (port)"),
    (["status", "--lake", "hdfs://a/b"], "scheme 'hdfs' is not one of"),
    (["show", "https://a.test/", "--head", "--body"], "exclude each other"),
    (["show", "http://"], "no URL that can be crawled"),
    (["round", "--at", "tomorrow", "--set", "fetch.only_allowed=true"], "should be ISO 8601"),
]


@pytest.mark.parametrize(("words", "part"), USAGE)
def test_bad_usage_ends_with_2_and_one_clear_message(run: Run, words: list[str], part: str) -> None:
    said = run(*words)
    assert said.code == exits.BAD_USE
    assert part in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("command", [["round"], ["crawl", "https://example.org/"]])
def test_a_crawl_of_public_addresses_demands_a_contact(run: Run, tmp_path: Path, command: list[str]) -> None:
    before = make_lake(Store.open(str(tmp_path / "lake")), 4) if command == ["round"] else False
    said = run(*command, "--lake", str(tmp_path / "lake"))
    assert said.code == exits.NO_CONTACT
    ways = ("--set crawl.contact=https://", "ORBWEAVER_CRAWL__CONTACT=", "[crawl] contact =", "fetch.only_allowed=true")
    assert all(way in said.err for way in ways)
    assert (tmp_path / "lake").exists() == before


@pytest.mark.parametrize("command", [["status"], ["show", "https://a.test/"], ["why", "https://a.test/"], ["report"]])
def test_a_folder_that_is_no_lake_ends_with_4(run: Run, command: list[str]) -> None:
    said = run(*command, "--lake", NO_SUCH)
    assert said.code == exits.BAD_TABLE
    assert f"there is no lake at {NO_SUCH}" in said.err
    assert said.err.count("\n") == 1


def test_a_lake_that_is_held_ends_with_3_and_the_holders_name(run: Run, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    make_lake(store, 4)
    store.put_new("inbox/one.urls", b"https://a.test/\n")
    lock = acquire(store)
    said = run("round", "--lake", str(tmp_path), "--set", "fetch.only_allowed=true")
    lock.release()
    assert said.code == exits.LAKE_HELD
    assert lock.holder.name in said.err


def test_a_fault_of_ours_has_one_line_and_a_traceback_on_demand(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("inject", "https://a.test/", "--lake", str(tmp_path))
    Store.open(str(tmp_path)).put_new("lock/0000000001.json", b"not JSON")
    said = run("status", "--lake", str(tmp_path))
    assert (said.code, said.err.count("\n")) == (exits.FAULT, 1)
    monkeypatch.setenv("ORBWEAVER_DEBUG", "1")
    assert "Traceback" in run("status", "--lake", str(tmp_path)).err


def test_settings_are_shown_as_toml_that_reads_back_and_with_their_source(run: Run) -> None:
    said = run("config", "show", "--config", "strict", "--set", "fetch.connections=7")
    shown = tomllib.loads(said.out)
    assert shown["fetch"]["connections"] == 7
    assert shown.keys() == asdict(Settings()).keys()
    assert "connections = 7  # --set fetch.connections=7" in said.out
    assert "delay_factor = 10.0  # conf/strict.toml" in said.out


def test_settings_are_shown_as_json(run: Run) -> None:
    said = run("config", "show", "--set", "fetch.delay_s=2.5", "--json")
    assert json.loads(said.out)["fetch"]["delay_s"] == 2.5


def test_inject_puts_all_urls_of_arguments_and_files_into_one_new_file(run: Run, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\ufeff# birds\nhttps://b.test/\n\n  c.test/path  \nhttp://\na.test:22\n", encoding="utf-8")
    lake = tmp_path / "lake"
    said = run("inject", "https://a.test/", str(seeds), "--lake", str(lake))
    files = list((lake / "inbox").iterdir())
    assert said.code == 0
    assert said.out.startswith("5 URLs in inbox/")
    assert [file.read_text() for file in files] == [
        "https://a.test/\nhttps://b.test/\nc.test/path\nhttp://\na.test:22\n"
    ]
    assert files[0].suffix == ".urls"
    assert f"{seeds}:5: http://" in said.err
    assert f"{seeds}:6: a.test:22: port" in said.err


def test_inject_works_while_the_lake_is_held_and_prints_json(run: Run, tmp_path: Path) -> None:
    lock = acquire(Store.open(str(tmp_path)))
    said = run("inject", "https://a.test/", "--lake", str(tmp_path), "--json")
    lock.release()
    assert said.code == 0
    assert json.loads(said.out)["urls"] == 1


def test_inject_refuses_files_without_urls_and_binary_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\xff\xfe")
    assert "no URLs" in run("inject", str(tmp_path / "empty.txt")).err
    assert "cannot be read as UTF-8" in run("inject", str(tmp_path / "picture.txt")).err


TIMES = [
    ("+90m", 1_000.0, 6_400.0),
    ("+1.5d", 0.0, 129_600.0),
    ("+2w", 5.0, 1_209_605.0),
    ("1970-01-02", 9.0, 86_400.0),
    ("1970-01-01T00:01:00", 9.0, 60.0),
    ("1970-01-01T01:00:00+01:00", 9.0, 0.0),
    ("1970-01-01T00:00:07Z", 9.0, 7.0),
    (None, 9.0, None),
]


@pytest.mark.parametrize(("text", "now", "expected"), TIMES)
def test_times_are_read_with_or_without_zone_and_as_offsets(
    text: str | None, now: float, expected: float | None
) -> None:
    assert time_of(text, now) == expected


@pytest.mark.parametrize("text", ["", "15d", "+15", "+d", "soon", "2026-13-01"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(Stop, match="should be ISO 8601"):
        time_of(text, time.time())
