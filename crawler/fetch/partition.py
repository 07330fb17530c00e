"""Fetch one partition of a plan: read it, go on after what is sealed, fetch politely, leave sealed segments."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import uvloop

from crawler.faults import fault
from crawler.fetch.capture import Capturer
from crawler.fetch.host_queue import HostQueue, HostRun, Room
from crawler.fetch.lease import Lease, take_over
from crawler.fetch.loop import FetchLoop
from crawler.fetch.network import Network
from crawler.fetch.parsing import PageParser
from crawler.fetch.plan_file import Plan, PlannedHost, read_plan
from crawler.fetch.policies import product_token, url_filters, url_policy, user_agent
from crawler.fetch.politeness import Politeness
from crawler.fetch.progress import Heartbeat
from crawler.fetch.recorder import Recorder
from crawler.fetch.resolver import resolver_for
from crawler.fetch.robots_cache import RobotsShelf, standing
from crawler.fetch.robots_desk import RobotsDesk
from crawler.fetch.segments import SegmentWriter, read_host_states, read_outcomes
from crawler.fetch.visitor import Visitor
from crawler.fetch.warc import WarcInfo
from crawler.page.filters import Scope
from crawler.records import Outcome, PartitionTask, SealedSegment
from crawler.schemas import OUTCOMES, arrow_schema
from crawler.settings import Settings
from crawler.storage import Store

Clock = Callable[[], float]
DONE = arrow_schema(tuple(c for c in OUTCOMES.columns if c.name in ("url_key", "outcome", "content_length")))


def fetch_partition(task: PartitionTask, settings: Settings, clock: Clock = time.time) -> list[SealedSegment]:
    """Fetch what is left of the partition; returns the segments sealed by this and all earlier attempts.

    Every URL of the plan then has exactly one outcome row in them. What the web does never raises; a storage that
    fails or another attempt that took over does, and leaves the sealed segments to the next attempt.
    """
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps several times a big plan
    store = Store.open(task.lake)
    lease, earlier = take_over(store, task)
    try:
        segments = [*earlier, *_fetch_rest(task, settings, lease, earlier, clock)]
        fault("fetch.end")
        return segments
    finally:
        lease.release()


def _fetch_rest(
    task: PartitionTask, settings: Settings, lease: Lease, earlier: list[SealedSegment], clock: Clock
) -> list[SealedSegment]:
    """The segments of this attempt."""
    store = lease.store
    if lease.is_asked_to_stop():
        return []
    done, newer = _what_is_done(store, earlier)
    plan = read_plan(store, task.plan_files, done["url_key"].to_numpy(), newer)
    if not plan.urls:
        return []
    fault("fetch.begin")
    info = WarcInfo.of(settings.crawl, user_agent(settings.crawl), socket.gethostname())
    writer = SegmentWriter(store, task, settings.segment, info, lease.number, clock, lease.check)
    recorder = Recorder(writer, clock)
    recorder.count_earlier(done)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_Partition(task, settings, recorder, lease).fetch(plan))
    except BaseException:
        writer.abort()
        raise
    return recorder.sealed


def _what_is_done(store: Store, segments: Iterable[SealedSegment]) -> tuple[pa.Table, dict[str, dict[str, Any]]]:
    """The URLs that have an outcome, and the newest state of each host, from sealed segments, oldest first."""
    done = [DONE.empty_table()]
    newest: dict[str, dict[str, Any]] = {}
    for segment in segments:
        done.append(read_outcomes(store, segment, DONE.names))
        newest |= {row["host"]: row for row in read_host_states(store, segment)}
    return pa.concat_tables(done), newest


class _Partition:
    """The parts of a partition, put together."""

    def __init__(self, task: PartitionTask, settings: Settings, recorder: Recorder, lease: Lease) -> None:
        self._task = task
        self._settings = settings
        self._recorder = recorder
        self._lease = lease
        clock = self._clock = recorder.clock
        fetch, token = settings.fetch, product_token(settings.crawl)
        policy = url_policy(settings)
        filters = self._filters = url_filters(settings, Scope(settings.scope.mode, task.scope, task.ports))
        resumed_at = clock() if lease.number > 1 else None
        self._politeness = Politeness(fetch, clock, task.partitions, resumed_at, task.earlier_until)
        self._resolver = resolver_for(fetch, clock)
        agent = user_agent(settings.crawl)
        unread = settings.content.deny_types
        network = Network(fetch, clock, self._resolver, self._politeness, agent, task.deadline_at, lease, unread)
        self._parser = PageParser(settings, trusts_nobody=lease.number > 1)
        self._shelf = RobotsShelf(token)
        self._robots = RobotsDesk(network, recorder, policy, filters, self._shelf, task.partitions)
        capturer = Capturer(settings, policy, filters, self._parser)
        self._visitor = Visitor(network, capturer, recorder, self._robots)

    async def fetch(self, plan: Plan) -> None:
        """Fetch the plan and seal the last segment."""
        fetch = self._settings.fetch
        queue = HostQueue(Room(fetch.connections, fetch.slow_connections, fetch.max_connection_share))
        loop = FetchLoop(self._visitor, self._recorder, self._clock, self._task.deadline_at, queue)
        for planned in plan.hosts:
            self._enter(loop, plan, planned)
        plan.hosts.clear()  # with the texts of their robots.txt, which are on the shelf now
        urls = plan.urls + self._recorder.outcomes.total()
        heartbeat = Heartbeat(self._lease.store, self._task, self._recorder, loop, urls, self._lease)
        beating = asyncio.create_task(heartbeat.run())
        try:
            await _first_to_end(loop.run(), beating)
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            await self._parser.close()
        self._recorder.seal()
        await heartbeat.beat()

    def _enter(self, loop: FetchLoop, plan: Plan, planned: PlannedHost) -> None:
        """Put a host into the queue; one that an earlier attempt gave up has no further try in this round."""
        state = planned.state
        now, ttl_s = self._clock(), self._settings.fetch.robots_ttl_s
        schemes = {copy.scheme for copy in state.robots}
        knows_robots = bool(schemes) and all(
            standing(state.robots, scheme, now, ttl_s).how == "fresh" for scheme in schemes
        )
        turn = self._politeness.turn_of(state, planned.grouped_by, knows_robots=knows_robots)
        host = HostRun.of(plan, planned, turn, tuple(map(self._shelf.hold, state.robots)))
        self._resolver.seed(state.host, state.addresses)
        self._robots.register(host)
        if state.is_out:
            self._visitor.give_up(host, Outcome.HOST_FAILED, "out of the round since an earlier attempt")
            return
        if (reason := self._filters.refuse_port(state.host)) is not None:  # found before ports were closed
            self._visitor.give_up(host, Outcome.ADDRESS_REFUSED, reason)
            return
        loop.enter(host, self._politeness.host_ready_at(turn))


async def _first_to_end(work: Any, beating: asyncio.Task[None]) -> None:
    """Wait for the work; a heart that stops (storage failed while sealing) ends it."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            beating.result()
        await working
    finally:
        working.cancel()
