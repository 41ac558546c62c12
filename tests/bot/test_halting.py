"""Whether everything is stopped, as one of several processes follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from structlog.testing import capture_logs

from bot.crypto import random_id
from bot.domain import Invalid, Person, Settled
from bot.halting import LONGEST_WHY, TOLD_AT_ONCE, HaltSwitch
from bot.outbox import Outbox
from bot.records import deliveries, posts, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.notifications import Notifications
from bot.turns.engine import BrokenOff, TellKept
from tests.bot.conftest import SetClock, until
from tests.bot.services_stage import HERE
from tests.bot.stubs import make_switch

OLGA = Person("web:olga", "Olga")


class Stopped:
    """What is stopped and goes on, as it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def halt(self, broken_off: BrokenOff, tell_kept: TellKept, at: float) -> None:
        self.told.append("stop")

    def go_on(self) -> None:
        self.told.append("go on")


class Silent:
    """Tells nobody, and hears of nothing."""

    def subscribe(self, channel: str, hear: Callable[[str], None], missed: Callable[[], None]) -> None:
        pass

    def tell(self, channel: str, *keys: str) -> None:
        pass


class SlowLooks:
    """A database that a look has read, and whose answer is on its way until it may arrive."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.has_read, self.may_arrive = asyncio.Event(), asyncio.Event()
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[Transaction]:
        async with self._database.reading() as tx:
            yield tx
        self.looks += 1
        self.has_read.set()
        await self.may_arrive.wait()


class Unwritable:
    """A database in which nothing can be written about one conversation."""

    def __init__(self, database: Database, thread_id: str) -> None:
        self._database = database
        self._thread_id = thread_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @asynccontextmanager
    async def writing_apart(self, lock: str, *locks: str) -> AsyncIterator[Transaction]:
        if lock == self._thread_id:
            raise TimeoutError
        async with self._database.writing_apart(lock, *locks) as tx:
            yield tx


def switch_on(database: object, clock: SetClock, notifications: object = None) -> HaltSwitch:
    """The switch, on records or a stand-in for them."""
    records = cast("Database", database)

    async def is_operator(person: Person) -> bool:
        return person == OLGA

    heard = cast("Notifications", notifications)
    return make_switch(records, Outbox(records, clock, {}), clock, random_id, is_operator, heard)


async def test_a_look_that_began_before_everything_was_stopped_lets_nothing_go_on(
    database: Database, clock: SetClock
) -> None:
    slow, engine = SlowLooks(database), Stopped()
    switch = switch_on(slow, clock, Silent())
    async with switch.stopping(engine):
        await slow.has_read.wait()
        assert isinstance(await switch.stop(OLGA, "a fire"), Settled)
        slow.may_arrive.set()
        await until(lambda: slow.looks > 1)
        assert engine.told == ["stop"]
        assert switch.is_on.is_set()


async def test_all_who_wait_are_told_but_those_who_cannot_be(database: Database, clock: SetClock) -> None:
    waiting = [f"chat:{number:04}" for number in range(TOLD_AT_ONCE + 2)]
    async with database.writing(*waiting) as tx:
        for thread_id in waiting:
            await threads.ensure(tx, thread_id, HERE, "a title", clock(), requester="chat:ana")
            await deliveries.add(tx, Delivery(f"{thread_id}:1", thread_id, "message", {}, False, clock(), clock()))
    switch = switch_on(Unwritable(database, waiting[0]), clock)
    async with switch.stopping(Stopped()):
        with capture_logs() as logged:
            assert isinstance(await switch.stop(OLGA, "a fire"), Settled)
    async with database.reading() as tx:
        told = [thread_id for thread_id in waiting if await posts.of_thread(tx, thread_id, 1)]
    assert told == waiting[1:]
    assert [entry["thread_id"] for entry in logged if entry["event"] == "halt_not_told"] == waiting[:1]


async def test_a_reason_that_is_too_long_is_refused_for_both_and_cut_for_neither(
    database: Database, clock: SetClock
) -> None:
    switch, too_long = switch_on(database, clock), "x" * (LONGEST_WHY + 1)
    async with switch.stopping(Stopped()):
        assert isinstance(await switch.stop(OLGA, too_long), Invalid)
        assert isinstance(await switch.stop(OLGA, too_long[1:]), Settled)
        assert isinstance(await switch.go_on(OLGA, too_long), Invalid)
        assert switch.is_on.is_set()
        assert isinstance(await switch.go_on(OLGA, too_long[1:]), Settled)
