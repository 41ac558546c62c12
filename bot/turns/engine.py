"""Hands deliveries to their handler, one at a time per thread: the port, and the engine of a single process.

The embedded engine has no state "being handled": what is not done is picked up again at the start. The inbox table is
the only truth.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import Protocol

import structlog

from bot.domain import Clock
from bot.events import happens
from bot.memory_threads import MEMORY
from bot.records import deliveries
from bot.records.claims import Overtaken
from bot.records.database import Database, Pauses, Transaction, is_outage
from bot.records.deliveries import Delivery
from bot.repeated_failures import RepeatedFailure
from bot.turns.idle_work import IdleWork
from translations import in_shared_language

log = structlog.get_logger(__name__)
PAUSE = 1.0
"""Seconds before a thread is tried again when not even the failure could be recorded."""
START_PAUSE = 1.0
"""Seconds before the inbox is taken up again when it could not be read."""
BROKEN_OFF_SECONDS = 5.0
"""How long it may take to keep what is known of what was broken off."""
LONGEST_NAP = 3600.0
"""Seconds that the timer sleeps at most, so that a changed system clock is noticed within the hour."""
DeliveryHandler = Callable[[Delivery], Awaitable[None]]
"""Handles a delivery and marks it as done in the same transaction as its effects."""
BrokenOff = Callable[[Delivery], Awaitable[None]]
"""Sees to what is known of a delivery that was broken off in the middle, and that is handled again later."""
TellKept = Callable[[Transaction, str], Awaitable[None]]
"""Tells people in a thread that what they do is kept, and that nothing comes of it for now."""


class Engine(Protocol):
    """Hands each thread's deliveries to the handler, one at a time, oldest first; threads wait for nobody else."""

    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread; returns at once."""
        ...

    def resume(self, thread_id: str) -> None:
        """Somebody has decided or answered what this thread waited for: there is something to handle in it."""
        ...

    async def kept(self, tx: Transaction, thread_id: str) -> None:
        """What somebody has decided or answered in this thread is kept. Says so there while nothing may begin."""
        ...

    def wake_when_idle(self, thread_id: str) -> None:
        """There is something to handle in this thread that gives way to all else, for a minute; returns at once."""
        ...

    def timer_was_set(self) -> None:
        """A timer was set: see when the next one is due."""
        ...

    def held_back(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Within it, nothing is begun in this thread. What is being handled goes on."""
        ...

    def has_begun(self, delivery: Delivery) -> bool:
        """Whether the handler was given this delivery, which still waits, or may have been before the last start."""
        ...

    def interrupt(self, thread_id: str) -> None:
        """Break off what is being handled in this thread now. What is broken off is not handled again if its delivery
        is no longer waiting."""
        ...


async def resume_thread(tx: Transaction, engine: Engine, thread_id: str, *settled: str, now: float) -> None:
    """Let a thread go on, now that these approvals, questions, sign-ins or attempts (ids) are settled for good.

    Keeps one delivery for all of them; it carries nothing but an id. For what an earlier delivery of the same click
    settled, it is there already.
    """
    tx.needs(thread_id)
    for each in settled:
        if await deliveries.add(tx, Delivery(f"resume:{each}", thread_id, "resume", {}, False, now, now)):
            await engine.kept(tx, thread_id)
            break
    tx.afterwards(lambda: engine.resume(thread_id))


