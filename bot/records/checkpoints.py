"""Where the graph keeps its state on a laptop: one SQLite file beside the records, pruned when a thread is at rest."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from bot.data_folder import private_file

BUSY_MILLISECONDS = 10_000
"""How long SQLite waits for another process that writes."""

_Result = TypeVar("_Result")
_HAS_WRITES = "SELECT 1 FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? LIMIT 1"
_DELETE_OLD = """
DELETE FROM {table} WHERE thread_id = :thread AND (
    (checkpoint_ns <> '' AND checkpoint_ns NOT IN (SELECT value FROM json_each(:live)))
    OR checkpoint_id < (
        SELECT max(n.checkpoint_id) FROM checkpoints n
        WHERE n.thread_id = {table}.thread_id AND n.checkpoint_ns = {table}.checkpoint_ns
    )
)
"""


class Checkpoints(SqliteSaver):
    """The saver, with the two verbs it lacks. Inherits because LangGraph recognises savers by their class.

    Each verb is one trip to the one thread that has the connection: `AsyncSqliteSaver` makes a trip for each statement,
    fetch and commit, and the trips cost more than what is done there.

    A checkpoint survives the process at once and the machine from the next `sync` on, which every transaction of a turn
    makes before its own commit (docs/decisions/0007-checkpoints-reach-the-disk-when-something-rests-on-them.md).
    """

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor, log: int) -> None:
        super().__init__(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=[]))
        self._thread = thread
        self._log = log
        self._unsynced = False

    def sync(self) -> None:
        """Wait until every checkpoint that was put is on disk. Blocks; from any thread."""
        if self._unsynced:
            self._unsynced = False
            try:
                os.fsync(self._log)
            except OSError:
                self._unsynced = True
                raise

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint, or the one that `config` names, with its pending writes."""
        return await self._there(self.get_tuple, config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint."""
        return await self._there(self._put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote."""
        await self._there(self._put_writes, config, writes, task_id, task_path)

    async def has_pending_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something was written after this root checkpoint that no later one has taken in."""
        return await self._there(self._has_writes, thread_id, checkpoint_id)

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each namespace that an open task owns; drop the rest.

        Newest per thread alone would delete the conversation, newest root alone would forget given approvals.
        """
        await self._there(self._prune, thread_id, live_namespaces)

    def _put(self, *what: Any) -> RunnableConfig:
        config = self.put(*what)
        self._unsynced = True
        return config

    def _put_writes(self, *what: Any) -> None:
        self.put_writes(*what)
        self._unsynced = True

    def _has_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        with self.cursor(transaction=False) as cursor:
            return cursor.execute(_HAS_WRITES, (thread_id, checkpoint_id)).fetchone() is not None

    def _prune(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        live = "[" + ",".join(f'"{n}"' for n in live_namespaces) + "]"
        with self.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                cursor.execute(_DELETE_OLD.format(table=table), {"thread": thread_id, "live": live})

    async def _there(self, verb: Callable[..., _Result], *args: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, verb, *args)


@asynccontextmanager
async def sqlite_checkpoints(path: Path) -> AsyncIterator[Checkpoints]:
    """The saver over one file. Types outside LangChain's messages are refused on reading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    private_file(path)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints") as thread:
        connection = await asyncio.get_running_loop().run_in_executor(thread, _connect, path)
        log = os.open(f"{path}-wal", os.O_RDWR)
        with closing(connection):
            try:
                yield Checkpoints(connection, thread, log)
            finally:
                # What was begun is finished before the connection goes away.
                thread.shutdown()
                os.close(log)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={BUSY_MILLISECONDS}"):
        connection.execute(f"PRAGMA {pragma}")
    SqliteSaver(connection).setup()
    return connection
