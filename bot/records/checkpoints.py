"""Where the graph keeps its state on a laptop: one SQLite file beside the records, pruned when a thread is at rest."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from bot.data_folder import private_file
from bot.records.checkpoint_memory import (
    ERROR_CHANNEL,
    LONG_STATE,
    NewestCheckpoint,
    NewestWithWrites,
    TaskWrite,
    ThreadInMemory,
    config_of,
    place_in_graph,
)

log = structlog.get_logger(__name__)
_Result = TypeVar("_Result")

BUSY_MILLISECONDS = 10_000
"""How long SQLite waits for another process that writes."""
BUSY_READING_MILLISECONDS = 20
"""How long a read, which is done in the event loop, waits for one that has the whole file for itself."""
MOST_READ = 32
"""Threads whose state stays in memory although all of it is on disk: more than run at once, as a rule."""

_NAMESPACES = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_NEWEST = """
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id DESC LIMIT 1
"""
_SIZE = """
SELECT checkpoint_id, length(checkpoint) FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id DESC LIMIT 1
"""
_SIZE_OF_WRITES = """
SELECT total(length(value)) FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_WRITES = """
SELECT task_id, task_path, idx, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_PUT = """
INSERT OR REPLACE INTO checkpoints
(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_PUT_WRITE = """
INSERT OR REPLACE INTO writes
(thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PRUNE = """
DELETE FROM {table} WHERE thread_id = :thread
AND checkpoint_ns NOT IN (SELECT value FROM json_each(:unread))
AND checkpoint_ns || ' ' || checkpoint_id NOT IN (SELECT value FROM json_each(:kept))
"""


@dataclass(slots=True, eq=False, kw_only=True)
class _SqliteThread(ThreadInMemory):
    """All that its next step may need, read from disk or not yet there."""

    unread: set[str]
    """Namespaces that are on disk only."""


class Checkpoints(SqliteSaver):
    """The saver, with the verbs that it lacks. Inherits because LangGraph recognises savers by their class.

    What is put is kept in memory, and is on disk from the next `sync` of its thread on, which every transaction of a
    turn makes before its own commit: nothing rests on a checkpoint before that
    (docs/decisions/0007-checkpoints-reach-the-disk-when-something-rests-on-them.md). A checkpoint that the next one
    replaces before then is never written: of a plain turn one is, of four. It is this class alone that writes the file,
    so what is in memory is never older than the file.

    Reading is done in the event loop, by a connection that waits for no writer, unless it is long: a trip to a thread
    costs several times what a short checkpoint does. Writing is done in the thread that commits the records.
    """

    def __init__(
        self, connection: sqlite3.Connection, reader: sqlite3.Connection, long_reader: sqlite3.Connection, wal: int
    ) -> None:
        super().__init__(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=[]))
        self._reader = reader
        self._long_reader = long_reader
        self._long_reads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints-read")
        self._preparations = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints-prepared")
        """Not the one of long reads: everybody who writes waits for who prepares."""
        self._wal = wal
        self._unsynced = False
        self._threads: dict[str, _SqliteThread] = {}
        self._memory = threading.Lock()
        """Held while `_threads` is looked at or changed, never while anything is serialised or written."""

    async def prepare(self, thread_id: str) -> None:
        """Serialise what `sync` has to write of this thread. Transactions that share a commit share its `sync`, and
        what cannot be serialised must be told to the one that rests on it, before the others rest on it too.

        Raises what the serialiser raises; what cannot be serialised is forgotten, as `sync` says.
        """
        with self._memory:
            thread = self._threads.get(thread_id)
            rows = _SqliteRows.of(thread_id, thread) if thread is not None else None
        if rows is None:
            return
        if sum(each.size for _, each, _ in rows.newest) < LONG_STATE:
            self._serialise(rows)
        else:
            await asyncio.get_running_loop().run_in_executor(self._preparations, self._serialise, rows)

    def _serialise(self, rows: _SqliteRows) -> None:
        try:
            rows.checkpoints(self.serde)
            rows.pending_writes(self.serde)
        except Exception:
            with self._memory:
                self._threads.pop(rows.thread_id, None)
            raise

    def sync(self, *thread_ids: str) -> None:
        """Wait until every checkpoint that was put is on disk, of these threads or, if none is named, of all. Blocks;
        from any thread.

        Raises what SQLite and the disk raise; what is not written then stays in memory, for the next time. What cannot
        be serialised is forgotten when somebody who names its thread is told by an exception, as if the process had
        died before it was put: else it would stand in the way of the transaction that says so. Not before: what rests
        on it would find nothing to wait for.
        """
        with self.lock:
            with self._memory:
                threads = {each: self._threads[each] for each in thread_ids or self._threads if each in self._threads}
                collected = [
                    rows for each, thread in threads.items() if (rows := _SqliteRows.of(each, thread)) is not None
                ]
            if collected:
                self._write(collected, named=thread_ids)
            if self._unsynced:
                os.fsync(self._wal)
                self._unsynced = False

    def close(self) -> None:
        """Write what is in memory. Nothing may be put afterwards. Blocks."""
        self._long_reads.shutdown()
        self._preparations.shutdown()
        self.sync()

    # ----------------------------------------------------------------------- what LangGraph asks of a saver

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint, or the one that `config` names, with its pending writes."""
        thread_id, namespace, wanted = place_in_graph(config)
        newest = await self._newest(thread_id, namespace)
        if newest is not None and wanted in {None, newest.checkpoint_id}:
            return newest.as_tuple(thread_id, namespace)
        return await self._in_thread(self.get_tuple, config) if wanted is not None else None

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint. It replaces the one before in its namespace, with what was written after that."""
        thread_id, namespace, parent = place_in_graph(config)
        thread = self._thread(thread_id)
        with self._memory:
            before = thread.newest.get(namespace)
            size = before.size if before is not None else 0
            newest = NewestCheckpoint(checkpoint, get_checkpoint_metadata(config, metadata), parent, size)
            if namespace == "":
                # The other namespaces were of tasks of the one before, which have all ended.
                thread.newest.clear()
            thread.unread.discard(namespace)
            thread.newest[namespace] = newest
        return config_of(thread_id, namespace, newest.checkpoint_id)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote. What comes too late for its checkpoint has no reader any more."""
        thread_id, namespace, checkpoint_id = place_in_graph(config)
        newest = await self._newest(thread_id, namespace)
        if newest is None or newest.checkpoint_id != checkpoint_id:
            return
        with self._memory:
            newest.add(writes, task_id, task_path, self._storable)

    # -------------------------------------------------------------------------------- what it lacks

    async def has_pending_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something was written after this root checkpoint that no later one has taken in."""
        newest = await self._newest(thread_id, "")
        return newest is not None and newest.checkpoint_id == checkpoint_id and bool(newest.writes)

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each namespace that an open task owns; drop the rest, with the
        next `sync` of the thread.

        Newest per thread alone would delete the conversation, newest root alone would forget given approvals.
        """
        await self._newest(thread_id, "")
        thread = self._thread(thread_id)
        kept = {"", *live_namespaces}
        with self._memory:
            thread.newest = {namespace: each for namespace, each in thread.newest.items() if namespace in kept}
            thread.unread &= kept
            thread.pruned = True

    # ------------------------------------------------------------------------------------ memory and file

    def _thread(self, thread_id: str) -> _SqliteThread:
        """What is known of a thread, which for one that is not in memory is what namespaces it has on disk."""
        thread = self._threads.get(thread_id)
        if thread is None:
            unread = {namespace for (namespace,) in self._reader.execute(_NAMESPACES, (thread_id,))}
            thread = _SqliteThread(unread=unread, has_rows=bool(unread))
            with self._memory:
                self._forget_what_is_read()
                self._threads[thread_id] = thread
        return thread

    def _forget_what_is_read(self) -> None:
        if len(self._threads) >= MOST_READ:
            written = [thread_id for thread_id, thread in self._threads.items() if not thread.unwritten()]
            for thread_id in written[: len(self._threads) - MOST_READ + 1]:
                del self._threads[thread_id]

    async def _newest(self, thread_id: str, namespace: str) -> NewestCheckpoint | None:
        thread = self._thread(thread_id)
        while namespace in thread.unread:
            read = await self._read(thread_id, namespace)
            # Meanwhile others may have read it too, and gone on with that; or the thread has been forgotten.
            thread = self._thread(thread_id)
            if namespace in thread.unread:
                with self._memory:
                    thread.unread.discard(namespace)
                    if read is not None:
                        thread.newest[namespace] = read
        return thread.newest.get(namespace)

    async def _read(self, thread_id: str, namespace: str) -> NewestCheckpoint | None:
        found = self._reader.execute(_SIZE, (thread_id, namespace)).fetchone()
        if found is None:
            return None
        checkpoint_id, size = found
        (size_of_writes,) = self._reader.execute(_SIZE_OF_WRITES, (thread_id, namespace, checkpoint_id)).fetchone()
        if size + size_of_writes < LONG_STATE:
            return self._read_from(self._reader, thread_id, namespace)
        return await self._in_thread(self._read_from, self._long_reader, thread_id, namespace)

    def _read_from(self, reader: sqlite3.Connection, thread_id: str, namespace: str) -> NewestCheckpoint | None:
        row = reader.execute(_NEWEST, (thread_id, namespace)).fetchone()
        if row is None:
            return None
        checkpoint_id, parent, kind, checkpoint, metadata = row
        written = reader.execute(_WRITES, (thread_id, namespace, checkpoint_id)).fetchall()
        writes = {
            (task_id, index): TaskWrite(task_path, channel, self.serde.loads_typed((type_, value)), on_disk=True)
            for task_id, task_path, index, channel, type_, value in written
        }
        known: CheckpointMetadata = json.loads(metadata) if metadata is not None else {}
        return NewestCheckpoint(
            self.serde.loads_typed((kind, checkpoint)), known, parent, len(checkpoint), on_disk=True, writes=writes
        )

    async def _in_thread(self, read: Callable[..., _Result], *args: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._long_reads, read, *args)

    def _storable(self, channel: str, value: Any) -> Any:
        """An exception holds all that was in its frames: it is kept as it is read back."""
        return self.serde.loads_typed(self.serde.dumps_typed(value)) if channel == ERROR_CHANNEL else value

    def _write(self, threads: Sequence[_SqliteRows], *, named: Collection[str]) -> None:
        """All of it or nothing, in one transaction."""
        checkpoints: list[tuple[Any, ...]] = []
        writes: list[tuple[Any, ...]] = []
        whole: list[_SqliteRows] = []
        for each in threads:
            try:
                rows = each.checkpoints(self.serde), each.pending_writes(self.serde)
            except Exception as unserialisable:
                if each.thread_id in named:
                    with self._memory:
                        self._threads.pop(each.thread_id, None)
                    raise
                log.warning("checkpoint_not_serialised", thread_id=each.thread_id, cause=type(unserialisable).__name__)
            else:
                whole.append(each)
                checkpoints += rows[0]
                writes += rows[1]
        with self.conn:
            self.conn.executemany(_PUT, checkpoints)
            self.conn.executemany(_PUT_WRITE, writes)
            for each in whole:
                if each.pruned and each.thread.has_rows:
                    for table in ("writes", "checkpoints"):
                        self.conn.execute(_PRUNE.format(table=table), each.all_else())
        self._unsynced = True
        with self._memory:
            for each in whole:
                self._is_written(each)

    def _is_written(self, rows: _SqliteRows) -> None:
        for _, newest, writes in rows.newest:
            newest.on_disk, newest.serialised = True, None
            for _, write in writes:
                write.on_disk, write.serialised = True, None
        rows.thread.has_rows = True
        if rows.pruned and {ns: each for ns, each, _ in rows.newest} == rows.thread.newest:
            # At rest, and all that is left of it is on disk. What is short stays in memory, among the newest: to read
            # it back would be 0.7 ms of the way from a click to its call.
            rows.thread.pruned = False
            if not rows.thread.unwritten() and sum(each.size for each in rows.thread.newest.values()) > LONG_STATE:
                self._threads.pop(rows.thread_id, None)


@dataclass(frozen=True, slots=True)
class _SqliteRows:
    """What of a thread goes to disk now. Collected at once; made into rows afterwards, in the thread that writes."""

    thread_id: str
    thread: _SqliteThread
    newest: NewestWithWrites
    unread: Sequence[str]
    pruned: bool
    """Whether all else was to be dropped by then: the thread may be pruned while this is written."""

    @classmethod
    def of(cls, thread_id: str, thread: _SqliteThread) -> _SqliteRows | None:
        """Returns None when all of it is on disk."""
        if not thread.unwritten():
            return None
        return cls(thread_id, thread, thread.newest_with_writes(), sorted(thread.unread), thread.pruned)

    def checkpoints(self, serde: SerializerProtocol) -> list[tuple[Any, ...]]:
        """Parameters of `_PUT`."""
        rows = []
        for namespace, each, _ in self.newest:
            if not each.on_disk:
                if each.serialised is None:
                    metadata = json.dumps(each.metadata, ensure_ascii=False).encode("utf-8", "ignore")
                    each.serialised = *serde.dumps_typed(each.checkpoint), metadata
                    each.size = len(each.serialised[1])
                rows.append((self.thread_id, namespace, each.checkpoint_id, each.parent, *each.serialised))
        return rows

    def pending_writes(self, serde: SerializerProtocol) -> list[tuple[Any, ...]]:
        """Parameters of `_PUT_WRITE`."""
        rows = []
        for namespace, each, writes in self.newest:
            for (task_id, index), write in writes:
                if write.serialised is None:
                    write.serialised = serde.dumps_typed(write.value)
                place = self.thread_id, namespace, each.checkpoint_id, task_id, write.task_path, index, write.channel
                rows.append((*place, *write.serialised))
        return rows

    def all_else(self) -> dict[str, str]:
        """Parameters of `_PRUNE`."""
        kept = [f"{namespace} {each.checkpoint_id}" for namespace, each, _ in self.newest]
        return {"thread": self.thread_id, "kept": json.dumps(kept), "unread": json.dumps(self.unread)}


@asynccontextmanager
async def sqlite_checkpoints(path: Path) -> AsyncIterator[Checkpoints]:
    """The saver over one file. Types outside LangChain's messages are refused on reading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    private_file(path)
    connection = await asyncio.to_thread(_connect, path)
    reader = await asyncio.to_thread(_connect_to_read, path, BUSY_READING_MILLISECONDS)
    long_reader = await asyncio.to_thread(_connect_to_read, path, BUSY_MILLISECONDS)
    wal = os.open(f"{path}-wal", os.O_RDWR)
    with closing(connection), closing(reader), closing(long_reader):
        checkpoints = Checkpoints(connection, reader, long_reader, wal)
        try:
            yield checkpoints
        finally:
            try:
                await asyncio.to_thread(checkpoints.close)
            finally:
                os.close(wal)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={BUSY_MILLISECONDS}"):
        connection.execute(f"PRAGMA {pragma}")
    SqliteSaver(connection).setup()
    return connection


def _connect_to_read(path: Path, busy_milliseconds: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    for pragma in ("query_only=ON", f"busy_timeout={busy_milliseconds}"):
        connection.execute(f"PRAGMA {pragma}")
    return connection
