"""The records and the checkpoints of a house, opened together: what the one says rests on what the other has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from bot.records.damage import told_when_damaged
from bot.records.database import Database, sqlite_database
from bot.records.schema import upgrade_sqlite


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept on disk."""

    database: Database
    checkpoints: Checkpoints


@asynccontextmanager
async def open_records(file: Path) -> AsyncIterator[Records]:
    """The records in a SQLite file, migrated, with the checkpoints beside it.

    Raises `NewerSchemaError` and `DamagedFileError`.
    """
    beside = file.with_suffix(".checkpoints.db")
    async with AsyncExitStack() as stack:
        with told_when_damaged(file, moved_away=f"Without it (and {beside.name}, then) everything begins anew."):
            await asyncio.to_thread(upgrade_sqlite, file)
        with told_when_damaged(
            beside, moved_away="Without it conversations begin anew, and what waits for people in them is void."
        ):
            checkpoints = await stack.enter_async_context(sqlite_checkpoints(beside))
        database = sqlite_database(file, foundation=checkpoints.sync)
        with told_when_damaged(file, moved_away=f"Without it (and {beside.name}, then) everything begins anew."):
            await database.open()
        stack.push_async_callback(database.close)
        yield Records(database, checkpoints)
