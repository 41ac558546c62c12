"""One writer at a time, whatever happens to the task that writes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.contextvars import get_contextvars

from bot.domain import Person
from bot.logs import log_context
from bot.records import approvals, deliveries, threads
from bot.records import database as records
from bot.records.approvals import VoteRow
from bot.records.database import Database, NotOnDisk, written_at_last
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.sqlite import NoFoundation, SqliteDatabase, sqlite_database
from bot.records.startup import upgrade_sqlite
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
    async with database.writing(UNLOCKED) as tx:
        tx.afterwards(lambda: done.append(name))
        await threads.remember(tx, Person(f"chat:{name}", name), 0.0)


async def names(database: Database) -> set[str]:
    async with database.reading() as tx:
        known = [await threads.person(tx, f"chat:{name}") for name in ("ana", "ben")]
    return {person.name for person in known if person}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.sqlite
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
        async with database.writing(UNLOCKED) as tx:
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


@pytest.mark.sqlite
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


@pytest.mark.sqlite
async def test_a_commit_that_fails_is_taken_back_and_the_next_transaction_is_clean(database: Database) -> None:
    done: list[str] = []
    with pytest.raises(sa.exc.IntegrityError):
        async with database.writing(UNLOCKED) as tx:
            tx.afterwards(lambda: done.append("never"))
            tx.connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            await threads.remember(tx, Person("chat:ana", "ana"), 0.0)
            await approvals.cast(tx, "no such approval", VoteRow("chat:ana", "Ana", "approve", "", 0.0, "k"))
    await remember(database, "ben", done)
    assert done == ["ben"]
    assert await names(database) == {"ben"}
    async with database.reading() as tx:
        assert await tx.all(sa.select(votes)) == []


async def test_an_error_of_the_database_does_not_repeat_what_people_wrote(database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError) as failure:
        async with database.writing(UNLOCKED) as tx:
            await approvals.cast(tx, "no such", VoteRow("chat:ana", "Ana", "reject", "my secret", 0.0, "k"))
    assert "my secret" not in str(failure.value)


@pytest.mark.sqlite
async def test_the_urgent_go_first(database: Database) -> None:
    disk, order = SlowDisk(database), []

    async def write(name: str, *, urgently: bool = False) -> None:
        async with database.writing_urgently(UNLOCKED) if urgently else database.writing(UNLOCKED):
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
    async with database.writing(UNLOCKED) as tx:
        await deliveries.add(tx, Delivery("expire:a1", "chat:T1", "timer", {}, False, 0.0, 9e9))
        await deliveries.add(tx, Delivery("m1", "chat:T1", "message", {}, False, 0.0, 0.0))
        assert await deliveries.counts(tx) == {"waiting": 1, "parked": 0}


# ------------------------------------------------------------------------------- several in one commit


@dataclass
class Together:
    """Transactions that wait for the disk, with what each commit held."""

    database: Database
    commits: list[int] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def waiting(self, *names: str) -> list[asyncio.Task[None]]:
        """One writer after the other, all of them while the first waits for the disk."""
        tasks = [asyncio.create_task(remember(self.database, name, self.done)) for name in names]
        await asyncio.sleep(0)
        return tasks


@pytest.fixture
def together(database: Database, monkeypatch: pytest.MonkeyPatch) -> Together:
    together, commit = Together(database), SqliteDatabase.commit

    def counted(self: Database, transactions: Any) -> None:
        together.commits.append(len(transactions.transactions))
        commit(self, transactions)

    monkeypatch.setattr(SqliteDatabase, "commit", counted)
    return together


@pytest.mark.sqlite
async def test_who_waits_for_the_writer_meanwhile_shares_the_next_commit(
    database: Database, together: Together
) -> None:
    disk = SlowDisk(database)
    writers = await together.waiting("ana") + await together.waiting("ben", "chloe", "dan")
    disk.let_go()
    await asyncio.gather(*writers)
    assert together.commits == [1, 3]
    assert together.done == ["ana", "ben", "chloe", "dan"]


@pytest.mark.sqlite
async def test_what_is_logged_after_a_shared_commit_is_about_the_thread_whose_transaction_it_was(
    database: Database,
) -> None:
    told: dict[str, str] = {}

    async def write(thread_id: str) -> None:
        with log_context(thread_id=thread_id):
            async with database.writing(UNLOCKED) as tx:
                tx.afterwards(lambda: told.update({thread_id: get_contextvars()["thread_id"]}))

    disk = SlowDisk(database)
    writers = [asyncio.create_task(write(f"chat:{name}")) for name in ("ana", "ben", "chloe")]
    await asyncio.sleep(0)
    disk.let_go()
    await asyncio.gather(*writers)
    assert told == {f"chat:{name}": f"chat:{name}" for name in ("ana", "ben", "chloe")}


@pytest.mark.sqlite
async def test_one_that_fails_takes_nothing_back_of_those_that_share_its_commit(
    database: Database, together: Together
) -> None:
    async def failing(name: str) -> None:
        async with database.writing(UNLOCKED) as tx:
            tx.afterwards(lambda: together.done.append("never"))
            await threads.remember(tx, Person(f"chat:{name}", name), 0.0)
            raise OSError(name)

    disk = SlowDisk(database)
    writers = await together.waiting("chloe")
    writers += [asyncio.create_task(failing("dan"))]
    writers += await together.waiting("ana")
    writers += [asyncio.create_task(failing("eve"))]
    writers += await together.waiting("ben")
    disk.let_go()
    results = await asyncio.gather(*writers, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), OSError, type(None), OSError, type(None)]
    assert together.done == ["chloe", "ana", "ben"]
    assert await names(database) == {"ana", "ben"}
    async with database.reading() as tx:
        assert await threads.person(tx, "chat:dan") is None
        assert await threads.person(tx, "chat:eve") is None


@pytest.mark.sqlite
async def test_when_the_last_that_was_let_in_fails_the_others_are_committed_all_the_same(
    database: Database, together: Together
) -> None:
    async def failing() -> None:
        async with database.writing(UNLOCKED):
            raise OSError

    disk = SlowDisk(database)
    writers = await together.waiting("chloe") + await together.waiting("ana", "ben")
    writers.append(asyncio.create_task(failing()))
    await asyncio.sleep(0)
    disk.let_go()
    await asyncio.gather(*writers, return_exceptions=True)
    assert together.commits == [1, 2]
    assert await names(database) == {"ana", "ben"}


@pytest.mark.sqlite
async def test_a_commit_that_fails_is_told_to_all_that_share_it(database: Database, together: Together) -> None:
    async def breaking() -> None:
        async with database.writing(UNLOCKED) as tx:
            tx.connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            await approvals.cast(tx, "no such approval", VoteRow("chat:ana", "Ana", "approve", "", 0.0, "k"))

    disk = SlowDisk(database)
    writers = await together.waiting("chloe") + await together.waiting("ana")
    writers.append(asyncio.create_task(breaking()))
    await asyncio.sleep(0)
    disk.let_go()
    first, *rest = await asyncio.gather(*writers, return_exceptions=True)
    assert first is None
    assert [type(result) for result in rest] == [sa.exc.IntegrityError, sa.exc.IntegrityError]
    assert together.done == ["chloe"]
    assert await names(database) == set()
    await remember(database, "ben", together.done)
    assert await names(database) == {"ben"}


@pytest.mark.sqlite
async def test_a_transaction_that_sqlite_has_ended_by_itself_is_told_to_all_that_share_it(
    database: Database, together: Together
) -> None:
    async def ended() -> None:
        async with database.writing(UNLOCKED) as tx:
            tx.connection.connection.driver_connection.rollback()  # as SQLite does when the disk is full
            raise OSError("disk full")

    disk = SlowDisk(database)
    writers = await together.waiting("chloe") + await together.waiting("ana")
    writers.append(asyncio.create_task(ended()))
    await asyncio.sleep(0)
    disk.let_go()
    results = await asyncio.gather(*writers, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), OSError, OSError]
    await remember(database, "ben", together.done)
    assert together.done == ["chloe", "ben"]
    assert await names(database) == {"ben"}


@pytest.mark.sqlite
async def test_only_the_urgent_share_a_commit_that_somebody_outside_waits_for(
    database: Database, together: Together
) -> None:
    async def urgent(name: str) -> None:
        async with database.writing_urgently(UNLOCKED) as tx:
            await threads.remember(tx, Person(f"chat:{name}", name), 0.0)

    disk = SlowDisk(database)
    writers = await together.waiting("ana") + await together.waiting("ben", "chloe")
    writers += [asyncio.create_task(urgent(name)) for name in ("dan", "eve")]
    await asyncio.sleep(0)
    disk.let_go()
    await asyncio.gather(*writers)
    assert together.commits == [1, 2, 2]


@pytest.mark.sqlite
async def test_who_is_cancelled_when_just_let_in_does_not_leave_the_others_without_a_commit(
    database: Database, together: Together
) -> None:
    disk = SlowDisk(database)
    first, second, third = await together.waiting("chloe") + await together.waiting("ana", "ben")
    cancelling = second.get_loop().call_soon

    async def leaving() -> None:
        async with database.writing(UNLOCKED):
            cancelling(third.cancel)  # it is let in when this block ends, in the same step

    last = asyncio.create_task(leaving())
    second.cancel()
    await asyncio.sleep(0)
    disk.let_go()
    async with asyncio.timeout(10):
        await asyncio.gather(first, second, third, last, return_exceptions=True)
        await remember(database, "ana", together.done)
    assert "ana" in await names(database)


@pytest.mark.sqlite
async def test_closing_waits_for_those_that_wait_for_the_disk(database: Database, together: Together) -> None:
    disk = SlowDisk(database)
    writers = await together.waiting("chloe") + await together.waiting("ana", "ben")
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    disk.let_go()
    await closing
    await asyncio.wait(writers)
    await database.open()
    assert "chloe" in together.done


async def test_what_cannot_be_put_to_disk_is_told_to_the_one_that_rests_on_it(tmp_path: Path) -> None:
    class Unserialisable(NoFoundation):
        async def prepare(self, thread_id: str) -> None:
            if thread_id == "broken":
                raise TypeError("cannot be serialised")

    upgrade_sqlite(tmp_path / "countersign.db")
    database = sqlite_database(tmp_path / "countersign.db", Unserialisable())
    await database.open()

    async def write(name: str, thread_id: str) -> None:
        async with database.writing(thread_id) as tx:
            await threads.remember(tx, Person(f"chat:{name}", name), 0.0)

    disk = SlowDisk(database)
    writers = [asyncio.create_task(write("chloe", "first"))]
    await asyncio.sleep(0)
    writers += [asyncio.create_task(write(name, thread)) for name, thread in (("ana", "broken"), ("ben", "whole"))]
    await asyncio.sleep(0)
    disk.let_go()
    results = await asyncio.gather(*writers, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), NotOnDisk, type(None)]
    assert await names(database) == {"ben"}
    await database.close()


async def test_what_cannot_be_had_again_is_written_when_a_full_disk_has_room_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "_AGAIN_SECONDS", 0.0)
    full = [sa.exc.OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full"))]

    async def write() -> str:
        if full:
            raise full.pop()
        return "written"

    assert await written_at_last(write) == "written"
