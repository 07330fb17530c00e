"""What makes a lake, what it remembers, and what is said of one that somebody else has changed; all without Java."""

from __future__ import annotations

import json
import shutil
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from crawler import schemas
from crawler.storage import Store
from crawler.tables.lock import acquire
from crawler.tables.manifest import KEYS, URL_POLICY, make_lake, read_manifest
from jobs import exits
from tests.jobs.conftest import Run
from tests.jobs.made_lake import HOME
from tests.jobs.made_lake import make_lake as make_old_lake

CONTACT = ("--set", "crawl.contact=https://example.org/bot")
NEED_A_LAKE = [
    ["round", *CONTACT],
    ["crawl", *CONTACT],
    ["crawl", "--until-done", *CONTACT],
    ["maintain"],
    ["verify"],
    ["gc"],
    ["gc", "--delete"],
    ["repair"],
    ["restore"],
    ["status"],
    ["show", HOME.url],
    ["why", HOME.url],
    ["report"],
    ["sql", "SELECT 1"],
    ["config", "show"],
    ["config", "show", "--round", "1"],
    ["config", "set", "fetch.delay_s=2"],
]
MAKE_A_LAKE = [["inject", HOME.url], ["crawl", HOME.url, *CONTACT]]


def nothing(folder: Path) -> None:
    """There is nothing."""


def an_empty_folder(folder: Path) -> None:
    folder.mkdir()


