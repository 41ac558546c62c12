"""One writer at a time, whatever happens to the task that writes."""

from __future__ import annotations

import asyncio
import threading

import pytest
import sqlalchemy as sa

from bot.domain import Person
from bot.records import approvals, deliveries, threads
from bot.records.approvals import VoteRow
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.tables import votes
from tests.bot.conftest import until


class SlowDisk:
    """Holds up every commit until it is told to let go."""

    def __init__(self, database: Database) -> None:
        self._gate = threading.Event()
        database._disk.submit(self._gate.wait, 30)

    def let_go(self) -> None:
        self._gate.set()


async def remember(database: Database, name: str, done: list[str]) -> None:
    async with database.writing() as tx:
        tx.afterwards(lambda: done.append(name))
        await threads.remember(tx, Person(f"chat:{name}", name), 0.0)


async def names(database: Database) -> set[str]:
    async with database.reading() as tx:
        known = [await threads.person(tx, f"chat:{name}") for name in ("ana", "ben")]
    return {person.name for person in known if person}


@pytest.mark.parametrize("times", [1, 3])
async def test_what_reaches_the_disk_wakes_whoever_waits_for_it_although_its_task_was_cancelled(
    database: Database, times: int
) -> None:
    disk, done = SlowDisk(database), []
    first = asyncio.create_task(remember(database, "ana", done))
    await asyncio.sleep(0)  # one step: now it waits for the disk
    second = asyncio.create_task(remember(database, "ben", done))
    for _ in range(times):
        first.cancel()
        await asyncio.sleep(0)
    assert done == []
    disk.let_go()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert done == ["ana", "ben"]
    assert await names(database) == {"ana", "ben"}


async def test_a_transaction_that_is_cancelled_before_its_commit_leaves_nothing(database: Database) -> None:
    reached, done = asyncio.Event(), []

    async def write_and_wait() -> None:
        async with database.writing() as tx:
            tx.afterwards(lambda: done.append("never"))
            await threads.remember(tx, Person("chat:ana", "ana"), 0.0)
            reached.set()
            await asyncio.Event().wait()

    writing = asyncio.create_task(write_and_wait())
    await reached.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await remember(database, "ben", done)
    assert done == ["ben"]
    assert await names(database) == {"ben"}


async def test_whoever_is_cancelled_while_waiting_for_the_writer_holds_nobody_up(database: Database) -> None:
    disk, done = SlowDisk(database), []
    first = asyncio.create_task(remember(database, "ana", done))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(remember(database, "chloe", done))
    third = asyncio.create_task(remember(database, "ben", done))
    await asyncio.sleep(0)
    waiting.cancel()
    disk.let_go()
    await asyncio.gather(first, third)
    assert done == ["ana", "ben"]


async def test_a_commit_that_fails_is_taken_back_and_the_next_transaction_is_clean(database: Database) -> None:
    done: list[str] = []
    with pytest.raises(sa.exc.IntegrityError):
        async with database.writing() as tx:
            tx.afterwards(lambda: done.append("never"))
            tx.connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            await threads.remember(tx, Person("chat:ana", "ana"), 0.0)
            await approvals.cast(tx, "no such approval", VoteRow("chat:ana", "Ana", "approve", "", 0.0), "k")
    await remember(database, "ben", done)
    assert done == ["ben"]
    assert await names(database) == {"ben"}
    async with database.reading() as tx:
        assert await tx.all(sa.select(votes)) == []


async def test_an_error_of_the_database_does_not_repeat_what_people_wrote(database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError) as failure:
        async with database.writing() as tx:
            await approvals.cast(tx, "no such", VoteRow("chat:ana", "Ana", "reject", "my secret", 0.0), "k")
    assert "my secret" not in str(failure.value)


async def test_the_urgent_go_first(database: Database) -> None:
    disk, order = SlowDisk(database), []

    async def write(name: str, *, urgently: bool = False) -> None:
        async with database.writing_urgently() if urgently else database.writing():
            order.append(name)

    writers = [asyncio.create_task(write("first"))]
    await until(lambda: order)
    writers += [asyncio.create_task(write(name)) for name in ("turn 1", "turn 2")]
    await asyncio.sleep(0)
    writers.append(asyncio.create_task(write("click", urgently=True)))
    await asyncio.sleep(0)
    disk.let_go()
    await asyncio.gather(*writers)
    assert order == ["first", "click", "turn 1", "turn 2"]


async def test_a_timer_that_is_set_is_not_counted_as_waiting(database: Database) -> None:
    async with database.writing() as tx:
        await deliveries.add(tx, Delivery("expire:a1", "chat:T1", "timer", {}, False, 0.0, 9e9))
        await deliveries.add(tx, Delivery("m1", "chat:T1", "message", {}, False, 0.0, 0.0))
        assert await deliveries.counts(tx) == {"waiting": 1, "parked": 0}
