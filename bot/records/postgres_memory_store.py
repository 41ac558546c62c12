"""LangGraph's store on PostgreSQL, over connections that wait for nothing without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg.rows import DictRow, dict_row

from bot.records.postgres_connections import CONNECT_SECONDS, connection_parameters, connection_pool
from bot.records.postgresql import LOCK_SECONDS, connection_settings


class PostgresMemoryStore(AsyncPostgresStore):
    """The store. Its methods raise what SQLAlchemy would for errors of the driver: an outage is known by that."""

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[psycopg.AsyncCursor[DictRow]]:
        try:
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor
        except psycopg.Error as error:
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error, hide_parameters=True) from error


@asynccontextmanager
async def open_postgres_store(address: str, *, most_connections: int) -> AsyncIterator[PostgresMemoryStore]:
    """The store over a database that is ready. Raises what SQLAlchemy does when it cannot be reached."""
    connections = connection_pool(
        connection_parameters(address, connection_settings()) | {"autocommit": True, "row_factory": dict_row},
        name="memory",
        most_connections=most_connections,
        timeout=LOCK_SECONDS,
    )
    try:
        try:
            await connections.open(wait=True, timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error) from error
        yield PostgresMemoryStore(connections)
    finally:
        await connections.close()


def make_store_tables(connection: psycopg.Connection[Any]) -> None:
    """Make or migrate the tables of LangGraph's store. `connection`: commits each statement, since an index that is
    built while others write cannot be built within a transaction. Blocks. One process at a time."""
    PostgresStore(connection).setup()
