"""Where memories are kept: LangGraph's store, on SQLite in a file of its own beside the records, on PostgreSQL in its
tables.

It is read before each turn and hardly ever written. So it is read by one statement over its table, in the event loop or
on a connection of the records (docs/decisions/0002-sqlite-in-the-loop.md), and the store itself is opened by whoever
writes first: importing it and its vectors takes 0.1 s and 13 MB, and it has a thread, or connections, of its own.

What is deleted there is gone from the file: SQLite overwrites it with zeros, and keeps no write-ahead log.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from bot.data_folder import private_file
from bot.records.database import Transaction
from bot.records.statements import Prepared

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, PutOp

STORE_TABLE = "store"
"""LangGraph's name for it, in both databases."""
STORE_COLUMNS = "prefix, key, value, created_at, updated_at, expires_at, ttl_minutes"
BUSY_MILLISECONDS = 10_000
"""How long SQLite waits for another process that has the file, such as a copy of it."""
BUSY_PAUSE = 0.005
"""Seconds until a statement is tried again that met a commit."""
STORE_CONNECTIONS = 4
"""To PostgreSQL, at once, for what is written."""
Namespace = tuple[str, ...]
_READ = """\
SELECT prefix, key, value FROM store WHERE prefix = ? AND key IN ({keys})
UNION ALL
SELECT * FROM (SELECT prefix, key, value FROM store WHERE prefix IN ({prefixes}) LIMIT ?)"""
_READ_FROM_POSTGRES = Prepared(
    sa.text("""\
SELECT prefix, key, value FROM store WHERE prefix = :within AND key = ANY(CAST(:keys AS text[]))
UNION ALL
(SELECT prefix, key, value FROM store WHERE prefix = ANY(CAST(:prefixes AS text[])) LIMIT :most)""").columns(
        sa.column("prefix", sa.Text), sa.column("key", sa.Text), sa.column("value", sa.JSON)
    )
)


class StoredValue(NamedTuple):
    """A row of the store."""

    namespace: Namespace
    key: str
    value: dict[str, Any]


