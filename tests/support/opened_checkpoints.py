"""The checkpoints of a test, in SQLite or, with `--postgres`, in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg

from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from tests.support import postgres_cluster

if TYPE_CHECKING:
    from bot.records.postgres_checkpoints import PostgresCheckpoints

AnyCheckpoints: TypeAlias = "Checkpoints | PostgresCheckpoints"


@asynccontextmanager
async def opened_checkpoints(folder: Path) -> AsyncIterator[AnyCheckpoints]:
    """The checkpoints of this folder; opened again, they are as they were left. One folder at a time."""
    file = folder / "checkpoints.db"
    if not postgres_cluster.is_used():
        async with sqlite_checkpoints(file) as in_file:
            yield in_file
        return
    from bot.records.postgres_checkpoints import postgres_checkpoints

    if not file.exists():
        folder.mkdir(exist_ok=True)
        file.write_text(postgres_cluster.emptied_database())
    async with postgres_checkpoints(file.read_text(), most_connections=5) as in_database:
        yield in_database


async def put_to_disk(checkpoints: AnyCheckpoints, thread_id: str) -> None:
    """What a transaction that rests on the thread's checkpoints does first. Raises what keeps them from being kept."""
    if isinstance(checkpoints, Checkpoints):
        await checkpoints.prepare(thread_id)
        checkpoints.sync(thread_id)


def rows_of_checkpoints(folder: Path) -> tuple[int, int]:
    """How many checkpoints and writes are kept in the folder."""
    file = folder / "checkpoints.db"
    connection: Any
    if postgres_cluster.is_used():
        connection, writes = psycopg.connect(file.read_text()), "checkpoint_writes"
    else:
        connection, writes = sqlite3.connect(file), "writes"
    with closing(connection):
        counts: tuple[int, int] = connection.execute(
            f"SELECT (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM {writes})"
        ).fetchone()
    return counts
