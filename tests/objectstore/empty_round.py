"""`python -m tests.objectstore.empty_round`: seconds of a round in which nothing is due, warm, on three lakes."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from crawler.settings import LakeSettings, Settings, SparkSettings
from crawler.spark import open_session
from crawler.storage import Store
from crawler.tables.lake import hold_lake
from jobs.crawl_round import crawl_round
from tests.objectstore import fault_proxy
from tests.objectstore.fault_proxy import Fault, FaultProxy, no_faults
from tests.objectstore.server import BUCKET, ObjectServer

SETTINGS = Settings(spark=SparkSettings(master="local[2]"), lake=LakeSettings(buckets=4))
ROUNDS = 6
FAR_S = 0.02  # about what S3 takes for a small request


def main() -> None:
    """Print a line a lake: local, on a server next door, on one that takes `FAR_S` for every answer."""
    fault_proxy.LATE_S = FAR_S
    with (
        tempfile.TemporaryDirectory() as folder,
        ObjectServer(Path(folder, "server"), secrets.token_hex(8), secrets.token_hex(16)) as server,
        FaultProxy(server.port, no_faults) as proxy,
    ):
        os.environ.update(server.environment() | {"AWS_ENDPOINT_URL": proxy.endpoint})
        spark = open_session(SETTINGS, "empty-round")
        measure(spark, str(Path(folder, "lake")), proxy)
        measure(spark, f"s3://{BUCKET}/near", proxy)
        proxy.decide = lambda _: Fault.LATE
        measure(spark, f"s3://{BUCKET}/far", proxy)
        spark.stop()


def measure(spark: SparkSession, uri: str, proxy: FaultProxy) -> None:
    """Print the seconds of the first round and of the best later one, and the requests of the last."""
    taken, before = [], 0
    with hold_lake(spark, Store.open(uri), SETTINGS.lake.buckets) as lake:
        for _ in range(ROUNDS):
            before, start = len(proxy.asked), time.perf_counter()
            crawl_round(lake, SETTINGS, time.time())
            taken.append(time.perf_counter() - start)
    asked = len(proxy.asked) - before
    sys.stdout.write(f"{uri}: first {taken[0]:.2f} s, best of the rest {min(taken[1:]):.2f} s, {asked} requests\n")


if __name__ == "__main__":
    main()
