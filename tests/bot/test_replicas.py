"""Several processes on one PostgreSQL, each with an engine: here two of them in one, with databases of their own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from procrastinate.exceptions import ConnectorException

from bot.domain import Clock, Message, Notice, Person, Settled
from bot.inbox import Inbox
from bot.outbox import Outbox, notice
from bot.platform import PostFailed
from bot.records import deliveries, places, posts, tables, threads
from bot.records.claims import Overtaken
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.notifications import Notifications
from bot.records.postgres_connections import connection_parameters
from bot.records.postgresql import PostgresDatabase, PostgresTransaction, connection_settings, postgres_database
from bot.turns import replicas
from bot.turns.replicas import DistributedEngine, PlacesHere
from tests.bot.conftest import BEGINNING, RecordingPlatform, SetClock, place, until
from tests.bot.stubs import make_parts
from tests.support import postgres_cluster

pytestmark = pytest.mark.postgres
THREAD = "chat:T1"
ANA = Person("chat:ana", "Ana")


@dataclass
class Replica:
    """One process, as far as the engine is concerned."""

    database: PostgresDatabase
    outbox: Outbox
    here: PlacesHere
    engine: DistributedEngine
    inbox: Inbox
    platform: RecordingPlatform
    notifications: Notifications
    handled: list[str] = field(default_factory=list)
    broken_off: list[str] = field(default_factory=list)
    hold: asyncio.Event | None = None
    """While it is not set, nothing that the handler was given ends."""
    overtaken: list[str] = field(default_factory=list)

    async def handle(self, delivery: Delivery) -> None:
        self.handled.append(delivery.key)
        try:
            if self.hold is not None and delivery.kind != "stop":
                await self.hold.wait()
            async with self.database.writing(delivery.thread_id) as tx:
                await self.outbox.say(tx, notice(f"to {delivery.key}", delivery.thread_id, Notice("Done.")))
                await deliveries.done(tx, delivery.key)
        except asyncio.CancelledError:
            self.broken_off.append(delivery.key)
            raise
        except Overtaken:
            self.overtaken.append(delivery.key)
            raise

    async def accept(self, key: str, at: str = THREAD) -> None:
        await self.inbox.accept(Message(key, place(at), ANA, "hello", 0.0, addressed=True))


async def open_replica(address: str, clock: Clock, *, concurrency: int = 8) -> Replica:
    database = postgres_database(address, most_connections=8)
    await database.open()
    here, platform = PlacesHere(database), RecordingPlatform()
    outbox = Outbox(database, clock, {platform.name: platform}, pause=lambda *_: 0.0, lanes_here=here)
    notifications = Notifications(address)
    engine = DistributedEngine(
        database, outbox, here, clock, notifications=notifications, address=address, concurrency=concurrency
    )
    parts = make_parts(database, outbox, clock, lambda: "id", engine=engine)
    made = Replica(database, outbox, here, engine, parts.services.inbox, platform, notifications)
    await notifications.start()
    await engine.start(made.handle)
    await until(lambda: engine.is_ready)
    return made


async def close(replica: Replica) -> None:
    await replica.engine.stop(0.2)
    await replica.outbox.stop(0.2)
    await replica.notifications.stop()
    await replica.database.close()


@pytest.fixture
def address() -> str:
    return postgres_cluster.emptied_database()


@pytest.fixture
async def a(address: str, clock: SetClock) -> AsyncIterator[Replica]:
    made = await open_replica(address, clock)
    yield made
    await close(made)


@pytest.fixture
async def b(address: str, clock: SetClock, a: Replica) -> AsyncIterator[Replica]:
    made = await open_replica(address, clock)
    yield made
    await close(made)


async def held(*replicas_: Replica) -> None:
    """Nothing that is begun on these ends from now on, until `let_go`."""
    for each in replicas_:
        each.hold = asyncio.Event()


def let_go(*replicas_: Replica) -> None:
    for each in replicas_:
        assert each.hold is not None
        each.hold.set()


async def at_work(*replicas_: Replica) -> None:
    """Their workers are known to live."""
    await until(lambda: all(each.engine._worker and each.engine._worker._beats for each in replicas_))


async def at_rest(*replicas_: Replica) -> None:
    await until(lambda: not any(each.here.runs for each in replicas_))


async def without_jobs(replica: Replica) -> None:
    """Wait until there are none: the last one ends after its run."""
    async with asyncio.timeout(30):
        while await jobs(replica.database):
            await asyncio.sleep(0.005)


def without_sweep(*replicas_: Replica) -> None:
    """What it finds within a second has to be known at once."""
    for each in replicas_:
        each.engine._tasks[0].cancel()


def deaf(replica: Replica) -> None:
    """It hears and sees nothing of others any more, as if it had been stopped, but goes on with what it does."""
    for task in (*replica.engine._tasks, *replica.notifications._tasks):
        task.cancel()


async def waiting(database: Database) -> list[str]:
    async with database.reading() as tx:
        return [str(row.key) for row in await tx.all(sa.select(tables.deliveries).where(_WAITS))]


async def jobs(database: Database) -> list[str]:
    async with database.reading() as tx:
        return [row.lock for row in await tx.all(sa.text("SELECT lock FROM procrastinate_jobs"))]


_WAITS = tables.deliveries.c.status == "waiting"


# ------------------------------------------------------------------------------------------ once, in order


async def test_a_message_is_handled_once_and_answered(a: Replica, b: Replica) -> None:
    """Rule 1."""
    await b.accept("m1")
    await until(lambda: a.platform.done + b.platform.done)
    await at_rest(a, b)
    assert a.handled + b.handled == ["m1"]
    assert a.platform.done + b.platform.done == [("send", "to m1", 1)]


async def test_what_comes_to_several_is_handled_one_at_a_time_in_each_thread(a: Replica, b: Replica) -> None:
    """Rule 2."""
    at_once: dict[str, int] = {}
    most = 0

    def counting(replica: Replica) -> Callable[[Delivery], Awaitable[None]]:
        async def handle(delivery: Delivery) -> None:
            nonlocal most
            at_once[delivery.thread_id] = at_once.get(delivery.thread_id, 0) + 1
            most = max(most, at_once[delivery.thread_id])
            await asyncio.sleep(0.002)
            await replica.handle(delivery)
            at_once[delivery.thread_id] -= 1

        return handle

    for each in (a, b):
        each.engine._handler = counting(each)
    everything = [(f"m{number}", f"chat:T{number % 4}") for number in range(40)]
    await asyncio.gather(*((a, b)[n % 2].accept(key, at) for n, (key, at) in enumerate(everything)))
    await until(lambda: len(a.handled + b.handled) >= 40)
    await at_rest(a, b)
    assert sorted(a.handled + b.handled) == sorted(key for key, _ in everything)
    assert most == 1
    assert not await waiting(a.database)


async def test_a_process_handles_what_it_accepts_while_it_has_room(
    a: Replica, b: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to fetch that."""
    await at_work(a, b)
    monkeypatch.setattr(replicas, "BEAT_SECONDS", 60.0)
    for number in range(10):
        await a.accept(f"m{number}", f"chat:T{number}")
        await until(lambda n=number: len(a.handled + b.handled) > n)  # type: ignore[misc]
        await at_rest(a, b)
    assert not b.handled
    await without_jobs(a)


