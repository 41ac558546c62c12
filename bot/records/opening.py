"""The records and the checkpoints of a house, opened together: what the one says rests on what the other has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from bot.records.database import Database, sqlite_database
from bot.records.schema import upgrade_sqlite


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept on disk."""

    database: Database
    checkpoints: Checkpoints


@asynccontextmanager
async def open_records(file: Path) -> AsyncIterator[Records]:
    """The records in a SQLite file, migrated, with the checkpoints beside it. Raises `NewerSchemaError`."""
    await asyncio.to_thread(upgrade_sqlite, file)
    async with sqlite_checkpoints(file.with_suffix(".checkpoints.db")) as checkpoints:
        database = sqlite_database(file, foundation=checkpoints.sync)
        await database.open()
        try:
            yield Records(database, checkpoints)
        finally:
            await database.close()
