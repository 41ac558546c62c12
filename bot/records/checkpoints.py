"""Where the graph keeps its state on a laptop: one SQLite file beside the records, pruned when a thread is at rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

BUSY_MILLISECONDS = 10_000
"""How long SQLite waits for another process that writes."""

_DELETE_OLD = """
DELETE FROM {table} WHERE thread_id = :thread AND (
    (checkpoint_ns <> '' AND checkpoint_ns NOT IN (SELECT value FROM json_each(:live)))
    OR checkpoint_id < (
        SELECT max(n.checkpoint_id) FROM checkpoints n
        WHERE n.thread_id = {table}.thread_id AND n.checkpoint_ns = {table}.checkpoint_ns
    )
)
"""


class Checkpoints(AsyncSqliteSaver):
    """The saver, with the one verb it lacks. Inherits because LangGraph recognises savers by their class."""

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each namespace that an open task owns; drop the rest.

        Newest per thread alone would delete the conversation, newest root alone would forget given approvals.
        """
        live = "[" + ",".join(f'"{n}"' for n in live_namespaces) + "]"
        async with self.lock:
            for table in ("writes", "checkpoints"):
                await self.conn.execute(_DELETE_OLD.format(table=table), {"thread": thread_id, "live": live})
            await self.conn.commit()


@asynccontextmanager
async def sqlite_checkpoints(path: Path) -> AsyncIterator[Checkpoints]:
    """The saver over one file, durable at every commit. Types outside LangChain's messages are refused on reading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    async with aiosqlite.connect(path) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MILLISECONDS}"):
            await connection.execute(f"PRAGMA {pragma}")
        saver = Checkpoints(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=[]))
        await saver.setup()
        yield saver
