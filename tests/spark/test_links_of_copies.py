"""The same bytes on another host mean other URLs: hosts with equal start pages, and mirrors."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

from pyspark.sql import SparkSession

from crawler import schemas
from tests.fetch.little_web import little_web, page
from tests.spark.little_crawl import LittleCrawl

HOSTS = [f"host-{number:02}.test" for number in range(60)]
LEAVES = [f"leaf-{number:02}" for number in range(20)]


def test_hosts_with_one_start_page_are_crawled_whole(spark: SparkSession, tmp_path: Path) -> None:
    with little_web() as web:
        for host in HOSTS:
            web.put(host, "/", page(*LEAVES, text="Every host of this kind begins like this."))
            for leaf in LEAVES:
                web.put(host, f"/{leaf}", page("./", text=f"{leaf} of {host}"))
        crawl = LittleCrawl(spark, tmp_path, web, HOSTS)
        crawl.inject(*(f"http://{host}:{web.port}/" for host in HOSTS))
        crawl.rounds(10_000, 10_000)
    wanted = {f"{host}/{leaf}" for host in HOSTS for leaf in LEAVES}
    asked = Counter(crawl.pages())
    assert wanted - set(asked) == set()
    assert set(asked.values()) == {1}


def test_the_pages_of_a_mirror_come_last(spark: SparkSession, tmp_path: Path) -> None:
    """Those of the original, whichever of the two it is, fill the second round; what both link to is asked for once."""
    hosts, paths = ["mill.test", "mirror.test"], [f"/{leaf}" for leaf in LEAVES]
    with little_web() as web:
        shared = f"http://mill.test:{web.port}/shared"
        web.put("mill.test", "/shared", page())
        for host in hosts:
            web.put(host, "/", page(*LEAVES, shared))
            for path in paths:
                web.put(host, path, page("./", text=f"The same words on {path}."))
        crawl = LittleCrawl(spark, tmp_path, web, hosts)
        crawl.inject(*(f"http://{host}:{web.port}/" for host in hosts))
        crawl.rounds(2, len(paths) + 1, 10_000)
    homes = {row["host"].partition(":")[0]: row["duplicate_kind"] for row in crawl.rows(schemas.CAPTURES)
             if row["round"] == 1}  # fmt: skip
    assert sorted(homes.values(), key=str) == [None, "payload"]
    original, mirror = sorted(homes, key=lambda host: homes[host] is not None)
    second, third = crawl.pages()[2:23], crawl.pages()[23:]
    assert sorted(second) == sorted(["mill.test/shared", *(f"{original}{path}" for path in paths)])
    assert sorted(third) == sorted(f"{mirror}{path}" for path in paths)
    kinds = Counter(row["duplicate_kind"] for row in crawl.rows(schemas.CAPTURES) if row["round"] == 3)
    assert kinds == {"payload": len(paths)}


def test_a_server_that_answers_every_path_with_its_start_page_is_soon_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its relative links lead to ever longer paths, two hosts of the kind to twice as many."""
    folders, hosts = ["about", "news", "shop"], ["spa.test", "spa-too.test"]
    paths = ["".join(f"/{name}" for name in names) for depth in range(1, 5) for names in product(folders, repeat=depth)]
    with little_web() as web:
        for host in hosts:
            for path in ["", *paths]:
                web.put(host, f"{path}/", page(*(f"{folder}/" for folder in folders), text="We are a new site."))
        crawl = LittleCrawl(spark, tmp_path, web, hosts)
        crawl.inject(*(f"http://{host}:{web.port}/" for host in hosts))
        crawl.rounds(*[10_000] * 4)
    assert sorted(crawl.pages()) == sorted(f"{host}{path}/" for host in hosts for path in ["", *paths[:3]])
