"""The one bridge to Spark: the session, and the page and fetch rooms run inside Spark tasks.

Spark assumes that tasks are pure. The fetch stage is not: it has one action, no lineage behind it, nothing lazy after
it, and it refuses to start where a second copy of a task could run on purpose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from crawler import schemas
from crawler.jars import jar_paths
from crawler.java import find_java
from crawler.page.filters import UrlFilters
from crawler.page.url import Refusal, UrlPolicy, registered_domain
from crawler.records import PartitionTask, SealedSegment
from crawler.settings import Settings

SEED_LINES = "line string, inbox_file string"
MAX_LINE_CHARS = 4_096
ROW_GROUP_BYTES = 4 * 1024 * 1024  # small row groups let a look-up skip what its keys cannot be in


class UnsafeSession(Exception):
    """The Spark session would ask servers twice."""


def open_session(settings: Settings, name: str = "orbweaver") -> SparkSession:
    """The running session, or an embedded one; under spark-submit its master, memory and jars stand."""
    builder = SparkSession.builder.appName(name)
    for key, value in session_conf(settings).items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def session_conf(settings: Settings) -> dict[str, str]:
    """Spark's configuration: what every crawl needs, and where no cluster is given, what an embedded one needs."""
    conf = dict(_ALWAYS)
    if is_submitted():
        return conf
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    java = find_java(os.environ)
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    from crawler.settings_files import conf_folder  # late: executors need no validation library

    cores, logging = os.cpu_count() or 1, conf_folder() / "log4j2.properties"
    conf |= dict(_EMBEDDED)
    conf |= {
        "spark.driver.extraJavaOptions": f"{_QUICK_START} -Dlog4j2.configurationFile=file:{logging}",
        "spark.master": settings.spark.master or f"local[{cores}]",
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.jars": ",".join(jar_paths()),
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions or cores),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
    }
    return conf


def is_submitted() -> bool:
    """True under spark-submit, which starts Python with a gateway already open."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def fetch_partitions(spark: SparkSession, tasks: Sequence[PartitionTask], settings: Settings) -> list[SealedSegment]:
    """Run the fetch stage: one Spark task a partition, one action, only manifests come back."""
    refuse_speculation(spark)
    if not tasks:
        return []
    visit = partial(_fetch_one, settings=settings)
    manifests = spark.sparkContext.parallelize(list(tasks), len(tasks)).map(visit).collect()
    return [segment for manifest in manifests for segment in manifest]


def refuse_speculation(spark: SparkSession) -> None:
    """Raise where Spark may start a second copy of a running fetch task."""
    if spark.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise UnsafeSession(
            "spark.speculation is true: Spark would run fetch tasks twice and ask every server twice. "
            "Set spark.speculation=false for this application."
        )


def _fetch_one(task: PartitionTask, settings: Settings) -> list[SealedSegment]:
    from crawler.fetch.partition import fetch_partition  # only executors need the fetch room

    context = TaskContext.get()
    return fetch_partition(task, settings, attempt=context.attemptNumber() if context else 0)


def read_seed_lines(spark: SparkSession, files: dict[str, str]) -> DataFrame:
    """The lines of the inbox files, given as {path in the lake: URI for Spark}: `line`, `inbox_file`."""
    frames = [
        spark.read.text(uri).selectExpr("value AS line").selectExpr("line", f"'{path}' AS inbox_file")
        for path, uri in files.items()
    ]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionByName(frame)
    return lines.where("trim(line) <> '' AND NOT startswith(trim(line), '#')")


def judge_seeds(lines: DataFrame, settings: Settings) -> DataFrame:
    """Each line with its canonical URL, or with the reason of its refusal as `verdict`."""
    schema = schemas.ddl(tuple(c for c in schemas.SEEDS.columns if c.name != "round"))
    return lines.mapInArrow(partial(_judge_batches, settings=settings), schema)


def _judge_batches(batches: Iterable[pa.RecordBatch], settings: Settings) -> Iterator[pa.RecordBatch]:
    from crawler.fetch.policies import url_filters, url_policy

    policy, filters = url_policy(settings), url_filters(settings, scope=None)
    columns = tuple(c for c in schemas.SEEDS.columns if c.name != "round")
    for batch in batches:
        rows = [_judge(row, policy, filters) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=schemas.arrow_schema(columns))


def _judge(row: dict[str, str], policy: UrlPolicy, filters: UrlFilters) -> dict[str, object]:
    line = row["line"].strip()
    seed = policy.canonical(line if "://" in line else f"https://{line}")
    reason = seed.reason if isinstance(seed, Refusal) else filters.refuse(seed, 0)
    judged: dict[str, object] = {
        "line": line[:MAX_LINE_CHARS],
        "inbox_file": row["inbox_file"],
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
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    "spark.hadoop.parquet.block.size": str(ROW_GROUP_BYTES),
    "spark.hadoop.parquet.writer.version": "PARQUET_2_0",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

_EMBEDDED = {
    "spark.sql.adaptive.enabled": "false",  # planning costs more than it saves on one machine
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
