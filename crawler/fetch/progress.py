"""What a running partition tells those who watch: a small file, replaced every two seconds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from crawler.fetch.lease import Lease
from crawler.fetch.loop import FetchLoop
from crawler.fetch.recorder import Recorder
from crawler.records import PartitionTask
from crawler.storage import Store

EVERY_S = 2.0


def progress_path(round_number: int, partition: int) -> str:
    """Where the numbers of a partition are, relative to the lake."""
    return f"progress/{round_number}/{partition}.json"


@dataclass
class Heartbeat:
    """Writes the numbers, renews the lease, seals segments in time, also while all hosts wait, and hears whether the
    driver wants the loop to stop."""

    store: Store
    task: PartitionTask
    recorder: Recorder
    loop: FetchLoop
    urls: int
    lease: Lease

    async def run(self) -> None:
        """Beat until cancelled. Raises AttemptOver."""
        while True:
            await self.lease.renew_if_due()
            if await asyncio.to_thread(self.lease.is_asked_to_stop):
                self.loop.stop()
            self.recorder.seal_if_due()
            await self.beat()
            await asyncio.sleep(EVERY_S)

    async def beat(self) -> None:
        """Write the numbers of now. Watching is a courtesy: when it fails, the round goes on."""
        left = self.urls - self.recorder.outcomes.total()
        content = self.recorder.progress(self.loop.hosts_waiting, left)
        path = progress_path(self.task.round, self.task.partition)
        try:
            await asyncio.to_thread(self.store.put, path, content)
        except Exception:  # noqa: BLE001 - stores of all kinds have exceptions of their own
            return
