"""The engine of several processes on one PostgreSQL: Procrastinate hands out places, an epoch per place is the fence.

What there is to do stands in `deliveries` and `posts`. A job of Procrastinate is a mere wake-up for one place, kept in
the transaction that makes work there; a lost or doubled one is harmless. Whoever gets it claims the place, handles and
shows what there is until nothing is left, and releases the place. What comes meanwhile is told by NOTIFY, after the
commit, and found each second by a sweep, which also retries what belongs to workers that have died.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import DeleteJobCondition, Job, Status
from procrastinate.manager import JobManager
from procrastinate.worker import Worker

from bot.domain import Clock
from bot.events import happens
from bot.outbox import Outbox
from bot.records import deliveries, places
from bot.records.claims import Claim, Overtaken, context_under, current_claim, place_of
from bot.records.database import is_outage
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.notifications import Notifications
from bot.records.places import Work
from bot.records.postgres_connections import connection_parameters, connection_pool
from bot.records.postgresql import PostgresDatabase, PostgresTransaction, connection_settings
from bot.repeated_failures import RepeatedFailure, cause_of
from bot.turns import engine
from bot.turns.engine import AdaptiveLimit, BrokenOff, Crowd, DeliveryHandler, TellKept, ThreadWorkers

log = structlog.get_logger(__name__)
HEARTBEAT_SECONDS = 1.0
DEAD_SECONDS = 3.0
"""Seconds without a heartbeat after which a worker is taken for dead and its places are given to others."""
BEAT_SECONDS = DEAD_SECONDS - HEARTBEAT_SECONDS
"""How long a heartbeat may take to arrive: what began longer ago counts for nothing. Fetching and finishing a job may
take as long: who waits longer on one connection would seem to live by the others."""
FORGOTTEN_SECONDS = 60.0
"""Seconds without one after which nothing is known of it any more."""
SWEEP_SECONDS = 1.0
"""Seconds between two looks at all there is to do: what is due by then, and what nobody was told of."""
LONGEST_SWEEP_SECONDS = 6.0
AWAY_SECONDS = 3.0
"""Seconds without any answer of the database after which it is taken to be away. While there is much to do a sweep may
take longer."""
GIVEN_AT_ONCE = 16
"""While a process looks after fewer places than this, it has the jobs of what it accepts from the start. Otherwise any
process fetches them: one that receives every message must not be left alone with all of them."""
POLL_SECONDS = 0.5
"""Seconds between two looks for jobs of which nobody was told."""
CROWD = Crowd(arrivals=30.0, decisions=20.0)
"""Sooner than on SQLite, since to accept takes several times as long; and a decision waits for a dozen statements, each
time also for what turns compute, here and in other processes of the same machine."""
POSTS_SECONDS = 1.0
"""Seconds that posts on their way have to arrive when the process ends."""
OVERTAKEN_SECONDS = 0.1
"""Seconds in which a run that was overtaken may find that out by itself, and roll back what it was writing."""
_TOLD = "countersign_places"
_JOBS = f"procrastinate_queue_v1#{places.QUEUE}"
JOBS_CONNECTIONS = 4
JOBS_SECONDS = 5.0
"""Seconds that Procrastinate waits for a connection."""
_OF_JOBS = "synchronous_commit=off", "statement_timeout=10s", "enable_sort=off"
"""What is lost of jobs and heartbeats in a crash of the server is made up for by the sweep. Jobs are found in the order
of their index: where thousands wait, of which the server has no statistics yet, it would read and sort all for each."""
WOKEN_AT_ONCE = 50
"""Places in one transaction of the sweep, each a trip to the server: where that is far away, so many have to get
through within `LONGEST_SWEEP_SECONDS`, too."""
_REGISTER = "SELECT worker_id, set_config('synchronous_commit', 'on', true) FROM procrastinate_register_worker_v1()"


@dataclass(eq=False, slots=True)
class PlaceRun:
    """One place while this process looks after it."""

    claim: Claim
    context: Context
    """Within which all is done that belongs to the run."""
    ready: dict[str, tuple[Delivery, bool]]
    """Thread → what it begins with, as noted with the claim; and whether anything waits behind it."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    look_again: bool = False
    """There may be more to do there than is known here."""
    slots: Slots | None = None
    """Of its worker, once it has given its own back."""
    closed: bool = False
    """It is being released: what comes is for the next run."""
    broken_off: bool = False
    """Something of it was left in the middle."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self) -> None:
        """There may be more to do there than is known here."""
        self.look_again = True
        self.changed.set()


class PlacesHere:
    """The places that this process looks after."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.runs: dict[str, PlaceRun] = {}

    def open_run(self, thread_id: str) -> PlaceRun | None:
        """The run of the place of a thread or lane, if that is handled here now."""
        run = self.runs.get(place_of(thread_id))
        return None if run is None or run.closed or run.claim.lost else run

    def context_of(self, lane: str) -> Context | None:
        """Within which a lane is sent; `None`: this process does not send it."""
        run = self.open_run(lane)
        return None if run is None else run.context.copy()

    async def check(self) -> None:
        """Raises `Overtaken` when another process looks after the place of this task now."""
        if current_claim() is not None:
            async with self._database.reading() as tx:
                await tx.check_claim()

    def stay(self, give_up: Callable[[], None]) -> Callable[[], None]:
        """Keeps the place of this task here although nothing is left to do there, until what is returned is called.

        Args:
            give_up: called when the place has gone to another process, or this one ends.
        """
        claim = current_claim()
        return (lambda: None) if claim is None else claim.stay(give_up)

    def lane_ended(self, lane: str) -> None:
        """Nothing in the lane is being sent any more."""
        run = self.runs.get(place_of(lane))
        if run is not None:
            run.changed.set()


