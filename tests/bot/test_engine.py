"""The embedded engine goes on, whatever happens to what it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from bot.records import deliveries
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.turns import engine as engine_module
from bot.turns import idle_work
from bot.turns.engine import EmbeddedEngine
from tests.bot.conftest import SetClock, until

THREAD = "chat:T1"
Handler = Callable[[Delivery], Awaitable[None]]


class MoodyClock(SetClock):
    """A clock that fails when it is told to, as a database might."""

    failures = 0

    def __call__(self) -> float:
        if self.failures:
            self.failures -= 1
            raise OSError("cannot tell")
        return SetClock.__call__(self)


@pytest.fixture
def moody() -> MoodyClock:
    return MoodyClock()


@pytest.fixture
async def engine(
    database: Database, moody: MoodyClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EmbeddedEngine]:
    monkeypatch.setattr(engine_module, "PAUSE", 0.0)
    made = EmbeddedEngine(database, moody, concurrency=2)
    yield made
    await made.stop(1.0)


async def keep(
    database: Database,
    key: str,
    *,
    due_at: float = 0.0,
    kind: deliveries.DeliveryKind = "message",
    thread_id: str = THREAD,
) -> None:
    async with database.writing(UNLOCKED) as tx:
        await deliveries.add(tx, Delivery(key, thread_id, kind, {"person": "chat:ana"}, False, 0.0, due_at))


async def done(database: Database, delivery: Delivery) -> None:
    async with database.writing(UNLOCKED) as tx:
        await deliveries.done(tx, delivery.key)


async def test_a_cancellation_that_nobody_asked_for_costs_the_thread_nothing(
    database: Database, engine: EmbeddedEngine
) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        if len(handled) == 1:
            raise asyncio.CancelledError  # as when a library's cancel scope leaks
        await done(database, delivery)

    await keep(database, "m1")
    await keep(database, "m2")
    await engine.start(handle)
    await until(lambda: "m2" in handled)
    assert handled == ["m1", "m1", "m2"]


async def test_an_inbox_that_cannot_be_read_for_a_moment_is_read_again(
    database: Database, engine: EmbeddedEngine, moody: MoodyClock
) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        await done(database, delivery)

    await engine.start(handle)
    await keep(database, "m1")
    moody.failures = 2
    engine.wake(THREAD)
    await until(lambda: handled)
    assert handled == ["m1"]


async def test_timers_are_watched_on_after_a_failure(
    database: Database, engine: EmbeddedEngine, moody: MoodyClock
) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        await done(database, delivery)

    await engine.start(handle)
    await keep(database, "expire", due_at=moody.now + 60, kind="timer")
    moody.failures = 1
    engine.timer_was_set()
    await until(lambda: moody.failures == 0)
    moody.move(61)
    engine.timer_was_set()
    await until(lambda: handled)
    assert handled == ["expire"]


@pytest.mark.parametrize("rounds", range(4))
async def test_it_stops_although_a_timer_was_set_a_moment_before(engine: EmbeddedEngine, rounds: int) -> None:
    """Rule 1: what is accepted takes effect after the next start, so nothing may keep this process from its end."""

    async def nobody(_delivery: Delivery) -> None:
        raise AssertionError("nothing waits")

    await engine.start(nobody)
    await asyncio.sleep(0.01)  # until it naps
    engine.timer_was_set()
    for _ in range(rounds):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(engine.stop(0.0))
    ended, _ = await asyncio.wait([stopping], timeout=5)
    stopping.cancel()  # else the test would not end either
    assert ended


async def test_nothing_is_begun_in_a_thread_that_is_held_back(database: Database, engine: EmbeddedEngine) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.body["text"])
        await done(database, delivery)

    async with database.writing(UNLOCKED) as tx:
        waits = Delivery("m1", THREAD, "message", {"person": "chat:ana", "text": "before"}, False, 0.0, 0.0)
        await deliveries.add(tx, waits)
    assert engine.has_begun(waits)  # as far as is known before the start
    async with engine.held_back(THREAD):
        await engine.start(handle)
        await asyncio.sleep(0)
        async with database.writing(UNLOCKED) as tx:
            await deliveries.set_body(tx, "m1", {**waits.body, "text": "after"})
        assert handled == []
    await until(lambda: handled)
    assert handled == ["after"]


async def test_what_waits_behind_or_was_put_off_is_not_begun(database: Database, engine: EmbeddedEngine) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        begun.set()
        await go_on.wait()
        async with database.writing(UNLOCKED) as tx:
            await deliveries.put_off(tx, delivery, 1e12, "the platform is away")

    await engine.start(handle)
    for key in ("m1", "m2"):
        await keep(database, key)
    engine.wake(THREAD)
    await begun.wait()
    first, second = [await waiting_message(database, key) for key in ("m1", "m2")]
    assert (engine.has_begun(first), engine.has_begun(second)) == (True, False)
    go_on.set()
    await until(lambda: engine.busy == 0)
    assert not engine.has_begun(await waiting_message(database, "m1"))


async def waiting_message(database: Database, key: str) -> Delivery:
    async with database.reading() as tx:
        found = await deliveries.waiting_message(tx, key)
    assert found is not None
    return found


async def test_an_interrupted_delivery_is_handled_again_only_while_it_still_waits(
    database: Database, engine: EmbeddedEngine
) -> None:
    begun: list[str] = []

    async def handle(delivery: Delivery) -> None:
        begun.append(delivery.key)
        if begun == ["m1"]:
            await asyncio.Event().wait()
        await done(database, delivery)

    await engine.start(handle)
    await keep(database, "m1")
    await keep(database, "m2")
    engine.wake(THREAD)
    await until(lambda: begun)
    async with database.writing(UNLOCKED) as tx:
        await deliveries.drop(tx, ["m1"])
    engine.interrupt(THREAD)
    await until(lambda: len(begun) == 2)
    assert begun == ["m1", "m2"]


async def test_what_is_kept_before_the_handler_is_made_is_handled_then(
    database: Database, engine: EmbeddedEngine
) -> None:
    handled: list[str] = []
    may_begin = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        await done(database, delivery)

    async def make() -> engine_module.DeliveryHandler:
        await may_begin.wait()
        return handle

    async with engine.running(make, shutdown_seconds=1.0) as starting:
        await keep(database, "m1")
        engine.wake(THREAD)
        assert not starting.done()
        may_begin.set()
        await until(lambda: handled)
    assert handled == ["m1"]


async def test_a_handler_that_cannot_be_made_is_told_to_whoever_started_the_engine(engine: EmbeddedEngine) -> None:
    async def make() -> engine_module.DeliveryHandler:
        raise OSError("no library")

    async with engine.running(make, shutdown_seconds=1.0) as starting:
        with pytest.raises(OSError, match="no library"):
            await starting


async def test_what_waits_for_others_when_it_stops_is_not_begun(database: Database) -> None:
    """Rule 4: what begins in the last seconds of a process would be broken off, perhaps in the middle of a call."""
    engine, handled, may_end = EmbeddedEngine(database, SetClock(), concurrency=1), [], asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        await may_end.wait()
        await done(database, delivery)

    for number in range(3):
        await keep(database, f"m{number}", thread_id=f"{THREAD}{number}")
    await engine.start(handle)
    await until(lambda: handled)
    stopping = asyncio.create_task(engine.stop(20.0))
    await until(lambda: engine.busy == 1)
    may_end.set()
    await stopping
    assert len(handled) == 1


# ------------------------------------------------------------------------------- what gives way to all else

LATER = "chat:T1#memory"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_work, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(idle_work, "LOOK_SECONDS", 0.0)


@pytest.mark.usefixtures("impatient")
async def test_what_may_wait_is_handled_once_nothing_else_is(
    database: Database, engine: EmbeddedEngine, moody: MoodyClock
) -> None:
    handled: list[str] = []
    release = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        if delivery.key == "long":
            await release.wait()
        await done(database, delivery)
        handled.append(delivery.key)

    await engine.start(handle)
    await keep(database, "long", thread_id="chat:T2")
    engine.wake("chat:T2")
    await keep(database, "later", kind="memory", thread_id=LATER, due_at=moody.now + 60)
    engine.wake_when_idle(LATER)
    for number in range(20):
        await keep(database, f"m{number}", thread_id="chat:T3")
    engine.wake("chat:T3")
    await until(lambda: "m19" in handled)
    assert "later" not in handled
    release.set()
    await until(lambda: "later" in handled)
    assert handled[-2:] == ["long", "later"]


@pytest.mark.usefixtures("impatient")
async def test_what_has_waited_long_enough_waits_for_nothing_more(
    database: Database, engine: EmbeddedEngine, moody: MoodyClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_work, "WAITS_SECONDS", 0.0)
    handled: list[str] = []
    release = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        if delivery.key == "long":
            await release.wait()
        await done(database, delivery)
        handled.append(delivery.key)

    await engine.start(handle)
    await keep(database, "long", thread_id="chat:T2")
    engine.wake("chat:T2")
    await keep(database, "later", kind="memory", thread_id=LATER, due_at=moody.now + 70)
    engine.wake_when_idle(LATER)
    await until(lambda: "later" in handled)
    assert handled == ["later"]
    release.set()


@pytest.mark.usefixtures("impatient")
async def test_what_waited_when_the_process_ended_is_handled_after_the_start_before_it_is_due(
    database: Database, engine: EmbeddedEngine, moody: MoodyClock
) -> None:
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        await done(database, delivery)

    for key in ("first", "second"):
        await keep(database, key, kind="memory", thread_id=LATER, due_at=moody.now + 60)
    await engine.start(handle)
    await until(lambda: "second" in handled)
    assert handled == ["first", "second"]


@pytest.mark.usefixtures("impatient")
async def test_only_so_many_threads_are_begun_at_once_while_nothing_else_is_done() -> None:
    workers: dict[str, asyncio.Task[None]] = {}
    begun: list[str] = []

    async def begin(thread_id: str) -> None:
        begun.append(thread_id)
        workers[thread_id] = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]

    work = idle_work.IdleWork(workers, begin)
    for number in range(idle_work.AT_ONCE + 1):
        work.add(f"t{number}")
    await until(lambda: len(begun) == idle_work.AT_ONCE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(begun) == idle_work.AT_ONCE
    workers.pop("t0").cancel()
    work.ended("t0")
    await until(lambda: len(begun) == idle_work.AT_ONCE + 1)
    await work.stop()
    for worker in workers.values():
        worker.cancel()


async def tell(_tx: Transaction, _thread_id: str) -> None:
    raise AssertionError("nobody has decided anything")


async def test_what_is_handled_is_broken_off_when_everything_is_stopped_and_handled_again_later(
    database: Database, engine: EmbeddedEngine
) -> None:
    begun: list[str] = []
    broken_off: list[str] = []
    may_end = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        begun.append(delivery.key)
        await may_end.wait()
        await done(database, delivery)

    async def note(delivery: Delivery) -> None:
        broken_off.append(delivery.key)

    await keep(database, "m1")
    await engine.start(handle)
    await until(lambda: begun)
    engine.halt(note, tell, 1.0)
    await until(lambda: broken_off)
    await keep(database, "m2")
    await keep(database, "other", thread_id="chat:T2")
    for thread in (THREAD, "chat:T2"):
        engine.wake(thread)
    await until(lambda: engine.busy == 0)
    assert (begun, broken_off) == (["m1"], ["m1"])
    assert engine.has_begun(Delivery("m1", THREAD, "message", {}, False, 0.0, 0.0)), "nobody may change it any more"
    may_end.set()
    engine.go_on()
    await until(lambda: len(begun) == 4)
    assert sorted(begun) == ["m1", "m1", "m2", "other"]


async def test_what_was_accepted_since_everything_was_stopped_may_be_changed_after_a_start_too(
    database: Database, engine: EmbeddedEngine
) -> None:
    async def handle(_delivery: Delivery) -> None:
        raise AssertionError("nothing may begin")

    async def note(_delivery: Delivery) -> None:
        raise AssertionError("nothing was begun")

    before = Delivery("before", THREAD, "message", {}, False, 1.0, 1.0)
    since = Delivery("since", "chat:T2", "message", {}, False, 1.5, 1.5)
    async with database.writing(UNLOCKED) as tx:
        for each in (before, since):
            await deliveries.add(tx, each)
    engine.halt(note, tell, 1.0)
    assert (engine.has_begun(before), engine.has_begun(since)) == (True, False)
    await engine.start(handle)
    await until(lambda: engine.busy == 0)
    assert (engine.has_begun(before), engine.has_begun(since)) == (True, False)


async def test_an_engine_that_is_started_while_everything_is_stopped_begins_nothing(
    database: Database, engine: EmbeddedEngine
) -> None:
    begun: list[str] = []

    async def handle(delivery: Delivery) -> None:
        begun.append(delivery.key)
        await done(database, delivery)

    async def note(_delivery: Delivery) -> None:
        raise AssertionError("nothing was begun")

    await keep(database, "m1")
    engine.halt(note, tell, 1.0)
    await engine.start(handle)
    await until(lambda: engine.busy == 0)
    assert begun == []
    engine.go_on()
    await until(lambda: begun)
