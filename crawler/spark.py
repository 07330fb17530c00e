"""The one bridge to Spark: the session, and the page and fetch rooms run inside Spark tasks.

Spark assumes that tasks are pure. The fetch stage is not: it has one action, no lineage behind it, nothing lazy after
it, and it refuses to start where a second copy of a task could run on purpose.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from crawler import schemas
from crawler.class_archive import using_archive
from crawler.jars import jar_paths
from crawler.java import find_java, option
from crawler.page.filters import UrlFilters
from crawler.page.url import Refusal, UrlPolicy, private_domain, registered_domain
from crawler.records import KnownAddress, PartitionTask, SealedSegment
from crawler.settings import Settings
from crawler.storage import Store

JUDGED = tuple(column for column in schemas.SEEDS.columns if column.name != "round")
MAX_LINE_CHARS = 4_096
LINES_A_BATCH = 10_000
WORTH_COMPILING = 250_000  # rows: set between two measured rounds, one of a few thousand links and one of 500,000
_LAST_WORDS_S = 0.2
LOOKUP_SHARE = 0.05  # of a round's time, for names before it begins; the rest are looked up when their turn comes


class UnsafeSession(Exception):
    """The Spark session would ask servers twice."""


def open_session(
    settings: Settings, name: str = "orbweaver", *, with_delta: bool = False, java_options: str = ""
) -> SparkSession:
    """The running session, or an embedded one; under spark-submit its master, memory and jars stand.

    A round needs none of Delta's own Spark code, which every query would pass through; people's SQL does.
    `java_options` are for an embedded Java.
    """
    builder = SparkSession.builder.appName(name)
    conf = session_conf(settings, java_options)
    conf |= _delta_conf(conf.get("spark.master", "")) if with_delta else {}
    for key, value in conf.items():
        builder = builder.config(key, value)
    _start_java(conf)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _start_java(conf: Mapping[str, str]) -> None:
    """Start the embedded Java, where none runs, with its messages passed on but for one line: Spark's launcher asks for
    a module that Java calls incubating, and Java says so to whoever starts it."""
    if is_submitted() or SparkContext._gateway is not None:
        return
    read_end, write_end = os.pipe()
    threading.Thread(target=_pass_on, args=(read_end,), daemon=True, name="java-messages").start()
    asked = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    try:
        gateway = launch_gateway(asked, {"stderr": write_end})  # type: ignore[no-untyped-call]  # pyspark's own
    except Exception:
        time.sleep(_LAST_WORDS_S)  # what Java said of it is on its way
        raise
    finally:
        os.close(write_end)
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(read_end: int) -> None:
    with os.fdopen(read_end, "rb") as messages:
        for line in messages:
            if not line.startswith(b"WARNING: Using incubator modules:"):
                os.write(2, line)


def session_conf(settings: Settings, java_options: str = "") -> dict[str, str]:
    """Spark's configuration: what every crawl needs, and where no cluster is given, what an embedded one needs."""
    conf = dict(_ALWAYS)
    if is_submitted():
        return conf
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    java = find_java(os.environ)
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.home)
        java_options = f"{using_archive(java)} {java_options}"
    from crawler.settings_files import conf_folder  # late: executors need no validation library

    cores = os.cpu_count() or 1
    logging = option(f"-Dlog4j2.configurationFile={(conf_folder() / 'log4j2.properties').absolute().as_uri()}")
    conf |= dict(_EMBEDDED)
    conf |= {
        "spark.driver.extraJavaOptions": f"{_QUICK_START} {logging} {java_options}",
        "spark.master": settings.spark.master or f"local[{cores}]",
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions or cores),
    }
    return conf