class ThreadWorkers(ABC):
    """Handles what there is in threads, one delivery at a time in each and `concurrency` threads at a time."""

    def __init__(self, *, concurrency: int, crowd: Crowd) -> None:
        self._limit_of_threads = AdaptiveLimit(concurrency, crowd)
        self._handler: DeliveryHandler | None = None
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._handling: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._interrupted: set[str] = set()
        self._stopping = False
        self._halted = False
        self._halted_at = math.inf
        """In seconds since the epoch: what was accepted later has not begun."""
        self._when_broken_off: BrokenOff | None = None
        self._tell_kept: TellKept | None = None
        self._idle_work = IdleWork(self._workers, self._begin_early)
        self._outage = RepeatedFailure("inbox_not_read")
        self._outage_in_turns = RepeatedFailure("delivery_not_handled")

    @abstractmethod
    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread."""

    def resume(self, thread_id: str) -> None:
        """Somebody has decided or answered what this thread waited for."""
        self._limit_of_threads.decided()
        self.wake(thread_id)

    async def kept(self, tx: Transaction, thread_id: str) -> None:
        """What somebody has decided or answered in this thread is kept. Says so there while nothing may begin."""
        if self._halted and self._tell_kept is not None:
            await self._tell_kept(tx, thread_id)

    def wake_when_idle(self, thread_id: str) -> None:
        """There is something to handle in this thread that gives way to all else, for a minute."""
        if self.is_ready:
            self._idle_work.add(thread_id)

    @abstractmethod
    async def _begin_early(self, thread_id: str) -> None:
        """Have a thread handled although what is in it is not due yet."""

    @abstractmethod
    async def _next(self, thread_id: str) -> tuple[Delivery | None, bool]:
        """What the handler is given next in a thread, and whether anything waits behind it."""

    @abstractmethod
    def _ended(self, thread_id: str) -> None:
        """Nothing is left to handle in a thread for now."""

    @asynccontextmanager
    async def running(
        self, make: Callable[[], Awaitable[DeliveryHandler]], *, shutdown_seconds: float
    ) -> AsyncIterator[asyncio.Task[None]]:
        """Within it, deliveries are handled, the first when `make` has returned their handler.

        Gives the task that ends then, and that fails as `make` does.
        """
        starting = asyncio.create_task(self._start_with(make), name="engine start")
        try:
            yield starting
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.stop(shutdown_seconds)

    async def _start_with(self, make: Callable[[], Awaitable[DeliveryHandler]]) -> None:
        handler = await make()
        while True:
            try:
                await self.start(handler)
            except Exception:
                # Nobody awaits this task while the application runs: without another try the bot would stay silent.
                log.exception("engine_not_started")
                await asyncio.sleep(START_PAUSE)
            else:
                return

    @abstractmethod
    async def start(self, handler: DeliveryHandler) -> None:
        """Take up whatever was left undone, then go on as deliveries come."""

    def interrupt(self, thread_id: str) -> None:
        """Break off what is being handled in this thread now."""
        handling = self._handling.get(thread_id)
        if handling is not None:
            self._interrupted.add(thread_id)
            handling.cancel()

    def halt(self, broken_off: BrokenOff, tell_kept: TellKept, at: float) -> None:
        """Break off everything that is being handled, and begin nothing, until it goes on. What comes meanwhile is kept
        in the inbox. Returns at once.

        Args:
            broken_off: is awaited with each delivery that was being handled, before anybody else can have its thread.
            tell_kept: is awaited in the transaction that keeps what somebody decides or answers meanwhile.
            at: when it was stopped, in seconds since the epoch; it may have been in another process.
        """
        self._halted, self._when_broken_off, self._tell_kept = True, broken_off, tell_kept
        self._halted_at = at
        for thread_id in list(self._handling):
            self.interrupt(thread_id)

    def go_on(self) -> None:
        """Handle what there is again, from where it was broken off. Returns at once."""
        self._halted, self._halted_at = False, math.inf

    @property
    def is_ready(self) -> bool:
        """Whether it handles what comes: not before the start, nor while it stops."""
        return self._handler is not None and not self._stopping

    @property
    def places(self) -> int:
        """How many threads may be handled at once now."""
        return self._limit_of_threads.size

    @property
    def busy(self) -> int:
        """How many threads are being handled or wait for a slot."""
        return len(self._workers)

    async def stop(self, seconds: float) -> None:
        """Start nothing new, give what runs `seconds` to finish, then break it off. It is taken up again at the next
        start."""
        self._stopping = True
        await self._stop_workers(seconds)

    async def _stop_workers(self, seconds: float) -> Sequence[str]:
        """The same, of the workers. Returns the threads in which something was broken off."""
        await self._idle_work.stop()
        workers = list(self._workers.values())
        await self._limit_of_threads.stop()
        if not workers:
            return ()
        await asyncio.wait(workers, timeout=seconds)
        late = dict(self._workers)
        for worker in late.values():
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        log.info("engine_stopped", broken_off=len(late))
        return list(late)

    def _work_on(self, thread_id: str, context: Context | None = None) -> None:
        """Have a thread handled, in a copy of the context if there is one."""
        if thread_id in self._workers:
            self._again.add(thread_id)
            return
        name = f"thread {thread_id}"
        with in_shared_language():  # somebody's message may have led here
            self._workers[thread_id] = asyncio.create_task(self._work(thread_id), name=name, context=context)

    async def _work(self, thread_id: str) -> None:
        try:
            while not self._stopping:
                self._again.discard(thread_id)
                async with self._limit_of_threads.place():
                    # It may have waited until the process ends: what begins now would be broken off in the middle.
                    went_on = not self._stopping and await self._try_next(thread_id)
                if not went_on and thread_id not in self._again:
                    break
        finally:
            del self._workers[thread_id]
            self._idle_work.ended(thread_id)
            self._ended(thread_id)

    async def _try_next(self, thread_id: str) -> bool:
        try:
            went_on = await self._handle_next(thread_id)
        except Overtaken:
            log.debug("place_overtaken", thread_id=thread_id)
            return False
        except Exception as error:
            # Not even the inbox could be read. Nobody else would come back to this thread.
            if is_outage(error):
                self._outage.failed(error, with_traceback=True, thread_id=thread_id)
            else:
                log.exception("inbox_not_read", thread_id=thread_id)
            await asyncio.sleep(PAUSE)
            return True
        else:
            self._outage.worked()
            return went_on

    async def _handle_next(self, thread_id: str) -> bool:
        """Handles the head of a thread. Returns whether there may be more to handle, apart from what has come since."""
        delivery, more = await self._next(thread_id)
        if delivery is None or self._handler is None or self._halted:
            return False
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
            if self._halted and self._when_broken_off is not None:
                await self._see_to_broken_off(delivery, self._when_broken_off)
            elif thread_id not in self._interrupted:
                # Nobody asked for it: a library's own cancellation got out. The delivery still waits.
                log.exception("delivery_cancelled", delivery=delivery.key, thread_id=thread_id)
                await asyncio.sleep(PAUSE)
        except Overtaken:
            raise
        except Exception as error:
            # The handler deals with every failure of a delivery itself; what arrives here is the database failing.
            if is_outage(error):
                self._outage_in_turns.failed(error, with_traceback=True, delivery=delivery.key, thread_id=thread_id)
            else:
                log.exception("delivery_not_handled", delivery=delivery.key, thread_id=thread_id)
            await asyncio.sleep(PAUSE)
        else:
            self._outage_in_turns.worked()
            # What has come since has woken this thread. What is to be tried again does when it is due.
            return more
        finally:
            self._interrupted.discard(thread_id)
            del self._handling[thread_id]
        return True

    async def _see_to_broken_off(self, delivery: Delivery, broken_off: BrokenOff) -> None:
        try:
            async with asyncio.timeout(BROKEN_OFF_SECONDS):
                await broken_off(delivery)
        except Overtaken:
            raise
        except Exception:
            # What could not be kept now is found out when the delivery is handled again.
            log.exception("broken_off_not_seen_to", delivery=delivery.key, thread_id=delivery.thread_id)

    def _is_stopped(self) -> bool:
        worker = asyncio.current_task()
        return worker is not None and worker.cancelling() > 0


class EmbeddedEngine(ThreadWorkers):
    """Handles the inbox in this process, `concurrency` threads at a time."""

    def __init__(self, database: Database, clock: Clock, *, concurrency: int) -> None:
        super().__init__(concurrency=concurrency, crowd=CROWD_ON_SQLITE)
        self._database = database
        self._clock = clock
        self._begun: dict[str, str] = {}
        """Thread → the key of what was begun there last, while there is work in it."""
        self._held: dict[str, asyncio.Event] = {}
        """Thread in which nothing may begin for the moment → the event that ends that."""
        self._timer: asyncio.Task[None] | None = None
        self._timer_set = asyncio.Event()

    async def start(self, handler: DeliveryHandler) -> None:
        """Take up whatever was left undone, then go on as deliveries come."""
        pauses = Pauses()
        async with self._database.reading() as tx:
            left = await deliveries.threads_with_work(tx, self._clock())
            left_for_later = await deliveries.threads_not_due(tx, MEMORY, self._clock())
            for thread_id in left:
                head = await deliveries.head(tx, thread_id, self._clock())
                if head is not None and head.accepted_at <= self._halted_at:
                    # The process may have ended in the middle of it.
                    self._begun[thread_id] = head.key
                await pauses.when_due()
        # Not before: nothing of what was left may pass for not begun. What has come meanwhile is due, for the timers.
        self._handler = handler
        for thread_id in left:
            self.wake(thread_id)
        for thread_id in left_for_later:
            self.wake_when_idle(thread_id)
        self._timer = asyncio.create_task(self._watch_timers(), name="timers")

    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread."""
        if self._handler is None or self._stopping:
            return  # what is on disk is found at the start
        self._limit_of_threads.arrived()
        self._work_on(thread_id)

    def timer_was_set(self) -> None:
        """A timer was set."""
        self._timer_set.set()

    def go_on(self) -> None:
        """Handle what there is again: all of it is due."""
        super().go_on()
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
            return delivery.accepted_at <= self._halted_at
        if delivery.thread_id not in self._handling and deliveries.outages(delivery):
            return False
        return newest == delivery.key

    async def stop(self, seconds: float) -> None:
        """Start nothing new, give what runs `seconds` to finish, then break it off. It is taken up again at the next
        start."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._timer
        await self._stop_workers(seconds)

    async def _next(self, thread_id: str) -> tuple[Delivery | None, bool]:
        while (held := self._held.get(thread_id)) is not None:
            await held.wait()
        if self._halted:
            return None, False
        now = math.inf if thread_id in self._idle_work else self._clock()
        async with self._database.reading() as tx:
            delivery, more = await deliveries.head_and_more(tx, thread_id, now)
        if delivery is not None and self._handler is not None:
            self._begun[thread_id] = delivery.key
        return delivery, more

    async def _begin_early(self, thread_id: str) -> None:
        self._work_on(thread_id)

    def _ended(self, thread_id: str) -> None:
        if not self._halted:  # what was broken off has begun, and goes on later
            self._begun.pop(thread_id, None)

    async def _watch_timers(self) -> None:
        while True:
            self._timer_set.clear()
            try:
                nap = await self._wake_the_due()
            except Exception:
                # Without this task nothing would expire or be tried again any more.
                log.exception("timers_not_read")
                nap = PAUSE
            await happens(self._timer_set, nap)

    async def _wake_the_due(self) -> float:
        """Seconds until the next timer."""
        now = self._clock()
        async with self._database.reading() as tx:
            due = await deliveries.threads_with_work(tx, now)
            upcoming = await deliveries.next_due(tx, now)
        for thread_id in due:
            self.wake(thread_id)
        return LONGEST_NAP if upcoming is None else min(max(upcoming - now, 0.01), LONGEST_NAP)


FEWEST = 1
FIRST = 4
"""Threads at once when there was nothing to do before."""
MEASURE_EVERY = 0.02
"""Seconds between two measurements of the event loop, while there is work."""
LATE = 0.004
"""Seconds. A loop that is later than this has too much to do."""
EASY = 0.001
"""Seconds. A loop that is no later than this has time for more."""
RECENT = 5
"""Measurements over which arrivals are averaged."""
BUSY = 0.7
"""Share of its time that the loop may compute while there is a crowd."""
LATELY = 25
"""Measurements over which it is averaged how many decide: those that work side by side decide in bursts."""
A_WHILE = 10
"""Measurements over which it is averaged how much the loop computes while many decide: several turns that compute."""
BUSY_FOR_A_WHILE = 0.4
"""Share of its time that the loop may compute then."""
LONGEST_REST = 0.5
"""Seconds after which one more thread is worked on, however many decide."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many a second leave turns less of the loop's time, for those who wait for an acknowledgement."""

    arrivals: float
    """Deliveries of any kind: few turns at once."""
    decisions: float
    """Those with which somebody has decided or answered: turns with pauses between them."""