class MemoryRows(ABC):
    """LangGraph's store, opened by whoever writes to it first. `close` in the end."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._opened: BaseStore | None = None
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """Nothing is read or written any more."""
        await self._stack.aclose()

    @abstractmethod
    async def read(
        self, tx: Transaction, namespaces: Sequence[Namespace], within: Namespace, keys: Sequence[str], most: int
    ) -> list[StoredValue]:
        """What is in these namespaces, and under these keys in the namespace `within`. Raises what the database raises.

        Args:
            tx: of the records. What is in the same database is read in it.
            most: rows of the namespaces; what is asked for by its key is never left out.
        """

    @abstractmethod
    def _open(self) -> AbstractAsyncContextManager[BaseStore]:
        """The store itself."""

    async def write(self, changes: Sequence[PutOp]) -> None:
        """Keep and delete, in one go. Raises what the store raises."""
        if not changes:
            return
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._open())
        await self._opened.abatch(changes)


class FileMemories(MemoryRows):
    """Over one file, which is made by whoever writes first: without it nothing is remembered of anybody. Its statements
    are executed in the event loop, those that write in a thread."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._reader: sqlite3.Connection | None = None

    def check(self) -> None:
        """Raises what SQLite raises when there is a file, and it cannot be read. Blocks."""
        reader = self._connected()
        if reader is not None:
            reader.execute("SELECT prefix FROM store LIMIT 1").fetchall()

    async def close(self) -> None:
        """Nothing is read or written any more."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        await super().close()

    async def read(
        self, tx: Transaction, namespaces: Sequence[Namespace], within: Namespace, keys: Sequence[str], most: int
    ) -> list[StoredValue]:
        """What is there. Who commits has the file for themselves for a moment; others wait for that, not their loop."""
        sql = _READ.format(keys=", ".join("?" * len(keys)), prefixes=", ".join("?" * len(namespaces)))
        values = (_prefix_of(within), *keys, *map(_prefix_of, namespaces), most)
        until = asyncio.get_running_loop().time() + BUSY_MILLISECONDS / 1000
        while True:
            try:
                reader = self._connected()
                rows = reader.execute(sql, values).fetchall() if reader is not None else ()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or asyncio.get_running_loop().time() >= until:
                    raise
            else:
                return [StoredValue(tuple(prefix.split(".")), key, json.loads(value)) for prefix, key, value in rows]
            await asyncio.sleep(BUSY_PAUSE)

    def _open(self) -> AbstractAsyncContextManager[BaseStore]:
        return sqlite_memory_store(self._file)

    def _connected(self) -> sqlite3.Connection | None:
        """Returns the connection, as soon as there is anything to read."""
        if self._reader is not None or not self._file.exists():
            return self._reader
        reader = sqlite3.connect(self._file, timeout=0.0, isolation_level=None, check_same_thread=False)
        try:
            found = reader.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (STORE_TABLE,)).fetchone()
        except sqlite3.Error:
            reader.close()
            raise
        if found is None:  # whoever made the file has not come to that yet
            reader.close()
        else:
            self._reader = reader
        return self._reader


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class PostgresMemories(MemoryRows):
    """Over the tables of the records' database."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    async def read(
        self, tx: Transaction, namespaces: Sequence[Namespace], within: Namespace, keys: Sequence[str], most: int
    ) -> list[StoredValue]:
        """What is there, by one statement of the transaction."""
        values = {"prefixes": [*map(_prefix_of, namespaces)], "within": _prefix_of(within), "keys": [*keys]}
        rows = await tx.all(_READ_FROM_POSTGRES, {**values, "most": most})
        return [StoredValue(tuple(row.prefix.split(".")), row.key, row.value) for row in rows]

    def _open(self) -> AbstractAsyncContextManager[BaseStore]:
        return postgres_memory_store(self._address)


def _prefix_of(namespace: Namespace) -> str:
    """As LangGraph's store writes it."""
    return ".".join(namespace)


# ------------------------------------------------------------------------------------- the store itself


def memory_file(records: Path) -> Path:
    """Returns the file of the store beside the records."""
    return records.with_suffix(".memory.db")


@asynccontextmanager
async def sqlite_memory_store(file: Path) -> AsyncIterator[BaseStore]:
    """The store over one file, which is made when it is missing. Its statements run in a thread of their own. Raises
    what SQLite raises."""
    aiosqlite, async_sqlite_store = await asyncio.to_thread(_libraries)
    file.parent.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(private_file, file)
    async with aiosqlite.connect(file, isolation_level=None) as connection:
        for pragma in (f"busy_timeout={BUSY_MILLISECONDS}", "secure_delete=ON", "synchronous=FULL"):
            await connection.execute(f"PRAGMA {pragma}")
        store = async_sqlite_store(connection)
        try:
            await store.setup()
            yield store
        finally:
            await _end(store)


def _libraries() -> tuple[Any, Any]:
    import aiosqlite  # noqa: PLC0415  # for those who write
    from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415  # the same

    return aiosqlite, AsyncSqliteStore


@asynccontextmanager
async def postgres_memory_store(address: str) -> AsyncIterator[BaseStore]:
    """The store over tables that `upgrade_postgres` has made. Its methods raise what SQLAlchemy would for errors of the
    driver. Raises that when the database cannot be reached, too."""
    from bot.records.postgres_memory_store import open_postgres_store  # noqa: PLC0415  # SQLite has no use for it

    async with open_postgres_store(address, most_connections=STORE_CONNECTIONS) as store:
        try:
            yield store
        finally:
            await _end(store)


async def _end(store: Any) -> None:
    """LangGraph's store has a task that collects what is asked of it, and ends it only when it is forgotten."""
    store._task.cancel()
    await asyncio.gather(store._task, return_exceptions=True)
