"""The loop of a partition: hosts come when they are due, a limited number of them at once, until the time box ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crawler.fetch.attempt import AttemptOver
from crawler.fetch.host_queue import HostQueue, HostRun
from crawler.fetch.recorder import Recorder
from crawler.fetch.visitor import Visitor
from crawler.records import Outcome

GRACE_S = 10.0
"""How long exchanges that have begun may go on after the time box; then they are cut off."""

STOP_GRACE_S = 2.0
"""The same where the driver has asked to stop: what is cut off then has no outcome, and is asked for again later."""

SLOW_AFTER_S = 1.0
"""How long a visit keeps others from its slot; then it has one of the slow slots, if there is one left."""

MAX_NAP_S = 60.0  # the clock on the wall may be set while we sleep


@dataclass
class FetchLoop:
    """Visits the hosts of a queue until each of their URLs has its outcome."""

    visitor: Visitor
    recorder: Recorder
    clock: Callable[[], float]
    deadline_at: float
    queue: HostQueue = field(default_factory=HostQueue)
    _active: dict[asyncio.Task[None], HostRun] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _is_stopping: bool = False
    _step_began: dict[HostRun, float] = field(default_factory=dict)
    _watches: dict[HostRun, asyncio.TimerHandle] = field(default_factory=dict)

    @property
    def hosts_waiting(self) -> int:
        return len(self.queue)

    def enter(self, host: HostRun, ready_at: float) -> None:
        """Take a host in, unless its time comes after the time box: nobody waits for that."""
        if ready_at >= self.deadline_at:
            self._end(host, ready_at)
        else:
            host.is_slow = host.turn.last_fetch_s > SLOW_AFTER_S
            self.queue.push(host, ready_at)

    def stop(self) -> None:
        """Begin no more visits; what is left over keeps no outcome, so that a later attempt finds it undone."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Fetch; raises AttemptOver."""
        try:
            while (self.queue or self._active) and self.clock() < self.deadline_at:
                self._start_due()
                await self._sleep()
                self._collect()
                if self._is_stopping:
                    await self._leave()
                    return
            for host in self.queue.drain():
                self._end(host, None)
            await self._cut_off()
        finally:
            for task in self._active:
                task.cancel()

    def _start_due(self) -> None:
        now = self.clock()
        while (host := self.queue.pop_due(now)) is not None:
            task = asyncio.create_task(self._visit(host))
            self._active[task] = host
            task.add_done_callback(self._done)

    def _done(self, _: asyncio.Task[None]) -> None:
        self._wake.set()

    async def _sleep(self) -> None:
        """Until a visit ends or becomes a slow one, the next host is due, or the time box is over."""
        if not self.queue and not self._active:
            return
        next_at = self.queue.next_at()
        until = self.deadline_at if next_at is None else min(next_at, self.deadline_at)
        delay = min(until - self.clock(), MAX_NAP_S)
        timer = asyncio.get_running_loop().call_later(max(delay, 0.0), self._wake.set)
        await self._wake.wait()
        timer.cancel()
        self._wake.clear()

    def _collect(self) -> None:
        """Let go of the visits that have ended; raise what one of them raised."""
        for task in [task for task in self._active if task.done()]:
            del self._active[task]
            task.result()

    async def _visit(self, host: HostRun) -> None:
        """Go on with the host as long as it is due and no other is."""
        self._watch(host, SLOW_AFTER_S)
        try:
            again_at = await self._go_on(host)
        finally:
            self._watches.pop(host).cancel()
            del self._step_began[host]
            self.queue.release(host)
        if host.current is None or again_at is None or again_at >= self.deadline_at:
            self._end(host, again_at)
        else:
            self.queue.push(host, again_at)

    async def _go_on(self, host: HostRun) -> float | None:
        while True:
            row, began = host.row, self.clock()
            self._step_began[host] = began
            again_at = await self._step(host)
            now = self.clock()
            if now - began > SLOW_AFTER_S:
                host.is_slow = True
            elif host.row > row and host.turn.last_request_at >= began:
                host.is_slow = False  # a quick robots.txt proves nothing
            is_over = host.current is None or again_at is None or not again_at <= now < self.deadline_at
            if is_over or self._is_stopping or self.queue.is_due(now) or self.queue.is_misplaced(host):
                return again_at

    def _watch(self, host: HostRun, delay_s: float) -> None:
        self._watches[host] = asyncio.get_running_loop().call_later(delay_s, self._look_at, host)

    def _look_at(self, host: HostRun) -> None:
        """Move the host to the slow slots when its step has lasted long enough; look again when it has not."""
        left = self._step_began[host] + SLOW_AFTER_S - self.clock()
        if left > 0:
            self._watch(host, left)
        elif self.queue.park(host):
            self._wake.set()
        else:
            self._watch(host, SLOW_AFTER_S)

    async def _step(self, host: HostRun) -> float | None:
        """A step of the host; a bug of ours costs the URL at hand, not the partition."""
        try:
            return await self.visitor.step(host)
        except AttemptOver:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server made us do wrong must not end the round
            if host.current is not None:
                self.recorder.settle(host, Outcome.QUARANTINED, f"{type(error).__name__}: {error}")
            return self.visitor.network.politeness.host_ready_at(host.turn)

    def _end(self, host: HostRun, next_at: float | None) -> None:
        """The host's turn in this round is over; what is left of it was not reached."""
        if host.turn.not_before >= self.deadline_at:
            until = datetime.fromtimestamp(min(host.turn.not_before, 32_503_680_000), UTC)
            reason = f"host waits until {until:%Y-%m-%dT%H:%M:%SZ}"
        else:
            reason = "time box over" if next_at is None else "time box too short for the delay of the host"
        self.recorder.settle_rest(host, Outcome.NOT_REACHED, reason)
        host.close()

    async def _leave(self) -> None:
        """Let the exchanges that have begun end if they are quick, and drop the rest."""
        if self._active:
            await asyncio.wait(self._active, timeout=STOP_GRACE_S)
        late = [task for task in self._active if not task.done()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        for host in (*self._active.values(), *self.queue.drain()):
            host.close()
        ended = [task for task in self._active if not task.cancelled()]
        self._active.clear()
        for task in ended:
            task.result()

    async def _cut_off(self) -> None:
        """Give the exchanges that have begun a little more time, then end them."""
        if self._active:
            await asyncio.wait(self._active, timeout=GRACE_S)
        late = {task: host for task, host in self._active.items() if not task.done()}
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        for task, host in self._active.items():
            if not task.cancelled():
                task.result()
            if host.is_asking and host.current is not None:
                self.recorder.settle(host, Outcome.TIMEOUT, "time box over")
            self._end(host, None)
        self._active.clear()
        for host in self.queue.drain():
            self._end(host, None)
