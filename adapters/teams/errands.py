"""What is done after the answer to Teams: kept, so that neither the garbage collector nor a restart loses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Errands:
    """Small tasks that nobody waits for, such as telling somebody what came of their click."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, errand: Coroutine[Any, Any, object], name: str) -> None:
        """Do it without waiting; `name` is for the log should it fail."""
        self.keep(asyncio.create_task(errand, name=f"teams {name}"), name)

    def keep(self, under_way: asyncio.Task[Any], name: str) -> None:
        """Go on with what somebody waited for, without them."""
        task = asyncio.create_task(_guarded(under_way, name), name=f"teams {name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def drain(self, within: float) -> None:
        """Wait until all are done, `within` seconds at most; the rest is given up."""
        if self._running:
            _, late = await asyncio.wait(set(self._running), timeout=within)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


async def _guarded(errand: Awaitable[object], name: str) -> None:
    try:
        await errand
    except Exception:
        # Nobody awaits an errand, so that this is the last place where its failure can be noticed at all.
        log.exception("teams_errand_failed", errand=name)
