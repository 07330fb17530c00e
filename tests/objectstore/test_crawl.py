"""A whole crawl by the command, on S3: the same tables as on local disks, also where the server stumbles."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from crawler import schemas
from crawler.storage import Store
from crawler.tables.manifest import make_lake
from crawler.tables.reader import Reader
from tests.objectstore.commands import Orbweaver, settings_of, tiny_web
from tests.objectstore.fault_proxy import Fault, FaultProxy, random_faults
from tests.objectstore.server import BUCKET, ObjectServer
from tests.spark.contents import contents, different
from tests.web.demo import DemoWeb

pytestmark = [pytest.mark.soak, pytest.mark.slow, pytest.mark.jvm]

FIRST, SECOND = "2027-01-15T06:05:00", "2027-01-15T06:35:00"
FAULTS = (Fault.ERROR_500, Fault.ERROR_503, Fault.LATE, Fault.UNHEARD)
SHARE, SEED = 0.1, 9


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with tiny_web() as running:
        yield running


def two_rounds(lake: str, web: DemoWeb, folder: Path) -> dict[str, list[str]]:
    """What the tables hold after two rounds at fixed times."""
    folder.mkdir(parents=True)
    store, orbweaver = Store.open(lake), Orbweaver(lake, settings_of(web), folder)
    make_lake(store, 2)
    store.put_new("inbox/seeds.urls", "\n".join(web.seeds).encode())
    for at in (FIRST, SECOND):
        orbweaver("round", "--at", at)
    return contents(store)


@pytest.fixture(scope="module")
def expected(web: DemoWeb, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The same two rounds on a local lake."""
    folder = tmp_path_factory.mktemp("local")
    return two_rounds(str(folder / "lake"), web, folder / "work")


def test_two_rounds_on_s3_leave_the_tables_of_a_local_lake(
    as_client: ObjectServer, web: DemoWeb, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    found = two_rounds(f"s3a://{BUCKET}/same", web, tmp_path / "work")
    assert len(found["captures"]) >= 20
    assert different(found, expected) == {}


def test_two_rounds_commit_though_the_server_stumbles(
    proxy: FaultProxy, web: DemoWeb, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    proxy.decide = random_faults(SEED, SHARE, FAULTS)
    found = two_rounds(f"s3://{BUCKET}/stumbles", web, tmp_path / "work")
    print({fault.name: count for fault, count in proxy.given.items()}, "of", len(proxy.asked), "requests")
    assert proxy.given.keys() == set(FAULTS)
    assert proxy.given.total() >= 10
    assert different(found, expected) == {}


@pytest.mark.usefixtures("proxy")  # which makes creates atomic, as the doctor wants them
def test_every_command_works_and_the_secret_is_nowhere(as_client: ObjectServer, web: DemoWeb, tmp_path: Path) -> None:
    lake = f"s3://{BUCKET}/commands/lake"
    orbweaver = Orbweaver(lake, settings_of(web), tmp_path)
    crawled = json.loads(orbweaver("crawl", str(web.seeds_file), "--rounds", "2", "--json").out)
    assert [one["state"] for one in crawled["rounds"]] == ["COMMITTED", "COMMITTED"]
    assert orbweaver("show", web.seeds[0], "--text").out.strip()
    assert json.loads(orbweaver("why", web.seeds[0], "--json").out)["known"]
    assert json.loads(orbweaver("report", "--json").out)["round"] == 2
    orbweaver("doctor", "--json")
    orbweaver("config", "show", "--json")
    orbweaver("inject", "http://not-there.meadow.test/")
    orbweaver("round", "--json")
    before = json.loads(orbweaver("status", "--json").out)
    orbweaver("maintain", "--json")
    after = json.loads(orbweaver("status", "--json").out)
    assert before["committed"]["round"] == after["committed"]["round"] == 3
    assert before["frontier"] == after["frontier"]
    _tables_open_from_outside(as_client, lake)
    _nowhere(as_client, orbweaver, tmp_path)


def _tables_open_from_outside(server: ObjectServer, lake: str) -> None:
    """deltalake as anybody would use it, with nothing of ours but the versions."""
    newest = Reader.open(Store.open(lake)).committed()
    assert newest is not None
    options = {"allow_http": "true", **server.environment()}
    for table in schemas.TABLES:
        opened = DeltaTable(f"{lake}/tables/{table.name}", newest["versions"].get(table.name), storage_options=options)
        assert opened.file_uris(), table.name
        assert opened.to_pyarrow_dataset().schema.names == opened.schema().to_arrow().names


def _nowhere(server: ObjectServer, orbweaver: Orbweaver, folder: Path) -> None:
    """The secret stands in no object, no message and no file that the commands left."""
    secret = os.environ["AWS_SECRET_ACCESS_KEY"]
    objects = [path for path in server.bucket.rglob("*") if path.is_file()]
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert len(objects) > 100
    assert [str(path) for path in (*objects, *left, server.log) if secret.encode() in path.read_bytes()] == []
    assert [said for said in orbweaver.all_said if secret in said] == []
