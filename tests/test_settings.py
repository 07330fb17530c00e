"""From files, environment and command line to settings: what wins, what is refused, and how a refusal reads."""

from __future__ import annotations

import pickle
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.settings import CrawlSettings, Settings
from crawler.settings_files import (
    SettingsError,
    conf_folder,
    in_force,
    load_settings,
    settings_hash,
    settings_toml,
    types,
)
from crawler.settings_text import toml_value


def refusal(*overrides: str, files: tuple[str | Path, ...] = (), environ: dict[str, str] | None = None) -> str:
    """What the refusal says."""
    with pytest.raises(SettingsError) as caught:
        load_settings(files, overrides, environ or {})
    return str(caught.value)


def test_without_anything_the_defaults_are_in_force() -> None:
    assert load_settings(environ={}) == Settings()


def test_later_layers_win(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("[fetch]\ndelay_s = 2\nconnections = 20\nmax_host_failures = 2\nidle_timeout_s = 2.0\n")
    second.write_text("[fetch]\nconnections = 30\nmax_host_failures = 3\nidle_timeout_s = 3.0\n")
    environ = {"ORBWEAVER_FETCH__MAX_HOST_FAILURES": "4", "ORBWEAVER_FETCH__IDLE_TIMEOUT_S": "4"}
    fetch = load_settings([first, second], ["fetch.idle_timeout_s=5"], environ).fetch
    assert (fetch.delay_s, fetch.connections, fetch.max_host_failures, fetch.idle_timeout_s) == (2.0, 30, 4, 5.0)


def test_every_value_knows_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[fetch]\ndelay_s = 2\n")
    given = in_force(["strict", file], ["crawl.name=X"], {"ORBWEAVER_ROUND__PARTITIONS": "3"})
    names = ("lake.buckets", "fetch.delay_factor", "fetch.delay_s", "round.partitions", "crawl.name")
    sources = ["conf/default.toml", "conf/strict.toml", str(file), "ORBWEAVER_ROUND__PARTITIONS", "--set crawl.name=X"]
    assert [given[name].source for name in names] == sources


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("crawl.contact=bot@example.org", "bot@example.org"),
        ('crawl.contact="https://example.org/bot?a=b"', "https://example.org/bot?a=b"),
        ("crawl.contact=https://example.org/bot?a=b", "https://example.org/bot?a=b"),
        ("crawl.operator=2026-01-31", "2026-01-31"),
        ("crawl.operator=true", "true"),
        ("crawl.operator=17", "17"),
        ("fetch.allow_addresses=['127.0.0.0/8', '::1']", ("127.0.0.0/8", "::1")),
        ("fetch.delay_s=0", 0.0),
        ("fetch.max_body_bytes=1_000", 1000),
        ("fetch.verify_tls=true", True),
        ("revisit.failure_weeks=[1, 3.5]", (1.0, 3.5)),
        ("scope.mode=hosts", "hosts"),
        ("filters.deny_suffixes=['.iso', '.tar.gz']", (".iso", ".tar.gz")),
        ("content.deny_types=['*/*', 'audio/*', 'application/vnd.x+zip']", ("*/*", "audio/*", "application/vnd.x+zip")),
    ],
)
def test_an_override_is_a_toml_value_or_a_bare_string(override: str, value: object) -> None:
    section, _, key = override.partition("=")[0].partition(".")
    assert getattr(getattr(load_settings((), [override], {}), section), key) == value


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("fetch.dely_s=2", "there is no such setting; did you mean fetch.delay_s?"),
        ("round.delay_s=2", "there is no such setting; did you mean fetch.delay_s?"),
        ("zzz.qqq=2", "there is no such setting; `orbweaver config show` lists all"),
        ("duplicates.threshold=0.5", "did you mean near_duplicates.threshold?"),
        ("filters.deny_suffixes=['iso']", "should be endings of a path that begin with a dot"),
        ("filters.keep_suffixes=['.a/b']", "should be endings of a path that begin with a dot"),
        ("content.deny_types=['zip']", "should be MIME types, such as"),
        ("content.unparsed_types=['*/zip']", "should be MIME types, such as"),
        ("content.unstored_types=['a/b/c']", "should be MIME types, such as"),
        ("scope.seed_redirects=-1", "should be greater than or equal to 0"),
        ("fetch.delay_s=-1", "should be greater than or equal to 0"),
        ("fetch.delay_s=nan", "should be a finite number"),
        ("fetch.delay_s=inf", "should be a finite number"),
        ("fetch.delay_s=fast", 'fetch.delay_s = "fast"'),
        ('fetch.delay_s="2"', "should be a number"),
        ("fetch.connections=1.5", "should be an integer"),
        ("fetch.connections=true", "should be an integer"),
        ('fetch.verify_tls="no"', "should be a boolean"),
        ("fetch.robots_ttl_s=86401", "should be less than or equal to 86400"),
        ("scope.mode=all", "should be 'hosts', 'domains' or 'web'"),
        ("fetch.allow_addresses=127.0.0.1", "should be a list"),
        ("fetch.allow_addresses=['127.0.0.0/8', 'x']", "should be a list of addresses and networks"),
        ("revisit.failure_weeks=[1, 'x']", "item 1 should be a number"),
        ("revisit.failure_weeks=[]", "should have at least 1 item"),
        ("near_duplicates.bands=7", "a divisor of near_duplicates.permutations"),
        ("crawl.name=a/../b", "should be letters, digits and hyphens"),
        ("crawl.user_agent=my bot", "should be a product token"),
        ("crawl.contact=call me", "should be a web address or a mail address"),
        ('crawl.contact="a@b.org\\r\\nX-Y: z"', "should be a web address or a mail address"),
        ('crawl.operator="a\\nb"', "should be one line"),
        ("filters.deny_patterns=['(']", "should be regular expressions (RE2)"),
        ("filters.deny_patterns=['(?=x)']", "should be regular expressions (RE2)"),
        ("filters.ports=[22]", "never asked are 0, 1, 7, 9"),
        ("filters.ports=[0]", "item 0 should be greater than or equal to 1"),
        ("filters.ports=[65536]", "item 0 should be less than or equal to 65535"),
        ("filters.ports=8080", "should be a list"),
        ("fetch.max_connection_share=0", "should be greater than 0"),
        ("filters.block_lists=['/nonexistent']", "should be files that exist"),
        ("fetch.host_map=/nonexistent", "should be a file that exists"),
        ("spark.driver_memory=lots", "should be a size"),
        ("fetch=1", "must be section.key=value"),
        ("fetch.delay_s", "must be section.key=value"),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_allowed(override: str, said: str) -> None:
    text = refusal(override)
    assert said in text
    assert f"--set {override}" in text


