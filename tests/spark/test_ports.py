"""Which ports a crawl asks: those that its seeds and settings opened, and what is said of the others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.settings import CrawlSettings, FetchSettings, RoundSettings, ScopeSettings, Settings
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from crawler.tables.reader import Reader
from jobs.crawl_round import crawl_round
from jobs.why import why
from tests.fetch.little_web import LittleWeb, little_web, page

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


def test_a_port_is_asked_where_a_seed_opened_it_and_nowhere_else(spark: SparkSession, tmp_path: Path) -> None:
    with little_web() as one, little_web() as other:
        names = ("a.test", "www.a.test", "b.test")
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
        links = {name: one.put(name, "/x", page()) for name in names}
        closed = other.put("a.test", "/y", page())
        home = one.put("a.test", "/", page(*links.values(), closed, "http://a.test:22/"))
        settings = Settings(
            crawl=CrawlSettings(name="PORTS"),
            fetch=FetchSettings(delay_s=0.0, only_allowed=True, allow_addresses=("127.0.0.0/8",), host_map=str(hosts)),
            round=RoundSettings(time_limit_s=30.0, partitions=1),
            scope=ScopeSettings(mode="web"),
        )
        store = Store.open(str(tmp_path / "lake"))
        with hold_lake(spark, store, 2) as lake:
            store.put_new("inbox/1.urls", f"{home}\nhttp://a.test:25/\n".encode())
            crawl_round(lake, settings)
            crawl_round(lake, settings)
            assert paths(one) == {"a.test/robots.txt", "a.test/", "a.test/x"}
            assert paths(other) == set()
            assert (
                why(store, settings, closed, time.time())["refused"]
                == why(store, settings, links["b.test"], time.time())["refused"]
                == "port"
            )
            assert why(store, settings, links["a.test"], time.time())["refused"] is None
            assert verdicts(store) == {home: "admitted", "http://a.test:25/": "port"}
            assert why(store, settings, home, time.time())["captures"][0]["links_refused"] == {"port": 4}

            store.put_new("inbox/2.urls", f"{closed}\n".encode())
            crawl_round(lake, settings)
            assert paths(other) == {"a.test/robots.txt", "a.test/y"}
            assert why(store, settings, closed, time.time())["refused"] is None


def paths(web: LittleWeb) -> set[str]:
    return {f"{one.host}{one.path}" for one in web.log}


def verdicts(store: Store) -> dict[str, str]:
    reader = Reader.open(store)
    newest = reader.committed()
    assert newest is not None
    rows = reader.rows(schemas.SEEDS, newest["versions"], ("line", "verdict")).to_pylist()
    return {row["line"]: row["verdict"] for row in rows}
