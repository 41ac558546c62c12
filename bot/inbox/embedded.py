"""The embedded engine: one process, its own wake-ups, the inbox table as the only truth.

There is no state "being handled": what is not done is simply picked up again at the start.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from bot.clock import Clock
from bot.inbox.engine import Handler
from bot.inbox.pace import Pace
from bot.records import deliveries
from bot.records.database import Database
from bot.records.deliveries import Delivery

log = structlog.get_logger(__name__)

PAUSE = 1.0
"""Seconds before a thread is tried again when not even the failure could be recorded."""
LONGEST_NAP = 3600.0
"""Seconds that the timer sleeps at most, so that a changed system clock is noticed within the hour."""


class EmbeddedEngine:
    """Handles the inbox in this process, `concurrency` threads at a time."""

    def __init__(self, database: Database, clock: Clock, *, concurrency: int) -> None:
        self._database = database
        self._clock = clock
        self._pace = Pace(concurrency)
        self._handler: Handler | None = None
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._handling: dict[str, asyncio.Task[None]] = {}
        self._begun: dict[str, str] = {}
        """By thread, the key of what was begun there last, while there is work in it."""
        self._held: dict[str, asyncio.Event] = {}
        """By thread that nothing is begun in for the moment, what tells when that is over."""
        self._again: set[str] = set()
        self._interrupted: set[str] = set()
        self._timer: asyncio.Task[None] | None = None
        self._timer_set = asyncio.Event()
        self._stopping = False

    async def start(self, handler: Handler) -> None:
        """Take up whatever was left undone, then go on as deliveries come."""
        self._handler = handler
        async with self._database.reading() as tx:
            left = await deliveries.threads_with_work(tx, self._clock())
            for thread_id in left:
                head = await deliveries.head(tx, thread_id, self._clock())
                if head is not None:  # the process may have ended in the middle of it
                    self._begun[thread_id] = head.key
        for thread_id in left:
            self.wake(thread_id)
        self._timer = asyncio.create_task(self._watch_timers(), name="timers")

    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread."""
        if self._handler is None or self._stopping:
            return  # what is on disk is found at the start
        if thread_id in self._workers:
            self._again.add(thread_id)
            return
        self._workers[thread_id] = asyncio.create_task(self._work(thread_id), name=f"thread {thread_id}")

    def look_again(self) -> None:
        """A timer was set."""
        self._timer_set.set()

    @asynccontextmanager
    async def held_back(self, thread_id: str) -> AsyncIterator[None]:
        """Within it, nothing is begun in this thread. What is being handled goes on."""
        while (other := self._held.get(thread_id)) is not None:
            await other.wait()
        over = self._held[thread_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[thread_id]
            over.set()

    def has_begun(self, delivery: Delivery) -> bool:
        """Whether the handler was given this delivery, which still waits, or may have been before the last start. What
        was put off, since nobody could begin with it, was not begun."""
        newest = self._begun.get(delivery.thread_id)
        if self._handler is None:
            return True
        if delivery.thread_id not in self._handling and deliveries.outages(delivery):
            return False
        return newest == delivery.key

    def interrupt(self, thread_id: str) -> None:
        """Break off what is being handled in this thread now."""
        handling = self._handling.get(thread_id)
        if handling is not None:
            self._interrupted.add(thread_id)
            handling.cancel()

    @property
    def busy(self) -> int:
        """How many threads are being handled or wait for a slot."""
        return len(self._workers)

    async def stop(self, seconds: float) -> None:
        """Start nothing new, give what runs `seconds` to finish, then break it off. It is taken up again at the next
        start."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._timer
        workers = list(self._workers.values())
        if not workers:
            return
        _, late = await asyncio.wait(workers, timeout=seconds)
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._pace.stop()
        log.info("engine_stopped", broken_off=len(late))

    async def _work(self, thread_id: str) -> None:
        try:
            while not self._stopping:
                self._again.discard(thread_id)
                async with self._pace.place():
                    went_on = await self._try_next(thread_id)
                if not went_on and thread_id not in self._again:
                    break
        finally:
            del self._workers[thread_id]
            self._begun.pop(thread_id, None)

    async def _try_next(self, thread_id: str) -> bool:
        try:
            return await self._handle_next(thread_id)
        except Exception:
            # Not even the inbox could be read. Nobody else would come back to this thread.
            log.exception("inbox_not_read", thread_id=thread_id)
            await asyncio.sleep(PAUSE)
            return True

    async def _handle_next(self, thread_id: str) -> bool:
        while (held := self._held.get(thread_id)) is not None:
            await held.wait()
        async with self._database.reading() as tx:
            delivery = await deliveries.head(tx, thread_id, self._clock())
        if delivery is None or self._handler is None:
            return False
        self._begun[thread_id] = delivery.key
        handling = asyncio.ensure_future(self._handler(delivery))
        self._handling[thread_id] = handling
        try:
            await asyncio.shield(handling)
        except asyncio.CancelledError:
            if self._is_stopped():
                handling.cancel()
                await asyncio.gather(handling, return_exceptions=True)
                raise
            await asyncio.gather(handling, return_exceptions=True)
            if thread_id not in self._interrupted:
                # Nobody asked for it: a library's own cancellation got out. The delivery still waits.
                log.exception("delivery_cancelled", delivery=delivery.key, thread_id=thread_id)
                await asyncio.sleep(PAUSE)
        except Exception:
            # The handler deals with every failure of a delivery itself; what arrives here is the database failing.
            log.exception("delivery_not_handled", delivery=delivery.key, thread_id=thread_id)
            await asyncio.sleep(PAUSE)
        finally:
            self._interrupted.discard(thread_id)
            del self._handling[thread_id]
        return True

    def _is_stopped(self) -> bool:
        worker = asyncio.current_task()
        return worker is not None and worker.cancelling() > 0

    async def _watch_timers(self) -> None:
        while True:
            self._timer_set.clear()
            try:
                nap = await self._wake_the_due()
            except Exception:
                # Without this task nothing would expire or be tried again any more.
                log.exception("timers_not_read")
                nap = PAUSE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._timer_set.wait(), nap)

    async def _wake_the_due(self) -> float:
        """Seconds until the next timer."""
        now = self._clock()
        async with self._database.reading() as tx:
            due = await deliveries.threads_with_work(tx, now)
            upcoming = await deliveries.next_due(tx, now)
        for thread_id in due:
            self.wake(thread_id)
        return LONGEST_NAP if upcoming is None else min(max(upcoming - now, 0.01), LONGEST_NAP)