class DistributedEngine(ThreadWorkers):
    """Handles the threads of the places that Procrastinate gives to this process.

    Args:
        notifications: by which processes tell each other that there is more to do in a place. They have to be started
            before the engine.
        address: of the same database, for Procrastinate's connections.
        concurrency: threads at a time, and places in which threads are handled.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        outbox: Outbox,
        here: PlacesHere,
        clock: Clock,
        *,
        notifications: Notifications,
        address: str,
        concurrency: int,
    ) -> None:
        super().__init__(concurrency=concurrency, crowd=CROWD)
        self._notifications = notifications
        self._database = database
        self._outbox = outbox
        self._here = here
        self._clock = clock
        self._given: dict[str, Delivery] = {}
        """Thread → what its handler was given last."""
        self._connections = connection_pool(
            # Each of its statements is a transaction of its own.
            {**connection_parameters(address, connection_settings(*_OF_JOBS)), "autocommit": True},
            name="jobs",
            most_connections=JOBS_CONNECTIONS,
            timeout=JOBS_SECONDS,
        )
        self._connector = PsycopgConnector()
        self._app = App(connector=self._connector)
        self._app.job_manager = self._jobs = PlaceJobs(self._connector)
        self._app.task(name=places.TASK, queue=places.QUEUE)(self._run_place)
        self._worker: PlaceWorker | None = None
        self._outage_in_places = RepeatedFailure("place_not_read")
        self._sweep_now = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._working: asyncio.Task[None] | None = None
        self._unknown_jobs: set[int] = set()
        """Jobs that this process's worker had at the last look, and did not know of."""
        self._trusting_until = 0.0
        """Until then nobody is taken for dead: after an outage the heartbeats of the others have to arrive first."""
        database.wake_places = self._wake_places
        database.woke_places = self._tell_others
        notifications.subscribe(_TOLD, self._was_told, self._look_everywhere)
        notifications.subscribe(_JOBS, self._look_for_jobs, self._look_for_jobs)

    # ------------------------------------------------------------------------------------------- the port

    async def start(self, handler: DeliveryHandler) -> None:
        """Take part in handling what there is."""
        await self._connections.open()  # it connects when the database is there
        await self._connector.open_async(self._connections)
        self._handler = handler
        self._tasks = [asyncio.create_task(self._sweep(), name="places sweep")]
        self._working = asyncio.create_task(self._keep_working(), name="places worker")

    def wake(self, thread_id: str) -> None:
        """There is something to handle in this thread; who handles it elsewhere is told by the transaction."""
        self._limit_of_threads.arrived()
        run = self._here.open_run(thread_id)
        if run is None or self._stopping:
            return
        run.ready.pop(thread_id, None)  # what is urgent goes first
        self._work_on(thread_id, run.context.copy())

    async def _begin_early(self, thread_id: str) -> None:
        """It is due from now on, for any process; where this one has room, it has the job from the start."""
        async with self._database.writing_apart(thread_id) as tx:
            if await deliveries.due_now(tx, thread_id, self._clock()):
                tx.wakes(thread_id)
                tx.afterwards(partial(self.wake, thread_id))

    def timer_was_set(self) -> None:
        """A timer was set; the sweep finds it when it is due."""

    def halt(self, broken_off: BrokenOff, tell_kept: TellKept, at: float) -> None:
        """As in one process. Posts go on being sent."""
        for thread_id in self._handling:
            if (run := self._here.runs.get(place_of(thread_id))) is not None:
                run.broken_off = True  # for whoever has the place next
        super().halt(broken_off, tell_kept, at)
        for run in self._here.runs.values():
            run.ready.clear()
            run.changed.set()

    def go_on(self) -> None:
        """Handle what there is again. What nobody looks after is found by the sweep."""
        super().go_on()
        self._look_everywhere()
        self._sweep_now.set()

    @asynccontextmanager
    async def held_back(self, thread_id: str) -> AsyncIterator[None]:
        """Whoever locks the place keeps what is noted as begun from changing."""
        yield

    def has_begun(self, delivery: Delivery) -> bool:
        """Whether the handler was given this delivery, or may have been. It was read under the lock of its place."""
        return bool(delivery.begun)

    @property
    def is_ready(self) -> bool:
        """Whether it takes part in handling what there is: not before the start, nor while it stops or PostgreSQL is
        away."""
        return super().is_ready and self._is_answered

    async def stop(self, seconds: float) -> None:
        """Take nothing new, give what runs `seconds` to finish, then break it off. What is left is handed over."""
        self._stopping = True
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]
        for each in self._here.runs.values():
            each.claim.handed_over = True
        # Without the database nothing can be finished.
        broken_off = await self._stop_workers(seconds if self._is_answered else 0.0)
        for thread_id in broken_off:
            if (run := self._here.runs.get(place_of(thread_id))) is not None:
                run.broken_off = True
        runs = list(self._here.runs.values())
        for run in runs:
            run.changed.set()
        if runs:
            overs = [asyncio.ensure_future(run.over.wait()) for run in runs]
            await asyncio.wait(overs, timeout=POSTS_SECONDS)
            for run in runs:
                if not run.over.is_set():
                    await self._outbox.break_off(run.claim.place)
                    run.broken_off = True
                    run.changed.set()
            _, late = await asyncio.wait(overs, timeout=POSTS_SECONDS)
            for waiting in late:
                waiting.cancel()
        tasks = [*self._tasks, *([self._working] if self._working else [])]
        if self._working is not None:
            await asyncio.wait([self._working], timeout=POSTS_SECONDS)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=POSTS_SECONDS)
        await self._connections.close(timeout=POSTS_SECONDS)

    # ------------------------------------------------------------------------------------------- a place

    async def _run_place(self, place: str) -> None:
        """The job: see to all that there is to do in a place."""
        while (before := self._here.runs.get(place)) is not None:
            before.look()
            await before.over.wait()
        claimed = None if self._stopping else await self._claim(place)
        if claimed is None:
            return
        run, work = claimed
        self._here.runs[place] = run
        run.claim.when_changed, run.claim.check = run.changed.set, self._here.check
        try:
            self._take_up(run, work, left_over=run.claim.taken_over)
            await self._see_to(run)
        finally:
            await self._break_off(run)
            if run.slots is not None:
                run.slots.take_back()
            del self._here.runs[place]
            run.over.set()

    async def _claim(self, place: str) -> tuple[PlaceRun, Work] | None:
        """Takes over a place, and notes what is begun there with that; `None`: nothing is to be done there."""
        try:
            async with self._database.claiming(place) as (tx, claim):
                work, ready = await self._begin_work(tx, place)
                if not work:
                    raise _NothingToDo  # noqa: TRY301  # rolls back
        except _NothingToDo:
            return None
        return PlaceRun(claim, context_under(claim), ready), work

    async def _begin_work(self, tx: PostgresTransaction, place: str) -> tuple[Work, dict[str, tuple[Delivery, bool]]]:
        """What is to be done there now, with what its threads begin with."""
        if self._halted:
            return self._wanted(await places.work_in(tx, place, self._clock())), {}
        return await places.begin_work(tx, place, self._clock())

    def _wanted(self, work: Work) -> Work:
        """What of it is to be done now: while nothing may be handled, posts are shown all the same."""
        return Work({}, work.lanes) if self._halted else work

    def _take_up(self, run: PlaceRun, work: Work, *, left_over: bool = False) -> None:
        self._outbox.send(work.lanes, left_over=left_over)
        if self._stopping or self._halted:
            return
        for thread_id, stops in work.threads.items():
            if stops and thread_id in self._handling and self._given[thread_id].kind != "stop":
                self.interrupt(thread_id)  # it was begun before the stop was there, which goes first
            self._work_on(thread_id, run.context.copy())

    async def _see_to(self, run: PlaceRun) -> None:
        """Until nothing is left to do there, or another process has claimed it."""
        while not run.claim.lost:
            run.changed.clear()
            try:
                if run.look_again:
                    run.look_again = False
                    run.ready.clear()
                    self._take_up(run, await self._look(run))
                if self._is_busy(run) or (run.claim.stays_for and not self._stopping):
                    self._give_back_the_slot(run)
                    await run.changed.wait()
                elif await self._release(run):
                    return
                self._outage_in_places.worked()
            except Overtaken:
                run.claim.lose()
            except Exception as error:
                if self._stopping:
                    return  # the next one to claim it finds it held
                if is_outage(error):
                    self._outage_in_places.failed(error, with_traceback=True, place=run.claim.place)
                else:
                    log.exception("place_not_read", place=run.claim.place)
                run.look_again = True
                await asyncio.sleep(engine.PAUSE)

    async def _look(self, run: PlaceRun) -> Work:
        """What there is to do there. Where it could not be released, nobody knows whether it was: it is held again."""
        place = run.claim.place
        if not run.closed:
            async with self._database.reading() as tx:
                return await places.work_in(tx, place, self._clock())
        async with self._database.writing_apart(place) as tx:
            if tx.as_locked(place).epoch != run.claim.epoch:
                raise Overtaken(place)
            await places.hold(tx, run.claim)
            work = await places.work_in(tx, place, self._clock())
        run.closed = False
        return work

    def _is_busy(self, run: PlaceRun) -> bool:
        return self._has_workers(run) or self._outbox.is_sending(run.claim.place)

    def _has_workers(self, run: PlaceRun) -> bool:
        return any(place_of(each) == run.claim.place for each in self._workers)

    def _give_back_the_slot(self, run: PlaceRun) -> None:
        """Where only posts are left: while a platform is away, others must not wait for it."""
        if run.slots is None and self._worker is not None and not self._has_workers(run):
            run.slots = self._worker.slots
            run.slots.give_back()

    async def _release(self, run: PlaceRun) -> bool:
        """Lets others have the place, unless there is more to do in it. Who makes work there locks it, too."""
        run.closed, place = True, run.claim.place
        async with self._database.writing_apart(place) as tx:
            if tx.as_locked(place).epoch != run.claim.epoch:
                raise Overtaken(place)
            work = self._wanted(await places.work_in(tx, place, self._clock()))
            if work and not self._stopping:
                run.closed = False
                self._take_up(run, work)
                return False
            if not work and not run.broken_off:
                await places.leave(tx, place)
                return True
            if not run.broken_off:
                await places.release(tx, run.claim)
            if work:
                tx.wakes(place)
            else:
                await places.drop_waiting_job(tx, place)
        return True

    async def _break_off(self, run: PlaceRun) -> None:
        """Without a word: who has taken over the place finds what was left in the middle."""
        place = run.claim.place
        if run.claim.lost:
            log.info("place_overtaken", place=place)
        workers = [worker for thread_id, worker in self._workers.items() if place_of(thread_id) == place]
        if workers and run.claim.lost:
            await asyncio.wait(workers, timeout=OVERTAKEN_SECONDS)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._outbox.break_off(place)
        for give_up in list(run.claim.stays_for.values()):
            give_up()

    async def _next(self, thread_id: str) -> tuple[Delivery | None, bool]:
        run = self._here.runs.get(place_of(thread_id))
        if run is None or run.claim.lost or self._halted:
            return None, False
        delivery, more = run.ready.pop(thread_id, (None, False))
        if delivery is None:
            async with self._database.writing(thread_id) as tx:
                delivery, more = await deliveries.head_and_more(tx, thread_id, self._clock())
                if delivery is not None:
                    await places.begin(tx, delivery)
        if delivery is not None:
            self._given[thread_id] = delivery
        return delivery, more

    def _ended(self, thread_id: str) -> None:
        self._given.pop(thread_id, None)
        run = self._here.runs.get(place_of(thread_id))
        if run is not None:
            run.changed.set()

    # ------------------------------------------------------------------------------------------- others

    @asynccontextmanager
    async def _wake_places(self, tx: PostgresTransaction, woken: Mapping[str, bool]) -> AsyncIterator[None]:
        """Where there is room, the worker of this process has the jobs from the start: nobody has to fetch them."""
        worker = None if self._stopping else self._worker
        free = [place for place, handles in woken.items() if handles and tx.has_free(place)]
        with nullcontext(places.NO_TAKERS) if worker is None else worker.room_for(free) as takers:
            given_at = asyncio.get_running_loop().time()
            given = [Job.from_row(row) for row in await places.wake(tx, woken, takers)]
            if given and worker is not None:
                tx.afterwards(partial(worker.take, given, given_at))
            yield

    def _tell_others(self, names: Sequence[str]) -> None:
        """Whoever looks after these places is told that there is more to do. Here it is known."""
        self._notifications.tell(_TOLD, *(name for name in names if self._here.open_run(name) is None))

    def _was_told(self, place: str) -> None:
        if (run := self._here.runs.get(place)) is not None:
            run.look()

    def _look_everywhere(self) -> None:
        for run in self._here.runs.values():
            run.look()

    def _look_for_jobs(self, _job: str = "") -> None:
        if self._worker is not None:
            self._worker.look()

    @property
    def _is_answered(self) -> bool:
        return time.monotonic() - self._database.answered_at < AWAY_SECONDS

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        failure = RepeatedFailure("places_not_swept", over="places_swept_again")
        while True:
            try:
                async with asyncio.timeout(LONGEST_SWEEP_SECONDS):
                    await self._sweep_once()
            except Exception as error:  # noqa: BLE001  # the database fails in many ways, and may be back any time
                failure.failed(error)
                if not (isinstance(error, TimeoutError) and self._is_answered):
                    self._trusting_until = loop.time() + DEAD_SECONDS
            else:
                failure.worked()
            self._sweep_now.clear()
            await happens(self._sweep_now, SWEEP_SECONDS)

    async def _sweep_once(self) -> None:
        """In each process, since each has to look after its own places, and all of them after those of the dead."""
        runs = dict(self._here.runs)
        async with self._database.reading() as tx:
            epochs = await places.epochs(tx, runs) if runs else {}
            work = self._wanted(await places.all_work(tx, self._clock()))
            wanted = {place_of(name) for name in (*work.threads, *work.lanes)}
            elsewhere = wanted - self._here.runs.keys()
            jobless = await places.jobless(tx, elsewhere) if elsewhere else ()
        for place, run in runs.items():
            if epochs.get(place) != run.claim.epoch:
                run.claim.lose()
            elif place in wanted:
                self._take_up_here(run, work)
        if asyncio.get_running_loop().time() >= self._trusting_until:
            await self._take_away_jobs()
        for some in (jobless[at : at + WOKEN_AT_ONCE] for at in range(0, len(jobless), WOKEN_AT_ONCE)):
            async with self._database.writing_apart(UNLOCKED) as tx:  # the last, since they may be many
                tx.wakes(*some)

    async def _take_away_jobs(self) -> None:
        """Of the dead, and those that nobody knows of."""
        stalled = await self._app.job_manager.get_stalled_jobs(queue=places.QUEUE, seconds_since_heartbeat=DEAD_SECONDS)
        for job in stalled:
            if job.id is not None and job.lock is not None and job.lock not in self._here.runs:
                async with self._database.writing_apart(UNLOCKED) as tx:  # if it is still that worker's
                    if await places.take_away_job(tx, job.id, job.worker_id):
                        tx.wakes(job.lock)
                        log.info("place_taken_over", place=job.lock)
        await self._let_go_of_unknown_jobs()

    async def _let_go_of_unknown_jobs(self) -> None:
        """A job is given out, or ended, and the connection breaks before both sides know it. Its worker lives, so that
        nobody takes it for dead, and as long as it seems to have the job nobody gets another one for the place."""
        worker = self._worker
        if worker is None or worker.worker_id is None:
            return
        async with self._database.reading() as tx:
            given = await places.jobs_given_to(tx, worker.worker_id)
        unknown = given.keys() - worker.job_ids
        for job in unknown & self._unknown_jobs:  # at the first look it may be on its way
            async with self._database.writing_apart(UNLOCKED) as tx:
                if await places.take_away_job(tx, job, worker.worker_id):
                    tx.wakes(given[job])
                    log.info("job_let_go", place=given[job])
        self._unknown_jobs = unknown

    def _take_up_here(self, run: PlaceRun, work: Work) -> None:
        if self._here.open_run(run.claim.place) is not run:
            return
        place = run.claim.place
        threads = {thread_id: stops for thread_id, stops in work.threads.items() if place_of(thread_id) == place}
        lanes = [lane for lane in work.lanes if place_of(lane) == place]
        if any(threads[each] or each not in self._workers for each in threads) or not self._outbox.is_sending(place):
            self._take_up(run, Work(threads, lanes))

    # ------------------------------------------------------------------------------------------- the worker

    async def _keep_working(self) -> None:
        """A worker ends when something of it fails; another one begins."""
        failure = RepeatedFailure("worker_ended")
        while not self._stopping:
            self._worker = PlaceWorker(
                self._app,
                self._jobs,
                self._limit_of_threads,
                queues=[places.QUEUE],
                name="places",
                fetch_job_polling_interval=POLL_SECONDS,
                abort_job_polling_interval=FORGOTTEN_SECONDS,  # nobody aborts any
                shutdown_graceful_timeout=FORGOTTEN_SECONDS,
                listen_notify=False,  # `Notifications` do
                delete_jobs=DeleteJobCondition.ALWAYS,
                install_signal_handlers=False,
                update_heartbeat_interval=HEARTBEAT_SECONDS,
                stalled_worker_timeout=FORGOTTEN_SECONDS,
            )
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except Exception as error:  # noqa: BLE001  # as above
                failure.failed(error)
            else:
                failure.worked()
            if not self._stopping:
                await asyncio.sleep(engine.PAUSE)


