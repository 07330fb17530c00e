"""One packed environment, one cluster, one web and one crawl on this machine alone, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.crawls import SMALL, Packed, Place, Rounds, crawl_here, port_for_two_tasks
from tests.cluster.processes import Cluster
from tests.web import DemoWeb


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return Packed.make(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """pytest keeps the folder, and with it the logs, of the last three runs."""
    with Cluster(tmp_path_factory.mktemp("cluster") / "processes") as running:
        yield running


@pytest.fixture(scope="session")
def rounds(tmp_path_factory: pytest.TempPathFactory, packed: Packed) -> Iterator[Rounds]:
    folder = tmp_path_factory.mktemp("here")
    with DemoWeb(scale=SMALL, port=port_for_two_tasks(), log=folder / "requests.jsonl") as web:
        yield crawl_here(folder, web, packed)


@pytest.fixture(scope="session")
def place(cluster: Cluster, packed: Packed, rounds: Rounds) -> Place:
    return Place(cluster, packed, rounds)