async def test_others_handle_what_a_process_accepts_beyond_its_room(address: str, clock: SetClock) -> None:
    small, other = await open_replica(address, clock, concurrency=2), await open_replica(address, clock)
    await at_work(small, other)
    await held(small, other)
    for number in range(6):
        await small.accept(f"m{number}", f"chat:T{number}")
    await until(lambda: len(small.handled + other.handled) == 6)
    assert len(small.handled) <= 2
    let_go(small, other)
    await at_rest(small, other)
    for each in (small, other):
        await close(each)


async def test_a_message_to_a_thread_that_is_released_just_then_is_handled(a: Replica, b: Replica) -> None:
    """The job of the run before may be there still, so that none is given for the place."""
    for number in range(40):
        await (a, b)[number % 2].accept(f"m{number}")
        await until(lambda n=number: len(a.handled + b.handled) == n + 1)  # type: ignore[misc]
    await at_rest(a, b)
    assert sorted(a.handled + b.handled) == sorted(f"m{number}" for number in range(40))


async def test_what_a_process_accepted_and_had_no_time_to_begin_is_handled_by_others(a: Replica, b: Replica) -> None:
    """It has the job, by the database's word, and knows nothing of it: the connection broke in the commit."""
    await at_work(a)
    assert a.engine._worker is not None
    a.engine._worker.take = lambda *_: None  # type: ignore[method-assign]
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    assert a.handled + b.handled == ["m1"]
    await at_rest(a, b)


