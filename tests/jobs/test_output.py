"""What commands print of text that strangers wrote: on a real terminal nothing of it acts. And how JSON looks."""

from __future__ import annotations

import ast
import io
import json
import math
import os
import pty
import re
import select
import subprocess
import sys
import tomllib
import tty
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler import schemas
from crawler.settings import Settings
from crawler.settings_text import settings_toml
from jobs.exits import Stop, explain
from jobs.output import json_text, say, say_bytes
from jobs.words import visible
from tests.house.sources import ROOT
from tests.jobs.conftest import Run
from tests.jobs.exact_json import assert_json_is_exact
from tests.jobs.made_lake import BODY, COPY, GONE, HOME, MOVED, NEAR, SECRET, make_lake

ACTS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
ACTS |= {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029"}
DIRT = "[red]" + "".join(sorted(ACTS)) + "\x1b[2J\x1b]0;owned\x07\x9b31m<b>&\"'"
WITHOUT_COMMAND = {"java.py", "jars.py", "class_archive.py", "package.py", "demo.py"}
"""They set a machine up, before there is a crawl."""

READING = {
    "status": ["status"],
    **{f"show {at.url}": ["show", at.url] for at in (HOME, COPY, NEAR)},
    **{f"show {what}": ["show", HOME.url, what] for what in ("--head", "--body", "--text", "--json")},
    "show --head of a page": ["show", COPY.url, "--head"],
    "show nothing": ["show", GONE.url],
    **{f"why {at.url}": ["why", at.url] for at in (HOME, COPY, NEAR, GONE, SECRET, MOVED)},
    "why a line": ["why", "ftp://a.test/" + DIRT.replace("\0", "")],
    "why --json": ["why", HOME.url, "--json"],
    "report": ["report", "--round", "1"],
    "report --json": ["report", "--json"],
    "gc": ["gc", "--older-than", "7d"],
    "inject": ["inject", "FOLDER/seeds.txt"],
    "inject nothing": ["inject", "nothing" + DIRT.replace("\0", "")],
    "config show": ["config", "show", "--set", "crawl.operator='Ada\u202e\u0085'"],
    "a bad setting": ["config", "show", "--set", "fetch.delay_s='\u202e\u0085'"],
}
IN_TERMINAL = """
import json, sys
from jobs.cli import invoke
for name, words in json.loads(sys.argv[1]).items():
    print("<<<", name, flush=True)
    invoke(words)
"""


@pytest.fixture(scope="module")
def dirty_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of a web that wrote control characters wherever it could, and a list of seeds that did."""
    folder = tmp_path_factory.mktemp("dirty")
    make_lake(folder / "lake", DIRT)
    left = folder / "lake/crawl-data/ORB-MAIN-2026-45/segments/1/warc/\x1b[2J\u202e\n.warc.gz"
    left.touch()
    os.utime(left, (0.0, 0.0))
    lines = "".join(sign for sign in DIRT if sign not in "\0\n\r")
    (folder / "seeds.txt").write_text(f"https://a.test/\nftp://{lines}\nhttp://{lines}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def seen(dirty_lake: Path) -> dict[str, str]:
    """What a terminal gets from each command."""
    at_lake = ["--lake", str(dirty_lake / "lake")]
    commands = {
        name: [word.replace("FOLDER", str(dirty_lake)) for word in words] + (at_lake if words[0] != "config" else [])
        for name, words in READING.items()
    }
    said = in_terminal([sys.executable, "-c", IN_TERMINAL, json.dumps(commands)])
    parts = said.split("<<< ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def in_terminal(command: list[str]) -> str:
    """All that a program says to a terminal, on either stream."""
    ours, its = pty.openpty()
    tty.setraw(its)  # line ends as they were written
    environ = {**os.environ, "ORBWEAVER_DEBUG": "", "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environ, cwd=ROOT)
    os.close(its)
    said = bytearray()
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                said += os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert process.wait() == 0, said.decode("utf-8", "replace")
    return said.decode("utf-8")


@pytest.mark.parametrize("name", READING)
def test_nothing_that_strangers_wrote_acts_on_a_terminal(seen: dict[str, str], name: str) -> None:
    assert {sign for sign in seen[name] if sign in ACTS} <= {"\n"}


@pytest.mark.parametrize("name", [name for name in READING if name not in {"status", "why a line"}])
def test_people_see_that_it_was_there(seen: dict[str, str], name: str) -> None:
    assert re.search(r"\\x1b|\\u202e|\\u001b|\\U0000202e", seen[name])


def test_text_of_strangers_begins_no_line(seen: dict[str, str]) -> None:
    for name in ("why " + MOVED.url, "show " + COPY.url, "report"):
        said = seen[name].partition("\n\n")[0] if name.startswith("show") else seen[name]
        assert not [line for line in said.splitlines() if line.startswith(("\\x0b", "[red]"))]


def test_a_body_goes_to_a_pipe_byte_for_byte(dirty_lake: Path) -> None:
    command = [sys.executable, "-m", "jobs.cli", "show", HOME.url, "--lake", str(dirty_lake / "lake"), "--body"]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    assert done.stdout == BODY + DIRT.encode()


def test_a_terminal_that_knows_few_characters_gets_escapes(capfd: pytest.CaptureFixture[str]) -> None:
    stream = io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii", newline="\n")
    say("wren \u2013 \ud800\x1b\n\ttitmouse", stream)
    assert raw.getvalue() == b"wren \\u2013 \\ud800\\x1b\n\\x09titmouse\n"
    say_bytes(b"\x00\xff\x1b")
    assert capfd.readouterr().out.encode("utf-8", "surrogateescape")[:1] == b"\0"


@given(st.text(st.characters(exclude_categories=[], exclude_characters="\\")))
def test_visible_text_has_nothing_that_acts_and_other_text_is_as_it_was(text: str) -> None:
    shown = visible(text)
    assert not [sign for sign in shown if sign in ACTS or unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"}]
    kept = "".join(sign for sign in text if sign not in ACTS and unicodedata.category(sign) != "Cs")
    assert re.sub(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4})", "", shown) == kept


@pytest.mark.parametrize("debug", ["", "1"])
def test_messages_of_errors_are_visible(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    monkeypatch.setenv("ORBWEAVER_DEBUG", debug)
    explain(Stop(1, f"it said {DIRT}"))
    explain(ValueError(DIRT))
    assert {sign for sign in capfd.readouterr().err if sign in ACTS} == {"\n"}


def test_brackets_are_no_markup_in_the_bar() -> None:
    script = "import sys; from jobs.progress import make_bar; bar = make_bar(sys.stdout); bar.start(); "
    script += "bar.add_task('[red]host[/red] [/]', total=3, said='[b]x[/b] [/blink]'); bar.stop()"
    said = in_terminal([sys.executable, "-c", script])
    assert "[red]host[/red] [/]" in said
    assert "[b]x[/b] [/blink]" in said


def test_only_one_module_prints() -> None:
    """Everything else goes through it; a new `print` would be a new door for a terminal's orders."""
    doors = []
    for path in [*(ROOT / "jobs").rglob("*.py"), *(ROOT / "crawler").rglob("*.py")]:
        if path.name in WITHOUT_COMMAND | {"output.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in {"print", "typer.echo", "click.echo"} or re.fullmatch(
                r"sys\.(stdout|stderr)(\.buffer)?\.write", name
            ):
                doors.append(f"{path.name}:{name}")
    assert not doors


class Texts(HTMLParser):
    """The text of a page."""

    said = ""

    def handle_data(self, data: str) -> None:
        self.said += data


def test_reports_in_files_hold_nothing_that_acts(dirty_lake: Path, run: Run) -> None:
    assert run("report", "--round", "1", "--lake", str(dirty_lake / "lake")).code == 0
    kept = dirty_lake / "lake" / "reports" / "1"
    for kind in ("txt", "json", "html"):
        assert {sign for sign in (kept / f"report.{kind}").read_text("utf-8") if sign in ACTS} <= {"\n"}
    page = Texts()
    page.feed((kept / "report.html").read_text("utf-8"))
    assert "<b>&\"'" in page.said


@pytest.mark.parametrize("mime", ["image/$\\frac{$", "a/$^$", "x/{$}", "x/" + "y" * 200])
def test_no_type_that_a_server_states_breaks_the_pictures(mime: str) -> None:
    """Matplotlib would read it as TeX."""
    from jobs.report_plots import plots

    nothing = {"uris": {"planned": 0}, "by_status": [], "hosts": {"pages_of_each": []}, "gaps": {"pairs": 0}}
    nothing |= {"pages_over_time": {"requests": []}, "due": {"now": 0, "days": []}}
    facts = {**nothing, "by_mime": [{"value": mime, "uris": 3, "bytes": 4}]}
    assert "MIME types" in plots(facts)


def test_settings_that_hold_control_characters_read_back() -> None:
    odd = "".join(sorted(ACTS)) + "Ada \u00e9 \U0001f426"
    toml = settings_toml(replace(Settings(), crawl=replace(Settings().crawl, operator=odd)))
    assert {sign for sign in toml if sign in ACTS} == {"\n"}
    assert tomllib.loads(toml)["crawl"]["operator"] == odd


JSON = {
    "status": ["status"],
    "show": ["show", HOME.url, "--text"],
    "show body": ["show", COPY.url, "--body"],
    "why": ["why", HOME.url],
    "why a redirect": ["why", MOVED.url],
    "why nothing": ["why", "https://never.test/"],
    "why a refused line": ["why", "ftp://a.test/"],
    "report": ["report", "--round", "1"],
    "gc": ["gc", "--older-than", "7d"],
    "inject": ["inject", "https://a.test/"],
    "doctor": ["doctor"],
    "config show": ["config", "show"],
}


@pytest.mark.parametrize("words", JSON.values(), ids=JSON.keys())
def test_json_of_every_command_is_exact_for_every_reader(dirty_lake: Path, run: Run, words: list[str]) -> None:
    at_lake = ["--lake", str(dirty_lake / "lake")] if words[0] != "config" else []
    said = run(*words, "--json", *at_lake).out
    assert said.isascii()
    assert said.isprintable() or said.strip().isprintable()
    assert_json_is_exact(json.loads(said, parse_constant=pytest.fail))


def test_keys_are_strings_and_not_rounded(run: Run, made_lake: str) -> None:
    assert abs(HOME.key) > 2**53
    facts = json.loads(run("why", HOME.url, "--lake", made_lake, "--json").out)
    assert facts["url_key"] == facts["captures"][0]["url_key"] == str(HOME.key)
    assert json.loads(run("show", HOME.url, "--lake", made_lake, "--json").out)["url_key"] == str(HOME.key)
    report = json.loads(run("report", "--round", "1", "--lake", made_lake, "--json").out)
    assert report["near_duplicates"]["largest"][0]["url_key"] == str(HOME.key)
    kept = json.loads(Path(made_lake, "reports/1/report.json").read_text())
    assert kept == report


def test_every_column_of_64_bits_is_known_as_a_key_or_is_a_count() -> None:
    """A new bigint column must be called a key, or be put among the counts here."""
    counts = {"rows", "content_length", "warc_record_offset", "warc_record_length", "token"}
    tables = (*schemas.TABLES, schemas.OUTCOMES, schemas.DISCOVERIES, schemas.HOST_STATES)
    columns = {column.name: column.type for table in tables for column in table.columns}
    for name, kind in columns.items():
        if kind == "bigint" and name not in counts:
            assert json.loads(json_text({name: 7})) == {name: "7"}
        if kind == "array<bigint>":
            assert json.loads(json_text({name: [7]})) == {name: ["7"]}


INSTANT = datetime(2026, 11, 22, 1, 2, 3, 456_789, UTC)
VALUES = [
    ({"n": 2**53 - 1, "m": -(2**53) + 1}, {"n": 2**53 - 1, "m": -(2**53) + 1}),
    ({"n": 2**53, "m": -(2**53)}, {"n": str(2**53), "m": str(-(2**53))}),
    (
        {"host_key": 1, "key": 2, "text_checksum": None, "monkey": 3},
        {"host_key": "1", "key": "2", "text_checksum": None, "monkey": 3},
    ),
    ({"links": {"found": 3}, "bands": [1, None]}, {"links": {"found": 3}, "bands": ["1", None]}),
    (
        {"t": INSTANT, "u": INSTANT.astimezone(timezone(timedelta(hours=5.5)))},
        {"t": "2026-11-22T01:02:03Z", "u": "2026-11-22T01:02:03Z"},
    ),
    (
        {"retry_at": 1.9, "not_before": 0, "due_at": None, "at_all": 2.5},
        {"retry_at": "1970-01-01T00:00:01Z", "not_before": "1970-01-01T00:00:00Z", "due_at": None, "at_all": 2.5},
    ),
    ({"retry_at": 1e300, "x": math.nan, "y": [math.inf, -math.inf]}, {"retry_at": 1e300, "x": None, "y": [None, None]}),
    ({1: True, "key": False, "path": Path("a")}, {"1": True, "key": False, "path": "a"}),
    ({"s": "\x7f\x00\ud800\u202e\xe9"}, {"s": "\x7f\x00\ud800\u202e\xe9"}),
]


@pytest.mark.parametrize(("value", "read"), VALUES)
def test_json_reads_back_as_it_should(value: Any, read: Any) -> None:
    text = json_text(value)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == read


def _keys() -> Iterator[str]:
    yield from ("url_key", "checksum", "n", "due_at", "links")


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(list(_keys())), inner),
    )
)
def test_any_json_is_exact(value: Any) -> None:
    def walk(one: Any) -> None:
        if isinstance(one, dict | list):
            for inner in one.values() if isinstance(one, dict) else one:
                walk(inner)
        elif isinstance(one, int):
            assert abs(one) < 2**53

    text = json_text(value)
    assert text.isascii()
    walk(json.loads(text, parse_constant=pytest.fail))


def test_what_verify_and_repair_tell_of_a_damaged_lake_acts_on_nothing_and_is_exact() -> None:
    """Their commands need Java; their words do not."""
    from crawler.fetch.verify import Finding
    from jobs import repair, verify
    from jobs.repair_tables import Lost

    url, key = f"https://a.test/{DIRT}", 2**62
    verified = verify.Verified(1, 2, 2**60, [Finding("a.warc.gz", 7, url, DIRT, DIRT)])
    lost = Lost(url, 1, "a.warc.gz", 7, url_key=key, record_id="<urn:uuid:1>")
    left = repair.Left("b.warc.gz", DIRT)
    repaired = repair.Repaired([repair.Mended("a.warc.gz", None, 0)], [lost], [left], is_committed=True)
    for text, lines in ((verify.as_text(verified), 4), (repair.as_text(repaired), 4)):
        assert {sign for sign in text if sign in ACTS} == {"\n"}
        assert len(text.splitlines()) == lines
    for facts in (verify.as_json(verified), repair.as_json(repaired)):
        assert_json_is_exact(json.loads(json_text(facts)))
    assert json.loads(json_text(repair.as_json(repaired)))["lost"][0]["url_key"] == str(key)
