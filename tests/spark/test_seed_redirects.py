"""A seed that redirects: what it leads to is a seed as well, opens its scope, and is admitted once."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crawler import schemas
from crawler.settings import FilterSettings, ScopeSettings, Settings
from crawler.tables.lake import hold_lake
from crawler.tables.ledger import State
from jobs.why import why
from jobs.why_text import why_text
from tests.fetch.little_web import LittleWeb, little_web, page, redirect
from tests.spark.contents import contents, different
from tests.spark.little_crawl import LittleCrawl

HOPS = [f"hop-{number}.test" for number in range(6)]


def moved_web(web: LittleWeb) -> list[str]:
    """Seeds of all kinds that redirect, and the pages behind them. Returns the seeds."""

    def put(host: str, path: str, target: str, status: int = 301) -> str:
        return web.put(host, path, redirect(target.replace("PORT", str(web.port)), status))

    web.put("www.moved.test", "/", page("/about", f"http://elsewhere.test:{web.port}/"))
    web.put("www.moved.test", "/about", page())
    web.put("plain.test", "/home", page("/about"))
    web.put("plain.test", "/about", page(f"http://plain.test:{web.port}/away"))
    web.put("both.test", "/", page())
    for number, host in enumerate(HOPS[:-1]):
        put(host, "/", f"http://{HOPS[number + 1]}:PORT/", 302)
    web.put(HOPS[-1], "/", page("/end"))
    put("plain.test", "/away", "http://elsewhere.test:PORT/")
    return [
        put("moved.test", "/", "http://www.moved.test:PORT/"),
        put("old.test", "/", "http://www.moved.test:PORT/", 308),
        put("plain.test", "/", "/home", 307),
        put("first.test", "/", "http://both.test:PORT/"),
        f"http://both.test:{web.port}/",
        put("denied.test", "/", "http://bad.test:PORT/"),
        put("loop.test", "/", "http://loop2.test:PORT/"),
        put("file.test", "/", "ftp://elsewhere.test:PORT/"),
        f"http://{HOPS[0]}:{web.port}/",
    ]


NAMES = ["www.moved.test", "moved.test", "old.test", "plain.test", "first.test", "both.test", "denied.test", "bad.test",
         "loop.test", "loop2.test", "file.test", "elsewhere.test", *HOPS]  # fmt: skip


def crawl_of(spark: SparkSession, folder: Path, web: LittleWeb, **scope: Any) -> LittleCrawl:
    seeds = moved_web(web)
    web.put("loop2.test", "/", redirect(f"http://loop.test:{web.port}/"))
    settings = replace(Settings(), scope=ScopeSettings(**scope), filters=FilterSettings(deny_domains=("bad.test",)))
    crawl = LittleCrawl(spark, folder, web, NAMES, settings)
    crawl.inject(*seeds)
    return crawl


def led_to(crawl: LittleCrawl) -> dict[str, tuple[str, int, int]]:
    """What seeds redirected to: from where, after how many redirects, and in which round."""
    return {
        row["host"].partition(":")[0]: (row["redirected_from"].split("/")[2].partition(":")[0], row["seed_hops"],
                                        row["round"])
        for row in crawl.rows(schemas.SEEDS)
        if row["redirected_from"]
    }  # fmt: skip


def test_what_a_seed_redirects_to_is_a_seed(spark: SparkSession, tmp_path: Path) -> None:
    with little_web() as web:
        crawl = crawl_of(spark, tmp_path, web, seed_redirects=2)
        crawl.rounds(*[10_000] * 4)
    asked = Counter(crawl.pages())
    assert {"www.moved.test/", "www.moved.test/about", "plain.test/home", "plain.test/about"} <= set(asked)
    assert set(asked.values()) == {1}
    assert not {"elsewhere.test/", "bad.test/"} & set(asked), "only a seed opens a scope, and filters hold for it"
    found = led_to(crawl)
    assert found.pop("www.moved.test")[1:] == (1, 1)
    assert found == {
        "plain.test": ("plain.test", 1, 1), "loop2.test": ("loop.test", 1, 1),
        **{HOPS[number]: (HOPS[number - 1], number, number) for number in (1, 2)},
    }, "both.test was a line of the inbox; the third redirect in a row leads out of the scope"  # fmt: skip
    assert f"{HOPS[2]}/" in asked
    assert f"{HOPS[3]}/" not in asked
    frontier = {row["url"]: row for row in crawl.rows(schemas.FRONTIER)}
    home = frontier[f"http://www.moved.test:{web.port}/"]
    assert (home["depth"], home["tier"], home["source"], home["seed_hops"]) == (0, 0, "redirect", 1)
    assert frontier[f"http://www.moved.test:{web.port}/about"]["depth"] == 1
    keys = Counter(row["url_key"] for row in crawl.rows(schemas.URL_CHECKSUMS))
    assert set(keys.values()) == {1}
    assert set(keys) == {row["url_key"] for row in frontier.values()}
    facts = why(crawl.store, crawl.in_force, home["url"], time.time())
    told = why_text(facts)
    assert "redirects here, 1 redirect from the inbox" in told
    assert "known     since round 1: redirect on http://" in told
    assert facts["refused"] is None


def test_a_second_visit_admits_nothing_again(spark: SparkSession, tmp_path: Path) -> None:
    with little_web() as web:
        crawl = crawl_of(spark, tmp_path, web)
        first, second = crawl.rounds(10_000, 10_000)
        seeds = len(crawl.rows(schemas.SEEDS))
        with hold_lake(spark, crawl.store, 2) as lake:
            crawl.round(lake, at=first.now + 15 * 86_400)
        assert Counter(crawl.pages())["moved.test/"] == 2
        assert [row for row in led_to(crawl).values() if row[2] > second.round and row[1] < 3] == []
        keys = Counter(row["url_key"] for row in crawl.rows(schemas.URL_CHECKSUMS))
        assert set(keys.values()) == {1}
        assert len(crawl.rows(schemas.SEEDS)) == seeds + 1, "the next hop of the chain"


def test_it_can_be_switched_off(spark: SparkSession, tmp_path: Path) -> None:
    with little_web() as web:
        crawl = crawl_of(spark, tmp_path, web, seed_redirects=0, mode="hosts")
        crawl.rounds(10_000, 10_000)
    asked = set(crawl.pages())
    assert led_to(crawl) == {}
    assert "plain.test/home" in asked
    assert not {f"{HOPS[1]}/", "loop2.test/", "www.moved.test/"} & asked


class KilledError(BaseException):
    """Stands for the end of a driver."""


def test_a_commit_that_is_killed_again_and_again_admits_them_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = ["commit.segments", "commit.seeds", "commit.url_checksums"]

    def die(name: str) -> None:
        if deaths and name == deaths[0]:
            raise KilledError(deaths.pop(0))

    with little_web() as web:
        whole, killed = (crawl_of(spark, tmp_path / name, web) for name in ("whole", "killed"))
        with hold_lake(spark, whole.store, 2) as lake:
            whole.round(lake, at=1.9e9)
        monkeypatch.setattr("crawler.tables.lake.fault", die)
        with hold_lake(spark, killed.store, 2) as lake:
            while deaths:
                with pytest.raises(KilledError):
                    killed.round(lake, at=1.9e9)
            assert lake.ledger.newest(1)[-1].state is State.FETCHED
            assert killed.round(lake, at=1.9e9).round == 1
    found = different(contents(whole.store), contents(killed.store))
    assert {name: rows for name, rows in found.items() if name.startswith(("seeds", "url_", "frontier"))} == {}
    assert len(led_to(killed)) == 4
