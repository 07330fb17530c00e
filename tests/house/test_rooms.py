"""Page knows nothing; fetch does not know Spark; transforms touch nothing; tables decide nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.sources import ROOT, imports, modules

MAY_IMPORT = {
    "crawler": (),
    "crawler.class_archive": ("crawler.jars", "crawler.java"),
    "crawler.columns": (),
    "crawler.file_schemas": ("crawler.columns",),
    "crawler.faults": (),
    "crawler.jars": (),
    "crawler.java": (),
    "crawler.processes": (),
    "crawler.records": (),
    "crawler.schemas": ("crawler.columns", "crawler.file_schemas"),
    "crawler.settings": (),
    "crawler.settings_files": ("crawler.settings", "crawler.settings_rules", "crawler.settings_text"),
    "crawler.settings_rules": ("crawler.page", "crawler.settings"),
    "crawler.settings_text": ("crawler.settings",),
    "crawler.worker_daemon": (),
    "crawler.storage": ("crawler.storage_local", "crawler.storage_s3"),
    "crawler.storage_local": ("crawler.storage",),
    "crawler.storage_s3": ("crawler.storage", "crawler.storage_s3_uploads"),
    "crawler.storage_s3_uploads": ("crawler.storage",),
    "crawler.page": (),
    "crawler.fetch": (
        "crawler",
        "crawler.faults",
        "crawler.page",
        "crawler.processes",
        "crawler.records",
        "crawler.settings",
        "crawler.schemas",
        "crawler.storage",
    ),
    "crawler.transforms": ("crawler.records", "crawler.schemas", "crawler.settings"),
    "crawler.tables": (
        *("crawler", "crawler.faults", "crawler.processes", "crawler.records", "crawler.schemas", "crawler.settings"),
        "crawler.storage",
    ),
    "crawler.spark": (
        *("crawler.fetch", "crawler.page", "crawler.records", "crawler.schemas"),
        *("crawler.class_archive", "crawler.jars", "crawler.java"),
        *("crawler.settings", "crawler.settings_files", "crawler.storage"),
    ),
}
"""Each room or module below `crawler`, and which others it may import; itself always. `jobs` may import all."""

MUST_NOT_IMPORT = {
    "crawler.page": ("pyspark", "delta", "deltalake", "pydantic", "requests", "obstore", "socket", "asyncio", "random"),
    "crawler.fetch": ("pyspark", "delta", "deltalake", "pydantic", "pandas"),
    "crawler.transforms": (
        "requests",
        "obstore",
        "deltalake",
        "os",
        "pathlib",
        "socket",
        "subprocess",
        "time",
        "random",
    ),
    "crawler.tables": ("requests", "httptools"),
}

KNOWS_SPARK = ("crawler.spark", "crawler.worker_daemon", "crawler.transforms", "crawler.tables")


def room(module: str) -> str:
    """`crawler.page` of `crawler.page.url`."""
    return ".".join(module.split(".")[:2])


CRAWLER = sorted(name for name in modules() if name.split(".")[0] == "crawler")


@pytest.mark.parametrize("module", CRAWLER)
def test_a_room_imports_only_what_its_row_allows(module: str) -> None:
    assert room(module) in MAY_IMPORT, f"{room(module)} is new: say in MAY_IMPORT what it may know"
    allowed = {room(module), *MAY_IMPORT[room(module)]}
    ours = {name for name in imports(modules()[module]) if name.split(".")[0] in {"crawler", "jobs", "tests"}}
    assert {name for name in ours if room(name) not in allowed} == set()


@pytest.mark.parametrize("module", CRAWLER)
def test_a_room_keeps_foreign_libraries_out(module: str) -> None:
    libraries = {name.split(".")[0] for name in imports(modules()[module])}
    assert libraries & set(MUST_NOT_IMPORT.get(room(module), ())) == set()
    assert "pyspark" not in libraries or room(module) in KNOWS_SPARK


def test_jobs_do_not_import_tests() -> None:
    jobs = [name for name in modules() if name.split(".")[0] == "jobs" and name != "jobs.demo"]
    assert {
        name: found for name in jobs if (found := [i for i in imports(modules()[name]) if i.startswith("tests")])
    } == {}


def test_an_executor_loads_neither_spark_nor_the_validation_library() -> None:
    names = [name for name in CRAWLER if room(name) in {"crawler.page", "crawler.fetch"}]
    heavy = {"pyspark", "py4j", "delta", "deltalake", "pydantic", "pandas"}
    load = f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]"
    program = f"{load}; print(*sorted({heavy!r} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
