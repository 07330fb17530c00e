"""Endless subdomains: a domain that answers for every name takes nothing from those who do not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crawler import schemas
from crawler.settings import FetchSettings, FilterSettings, RoundSettings, ScopeSettings, Settings
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow, State
from crawler.tables.reader import Reader
from jobs.crawl_round import crawl_round
from jobs.stages.open_round import open_round
from jobs.stages.plan import plan_round
from tests.fetch.little_web import LittleWeb, little_web, page
from tests.spark.invariants import Committed
from tests.spark.rows import NOW, at, frame, host, visit

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

NAMES, URLS_A_NAME = 20_000, 5
HONEST, PAGES = 10, 180
ROUND = RoundSettings(max_urls=2_000, max_urls_per_host=200, max_domain_share=0.1, partitions=4)
SHARE = 200


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    with hold_lake(spark, Store.open(str(tmp_path / "lake")), buckets=1) as lake:
        yield lake


def wild_names() -> list[str]:
    return [f"w{number}.wild.test" for number in range(NAMES)]


def fill(lake: Lake, *, asked_before: bool) -> None:
    """A calendar in which all that is honest is due a minute after all that is not."""
    spark = lake.spark
    honest = [
        visit(f"http://honest{site}.test/{number}", due_at=None) for site in range(HONEST) for number in range(PAGES)
    ]
    model = frame(spark, schemas.FRONTIER.columns, [visit("http://w0.wild.test/0")])
    wild = (
        spark.range(NAMES * URLS_A_NAME)
        .select(F.concat(F.lit("w"), F.floor(F.col("id") / URLS_A_NAME), F.lit(".wild.test")).alias("host"), "id")
        .withColumn("url", F.concat(F.lit("http://"), "host", F.lit("/"), "id"))
        .withColumn("url_key", F.xxhash64("url"))
        .drop("id")
        .crossJoin(model.drop("host", "url", "url_key"))
        .withColumn("due_at", F.timestamp_micros(F.lit(int((NOW - 60) * 1e6))))
    )
    late = frame(spark, schemas.FRONTIER.columns, honest).withColumn(
        "due_at", F.timestamp_micros(F.lit(int(NOW * 1e6)))
    )
    append(lake, schemas.FRONTIER, late.unionByName(wild))
    names = [f"honest{site}.test" for site in range(HONEST)]
    known = [host(name, addresses=good(f"127.9.1.{site}"), last_request_at=1.0) for site, name in enumerate(names)]
    if asked_before:
        known += [host(name, addresses=good("127.9.0.1"), last_request_at=1.0) for name in wild_names()]
    append(lake, schemas.HOSTS, frame(spark, tuple(c for c in schemas.HOSTS.columns if c.name != "bucket"), known))
    commit(lake)


def good(address: str) -> list[dict[str, object]]:
    return [{"address": address, "expires_at": time.time() + 3_600}]


def commit(lake: Lake) -> None:
    """A round before the first commits what was filled in: rounds refuse what nobody committed."""
    lake.ledger.record(RoundRow(0, State.COMMITTED, NOW - 3_600, "", lake.versions()))


def append(lake: Lake, table: schemas.Table, rows: DataFrame) -> None:
    lake.append(table, rows, lake.write(f"fill/{table.name}", 0))


@pytest.mark.parametrize("asked_before", [False, True], ids=["new names", "names that were asked before"])
def test_honest_sites_get_what_they_would_get_alone(lake: Lake, tmp_path: Path, asked_before: bool) -> None:
    fill(lake, asked_before=asked_before)
    (tmp_path / "hosts").write_text("".join(f"127.9.0.1 {name}\n" for name in wild_names()))
    fetch = FetchSettings(only_allowed=True, allow_addresses=("127.9.0.0/16",), host_map=str(tmp_path / "hosts"))
    settings = Settings(fetch=fetch, round=ROUND)
    rnd = open_round(lake, settings, NOW)
    done = plan_round(lake, settings, rnd, rnd.versions)
    rows = Reader.open(lake.store).rows(schemas.PLANS, done.versions).to_pylist()
    planned = Counter(".".join(row["host"].split(".")[-2:]) for row in rows if row["kind"] == "url")
    assert planned == {**{f"honest{site}.test": PAGES for site in range(HONEST)}, "wild.test": SHARE}
    left_out = sum(row["rows"] for row in rows if row["kind"] == "left_out")
    assert left_out == NAMES * URLS_A_NAME - SHARE
    assert done.counts["planned"] + left_out == NAMES * URLS_A_NAME + HONEST * PAGES


def test_a_farm_of_domains_at_one_address_takes_nothing_from_others(lake: Lake, tmp_path: Path) -> None:
    """Four times as many domains as the round has URLs, all due before the honest ones; none was looked up before."""
    farm = [f"farm{number}.test" for number in range(400)]
    honest = [f"honest{number}.test" for number in range(9)]
    rows = [visit(f"http://{name}/", due_at=at(-60)) for name in farm]
    rows += [visit(f"http://{name}/{number}", due_at=at()) for name in honest for number in range(10)]
    append(lake, schemas.FRONTIER, frame(lake.spark, schemas.FRONTIER.columns, rows))
    commit(lake)
    addresses = {**dict.fromkeys(farm, "127.9.0.1"), **{name: f"127.9.1.{n}" for n, name in enumerate(honest)}}
    (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in addresses.items()))
    fetch = FetchSettings(only_allowed=True, allow_addresses=("127.9.0.0/16",), host_map=str(tmp_path / "hosts"))
    settings = Settings(fetch=fetch, round=replace(ROUND, max_urls=100))
    rnd = open_round(lake, settings, NOW)
    done = plan_round(lake, settings, rnd, rnd.versions)
    plan = Reader.open(lake.store).rows(schemas.PLANS, done.versions).to_pylist()
    planned = Counter(row["host"][:4] for row in plan if row["kind"] == "url")
    assert planned == {"hone": 90, "farm": 10}
    assert {name: many for name, many in done.counts.items() if name.startswith("left_out")} == {
        "left_out.address_share": 390
    }


def test_a_round_over_loopback_reaches_every_honest_page(lake: Lake, tmp_path: Path) -> None:
    """Every wildcard page links to names nobody has seen. Ten sites of four pages are crawled beside it."""
    sites = [f"honest{site}.test" for site in range(10)]
    wild = [f"w{number}.wild.test" for number in range(300)]
    with little_web("127.9.0.1") as web:
        seeds = [fill_site(web, name) for name in sites]
        seeds.append(web.put("www.wild.test", "/", page(*(f"http://{name}:{web.port}/" for name in wild))))
        for number, name in enumerate(wild):
            web.put(name, "/", page(*(f"http://{other}:{web.port}/x{number}" for other in wild[number : number + 9])))
        (tmp_path / "hosts").write_text("".join(f"127.9.0.1 {name}\n" for name in (*sites, "www.wild.test", *wild)))
        lake.store.put_new("inbox/seeds.urls", "\n".join(seeds).encode())
        settings = Settings(
            fetch=FetchSettings(
                delay_s=0.0, only_allowed=True, allow_addresses=("127.9.0.0/16",), host_map=str(tmp_path / "hosts")
            ),
            filters=FilterSettings(ports=(web.port,)),
            round=replace(ROUND, max_urls=50, max_new_hosts_per_domain=20, time_limit_s=60.0),
        )
        for _ in range(2):
            crawl_round(lake, settings)
        paths = {name: {path for path in web.paths(name) if path != "/robots.txt"} for name in sites}
        asked = {one.host for one in web.asked() if one.host.endswith(".wild.test")}
    assert paths == {name: {"/", *(f"/{number}" for number in range(4))} for name in sites}
    assert len(asked) == 1 + 10  # the seed, and what ten sites of four pages leave of fifty URLs


def test_what_has_too_many_new_names_goes_back_into_the_line(lake: Lake, tmp_path: Path) -> None:
    """Sixty names are due at once. A page links to more URLs of those that wait, and to names nobody has seen."""
    due = [f"w{number}.wild.test" for number in range(60)]
    unseen = [f"v{number}.wild.test" for number in range(30)]
    with little_web("127.9.0.1") as web:
        home = fill_site(web, "honest.test")
        ports = [f"{name}:{web.port}" for name in (*due, *unseen)]
        web.put("honest.test", "/0", page(*(f"http://{host}/more" for host in ports)))
        (tmp_path / "hosts").write_text("".join(f"127.9.0.1 {name}\n" for name in ("honest.test", *due, *unseen)))
        rows = [visit(f"http://{host}/", due_at=at(-60)) for host in ports[: len(due)]]
        rows.append(visit(f"{home}0", due_at=at(-60)))
        calendar = frame(lake.spark, schemas.FRONTIER.columns, rows)
        append(lake, schemas.FRONTIER, calendar)
        append(lake, schemas.URL_CHECKSUMS, calendar.select("url_key", F.lit(0).alias("round")))
        commit(lake)
        settings = Settings(
            fetch=FetchSettings(
                delay_s=0.0, only_allowed=True, allow_addresses=("127.9.0.0/16",), host_map=str(tmp_path / "hosts")
            ),
            filters=FilterSettings(ports=(web.port,)),
            round=replace(ROUND, max_new_hosts_per_domain=20, time_limit_s=3_600.0),
            scope=ScopeSettings(mode="web"),
        )
        done = crawl_round(lake, settings, NOW)
    assert done.counts["left_out.domain_hosts"] == 40
    assert not list(Committed(lake.store).not_known_once())
    reader = Reader.open(lake.store)
    starts = {
        row["host"]: (row["due_at"].timestamp() - NOW) // 3_600
        for row in reader.rows(schemas.FRONTIER, done.versions).to_pylist()
        if row["url"].endswith(f".test:{web.port}/") and row["visits"] == 0
    }
    assert Counter(starts.values()) == {-1: 20, 1: 20}  # for the next round, and for the one after it
    first = {
        row["host"]: (row["due_at"].timestamp() - NOW) // 3_600
        for row in reader.rows(schemas.FRONTIER, done.versions).to_pylist()
        if row["host"].startswith("v")
    }
    assert Counter(first.values()) == {2: 20, 3: 10}
    horizons = {row["host"]: row["names_horizon_at"] for row in reader.rows(schemas.HOSTS, done.versions).to_pylist()}
    assert horizons["wild.test"] == NOW + 3.5 * 3_600


def fill_site(web: LittleWeb, name: str) -> str:
    for number in range(4):
        web.put(name, f"/{number}", page(text=f"page {number} of {name}"))
    return web.put(name, "/", page(*(f"/{number}" for number in range(4)), text=name))
