"""What services give only once (tokens for a code, or for a refresh token), and how it is kept when the process ends.

What has not asked its service by then is let go: the code or the refresh token is as good as before, for another
process or the next start. What a service was asked for is seen through until it is kept: it cannot be had again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from bot.accounts.ports import Unreachable
from bot.records.database import KEPT_OR_LOST_SECONDS

DoneT = TypeVar("DoneT")
ANSWERS_SECONDS = 30.0
"""How long what services are asked for in one piece of work may take: a sign-in makes two requests of ten seconds, and
may look its owner up in chat; an install in Slack makes two as well, and may take back what it got."""
LONGEST_SECONDS = ANSWERS_SECONDS + KEPT_OR_LOST_SECONDS
"""How long the end waits at most: until services have answered, and what they gave is written or given up."""


class ProcessEnds(Unreachable):
    """The service is not asked any more."""

    def __init__(self) -> None:
        super().__init__("the process ends")


class OnlyOnce:
    """Work that asks services for such things."""

    def __init__(self) -> None:
        self._before: set[asyncio.Task[Any]] = set()
        """Whoever has not asked yet."""
        self._asking: set[asyncio.Task[Any]] = set()
        self._ends = False

    @property
    def is_asking(self) -> bool:
        """Whether a service was asked for something that is not kept yet."""
        return bool(self._asking)

    async def seen_through(self, work: Coroutine[Any, Any, DoneT], name: str) -> DoneT:
        """Do this, although whoever needs it may be broken off meanwhile. Raises `ProcessEnds` where that came before
        it had asked."""
        if self._ends:
            work.close()
            raise ProcessEnds
        task = asyncio.create_task(work, name=name)
        self._before.add(task)
        task.add_done_callback(self._is_done)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._ends:
                raise ProcessEnds from None
            raise

    def asks(self) -> None:
        """Said by such work before it asks its service. Raises `ProcessEnds` where it must not any more."""
        if self._ends:
            raise ProcessEnds
        task = asyncio.current_task()
        if task in self._before:
            self._before.remove(task)
            self._asking.add(task)

    async def end(self) -> None:
        """Let go what has not asked yet, and wait until what has is done."""
        self._ends = True
        for task in self._before:
            task.cancel()
        if under_way := {*self._before, *self._asking}:
            _, late = await asyncio.wait(under_way, timeout=LONGEST_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _is_done(self, task: asyncio.Task[Any]) -> None:
        self._before.discard(task)
        self._asking.discard(task)
