"""The checkpoints of a test, in SQLite or, with `--postgres`, in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg

from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from bot.records.claims import Claim, under
from bot.records.database import NotOnDisk
from tests.support import postgres_cluster

if TYPE_CHECKING:
    from bot.records.postgres_checkpoints import PostgresCheckpoints

AnyCheckpoints: TypeAlias = "Checkpoints | PostgresCheckpoints"


@asynccontextmanager
async def opened_checkpoints(folder: Path) -> AsyncIterator[AnyCheckpoints]:
    """The checkpoints of this folder; opened again, they are as they were left. One folder at a time. In PostgreSQL,
    they are used under a claim to the place `t`, as by a run."""
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
        with under(await _claimed(file.read_text(), "t")):
            yield in_database
            await put_to_disk(in_database, "t")


async def _claimed(address: str, place: str) -> Claim:
    from bot.records.postgresql import postgres_database

    database = postgres_database(address, most_connections=1)
    claim = await database.claim(place)
    await database.close()
    return claim


async def put_to_disk(checkpoints: AnyCheckpoints, thread_id: str) -> None:
    """What a transaction that rests on the thread's checkpoints does first. Raises what keeps them from being kept."""
    if isinstance(checkpoints, Checkpoints):
        await checkpoints.prepare(thread_id)
        checkpoints.sync(thread_id)
        return
    from bot.records.postgresql import postgres_database

    database = postgres_database(postgres_cluster.own_database(), checkpoints, most_connections=1)
    try:
        async with database.writing(thread_id):
            pass
    except NotOnDisk as told:
        raise told.__cause__ or told from None
    finally:
        await database.close()


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