def test_a_value_cannot_smuggle_in_another_key() -> None:
    assert 'connections = "5\\nx = 2"' in refusal("fetch.connections=5\nx = 2")


def test_all_faults_are_said_at_once() -> None:
    assert len(refusal("fetch.delay_s=-1", "round.max_urls=0", "scope.mode=x").splitlines()) == 3
    assert len(refusal("crawl.name=a b", "near_duplicates.bands=7").splitlines()) == 2
    assert len(refusal("fetch.a=1", "fetch.b=1").splitlines()) == 2


def test_the_environment_is_read_by_its_own_names_only() -> None:
    quiet = {"ORBWEAVER_JARS": "x", "ORBWEAVER_FAULT": "y", "FETCH__DELAY_S": "9", "orbweaver_fetch__delay_s": "9"}
    assert load_settings(environ=quiet) == Settings()
    named = load_settings(environ={"ORBWEAVER_NEAR_DUPLICATES__MIN_WORDS": "9"})
    assert named.near_duplicates.min_words == 9
    assert "ORBWEAVER_FETCH__DELAY" in refusal(environ={"ORBWEAVER_FETCH__DELAY": "9"})


@pytest.mark.parametrize("name", sorted(types()))
def test_every_setting_has_its_variable(name: str) -> None:
    variable = f"ORBWEAVER_{name.replace('.', '__').upper()}"
    assert in_force(environ={variable: "x"})[name].source == variable
    one_underscore = variable.replace("__", "_")
    assert f"{one_underscore}: there is no such variable; did you mean {variable}?" in refusal(
        environ={one_underscore: "x"}
    )


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("ORBWEAVER_FETCH_DELAY_S", "did you mean ORBWEAVER_FETCH__DELAY_S?"),
        ("ORBWEAVER_FETCH__DELAY", "did you mean fetch.delay_s?"),
        ("ORBWEAVER_FETCH___DELAY_S", "did you mean fetch.delay_s?"),
        ("ORBWEAVER_FETCH_DELAY", "did you mean ORBWEAVER_FETCH__DELAY_S?"),
        ("ORBWEAVER_fetch__delay_s", "did you mean ORBWEAVER_FETCH__DELAY_S?"),
        ("ORBWEAVER_CONTACT", "did you mean ORBWEAVER_CRAWL__CONTACT?"),
        ("ORBWEAVER_LAKES", "did you mean ORBWEAVER_LAKE?"),
        ("ORBWEAVER_DEBUGG", "did you mean ORBWEAVER_DEBUG?"),
        ("ORBWEAVER_", "settings are ORBWEAVER_SECTION__KEY"),
        ("ORBWEAVER_XYZZY", "settings are ORBWEAVER_SECTION__KEY"),
    ],
)
def test_a_variable_that_is_none_is_refused_with_the_one_meant(variable: str, said: str) -> None:
    text = refusal(environ={variable: "2"})
    assert variable in text
    assert said in text


