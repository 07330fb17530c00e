"""What a round costs when more is known: the same batch against 1 million and against 20 million known URLs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from pyspark.sql import SparkSession

from crawler import schemas
from crawler.page.fingerprint import Fingerprinter
from crawler.settings import Settings
from crawler.spark import open_session
from crawler.storage import Store
from crawler.tables.lake import Lake, hold_lake
from crawler.tables.ledger import RoundRow, State
from jobs.stages.commit import commit_round
from jobs.stages.fetch import count_segments
from jobs.stages.open_round import advance, open_round
from jobs.stages.plan import plan_round
from jobs.stages.reconcile import reconcile_round
from tests.benchmarks.known_urls import BATCH_HOURS, DAY_S, HOUR_S, URLS_PER_HOST, fill
from tests.benchmarks.made_segments import KNOWN_LINKS_AMONG, LINKS, NEW_LINKS, PAGES, Batch, batch_of, write_segments
from tests.benchmarks.results import Figure, Result

SIZES = {"1 M": 1_000_000, "20 M": 20_000_000}
ROUNDS = 3
TARGET = 1.3
STAGES = ("plan", "reconcile", "commit")


def growth(folder: Path) -> Result:
    """Seconds of plan, reconcile and commit with both sizes: the median of three rounds after one that warms up.

    The rounds of the two lakes alternate, so that both find the session equally warm.
    """
    assert min(SIZES.values()) >= KNOWN_LINKS_AMONG >= PAGES * URLS_PER_HOST
    settings = _settings()
    spark = open_session(settings, "growth")
    now, batches = time.time(), [batch_of(number) for number in range(ROUNDS + 1)]
    fills: dict[str, float] = {}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SIZES}
    try:
        with ExitStack() as held:
            lakes = {name: held.enter_context(_lake(spark, folder, name, settings)) for name in SIZES}
            for name, lake in lakes.items():
                with _clock(fills, f"filling {name}"):
                    fill(lake, SIZES[name], now, len(batches), _scheme(settings))
            for batch in batches:
                for name, lake in lakes.items():
                    rounds[name].append(_round(lake, settings, batch, now + _comes_after(batch)))
    finally:
        spark.stop()
    taken = {
        name: {stage: statistics.median(one[stage] for one in many[1:]) for stage in STAGES}
        for name, many in rounds.items()
    }
    figures = [*_figures(taken), *(Figure(name, seconds, "s") for name, seconds in fills.items())]
    return Result(
        "growth", figures, [f"{PAGES:,} pages, {LINKS:,} links, {NEW_LINKS:,} new URLs, {ROUNDS} rounds each"]
    )


def _lake(spark: SparkSession, folder: Path, name: str, settings: Settings) -> AbstractContextManager[Lake]:
    return hold_lake(spark, Store.open(str(folder / name.replace(" ", ""))), settings.lake.buckets)


def _comes_after(batch: Batch) -> float:
    """Seconds after which the slot of the batch has come."""
    return float((batch.number * BATCH_HOURS + 1) * HOUR_S)


def _figures(taken: dict[str, dict[str, float]]) -> list[Figure]:
    figures = [Figure(f"{stage}, {name}", s, "s") for name, stages in taken.items() for stage, s in stages.items()]
    small, large = (sum(stages.values()) for stages in taken.values())
    figures += [Figure(f"sum, {name}", sum(stages.values()), "s") for name, stages in taken.items()]
    return [*figures, Figure("ratio", large / small, "x", at_most=TARGET)]


def _settings() -> Settings:
    """Stock, but a delay that spreads the new URLs of a host over the coming days."""
    stock = Settings()
    return replace(
        stock, fetch=replace(stock.fetch, delay_s=float(DAY_S)), spark=replace(stock.spark, driver_memory="4g")
    )


def _scheme(settings: Settings) -> str:
    near = settings.near_duplicates
    return Fingerprinter(near.permutations, near.bands, near.shingle_words, near.min_words, near.seed).scheme


def _round(lake: Lake, settings: Settings, batch: Batch, now: float) -> dict[str, float]:
    """Seconds of every stage of one round; its fetch stage is replaced by segments made beforehand."""
    taken: dict[str, float] = {}
    rnd = open_round(lake, settings, now)
    with _clock(taken, "plan"):
        rnd = plan_round(lake, settings, rnd, rnd.versions)
    if rnd.counts["planned"] != PAGES:
        raise RuntimeError(f"{rnd.counts}, not {PAGES} URLs were planned")
    rnd = _accept_segments(lake, rnd, batch)
    with _clock(taken, "reconcile"):
        found = reconcile_round(lake, settings, rnd)
    with _clock(taken, "commit"):
        rnd = commit_round(lake, rnd, found)
    if rnd.counts["new_urls"] < NEW_LINKS * 0.9:
        raise RuntimeError(f"{rnd.counts}: {NEW_LINKS} new URLs were to be found")
    return taken


@contextmanager
def _clock(taken: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    taken[name] = time.perf_counter() - start


def _accept_segments(lake: Lake, rnd: RoundRow, batch: Batch) -> RoundRow:
    """What `fetch_plan` does after the tasks have ended."""
    segments = write_segments(lake.store, batch, rnd.segment_folder)
    values = [{**asdict(segment), "round": rnd.round} for segment in segments]
    rows = [tuple(value[name] for name in schemas.SEGMENTS.names) for value in values]
    frame = lake.spark.createDataFrame(rows, schemas.ddl(schemas.SEGMENTS.columns))
    lake.append(schemas.SEGMENTS, frame, lake.write("segments", rnd.round))
    versions = {**rnd.versions, schemas.SEGMENTS.name: lake.tables.version(schemas.SEGMENTS)}
    counts = {**rnd.counts, **count_segments(lake, rnd.round, versions)}
    return advance(lake, replace(rnd, state=State.FETCHED, versions=versions, counts=counts))
