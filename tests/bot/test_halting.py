"""Whether everything is stopped, as one of several processes follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from bot.crypto import random_id
from bot.domain import Person, Settled
from bot.outbox import Outbox
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.notifications import Notifications
from tests.bot.conftest import SetClock, until
from tests.bot.stubs import make_switch

OLGA = Person("web:olga", "Olga")


class Stopped:
    """What is stopped and goes on, as it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def halt(self, broken_off: Callable[[Delivery], Awaitable[None]]) -> None:
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


async def test_a_look_that_began_before_everything_was_stopped_lets_nothing_go_on(
    database: Database, clock: SetClock
) -> None:
    slow, engine = SlowLooks(database), Stopped()
    outbox = Outbox(database, clock, {})

    async def is_operator(person: Person) -> bool:
        return person == OLGA

    notifications = cast("Notifications", Silent())
    switch = make_switch(cast("Database", slow), outbox, clock, random_id, is_operator, notifications)
    async with switch.stopping(engine):
        await slow.has_read.wait()
        assert isinstance(await switch.stop(OLGA, "a fire"), Settled)
        slow.may_arrive.set()
        await until(lambda: slow.looks > 1)
        assert engine.told == ["stop"]
        assert switch.is_on.is_set()
