"""Tasks that nobody waits for: kept from the garbage collector, and drained at shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Coroutine
from typing import Any

import structlog

from adapters.shared.outages import OutageLog
from bot.records.database import is_outage

log = structlog.get_logger(__name__)


class BackgroundTasks:
    """Tasks of one platform, such as telling somebody what came of their click."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._running: set[asyncio.Task[None]] = set()
        self._outage = OutageLog("background_task_failed")

    def start(self, work: Coroutine[Any, Any, object], name: str) -> None:
        """Run it without waiting; `name` is for the log should it fail."""
        self.keep(asyncio.create_task(work, name=f"{self._platform} {name}"), name)

    def keep(self, task: asyncio.Task[Any], name: str) -> None:
        """Go on with a task that its caller no longer waits for."""
        guarded = asyncio.create_task(self._guarded(task, name), name=f"{self._platform} {name}")
        self._running.add(guarded)
        guarded.add_done_callback(self._running.discard)

    async def drain(self, within: float) -> None:
        """Wait until all are done, `within` seconds at most; the rest is cancelled."""
        await drained(self._running, within)

    async def _guarded(self, work: Awaitable[object], name: str) -> None:
        try:
            await work
        except Exception as error:
            # Nobody awaits the task, so this is the last place where its failure can be noticed.
            if is_outage(error):
                self._outage.failed(f"{self._platform} {name}", error)
            else:
                log.exception("background_task_failed", platform=self._platform, task=name)
        else:
            self._outage.worked(f"{self._platform} {name}")


async def drained(tasks: Collection[asyncio.Task[Any]], within: float) -> None:
    """Wait until these tasks are done, `within` seconds at most; the rest is cancelled."""
    if tasks:
        _, late = await asyncio.wait(set(tasks), timeout=within)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def now() -> float:
    """Returns the running loop's time, in seconds."""
    return asyncio.get_running_loop().time()