def a_virtual_environment(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")


def a_file(folder: Path) -> None:
    folder.write_text("seeds\n")


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.is_dir() else [str(folder)]


@pytest.mark.parametrize("command", [*MAKE_A_LAKE, *NEED_A_LAKE], ids=" ".join)
def test_a_name_that_cannot_work_is_refused_before_anything_is_made(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    said = run(*command, "--lake", str(tmp_path / "50%20off"))
    assert said.code == exits.BAD_USE
    assert "its path holds '%20'" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [nothing, an_empty_folder, a_virtual_environment, a_file], ids=lambda f: f.__name__)
@pytest.mark.parametrize("command", NEED_A_LAKE, ids=" ".join)
def test_a_typo_makes_no_lake(run: Run, tmp_path: Path, command: list[str], place: Callable[[Path], None]) -> None:
    folder = tmp_path / "laek"
    place(folder)
    before = names_in(folder), folder.exists()
    said = run(*command, "--lake", str(folder))
    assert said.code == exits.BAD_TABLE
    assert f"there is no lake at {folder}" in said.err
    assert f"`orbweaver crawl SEEDS --lake {folder}` makes one" in said.err
    assert (names_in(folder), folder.exists()) == before


@pytest.mark.parametrize("place", [a_virtual_environment, a_file], ids=lambda f: f.__name__)
@pytest.mark.parametrize("command", MAKE_A_LAKE, ids=lambda words: words[0])
def test_no_lake_is_made_where_something_else_is(
    run: Run, tmp_path: Path, command: list[str], place: Callable[[Path], None]
) -> None:
    folder = tmp_path / "env"
    place(folder)
    before = names_in(folder)
    said = run(*command, "--lake", str(folder))
    assert said.code == exits.BAD_TABLE
    assert "a lake is made in an empty or a new" in said.err
    assert names_in(folder) == before


@pytest.mark.parametrize("place", [nothing, an_empty_folder], ids=lambda f: f.__name__)
def test_inject_makes_a_lake_without_tables(run: Run, tmp_path: Path, place: Callable[[Path], None]) -> None:
    folder = tmp_path / "lake"
    place(folder)
    assert run("inject", HOME.url, "--lake", str(folder)).code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["inbox", "lake.json"]
    assert "committed no round yet" in run("status", "--lake", str(folder)).out


FRESH = [
    (["status"], exits.OK),
    (["gc"], exits.OK),
    (["gc", "--delete"], exits.OK),
    (["restore"], exits.OK),
    (["config", "show"], exits.OK),
    (["show", HOME.url], exits.NOT_FOUND),
    (["why", HOME.url], exits.NOT_FOUND),
    (["report"], exits.NOT_FOUND),
    (["verify"], exits.NOT_FOUND),
    (["sql", "SELECT 1"], exits.NOT_FOUND),
    (["config", "show", "--round", "1"], exits.NOT_FOUND),
]


@pytest.mark.parametrize(("command", "code"), FRESH, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_a_lake_before_its_first_round_is_no_damaged_one(
    run: Run, tmp_path: Path, command: list[str], code: int
) -> None:
    assert run("inject", HOME.url, "--lake", str(tmp_path)).code == 0
    said = run(*command, "--lake", str(tmp_path))
    assert said.code == code, said.err
    assert "not there" not in said.err


def test_bad_seeds_make_no_lake(run: Run, tmp_path: Path) -> None:
    for command in (["inject"], ["crawl", *CONTACT]):
        assert run(*command, "no-such-file", "--lake", str(tmp_path / "lake")).code == exits.BAD_USE
    assert not (tmp_path / "lake").exists()


def test_an_inbox_of_before_becomes_a_lake(run: Run, tmp_path: Path) -> None:
    """`inject` once wrote its file before there was a lake."""
    store = Store.open(str(tmp_path / "lake"))
    store.put_new("inbox/old.urls", b"https://a.test/\n")
    assert run("inject", HOME.url, "--lake", store.uri).code == 0
    assert len(store.list("inbox")) == 2


def test_of_many_that_make_a_lake_one_decides(tmp_path: Path) -> None:
    for attempt in range(20):
        store, start = Store.open(str(tmp_path / str(attempt))), threading.Barrier(4)
        made: list[int] = []

        def make(buckets: int, store: Store = store, start: Any = start, made: list[int] = made) -> None:
            start.wait()
            if make_lake(store, buckets):
                made.append(buckets)

        makers = [threading.Thread(target=make, args=(buckets,)) for buckets in (1, 2, 3, 4)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        assert made == [read_manifest(store).buckets]


MADE_WITH = (
    *("--set", "crawl.contact=https://example.org/bot", "--set", "fetch.delay_s=2.5"),
    *("--set", "scope.mode=hosts", "--set", "lake.buckets=7"),
)


@pytest.fixture
def lake(run: Run, tmp_path: Path) -> str:
    """A lake that was made with some settings."""
    uri = str(tmp_path / "lake")
    assert run("inject", HOME.url, *MADE_WITH, "--lake", uri).code == 0
    return uri


def shown(run: Run, *words: str) -> dict[str, Any]:
    return tomllib.loads(run("config", "show", *words).out)


def test_a_lake_remembers_what_it_was_made_with(run: Run, lake: str) -> None:
    said = run("config", "show", "--lake", lake)
    settings = tomllib.loads(said.out)
    assert settings["crawl"]["contact"] == "https://example.org/bot"
    assert (settings["fetch"]["delay_s"], settings["scope"]["mode"], settings["lake"]["buckets"]) == (2.5, "hosts", 7)
    assert "delay_s = 2.5  # lake" in said.out
    assert said.err == ""


def test_later_layers_win_over_the_lake_and_are_told(
    run: Run, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[fetch]\ndelay_s = 3.0\nconnections = 9\n")
    said = run("config", "show", "--lake", lake, "--config", str(mine))
    assert f"delay_s = 3.0  # {mine}" in said.out
    assert said.err.splitlines() == [
        f"orbweaver: fetch.delay_s = 3.0 ({mine}): the lake's is 2.5; to make it the lake's, `orbweaver config set`"
    ]
    monkeypatch.setenv("ORBWEAVER_FETCH__DELAY_S", "4")
    assert shown(run, "--lake", lake, "--config", str(mine))["fetch"]["delay_s"] == 4.0
    said = run("config", "show", "--lake", lake, "--set", "fetch.delay_s=5", "--set", "scope.mode=web")
    told = [line.removeprefix("orbweaver: ").split(" = ")[0] for line in said.err.splitlines()]
    assert sorted(told) == ["fetch.delay_s", "scope.mode"]
    assert tomllib.loads(said.out)["scope"]["mode"] == "web"


@pytest.mark.parametrize(
    "given",
    ["fetch.delay_s=2.5", "scope.mode=hosts", "crawl.name=ORB-MAIN", "lake.buckets=7", "url.strip_tracking=true"],
)
def test_what_is_as_the_lake_has_it_is_not_told(run: Run, lake: str, given: str) -> None:
    said = run("status", "--lake", lake, "--set", given)
    assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize(
    "given",
    ["lake.buckets=8", "url.strip_tracking=false", "url.collapse_slashes=false", "url.tracking_parameters=['a']"],
)
@pytest.mark.parametrize("command", [["round", *CONTACT], ["inject", HOME.url], ["status"]], ids=lambda words: words[0])
def test_what_keys_depend_on_cannot_change(run: Run, lake: str, command: list[str], given: str) -> None:
    before = names_in(Path(lake))
    said = run(*command, "--lake", lake, "--set", given)
    assert said.code == exits.BAD_USE
    assert given.partition("=")[0] in said.err
    assert "this lake was made with" in said.err
    assert run("config", "set", given, "--lake", lake).code == exits.BAD_USE
    assert names_in(Path(lake)) == before


def test_a_preset_gives_way_to_what_cannot_change(run: Run, lake: str) -> None:
    settings = shown(run, "--lake", lake, "--config", "cluster")
    assert (settings["lake"]["buckets"], settings["fetch"]["connections"]) == (7, 500)


def test_what_a_lake_remembers_can_be_changed(run: Run, lake: str) -> None:
    said = run("config", "set", "fetch.delay_s=9", "crawl.operator=The Birds", "--lake", lake)
    assert (said.code, said.out) == (0, 'fetch.delay_s = 9\ncrawl.operator = "The Birds"\n')
    settings = shown(run, "--lake", lake)
    assert (settings["fetch"]["delay_s"], settings["crawl"]["operator"]) == (9.0, "The Birds")
    assert settings["scope"]["mode"] == "hosts"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("fetch.dely_s=9", "did you mean fetch.delay_s"),
        ("fetch.delay_s=-1", "should be greater"),
        ("fetch.delay_s", "must be section.key=value"),
        ("fetch.host_map=/nonexistent", "a file that exists"),
    ],
)
def test_a_lake_remembers_nothing_that_is_no_setting(run: Run, lake: str, given: str, part: str) -> None:
    before = Path(lake, "lake.json").read_bytes()
    said = run("config", "set", given, "--lake", lake)
    assert (said.code, part in said.err) == (exits.BAD_USE, True)
    assert Path(lake, "lake.json").read_bytes() == before


def test_what_a_lake_remembers_in_vain_is_told(run: Run, lake: str) -> None:
    """A setting of a newer version, or of one that is gone."""
    place = Path(lake, "lake.json")
    values = json.loads(place.read_text())
    place.write_text(json.dumps({**values, "settings": {**values["settings"], "fetch.by_pigeon": True}}))
    said = run("status", "--lake", lake)
    assert (said.code, said.err) == (0, "orbweaver: fetch.by_pigeon = true (lake): this version has no such setting\n")
    assert run("config", "set", "fetch.delay_s=3", "--lake", lake).code == 0
    assert json.loads(place.read_text())["settings"]["fetch.by_pigeon"] is True


def test_a_lake_that_somebody_holds_keeps_what_it_remembers(run: Run, lake: str) -> None:
    lock = acquire(Store.open(lake))
    assert run("config", "set", "fetch.delay_s=9", "--lake", lake).code == exits.LAKE_HELD
    lock.release()


def test_a_remembered_file_may_be_missing_where_nobody_reads_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 a.test\n")
    assert run("inject", HOME.url, "--lake", "lake", *CONTACT, "--set", "fetch.host_map=hosts").code == 0
    assert shown(run, "--lake", "lake")["fetch"]["host_map"] == str(hosts)
    hosts.unlink()
    for command in (["status"], ["why", HOME.url], ["config", "show"], ["inject", HOME.url]):
        said = run(*command, "--lake", "lake")
        assert said.code in {exits.OK, exits.NOT_FOUND}, said.err
    said = run("round", "--lake", "lake")
    assert said.code == exits.BAD_USE
    assert f'fetch.host_map = "{hosts}" (lake): should be a file that exists; the lake remembers it' in said.err


def test_a_lake_of_other_keys_is_refused_by_those_that_make_keys(run: Run, lake: str) -> None:
    place = Path(lake, "lake.json")
    values = json.loads(place.read_text())
    assert (values["keys"], values["url_policy"]) == (KEYS, URL_POLICY)
    place.write_text(json.dumps({**values, "url_policy": URL_POLICY - 1}))
    for command in (["round", *CONTACT], ["crawl", *CONTACT], ["maintain"], ["show", HOME.url], ["why", HOME.url]):
        said = run(*command, "--lake", lake)
        assert said.code == exits.BAD_TABLE, command
        assert f"URL policy {URL_POLICY - 1}, this version has" in said.err
        assert f"Go on with Orbweaver {values['made_by']}, or begin another lake" in said.err
    assert run("status", "--lake", lake).code == 0


@pytest.mark.parametrize("content", ["not JSON", "[]", "{}", '{"format": 1}', '{"format": 2}', '{"format": 99}'])
def test_a_damaged_manifest_is_told(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "lake.json").write_text(content)
    for command in (["status"], ["round", *CONTACT], ["inject", HOME.url]):
        said = run(*command, "--lake", str(tmp_path))
        assert (said.code, str(tmp_path) in said.err) == (exits.BAD_TABLE, True)


LOOKING = [
    ["status"],
    ["show", HOME.url],
    ["why", HOME.url],
    ["report", "--round", "1"],
    ["gc"],
    ["verify"],
    ["sql", "SELECT count(*) FROM {table}"],
    ["config", "show", "--round", "1"],
]
READS = {
    "status": {"rounds", "frontier"},
    "show": {"rounds", "captures"},
    "why": {"rounds", "captures", "frontier", "seeds", "plans", "url_checksums", "hosts"},
    "report": {"rounds", "captures", "seeds"},
    "gc": {"rounds", "captures", "segments"},
    "verify": {"rounds", "captures", "segments"},
    "config": {"rounds"},
}


NEED_JAVA = {"verify", "sql"}  # unless they find beforehand that a table is gone


def without_the_folder(table: Path) -> None:
    shutil.rmtree(table)


def without_the_log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


def without_data(table: Path) -> None:
    for file in table.rglob("*.parquet"):
        file.unlink()


def with_a_broken_log(table: Path) -> None:
    for file in (table / "_delta_log").glob("*.json"):
        file.write_text("{")


DAMAGES = [without_the_folder, without_the_log, without_data, with_a_broken_log]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "lake"
    make_old_lake(folder)
    return folder


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("table", [table.name for table in schemas.TABLES])
def test_a_table_that_is_gone_is_told_by_every_command_that_reads_it(
    run: Run, whole: Path, tmp_path: Path, table: str, damage: Callable[[Path], None]
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(whole, lake)
    damage(lake / "tables" / table)
    is_felt = damage is not without_data or bool(DeltaTable(str(whole / "tables" / table)).file_uris())
    for words in LOOKING:
        needs = is_felt and table in READS.get(words[0], {table})
        if words[0] in NEED_JAVA and not needs:
            continue
        said = run(*(word.format(table=table) for word in words), "--lake", str(lake))
        assert said.code in {exits.OK, exits.NOT_FOUND, exits.BAD_TABLE}, (words, said.err)
        assert "Traceback" not in said.err
        if needs:
            assert (said.code, f"table {table}" in said.err) == (exits.BAD_TABLE, True), (words, said.err)


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_all_tables_together_are_missed_as_well(run: Run, whole: Path, tmp_path: Path, words: list[str]) -> None:
    """The lake knows that it had tables, so it is not taken for a new one."""
    lake = tmp_path / "lake"
    shutil.copytree(whole, lake)
    manifest = json.loads((lake / "lake.json").read_text())
    (lake / "lake.json").write_text(json.dumps({**manifest, "schemas": "0123456789abcdef"}))
    shutil.rmtree(lake / "tables")
    said = run(*(word.format(table="captures") for word in words), "--lake", str(lake))
    assert (said.code, "table rounds" in said.err) == (exits.BAD_TABLE, True)
