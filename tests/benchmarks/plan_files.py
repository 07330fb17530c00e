"""Plans made by hand, for the fetch stage without Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crawler import schemas
from crawler.page.url import host_key, host_port, registered_domain, url_key
from crawler.records import PartitionTask

NOT_IN_FILES = {"round", "partition"}  # Delta keeps partition columns in folder names


def write_plan(urls: Sequence[str], lake: Path, time_limit_s: float = 3_600.0) -> PartitionTask:
    """The task of one partition with these URLs, all new, their plan written into the lake."""
    columns = tuple(column for column in schemas.PLANS.columns if column.name not in NOT_IN_FILES)
    positions: Counter[str] = Counter()
    rows = []
    for url in sorted(urls, key=lambda url: urlsplit(url).netloc):
        host = urlsplit(url).netloc
        rows.append(
            {
                "url_key": url_key(url, host), "url": url, "host": host, "depth": 0, "tier": 0, "failures": 0,
                "visits": 0, "changes": 0,
                "slot": 0, "kind": "url", "rows": 1, "position": positions[host], "gap_factor": 1,
                "source": "seed", "status": "unfetched",
            }
        )  # fmt: skip
        positions[host] += 1
    lake.mkdir(parents=True, exist_ok=True)
    path = lake / "plan.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schemas.arrow_schema(columns)), path, compression="zstd")
    domains = {host_key(registered_domain(host)) for host in positions}
    scope = np.sort(np.array(list(domains), "<i8")).tobytes()
    ports = np.sort(np.array([host_key(host) for host in positions if host_port(host)], "<i8")).tobytes()
    return PartitionTask(
        lake=str(lake), round=1, partition=0, segment_folder="crawl-data/BENCH/segments/1", plan_files=(path.name,),
        deadline_at=time.time() + time_limit_s, scope=scope, ports=ports,
        started14=time.strftime("%Y%m%d%H%M%S", time.gmtime()),
    )  # fmt: skip