@pytest.mark.parametrize("silent", ["execute_query_one_async", "execute_query_async"], ids=["fetching", "finishing"])
async def test_a_connection_for_jobs_that_gets_no_answer_holds_nothing_up_for_long(
    a: Replica, b: Replica, silent: str
) -> None:
    """While another one says that the worker lives, and so has what it was given."""
    await at_work(a, b)
    ask, asked, never = getattr(a.engine._connector, silent), asyncio.Event(), asyncio.Event()

    async def unanswered(query: str, **values: Any) -> Any:
        if "fetch_job" not in query and "finish_job" not in query:
            return await ask(query=query, **values)
        asked.set()
        return await never.wait()

    setattr(a.engine._connector, silent, unanswered)
    await a.accept("m1", "chat:T1")
    await asked.wait()
    async with asyncio.timeout(8):
        await a.accept("m2", "chat:T2")
        await b.accept("m3", "chat:T1")
        await until(lambda: len(a.handled + b.handled) >= 3)
    assert sorted(a.handled + b.handled) == ["m1", "m2", "m3"]
    await b.engine.stop(0.2)


async def test_what_a_process_accepts_while_its_worker_is_forgotten_is_kept(a: Replica, b: Replica) -> None:
    """Its number is deleted, but not for good yet."""
    await at_work(a, b)
    await b.engine.stop(0.2)
    assert a.engine._worker is not None
    async with b.database.writing_apart(UNLOCKED) as tx:
        await tx.run(sa.text(f"DELETE FROM procrastinate_workers WHERE id = {a.engine._worker.worker_id}"))
        async with asyncio.timeout(5):
            await a.accept("m1")
    await until(lambda: a.handled == ["m1"])


async def test_a_worker_that_ends_is_known_to_live_while_it_finishes(a: Replica, b: Replica) -> None:
    """Else others would take over what is given time to end."""
    await at_work(a, b)
    await held(a)
    await a.accept("m1")
    await until(lambda: a.handled)
    assert a.engine._worker is not None
    still = f"SELECT 1 FROM procrastinate_workers WHERE id = {a.engine._worker.worker_id} AND last_heartbeat > :then"
    async with b.database.reading() as tx:
        row = await tx.one(sa.text("SELECT clock_timestamp() + interval '1.5 seconds' AS then"))
        assert row is not None
        ending = asyncio.create_task(a.engine.stop(20.0))
        async with asyncio.timeout(10):
            while await tx.one(sa.text(still), {"then": row.then}) is None:
                await asyncio.sleep(0.01)
    let_go(a)
    await ending
    assert (a.handled, a.broken_off, b.handled) == (["m1"], [], [])


