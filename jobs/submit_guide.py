"""SUBMIT.md: the command lines for clusters. A text of its own, since it is read without the checkout."""

from __future__ import annotations

from crawler.jars import SPARK_VERSION


def submit_guide(python: str) -> str:
    """The text, for the Python version (`3.11`) that the packed environment is for."""
    return GUIDE.replace("PYTHON_VERSION", python).replace("SPARK_VERSION", SPARK_VERSION)


GUIDE = """\
# Orbweaver on a cluster

| file | what it is for |
|---|---|
| `crawl_round.py`, `maintain_tables.py` | what spark-submit runs: one round, or maintenance |
| `orbweaver-env.tar.gz` | the Python environment of driver and executors, Spark left out |
| `orbweaver-*.whl` | Orbweaver alone, for an environment that you make yourself |
| `jars.txt` | which jars `orbweaver sql` needs; a round needs none |

Needed: Spark SPARK_VERSION; on every machine Linux of the kind this was packed on, and Python PYTHON_VERSION as
`pythonPYTHON_VERSION` on PATH (or where ORBWEAVER_BASE_PYTHON says, in the environment of the executors); and a lake
that all of them reach: `s3://bucket/folder`, or a network file system mounted at the same place.

Standalone was tried, by `tests/cluster`. The lines for YARN and Kubernetes follow Spark's documentation and were not
tried.

## First, on the machine of the driver

```sh
mkdir env && tar xzf orbweaver-env.tar.gz -C env
env/bin/orbweaver inject seeds.txt --lake s3://bucket/lake --config cluster
```

That makes the lake, which remembers the settings given here; those of `--set` and `--config` below are for a round.

`inject`, `status`, `show`, `why`, `report` and `doctor` need neither Spark nor Java.

## Standalone

```sh
spark-submit --master spark://master:7077 --deploy-mode client \\
    --archives orbweaver-env.tar.gz#env \\
    --conf spark.pyspark.python=./env/bin/python \\
    --conf spark.pyspark.driver.python=$PWD/env/bin/python \\
    --conf spark.speculation=false --conf spark.task.maxFailures=4 \\
    crawl_round.py --lake s3://bucket/lake --config cluster --set crawl.contact=https://example.org/bot
```

Spark has no cluster deploy mode for Python here, so the driver runs where you type. Where all machines see one folder,
unpack the archive there once, leave `--archives` out, and name that folder's `bin/python` in both settings.

## YARN

```sh
spark-submit --master yarn --deploy-mode cluster \\
    --archives orbweaver-env.tar.gz#env \\
    --conf spark.pyspark.python=./env/bin/python \\
    --conf spark.speculation=false --conf spark.task.maxFailures=4 \\
    --conf spark.yarn.maxAppAttempts=2 \\
    crawl_round.py --lake s3://bucket/lake --config cluster --set crawl.contact=https://example.org/bot
```

With `--deploy-mode client` add `spark.pyspark.driver.python` as above. A second application attempt finishes the open
round; it may wait for the lock of the first, which lasts two minutes after its last sign of life.

## Kubernetes

```sh
spark-submit --master k8s://https://cluster:6443 --deploy-mode cluster \\
    --archives s3a://bucket/orbweaver-env.tar.gz#env \\
    --conf spark.kubernetes.container.image=REGISTRY/spark-py:SPARK_VERSION \\
    --conf spark.kubernetes.authenticate.driver.serviceAccountName=orbweaver \\
    --conf spark.pyspark.python=./env/bin/python \\
    --conf spark.speculation=false --conf spark.task.maxFailures=4 \\
    s3a://bucket/crawl_round.py --lake s3://bucket/lake --config cluster --set crawl.contact=https://example.org/bot
```

Spark itself fetches the archive and the file here, which needs hadoop-aws in the image. Or put the archive into the
image, unpacked to `/opt/env`: then `--archives` goes, `spark.pyspark.python` is `/opt/env/bin/python`, and the file is
`local:///opt/env/lib/jobs/crawl_round.py`.

## Settings that matter

- **`spark.speculation` stays off.** It would run a fetch task twice and ask every server twice.
- **`spark.task.maxFailures`** counts the tries of a task. A fetch task that is tried again goes on behind its last
  sealed segment; what was in the open one is asked again.
- **`crawl.contact`** is needed wherever public addresses may be asked: exit code 5 without it.
- **`--config cluster`** gives long rounds. Add `--set round.partitions=N`: without it there is one for each core that
  Spark knows of when the round is planned, and on a cluster the executors may still be on their way. A fetch task needs
  far less than a core, since it waits most of the time.
- **Own settings files and `fetch.host_map`** are read by path: the settings file by the driver, the host map by the
  executors. Environment variables (`ORBWEAVER_FETCH__DELAY_S`) count for the driver; executors get its settings.
- **Credentials:** `--set` and `spark.executorEnv.*` can be read in Spark's web UI and its event logs, so no secret
  belongs there. Use the machines' own: instance roles, workload identity, or on Kubernetes
  `spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY=NAME:KEY` (and `.driver.`).
- **Exit codes** are those of `orbweaver round`. The same command after any failure finishes the open round.

## Maintenance and SQL

`maintain_tables.py` is submitted with the same options, between rounds. For `orbweaver sql` see `jars.txt`.
"""