class _NothingToDo(Exception):  # noqa: N818  # rolls back a claim
    pass


class Slots:
    """For how many jobs there is room: for as many as threads may be worked on at once now. A place that is claimed and
    has to wait could be looked after by another process meanwhile. A job may give its slot back before it ends."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        self._limit = limit
        self.used = 0
        self._owed = 0
        self._changed = asyncio.Event()
        limit.when_changed = self._changed.set

    @property
    def size(self) -> int:
        """How many there are now."""
        return self._limit.size

    async def acquire(self) -> None:
        """Wait for room for one more job."""
        while self.used >= self.size:
            self._changed.clear()
            await self._changed.wait()
        self.used += 1

    def give_back(self) -> None:
        """The job needs its slot no more."""
        self.used -= 1
        self._changed.set()

    def take_back(self) -> None:
        """The job that has given it back ends now, so its worker releases it once more."""
        self._owed += 1

    def release(self) -> None:
        """A job has ended."""
        if self._owed:
            self._owed -= 1
        else:
            self.give_back()


class PlaceJobs(JobManager):
    """Procrastinate's, with jobs that a worker has from the start, and one thing that waits for the disk."""

    def __init__(self, connector: PsycopgConnector) -> None:
        super().__init__(connector)
        self.given: Callable[[], Job | None] = lambda: None
        """Returns one of those that has not begun, if there is one."""
        self.look = True
        """Whether there may be others in the database."""

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Returns a job that the worker has already, else one that it gets now; `None`: there is none."""
        found = self.given()
        while found is None and self.look:
            self.look = False  # what is said meanwhile counts
            async with asyncio.timeout(BEAT_SECONDS):  # what is given out nevertheless is let go of
                found = await super().fetch_job(queues, worker_id)
            self.look |= found is not None
            found = found or self.given()
        return found

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001  # as it is called
        """The job has ended. Raises `TimeoutError` when nobody says that this was noted."""
        async with asyncio.timeout(BEAT_SECONDS):
            await super().finish_job(job, status, delete_job)

    async def register_worker(self) -> int:
        """Returns a number that no other worker ever has. PostgreSQL would give it out again after a crash that took
        the first worker back: two would beat for each other, and take each other's jobs for forgotten ones."""
        row = await self.connector.execute_query_one_async(_REGISTER)
        number: int = row["worker_id"]
        return number


