"""Two replicas on one PostgreSQL, of which one is stopped at the moment that matters while the other goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from bot.records.postgresql import PostgresDatabase, PostgresTransaction, postgres_database
from tests.support import postgres_cluster
from tests.support.transactions import Execute, statement_of, wrap_statements

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")
_BLOCKED = sa.text(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1"
)


@asynccontextmanager
async def two_databases() -> AsyncIterator[tuple[PostgresDatabase, PostgresDatabase]]:
    """The same empty database, as two processes would open it."""
    address = postgres_cluster.emptied_database()
    first, second = (postgres_database(address, most_connections=10) for _ in range(2))
    await first.open()
    await second.open()
    yield first, second
    await first.close()
    await second.close()


def take_locks_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody locks anything any more."""

    async def nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(PostgresDatabase, "lock", nothing)
    monkeypatch.setattr(PostgresDatabase, "alone", lambda *_: nullcontext())
    monkeypatch.setattr(PostgresTransaction, "needs", lambda *_: None)


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
