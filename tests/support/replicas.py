"""Two replicas on one PostgreSQL, of which one is stopped at the moment that matters while the other goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from bot.records.postgresql import PostgresDatabase, PostgresTransaction, postgres_database
from tests.support import postgres_cluster
from tests.support.transactions import Execute, statement_of, wrap_statements

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")
MOST_CONNECTIONS = 10
"""Of each replica, at once."""
_BLOCKED = sa.text(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1"
)


@asynccontextmanager
async def two_databases() -> AsyncIterator[tuple[PostgresDatabase, PostgresDatabase]]:
    """The same empty database, as two processes would open it."""
    address = postgres_cluster.emptied_database()
    first, second = (postgres_database(address, most_connections=MOST_CONNECTIONS) for _ in range(2))
    await first.open()
    await second.open()
    yield first, second
    await first.close()
    await second.close()


def take_locks_out(monkeypatch: pytest.MonkeyPatch, *beginnings: str) -> None:
    """Nobody locks anything any more whose name begins like one of these; nor anything else, where there are none."""
    lock, alone, needs = PostgresDatabase.lock, PostgresDatabase.alone, PostgresTransaction.needs

    def kept(names: Iterable[str]) -> list[str]:
        return [name for name in names if beginnings and not name.startswith(beginnings)]

    async def locks_others(database: PostgresDatabase, driver: Any, names: Sequence[str], *locking: str) -> Any:
        return await lock(database, driver, kept(names), *locking) if kept(names) else {}

    def needs_others(tx: PostgresTransaction, *names: str) -> None:
        needs(tx, *kept(names))

    def alone_with_others(database: PostgresDatabase, name: str, service: str) -> AbstractAsyncContextManager[None]:
        return alone(database, name, service) if kept([name]) else nullcontext()

    monkeypatch.setattr(PostgresDatabase, "lock", locks_others)
    monkeypatch.setattr(PostgresDatabase, "alone", alone_with_others)
    monkeypatch.setattr(PostgresTransaction, "needs", needs_others)


def with_and_without(*beginnings: str) -> pytest.MarkDecorator:
    """A test of what only these locks prevent, and that fails when they alone are taken out. For the fixture `locks`,
    which hands them to `take_locks_out`."""
    without = pytest.param(beginnings, marks=pytest.mark.xfail(strict=True, reason="its lock is taken out"))
    return pytest.mark.parametrize("locks", [None, without], indirect=True, ids=["locked", "without its lock"])


class Held:
    """The first transaction of a replica that is about to write to a table, which waits there until it is let go.

    `kind`: in which way it writes, if not in any.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        database: PostgresDatabase,
        table: str,
        kind: Any = sa.Insert | sa.Update | sa.Delete,
    ) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

        def holding(execute: Execute) -> Execute:
            async def held(tx: Any, statement: Any, values: Any = None) -> Any:
                made = statement_of(tx, statement)
                writes = isinstance(made, kind) and made.table.name == table
                if writes and tx._database is database and not self.reached.is_set():
                    self.reached.set()
                    await self.go_on.wait()
                return await execute(tx, statement, values)

            return held

        wrap_statements(monkeypatch, holding)

    async def while_first(
        self, first: Coroutine[Any, Any, FirstT], second: Coroutine[Any, Any, SecondT], watching: PostgresDatabase
    ) -> tuple[FirstT, SecondT]:
        """Does the first until it is held, then the second until it has ended or waits for a lock, then both to their
        ends."""
        one = asyncio.create_task(first)
        reached = asyncio.create_task(self.reached.wait())
        await asyncio.wait([one, reached], return_when=asyncio.FIRST_COMPLETED)
        if not self.reached.is_set():
            second.close()
        assert self.reached.is_set(), one.result()
        two = asyncio.create_task(second)
        await until_done_or_blocked(two, watching)
        self.go_on.set()
        return await one, await two


async def until_done_or_blocked(
    task: asyncio.Task[Any], watching: PostgresDatabase, is_enough: Callable[[], bool] = lambda: False
) -> None:
    """Waits until a task has ended, or somebody waits for a lock, or it `is_enough`."""
    async with asyncio.timeout(20):
        while not task.done() and not is_enough():
            async with watching.reading() as tx:
                if await tx.one(_BLOCKED) is not None:
                    return