def test_variables_that_are_no_settings_are_left_alone() -> None:
    ours = dict.fromkeys(("LAKE", "DEBUG", "JARS", "FAULT", "FAULT_ONCE", "BASE_PYTHON"), "x")
    service = dict.fromkeys(
        ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR"), "x"
    )  # of a Kubernetes service that has our name
    others = {f"ORBWEAVER_{name}": value for name, value in {**ours, **service}.items()}
    assert load_settings(environ=others) == Settings()


def test_all_unknown_variables_are_said_at_once() -> None:
    assert len(refusal(environ={"ORBWEAVER_FETCH_DELAY_S": "1", "ORBWEAVER_A": "1", "HOME": "x"}).splitlines()) == 2


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    broken, flat = tmp_path / "broken.toml", tmp_path / "flat.toml"
    broken.write_text("[fetch\n")
    flat.write_text("delay_s = 2\n")
    assert f"{broken}: not TOML" in refusal(files=(broken,))
    assert f"({flat}): must stand in a section; did you mean fetch.delay_s?" in refusal(files=(flat,))
    assert "No such file" in refusal(files=(tmp_path / "none.toml",))
    assert "there are cluster, laptop, strict" in refusal(files=("strickt",))


def test_strict_is_stricter() -> None:
    strict = load_settings(["strict"], environ={}).fetch
    assert (strict.delay_s, strict.delay_factor, strict.address_delay_share) == (5.0, 10.0, 1.0)


def test_a_wheel_brings_its_settings_files() -> None:
    assert {"default.toml", "log4j2.properties"} <= {path.name for path in conf_folder().iterdir()}


def test_settings_travel_to_executors() -> None:
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.booleans() | st.floats(allow_nan=False),
        st.lists,
        max_leaves=5,
    )
)
def test_a_value_survives_its_own_text(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def test_settings_survive_their_own_text(tmp_path: Path) -> None:
    file = tmp_path / "effective.toml"
    settings = load_settings(
        ["strict"], ["crawl.operator=Ünïted 'Bots' \"Ltd\"", "filters.deny_patterns=['a\\.b']"], {}
    )
    file.write_text(settings_toml(settings), encoding="utf-8")
    assert load_settings([file], environ={}) == settings


def test_the_hash_changes_with_the_settings_only() -> None:
    changed = replace(Settings(), crawl=CrawlSettings(name="OTHER"))
    assert settings_hash(Settings()) == settings_hash(load_settings(environ={})) != settings_hash(changed)
    assert len(settings_hash(changed)) == 16