CROWD_ON_SQLITE = Crowd(arrivals=150.0, decisions=math.inf)


@dataclass(frozen=True, slots=True)
class LoopLoad:
    """What is known of the event loop."""

    late: float
    """Seconds by which it woke up too late."""
    busy: float
    """Share of the time since the last measurement in which it computed."""
    busy_for_a_while: float
    """The same of the last measurements together."""
    arrivals: float
    """Deliveries a second that were accepted lately."""
    decisions: float
    """Those of them with which somebody has decided or answered."""


class AdaptiveLimit:
    """How many threads are worked on at once: a semaphore whose size follows how much the event loop has to do, up to
    `most`.

    A fixed number is wrong either way: turns that wait for a slow model may be many, turns that compute may not, since
    each of their steps holds up everybody who waits for an answer to a request.
    """

    def __init__(self, most: int, crowd: Crowd = CROWD_ON_SQLITE) -> None:
        self._most = most
        self._crowd = crowd
        self._limit = min(FIRST, most)
        self.when_changed: Callable[[], None] | None = None
        """Called when more or fewer may be worked on than before."""
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._watch: asyncio.Task[None] | None = None
        self._arrived = self._decided = 0
        """Since the last measurement."""
        self._begun_at = 0.0
        """When a place was given last, by the loop's clock."""

    @property
    def size(self) -> int:
        """How many may be worked on at once now."""
        return self._limit

    def arrived(self) -> None:
        """Something was accepted that a turn is to handle."""
        self._arrived += 1

    def decided(self) -> None:
        """What arrives next is a decision or an answer."""
        self._decided += 1

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, first come first served, and hold it."""
        await self._enter()
        try:
            yield
        finally:
            self._running -= 1
            self._admit()

    async def stop(self) -> None:
        """Stop measuring the event loop. Whoever waits is let in, to see that nothing is begun any more."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        self._limit = self._running + len(self._waiting)
        self._admit()

    async def _enter(self) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._measure(), name="adaptive limit")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._running -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._running < self._limit:
            place = self._waiting.popleft()
            if not place.done():
                self._running += 1
                self._begun_at = asyncio.get_running_loop().time()
                place.set_result(None)

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        load = LoopLoad(0.0, 0.0, 0.0, 0.0, 0.0)
        self._arrived = self._decided = 0  # what came while nothing was to do here did not come within one measurement
        while self._running or self._waiting or load.decisions > self._crowd.decisions:
            began, computed = loop.time(), time.thread_time()
            await asyncio.sleep(MEASURE_EVERY)
            now = loop.time()
            passed, computed = now - began, time.thread_time() - computed
            busy = computed / passed
            load = LoopLoad(
                passed - MEASURE_EVERY,
                busy,
                load.busy_for_a_while + (busy - load.busy_for_a_while) / A_WHILE,
                load.arrivals + (self._arrived / passed - load.arrivals) / RECENT,
                load.decisions + (self._decided / passed - load.decisions) / LATELY,
            )
            self._arrived = self._decided = 0
            limit = next_limit(self._limit, load, most=self._most, crowd=self._crowd)
            if load.decisions > self._crowd.decisions and now - self._begun_at > LONGEST_REST:
                limit = max(limit, min(self._running + 1, self._most))
            self._set(limit)
            self._admit()
        self._set(min(FIRST, self._most))

    def _set(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            if self.when_changed is not None:
                self.when_changed()


def next_limit(limit: int, load: LoopLoad, *, most: int, crowd: Crowd) -> int:
    """Half as many when the loop has too much to do, one more when it has time."""
    if load.decisions > crowd.decisions and load.busy_for_a_while > BUSY_FOR_A_WHILE:
        return limit // 2
    if load.late > LATE or (load.arrivals > crowd.arrivals and load.busy > BUSY):
        return max(FEWEST, limit // 2)
    return min(most, limit + 1) if load.late < EASY else max(FEWEST, limit)