class PlaceWorker(Worker):
    """Procrastinate's worker, which goes on when the database is away for a moment, and looks for the next job of a
    place when one has ended."""

    _alive_at = 0.0
    """When its last heartbeat began that arrived."""

    def __init__(self, app: App, jobs: PlaceJobs, limit: AdaptiveLimit, **options: Any) -> None:
        super().__init__(app, **options)
        self.slots = Slots(limit)
        self._jobs = jobs
        jobs.given = self._next_given
        self._given_at: deque[tuple[float, Job]] = deque()
        """What it has from the start and has not begun, since when by the loop's clock; the oldest first."""
        self._promised = 0
        """Jobs that it is about to have from the start."""
        self._no_heartbeat = RepeatedFailure("heartbeat_failed")
        self._no_jobs = RepeatedFailure("jobs_not_fetched")

    @property  # type: ignore[override]  # what it sets itself in the beginning; of a semaphore it uses what `Slots` have
    def _job_semaphore(self) -> Slots:
        return self.slots

    @_job_semaphore.setter
    def _job_semaphore(self, _: asyncio.Semaphore) -> None:
        pass

    @property
    def job_ids(self) -> set[int]:
        """The jobs that it works on, or is about to."""
        running = (context.job for context in self._running_jobs.values())
        return {job.id for job in (*running, *(job for _, job in self._given)) if job.id is not None}

    def look(self) -> None:
        """There may be a job."""
        self._jobs.look = True
        self._new_job_event.set()

    @contextmanager
    def room_for(self, free: Sequence[str]) -> Iterator[Mapping[str, int]]:
        """As many of these places as it can look after at once, each with its number; nobody else gets that room within
        the block."""
        busy = self.slots.used + len(self._given) + self._promised
        room = min(GIVEN_AT_ONCE, self.slots.size) - busy if self._beats and not self._stop_event.is_set() else 0
        taken = {} if self.worker_id is None else dict.fromkeys(free[: max(room, 0)], self.worker_id)
        self._promised += len(taken)
        try:
            yield taken
        finally:
            self._promised -= len(taken)

    def take(self, jobs: Iterable[Job], given_at: float) -> None:
        """Has it work on these, which it has in the database since this moment of the loop's clock. After some time it
        lets go of them: others may have more, or have taken it for dead, and them away."""
        self._given.extend((given_at, job) for job in jobs)
        self._new_job_event.set()

    def _next_given(self) -> Job | None:
        return self._given.popleft()[1] if self._given and self._beats else None

    @property
    def _given(self) -> deque[tuple[float, Job]]:
        """Without what it had no time to begin, of which it lets go."""
        now = asyncio.get_running_loop().time()
        while self._given_at and now - self._given_at[0][0] >= HEARTBEAT_SECONDS:
            self._given_at.popleft()
        return self._given_at

    @property
    def _beats(self) -> bool:
        """Whether nobody takes it for dead, or is about to."""
        return asyncio.get_running_loop().time() - self._alive_at <= BEAT_SECONDS

    async def _shutdown(self, side_tasks: list[asyncio.Task[Any]]) -> None:
        """Its heartbeats end with it, and not before what runs has had its time: others would take that over."""
        beating = asyncio.create_task(self._update_heartbeat(), name="last heartbeats")
        try:
            await super()._shutdown(side_tasks)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _update_heartbeat(self) -> None:
        """One that gets no answer holds up no other, which may go by another connection."""
        async with asyncio.TaskGroup() as beats:
            while True:
                beats.create_task(self._beat())
                await asyncio.sleep(self.update_heartbeat_interval)

    async def _beat(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            if self.worker_id is not None:
                async with asyncio.timeout(BEAT_SECONDS):
                    await self.app.job_manager.update_heartbeat(self.worker_id)
                if not self._beats:
                    self._given.clear()  # others may have taken them away
                self._alive_at = max(self._alive_at, began)
                self._no_heartbeat.worked()
                self.look()
        except Exception as error:  # noqa: BLE001  # as above
            self._no_heartbeat.failed(error)

    async def _fetch_and_process_jobs(self) -> None:
        if not self._beats:
            return
        if not self._given:
            self._jobs.look = True  # nothing else woke it
        try:
            try:
                await super()._fetch_and_process_jobs()  # type: ignore[no-untyped-call]
            except ConnectorException as error:
                if not isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
                    raise
                # Others took it for dead, and have forgotten it.
                self.worker_id = await self.app.job_manager.register_worker()
        except Exception as error:  # noqa: BLE001  # as above
            self._no_jobs.failed(error)
        else:
            self._no_jobs.worked()

    async def _process_job(self, context: Any) -> None:
        try:
            await super()._process_job(context)
        except (ConnectorException, TimeoutError) as error:
            # It was taken away from this worker, or the database is away: whoever sweeps finds what is left.
            log.debug("job_not_finished", cause=cause_of(error))
        finally:
            self.look()
