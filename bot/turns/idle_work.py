"""What a process does when it has nothing else to do: looking through what people wrote for what to remember.

The threads that wait for that are in the memory of the process alone: as many as turns end within `WAITS_SECONDS`. What
is to be done in them is in the inbox, and due soon after that: then it is a delivery like any other, for any process.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context

import structlog

from bot.events import happens

log = structlog.get_logger(__name__)
WAITS_SECONDS = 60.0
"""How long it gives way to turns."""
LOST_AFTER_SECONDS = 70.0
"""After which what waits is due: this process has not begun with it, perhaps since it has ended."""
DUE_EVERY = 10.0
"""Seconds. What is due at the same moments all over is looked for once for all."""
QUIET_SECONDS = 0.5
"""For so long nothing else was done when it begins: people write the next message right after an answer."""
LOOK_SECONDS = 0.1
"""Between two looks at whether anything else is done."""
AT_ONCE = 2
"""Threads. What is under way then is in nobody's way when a turn begins."""
BEGINS_WITHIN = 5.0
"""Seconds after which a thread that has not begun is another process's, and nobody waits for its end."""


def due_at_last(now: float) -> float:
    """Returns when what waits from now on is due, in seconds since the epoch."""
    return math.ceil((now + LOST_AFTER_SECONDS) / DUE_EVERY) * DUE_EVERY


class IdleWork:
    """Has threads begun while nothing else is done.

    Args:
        workers: thread → what handles it now, whoever has begun it.
        begin: has a thread begun, though what is in it is not due yet.
    """

    def __init__(self, workers: Mapping[str, asyncio.Task[None]], begin: Callable[[str], Awaitable[None]]) -> None:
        self._workers = workers
        self._begin = begin
        self._waiting: OrderedDict[str, float] = OrderedDict()
        """Thread → since when, by the loop's clock; the oldest first."""
        self._begun: dict[str, float] = {}
        """Thread that was begun here → when."""
        self._worked_at = -math.inf
        """When something else ended last."""
        self._one_ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def __contains__(self, thread_id: str) -> bool:
        """Whether it was begun here, and has not ended."""
        return thread_id in self._begun

    def add(self, thread_id: str) -> None:
        """There is something to do in this thread that may wait."""
        if self._stopped:
            return
        self._waiting.setdefault(thread_id, asyncio.get_running_loop().time())
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="idle work", context=Context())

    def ended(self, thread_id: str) -> None:
        """A worker has ended."""
        if self._begun.pop(thread_id, None) is None:
            self._worked_at = asyncio.get_running_loop().time()
        else:
            self._one_ended.set()

    async def stop(self) -> None:
        """Begin nothing any more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            self._one_ended.clear()
            await happens(self._one_ended, LOOK_SECONDS)
            now = asyncio.get_running_loop().time()
            self._begun = {
                thread_id: at
                for thread_id, at in self._begun.items()
                if thread_id in self._workers or now - at < BEGINS_WITHIN
            }
            while self._waiting and (self._has_waited(now) or (len(self._begun) < AT_ONCE and self._is_idle(now))):
                thread_id, _ = self._waiting.popitem(last=False)
                self._begun[thread_id] = now
                try:
                    await self._begin(thread_id)
                except Exception:  # the records are away, perhaps: it is begun when it is due
                    log.exception("idle_work_not_begun", thread_id=thread_id)
                    self._begun.pop(thread_id, None)

    def _has_waited(self, now: float) -> bool:
        """Whether the first that waits has waited long enough."""
        return now - next(iter(self._waiting.values())) >= WAITS_SECONDS

    def _is_idle(self, now: float) -> bool:
        """Whether nothing else is done, and nothing was for a moment."""
        return now - self._worked_at >= QUIET_SECONDS and all(each in self._begun for each in self._workers)