async def test_a_sweep_that_is_broken_off_has_woken_some_of_many_places(
    a: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is far away, and nobody has a job for what is due."""
    wake = places.wake

    async def slowly(tx: PostgresTransaction, woken: Mapping[str, bool], *takers: Any) -> Any:
        await asyncio.sleep(0.05 * len(woken))
        return await wake(tx, woken, *takers)

    monkeypatch.setattr(a.database, "wake_places", None)
    for number in range(12):
        await a.accept(f"m{number}", f"chat:T{number}")
    monkeypatch.setattr(replicas, "LONGEST_SWEEP_SECONDS", 0.4)
    monkeypatch.setattr(replicas, "WOKEN_AT_ONCE", 2)
    monkeypatch.setattr(places, "wake", slowly)
    monkeypatch.setattr(a.database, "wake_places", a.engine._wake_places)
    await until(lambda: len(a.handled) == 12)
    await at_rest(a)


async def test_a_job_is_found_without_reading_all_that_wait(address: str) -> None:
    """The server has no statistics of them yet."""
    settings = connection_settings(*replicas._OF_JOBS)
    async with await psycopg.AsyncConnection.connect(**connection_parameters(address, settings)) as connection:
        await connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock) "
            "SELECT 'places', 'run_place', 'p' || n, 'p' || n FROM generate_series(1, 3000) AS n"
        )
        fetching = "SELECT * FROM procrastinate_fetch_job_v2(ARRAY['places'], NULL)"
        explained = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {fetching}")
        ((plan,),) = await explained.fetchall()
        await connection.rollback()
    assert plan[0]["Plan"]["Shared Hit Blocks"] < 1_000


async def test_whoever_waits_for_a_place_claims_it_as_it_was_left(a: Replica, b: Replica) -> None:
    mine = await a.database.claim(THREAD)
    async with a.database.writing(THREAD) as tx:
        claiming = asyncio.create_task(b.database.claim(THREAD))
        await until_somebody_waits_for_a_lock(a.database, claiming)
        await places.leave(tx, THREAD)
    assert (await claiming).follows(mine)


async def test_what_another_accepts_is_handled_in_the_run_that_is_under_way(a: Replica, b: Replica) -> None:
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    owner, other = (a, b) if a.handled else (b, a)
    await other.accept("m2")
    let_go(a, b)
    await until(lambda: len(a.handled + b.handled) == 2)
    assert owner.handled == ["m1", "m2"]
    await at_rest(a, b)
    async with a.database.reading() as tx:
        assert await places.epochs(tx, [THREAD]) == {THREAD: 1}  # each run raises it


async def test_what_is_shown_in_another_place_is_sent_there(a: Replica, b: Replica) -> None:
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    elsewhere = notice("card", THREAD, Notice("Please decide."), place=place("chat:C9"))
    async with b.database.writing(THREAD) as tx:
        await b.outbox.say(tx, elsewhere)
    await until(lambda: a.platform.done + b.platform.done)
    assert a.platform.done + b.platform.done == [("send", "card", 1)]
    let_go(a, b)
    await at_rest(a, b)


async def test_nobody_waits_for_posts_that_cannot_be_sent(address: str, clock: SetClock) -> None:
    """Rule 2."""
    only = await open_replica(address, clock, concurrency=1)
    only.platform.held = {THREAD: asyncio.Event()}
    await only.accept("m1")
    await until(lambda: only.platform.begun)
    await only.accept("m2", "chat:T2")
    await only.accept("m3", "chat:T3")
    await until(lambda: only.handled == ["m1", "m2", "m3"])
    only.platform.held[THREAD].set()
    await until(lambda: len(only.platform.done) == 3)
    await at_rest(only)
    await only.accept("m4", "chat:T4")
    await until(lambda: "m4" in only.handled)
    await at_rest(only)
    await close(only)


async def test_what_is_shown_elsewhere_does_not_wait_for_all_turns_that_wait(address: str, clock: SetClock) -> None:
    """Rule 2: who is asked to decide is not behind everybody who wants something."""
    only = await open_replica(address, clock, concurrency=1)
    await held(only)
    await only.accept("m1")
    await until(lambda: only.handled)
    for number in range(2, 6):
        await only.accept(f"m{number}", f"chat:T{number}")
    async with only.database.writing(THREAD) as tx:
        await only.outbox.say(tx, notice("card", THREAD, Notice("Please decide."), place=place("chat:C9")))
    let_go(only)
    await until(lambda: len(only.platform.done) == 6)
    shown = [post for _, post, _ in only.platform.done]
    assert shown.index("card") < shown.index("to m2")
    await at_rest(only)
    await close(only)


async def test_a_job_is_kept_with_the_work_or_not_at_all(address: str, a: Replica) -> None:
    """Rule 1."""
    await a.engine.stop(0.1)
    with pytest.raises(ZeroDivisionError):
        async with a.database.writing(THREAD) as tx:
            await deliveries.add(tx, Delivery("m1", THREAD, "message", {}, False, 0.0, 0.0))
            raise ZeroDivisionError
    assert not await jobs(a.database)
    await a.accept("m2")
    await a.accept("m3")
    assert await jobs(a.database) == [THREAD]


async def test_work_without_a_job_is_found(a: Replica, b: Replica) -> None:
    """Rule 1."""
    a.database.wake_places = a.database.woke_places = None
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    await until(lambda: a.platform.done + b.platform.done)
    assert a.handled + b.handled == ["m1"]


async def test_a_timer_wakes_its_thread_once(a: Replica, b: Replica, clock: SetClock) -> None:
    async with a.database.writing(THREAD) as tx:
        await threads.ensure(tx, THREAD, place(), "hello", clock())
        timer = Delivery("expire", THREAD, "timer", {}, False, clock.now, clock.now + 60)
        await deliveries.add(tx, timer)
    a.engine.timer_was_set()
    await b.accept("m1", "chat:T2")
    await until(lambda: a.handled + b.handled)
    await at_rest(a, b)
    clock.move(61)
    await until(lambda: len(a.handled + b.handled) == 2)
    await at_rest(a, b)
    assert (a.handled + b.handled).count("expire") == 1


# ------------------------------------------------------------------------------------------ what is due


@pytest.mark.parametrize("drawn", range(20))
async def test_what_is_due_in_a_place_is_what_its_threads_have_to_handle_next(address: str, drawn: int) -> None:
    """Rule 1: a run ends when nothing is due, and goes on while something is."""
    database = postgres_database(address, most_connections=2)
    chance, names = random.Random(drawn), [THREAD, f"{THREAD}#2", "chat:T2", "chat:T3"]
    async with database.writing_apart(UNLOCKED) as tx:
        for number in range(24):
            at, kind = chance.choice(names), chance.choice(["message", "resume", "stop", "timer"])
            due_at = chance.choice([BEGINNING - 1, BEGINNING + 1])
            await deliveries.add(tx, Delivery(f"d{number}", at, kind, {}, chance.random() < 0.3, 0.0, due_at))
            if chance.random() < 0.4:
                await deliveries.done(tx, f"d{number}")
    async with database.reading() as tx:
        heads = {name: await deliveries.head(tx, name, BEGINNING) for name in names}
        everything = await places.all_work(tx, BEGINNING)
        found = {name: await places.work_in(tx, name, BEGINNING) for name in (THREAD, "chat:T2", "chat:T3")}
    due = {name for name, head in heads.items() if head is not None}
    assert everything.threads.keys() == due
    assert {name for each in found.values() for name in each.threads} == due
    for each in found.values():
        for name, stops in each.threads.items():
            head = heads[name]
            assert head is not None
            assert everything.threads[name] == stops
            assert stops or head.kind != "stop"
    await database.close()


async def test_a_place_in_which_very_much_waits_is_read_at_once(address: str) -> None:
    """Rule 13: how many messages wait in a thread is up to people, and the place is locked meanwhile."""
    many = (
        "INSERT INTO deliveries (key, thread_id, kind, body, urgent, accepted_at, due_at, tries, status) "
        "SELECT 'd' || number, %s, 'message', '{}', false, 0, 0, 0, 'waiting' FROM generate_series(1, 3000) AS number"
    )
    with psycopg.connect(address) as connection:
        connection.execute(many, [THREAD])
    database = postgres_database(address, most_connections=1)
    async with asyncio.timeout(5), database.reading() as tx:
        assert (await places.work_in(tx, THREAD, BEGINNING)).threads == {THREAD: False}
        assert (await places.all_work(tx, BEGINNING)).threads == {THREAD: False}
    await database.close()


# ------------------------------------------------------------------------------------------ people change their minds


async def test_a_stop_elsewhere_breaks_off_what_runs(a: Replica, b: Replica) -> None:
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    without_sweep(a, b)
    owner, other = (a, b) if a.handled else (b, a)
    assert await other.inbox.stop("s1", THREAD, ANA) == Settled("Stopped.")
    await until(lambda: owner.broken_off)
    await until(lambda: "s1" in owner.handled)
    assert owner.handled == ["m1", "s1"]
    assert not other.handled
    await at_rest(a, b)
    assert not await waiting(a.database)


async def test_a_message_that_another_has_begun_cannot_be_taken_back(a: Replica, b: Replica) -> None:
    """Rule 5: whoever takes a message back learns whether that came in time."""
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    owner, other = (a, b) if a.handled else (b, a)
    await other.accept("m2")
    assert not await other.inbox.withdraw("m1")
    assert not await other.inbox.amend("m1", "something else")
    assert await other.inbox.withdraw("m2")
    let_go(a, b)
    await at_rest(a, b)
    assert owner.handled == ["m1"]


async def test_a_message_is_taken_back_or_begun_but_never_both(a: Replica, b: Replica) -> None:
    """Rule 5."""
    await a.engine.stop(0.1)
    await b.engine.stop(0.1)
    await a.accept("m1")
    async with a.database.claiming(THREAD) as (tx, _):
        head = await deliveries.head(tx, THREAD, BEGINNING)
        assert head is not None
        await places.begin(tx, head)
        taking_back = asyncio.create_task(b.inbox.withdraw("m1"))
        await until_somebody_waits_for_a_lock(a.database, taking_back)
    assert not await taking_back


async def test_what_is_being_accepted_is_not_passed_over(a: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 1: a run that ends while a message is accepted there, and finds the job of that message waiting, has to find
    the message."""
    deaf(a)
    adding, added = deliveries.add, asyncio.Event()

    async def add_slowly(tx: Transaction, delivery: Delivery) -> bool:
        is_new = await adding(tx, delivery)
        await added.wait()
        return is_new

    monkeypatch.setattr(deliveries, "add", add_slowly)
    accepting = asyncio.create_task(a.accept("m1"))
    async with a.database.writing(UNLOCKED) as tx:
        tx.wakes(THREAD)  # as of a message before
    a.engine._worker.look()  # type: ignore[union-attr]  # it has been started
    await until_somebody_waits_for_a_lock(a.database, accepting)
    added.set()
    await accepting
    await until(lambda: a.handled)


async def until_somebody_waits_for_a_lock(database: PostgresDatabase, unless: asyncio.Task[Any]) -> None:
    """Fails when the task ends before."""
    waits = sa.text("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    async with asyncio.timeout(5), database.reading() as tx:
        while await tx.one(waits) is None:
            assert not unless.done()
            await asyncio.sleep(0.01)


# ------------------------------------------------------------------------------------------ the fence


async def test_who_was_overtaken_changes_nothing_any_more(a: Replica, b: Replica) -> None:
    """Rule 4."""
    await b.engine.stop(0.1)
    await held(a)
    await a.accept("m1")
    await until(lambda: a.handled)
    deaf(a)
    await b.database.claim(THREAD)
    let_go(a)
    await until(lambda: a.overtaken or a.broken_off)
    await at_rest(a)
    assert await waiting(b.database) == ["m1"]
    async with b.database.reading() as tx:
        assert await posts.get(tx, "to m1") is None


async def test_who_sees_that_it_was_overtaken_breaks_off(a: Replica, b: Replica) -> None:
    await b.engine.stop(0.1)
    await held(a)
    await a.accept("m1")
    await until(lambda: a.handled)
    await b.database.claim(THREAD)
    await until(lambda: a.broken_off)
    await at_rest(a)


async def test_who_was_overtaken_shows_nothing_any_more(a: Replica, b: Replica) -> None:
    """Rule 1: posts of one thread are in order, so one process at a time sends them."""
    await b.engine.stop(0.1)
    a.platform.failures = [PostFailed("down") for _ in range(1_000)]
    a.outbox._pause = lambda *_: 0.01
    await a.accept("m1")
    await until(lambda: a.platform.begun)
    deaf(a)
    await b.database.claim(THREAD)
    tried = len(a.platform.begun)
    await at_rest(a)
    assert len(a.platform.begun) <= tried + 1


async def test_what_arrives_after_another_took_over_is_not_noted(a: Replica, b: Replica) -> None:
    """Where a post is stands in the records for who looks after the place now."""
    await b.engine.stop(0.1)
    a.platform.held[THREAD] = asyncio.Event()
    await a.accept("m1")
    await until(lambda: a.platform.begun)
    deaf(a)
    await b.database.claim(THREAD)
    a.platform.held[THREAD].set()
    await at_rest(a)
    async with b.database.reading() as tx:
        post = await posts.get(tx, "to m1")
    assert post is not None
    assert (post.sent_revision, post.reference) == (0, None)


@pytest.mark.waits
async def test_a_replica_that_stands_still_is_overtaken(
    a: Replica, b: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 1. Its heartbeats are withheld, and it is given nothing new; it goes on later, and changes nothing."""
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    stalled, other = (a, b) if a.handled else (b, a)
    deaf(stalled)

    async def withheld(*_: object, **__: object) -> None:
        return

    monkeypatch.setattr(stalled.engine._app.job_manager, "update_heartbeat", withheld)
    monkeypatch.setattr(stalled.engine._app.job_manager, "fetch_job", withheld)
    await until(lambda: other.handled)  # how soon is measured by `make bench`
    assert other.here.runs[THREAD].claim.taken_over
    let_go(stalled)
    await until(lambda: stalled.overtaken or stalled.broken_off)
    let_go(other)
    await at_rest(a, b)
    assert other.platform.done == [("send", "to m1", 1)]
    assert not stalled.platform.done
    assert not await waiting(a.database)
    await without_jobs(a)


async def test_a_heartbeat_that_gets_no_answer_holds_up_no_other(a: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends none is taken for dead."""
    manager = a.engine._app.job_manager
    beat, unanswered, answered = manager.update_heartbeat, asyncio.Event(), asyncio.Event()

    async def first_is_lost(worker_id: int) -> None:
        if not unanswered.is_set():
            unanswered.set()
            await asyncio.Event().wait()
        await beat(worker_id)
        answered.set()

    monkeypatch.setattr(manager, "update_heartbeat", first_is_lost)
    (await until(lambda: a.engine._worker)).update_heartbeat_interval = 0.01
    await unanswered.wait()
    async with asyncio.timeout(replicas.BEAT_SECONDS):
        await answered.wait()


# ------------------------------------------------------------------------------------------ ends and outages


async def test_who_ends_hands_over_what_it_has(a: Replica, b: Replica) -> None:
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    ending, other = (a, b) if a.handled else (b, a)
    let_go(other)
    without_sweep(other)
    claim = ending.here.runs[THREAD].claim
    await ending.engine.stop(0.1)
    assert claim.handed_over
    assert not ending.engine.is_ready
    await until(lambda: other.platform.done, within=20.0)
    assert (ending.broken_off, other.handled) == (["m1"], ["m1"])
    await at_rest(b)


async def test_who_ends_lets_what_runs_finish(a: Replica, b: Replica) -> None:
    await held(a, b)
    await a.accept("m1")
    await until(lambda: a.handled + b.handled)
    ending = a if a.handled else b
    stopping = asyncio.create_task(ending.engine.stop(5.0))
    await asyncio.sleep(0)
    let_go(ending)
    await stopping
    assert not ending.broken_off
    assert ending.platform.done == [("send", "to m1", 1)]


async def test_nothing_is_lost_while_the_connections_break(address: str, a: Replica, b: Replica) -> None:
    """Rule 1."""
    kept = []
    with psycopg.connect(address, autocommit=True) as killer:
        for number in range(12):
            try:
                await (a, b)[number % 2].accept(f"m{number}", f"chat:T{number % 3}")
                kept.append(f"m{number}")
            except sa.exc.DBAPIError:
                pass  # refused: the platform sends it again
            if number % 4 == 1:
                killer.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
    await until(lambda: set(kept) <= {*a.handled, *b.handled}, within=30)
    await until(lambda: len(a.platform.done + b.platform.done) >= len(kept), within=30)
    await at_rest(a, b)
    assert not await waiting(a.database)
    await until(lambda: a.engine.is_ready and b.engine.is_ready)


async def test_it_says_that_it_takes_no_work_while_the_database_is_away(
    a: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "SWEEP_SECONDS", 0.02)
    monkeypatch.setattr(replicas, "AWAY_SECONDS", 1.5)
    await until(lambda: a.engine.is_ready)
    with monkeypatch.context() as away:

        async def fails(*_: object) -> None:
            raise OSError("no route")

        away.setattr(places, "all_work", fails)
        await until(lambda: not a.engine.is_ready)
    await until(lambda: a.engine.is_ready)


@pytest.mark.parametrize("lost", ["fetch_job", "finish_job"])
async def test_a_place_is_not_stuck_when_a_worker_and_the_database_know_differently_what_it_has(
    a: Replica, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 1: the connection breaks just when a job was given to it, or when it tells that one has ended."""
    manager = a.engine._app.job_manager
    asked, does = 0, getattr(manager, lost)

    async def broken_once(**arguments: Any) -> Any:
        nonlocal asked
        if lost == "fetch_job":
            answer = await does(**arguments)
            asked += answer is not None
            if answer is None or asked > 1:
                return answer
        else:
            asked += 1
            if asked > 1:
                return await does(**arguments)
        raise ConnectorException

    monkeypatch.setattr(manager, lost, broken_once)
    await a.accept("m1")
    await until(lambda: asked)
    await a.accept("m2")
    await until(lambda: a.handled == ["m1", "m2"], within=20.0)
    await at_rest(a)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])
async def test_what_comes_when_nobody_knows_whether_a_place_was_released_is_shown_at_once(
    a: Replica, b: Replica, *, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 1: the connection breaks at the commit that releases a place. What comes then is handled there, and what is
    said meanwhile shown; and whoever takes over from it knows that something may have been left in the middle."""
    await b.engine.stop(0.1)
    commit, leave, leaving = a.database._commit, places.leave, False

    async def leave_and_lose(tx: Any, where: str) -> None:
        nonlocal leaving
        leaving = not leaving and not a.hold
        await leave(tx, where)

    async def commit_or_lose(driver: Any) -> None:
        nonlocal leaving
        if not leaving:
            await commit(driver)
            return
        leaving = False
        if kept:
            await commit(driver)
        await held(a)
        driver.pgconn.finish()
        raise sa.exc.OperationalError("COMMIT", {}, OSError("no answer"))

    monkeypatch.setattr(places, "leave", leave_and_lose)
    monkeypatch.setattr(a.database, "_commit", commit_or_lose)
    await a.accept("m1")
    await until(lambda: a.hold)
    await a.accept("m2")
    await until(lambda: "m2" in a.handled)
    async with a.database.writing(THREAD) as tx:
        assert tx.as_locked(THREAD).held
        await a.outbox.say(tx, notice("card", THREAD, Notice("Please decide.")))
    await until(lambda: ("send", "card", 1) in a.platform.done)
    let_go(a)
    await at_rest(a)
    async with a.database.writing(THREAD) as tx:
        assert not tx.as_locked(THREAD).held
    assert a.handled == ["m1", "m2"]


async def test_others_are_told_of_more_to_do_in_a_place_only_where_somebody_may_look_after_it(address: str) -> None:
    """Whoever claims it later finds what was kept before: both lock the place."""
    database = postgres_database(address, most_connections=2)
    told: list[str] = []

    @asynccontextmanager
    async def wake_places(tx: PostgresTransaction, woken: Mapping[str, bool]) -> AsyncIterator[None]:
        await places.wake(tx, woken)
        yield

    database.wake_places, database.woke_places = wake_places, told.extend

    async def wake(*locks: str) -> list[str]:
        told.clear()
        async with database.writing_apart(*locks or (UNLOCKED,)) as tx:
            tx.wakes(THREAD)
        return list(told)

    assert await wake(THREAD) == []
    assert await wake() == [THREAD], "it is not known there"
    claim = await database.claim(THREAD)
    assert await wake(THREAD) == [THREAD]
    async with database.writing(THREAD) as tx:
        await places.leave(tx, THREAD)
    assert await wake(THREAD) == []
    assert (await database.claim(THREAD)).follows(claim)
    await database.close()