def _delta_conf(master: str) -> dict[str, str]:
    """What Delta's own Spark code needs. One Java gets the jars on its class path: `spark.jars`, by which executors on
    other machines get them, knows no folder with a comma, `#` or a wildcard in its name."""
    jars = {} if is_submitted() else {"spark.jars": ",".join(jar_paths())}
    if master.startswith("local"):
        jars = {"spark.driver.extraClassPath": os.pathsep.join(jar_paths())}
    return jars | {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def is_submitted() -> bool:
    """True under spark-submit, which starts Python with a gateway already open."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def suit_to(spark: SparkSession, rows: int) -> None:
    """Let Spark compile the expressions of the next queries when they move many rows, and interpret them when few."""
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if rows >= WORTH_COMPILING else "NO_CODEGEN")


def fetch_partitions(spark: SparkSession, tasks: Sequence[PartitionTask], settings: Settings) -> list[SealedSegment]:
    """Run the fetch stage: one Spark task a partition, one action, only manifests come back."""
    refuse_speculation(spark)
    if not tasks:
        return []
    visit = partial(_fetch_one, settings=settings)
    manifests = spark.sparkContext.parallelize(list(tasks), len(tasks)).map(visit).collect()
    return [segment for manifest in manifests for segment in manifest]


def resolve_hosts(spark: SparkSession, hosts: Sequence[str], settings: Settings) -> dict[str, tuple[KnownAddress, ...]]:
    """The addresses of those hosts that have one we may connect to, as far as name servers give them in a small part
    of the round's time; the executors ask."""
    if not hosts:
        return {}
    tasks = min(len(hosts), spark.sparkContext.defaultParallelism)
    look_up = partial(_look_up, settings=settings)
    return dict(spark.sparkContext.parallelize(list(hosts), tasks).mapPartitions(look_up).collect())


def with_owners(hosts: DataFrame) -> DataFrame:
    """Hosts (`name`, `domain`, `is_new`) with the `domain` where it was null, and with the `owner` of new ones: the
    registered domain by the whole public suffix list."""
    schema = StructType([*hosts.schema.fields, StructField("owner", StringType())])
    return hosts.mapInArrow(_with_owners, schema)


def _with_owners(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        names, known, are_new = (batch[column].to_pylist() for column in ("name", "domain", "is_new"))
        domains = [domain or registered_domain(str(name)) for name, domain in zip(names, known, strict=True)]
        owners = [private_domain(str(name)) if is_new else None for name, is_new in zip(names, are_new, strict=True)]
        named = batch.set_column(batch.schema.names.index("domain"), "domain", pa.array(domains, pa.string()))
        yield named.append_column("owner", pa.array(owners, pa.string()))


def refuse_speculation(spark: SparkSession) -> None:
    """Raise where Spark may start a second copy of a running fetch task."""
    if spark.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise UnsafeSession(
            "spark.speculation is true: Spark would run fetch tasks twice and ask every server twice. "
            "Set spark.speculation=false for this application."
        )


def is_lost_result(error: Exception) -> bool:
    """True when an executor is gone and what it had computed with it: the round's inputs are whole, so ask again."""
    return "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND" in str(error)


def _fetch_one(task: PartitionTask, settings: Settings) -> list[SealedSegment]:
    from crawler.fetch.partition import fetch_partition  # only executors need the fetch room

    return fetch_partition(task, settings)


def _look_up(hosts: Iterable[str], settings: Settings) -> Iterable[tuple[str, tuple[KnownAddress, ...]]]:
    from crawler.fetch.resolver import resolve_all, resolver_for

    within_s = LOOKUP_SHARE * settings.round.time_limit_s
    return asyncio.run(resolve_all(resolver_for(settings.fetch), hosts, within_s)).items()


def judge_inbox(spark: SparkSession, store: Store, paths: Sequence[str], settings: Settings) -> DataFrame:
    """The lines of the inbox files, each with its canonical URL, or with the reason of its refusal as `verdict`."""
    schema = schemas.ddl(JUDGED)
    judge = partial(_judge_files, store=store, settings=settings)
    return spark.createDataFrame([(path,) for path in paths], "path string").mapInArrow(judge, schema)


def _judge_files(batches: Iterable[pa.RecordBatch], store: Store, settings: Settings) -> Iterator[pa.RecordBatch]:
    from crawler.fetch.policies import url_filters, url_policy

    policy, filters = url_policy(settings), url_filters(settings)
    schema = schemas.arrow_schema(JUDGED)
    for path in (str(path) for batch in batches for path in batch["path"].to_pylist()):
        lines = seed_lines(store, path)
        while rows := [_judge(line, path, policy, filters) for line in islice(lines, LINES_A_BATCH)]:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def seed_lines(store: Store, path: str) -> Iterator[str]:
    """The lines of an inbox file that are neither empty nor comments."""
    with io.TextIOWrapper(store.open_input(path), encoding="utf-8", errors="replace") as file:  # type: ignore[type-var]  # Arrow's files are binary files
        yield from (line for raw in file if (line := raw.strip()) and not line.startswith("#"))


def _judge(line: str, path: str, policy: UrlPolicy, filters: UrlFilters) -> dict[str, object]:
    seed = policy.canonical(line if "://" in line else f"https://{line}")
    reason = seed.reason if isinstance(seed, Refusal) else filters.refuse(seed, 0)
    judged: dict[str, object] = {
        "line": line[:MAX_LINE_CHARS],
        "inbox_file": path,
        "verdict": reason or "admitted",
    }
    if isinstance(seed, Refusal) or reason:
        return judged
    domain = registered_domain(seed.host)
    return {**judged, "url_key": seed.key, "url": seed.url, "host": seed.host, "registered_domain": domain}


# A round of a laptop is many small jobs: the first compiler and a plain collector start faster than the thorough ones.
# With the first alone Java keeps 48 MB for code, which a long session fills; then it would stop compiling.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # Spark has no sizes of what executors read
}

_EMBEDDED = {
    "spark.sql.adaptive.enabled": "false",  # planning costs more than it saves on one machine
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "crawler.worker_daemon",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
