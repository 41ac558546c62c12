"""The records, opened for a command that writes them. Countersign may be running on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.commands.arguments import CommandError
from bot.data_folder import FolderInUseError
from bot.records.addresses import shown_address, sqlite_file
from bot.records.database import Database, is_outage
from bot.records.sqlite import SqliteDatabase, sqlite_database
from bot.records.startup import NewerSchemaError, UpgradeError, has_present_schema, upgraded_records

if TYPE_CHECKING:
    from bot.records.postgresql import PostgresDatabase


@asynccontextmanager
async def opened_records(address: str) -> AsyncIterator[Database]:
    """The records at an address, made or upgraded where that is needed. Raises `CommandError`."""
    file = sqlite_file(address)
    try:
        if file is None or not has_present_schema(file):
            await asyncio.to_thread(upgraded_records, address)
    except (FolderInUseError, NewerSchemaError, UpgradeError) as error:
        raise CommandError(str(error)) from error
    database = _at(address)
    try:
        await database.open()
        yield database
    except Exception as error:
        if not is_outage(error):
            raise
        raise CommandError(f"{shown_address(address)}: the records cannot be used now: {error}") from error
    finally:
        await database.close()


def _at(address: str) -> SqliteDatabase | PostgresDatabase:
    file = sqlite_file(address)
    if file is not None:
        return sqlite_database(file)
    from bot.records.postgresql import postgres_database  # noqa: PLC0415  # SQLite has no use for it

    return postgres_database(address, most_connections=1)
