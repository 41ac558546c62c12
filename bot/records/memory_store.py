"""Where memories are kept: LangGraph's store, on SQLite in a file of its own beside the records, on PostgreSQL in its
tables.

What is deleted there is gone from the file: SQLite overwrites it with zeros, and keeps no write-ahead log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import structlog
from langgraph.store.base import BaseStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from bot.data_folder import private_file

log = structlog.get_logger(__name__)
STORE_TABLE = "store"
"""LangGraph's name for it, in both databases."""
STORE_COLUMNS = "prefix, key, value, created_at, updated_at, expires_at, ttl_minutes"
BUSY_MILLISECONDS = 10_000
"""How long SQLite waits for another process that has the file, such as a copy of it."""
STORE_CONNECTIONS = 4
"""To PostgreSQL, at once: each turn reads once."""


def memory_file(records: Path) -> Path:
    """Returns the file of the store beside the records."""
    return records.with_suffix(".memory.db")


@asynccontextmanager
async def sqlite_memory_store(file: Path) -> AsyncIterator[BaseStore]:
    """The store over one file, which is made when it is missing. Its statements run in a thread of their own. Raises
    what SQLite raises."""
    file.parent.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(private_file, file)
    async with aiosqlite.connect(file, isolation_level=None) as connection:
        for pragma in (f"busy_timeout={BUSY_MILLISECONDS}", "secure_delete=ON", "synchronous=FULL"):
            await connection.execute(f"PRAGMA {pragma}")
        store = AsyncSqliteStore(connection)
        try:
            await store.setup()
            yield store
        finally:
            await _end(store)


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
