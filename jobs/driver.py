"""The driver of a lake: what must hold before a round starts, the Spark session, the lock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.faults import refuse_faults
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.lock import LockHeld, current_holder, is_alive
from crawler.tables.manifest import change_manifest, read_manifest, require_same_keys
from jobs.exits import BAD_USE, FAULT, NO_CONTACT, ROUND_OPEN, Stop
from jobs.interruption import listen
from jobs.words import instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from crawler.tables.lake import Lake

PROBE = "progress/probe"

CONTACT_HELP = """\
a crawl that can touch public addresses needs crawl.contact, so that site owners can reach you. Give a web or mail \
address, which goes into the User-Agent and the WARC files:
  --set crawl.contact=https://example.org/bot      on the command line, or
  ORBWEAVER_CRAWL__CONTACT=bot@example.org         in the environment, or
  [crawl] contact = "https://example.org/bot"      in a file given with --config
A crawl of your own machines only needs none: --set fetch.only_allowed=true and fetch.allow_addresses."""


def require_contact(settings: Settings) -> None:
    """Raise Stop for a crawl that could touch public addresses and does not say who runs it."""
    if not settings.crawl.contact and not settings.fetch.only_allowed:
        raise Stop(NO_CONTACT, CONTACT_HELP)


@contextmanager
def drive(store: Store, settings: Settings, remember: Mapping[str, object] | None = None) -> Iterator[Lake]:
    """Hold the lake with a Spark session for the block. Raises TableError where there is none.

    `remember`: settings by `section.key` for a lake of before lakes remembered any.
    """
    manifest = read_manifest(store)
    require_same_keys(store, manifest)
    refuse_held(store)
    refuse_unwritable(store)
    refused = refuse_faults(settings.fetch.allow_addresses, only_allowed=settings.fetch.only_allowed)
    if refused:
        raise Stop(BAD_USE, refused)
    from crawler.tables.lake import hold_lake

    with spark_session(settings) as spark, hold_lake(spark, store) as lake:
        if manifest.settings is None and remember is not None:
            change_manifest(store, settings=dict(remember))
        yield lake


def refuse_held(store: Store) -> None:
    """Raise LockHeld at once, before Java starts. The lock itself is taken later and decides."""
    holder = current_holder(store)
    if holder is not None and is_alive(holder, time.time()):
        raise LockHeld(
            f"another driver works on {store.uri}: {holder.name}, since {instant(holder.since)} "
            f"(token {holder.token}). Wait for it to end; `orbweaver status` shows how far it is."
        )


def refuse_unwritable(store: Store) -> None:
    """Raise what the storage raises where nothing can be written, before Java starts."""
    store.put(PROBE, b"")
    store.delete(PROBE)


def refuse_open_round(store: Store) -> None:
    """Raise Stop while a round is open, which reads pinned versions of the tables. Cheap enough to ask before Java
    starts; whoever holds the lock asks again."""
    from crawler.tables.reader import Reader

    found = Reader.open(store).open_round
    if found is not None:
        raise Stop(
            ROUND_OPEN,
            f"round {found['round']} of {store.uri} is open ({found['state']}): finish it first with "
            f"`orbweaver round --lake {store.uri}`",
        )


@contextmanager
def spark_session(settings: Settings) -> Iterator[SparkSession]:
    """A session for the block, in which no task runs twice on purpose; one that was there before is left running."""
    from pyspark.sql import SparkSession

    from crawler.spark import is_submitted, open_session, refuse_speculation

    if not is_submitted():
        find_java_home()
    was_running = SparkSession.getActiveSession() is not None
    spark = open_session(settings)
    try:
        listen()
        refuse_speculation(spark)
        yield spark
    finally:
        if not was_running:
            spark.stop()


def find_java_home() -> None:
    """Name a supported Java to Spark. Raises Stop where there is none."""
    from crawler.java import find_java

    java = find_java()
    if java is None:
        raise Stop(FAULT, "Spark needs Java 17 or 21, and there is none: `orbweaver doctor` says how to install one")
    os.environ["JAVA_HOME"] = str(java.home)


def require_jars() -> None:
    """Raise Stop where the Delta jars are missing; they are fetched once, by `make setup`."""
    from crawler.jars import jar_paths

    missing = [path for path in jar_paths() if not Path(path).exists()]
    if missing:
        names = ", ".join(missing)
        raise Stop(FAULT, f"the Delta jars are missing ({names}): run `make setup` or `python -m jobs.jars`")
