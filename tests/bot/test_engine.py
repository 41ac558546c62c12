"""The embedded engine goes on, whatever happens to what it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from bot.inbox import embedded
from bot.inbox.embedded import EmbeddedEngine
from bot.records import deliveries
from bot.records.database import Database
from bot.records.deliveries import Delivery
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
    monkeypatch.setattr(embedded, "PAUSE", 0.0)
    made = EmbeddedEngine(database, moody, concurrency=2)
    yield made
    await made.stop(1.0)


async def keep(database: Database, key: str, *, due_at: float = 0.0, kind: deliveries.Kind = "message") -> None:
    async with database.writing() as tx:
        await deliveries.add(tx, Delivery(key, THREAD, kind, {"person": "chat:ana"}, False, 0.0, due_at))


async def done(database: Database, delivery: Delivery) -> None:
    async with database.writing() as tx:
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
    engine.look_again()
    await until(lambda: moody.failures == 0)
    moody.move(61)
    engine.look_again()
    await until(lambda: handled)
    assert handled == ["expire"]


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
    async with database.writing() as tx:
        await deliveries.drop(tx, ["m1"])
    engine.interrupt(THREAD)
    await until(lambda: len(begun) == 2)
    assert begun == ["m1", "m2"]
