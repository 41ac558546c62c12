"""Where the graph keeps its state on PostgreSQL: LangGraph's saver, in memory until something rests on it.

Who has claimed a place is the only one to write what belongs to it. So what a run puts is kept in memory, as on SQLite,
and is written by each transaction of the records that rests on it: in that transaction, which has locked the place and
seen that the claim is the newest.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.postgres.base import SELECT_SQL
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

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
from bot.records.claims import Claim, Overtaken, current_claim
from bot.records.postgres_connections import CONNECT_SECONDS, connection_parameters, connection_pool
from bot.records.postgresql import LOCK_SECONDS, LockedName, Unwritten, connection_settings

_HAS_MARKER = "SELECT to_regclass('crash_marker') IS NOT NULL"
# What is not logged is empty after a crash, and on a standby that has taken over: just where commits may be missing
# that this process takes for kept.
_MAKE_MARKER = """
CREATE UNLOGGED TABLE crash_marker (
    id uuid NOT NULL, single boolean NOT NULL DEFAULT true CHECK (single), PRIMARY KEY (single)
)
"""
_HAS_PENDING_WRITES = """
SELECT EXISTS (
    SELECT FROM checkpoint_writes
    WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint)s
) AND NOT EXISTS (
    SELECT FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id > %(checkpoint)s
) AS found
"""
_NEWEST = (
    SELECT_SQL  # noqa: S608  # LangGraph's own
    + """WHERE thread_id = %(thread)s AND checkpoint_id = (
    SELECT max(newest.checkpoint_id) FROM checkpoints AS newest
    WHERE newest.thread_id = checkpoints.thread_id AND newest.checkpoint_ns = checkpoints.checkpoint_ns
)"""
)
_PUT_VALUES = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT %(thread)s, * FROM unnest(
    %(value_ns)s::text[], %(value_channel)s::text[], %(value_version)s::text[], %(value_type)s::text[],
    %(value)b::bytea[]
) ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING
"""
_PUT_WRITES = """
INSERT INTO checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
SELECT %(thread)s, * FROM unnest(
    %(write_ns)s::text[], %(write_checkpoint)s::text[], %(write_task)s::text[], %(write_path)s::text[],
    %(write_idx)s::integer[], %(write_channel)s::text[], %(write_type)s::text[], %(write)b::bytea[]
) ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
DO UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob
"""
_PUT_CHECKPOINTS = """
INSERT INTO checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT %(thread)s, * FROM unnest(
    %(ns)s::text[], %(id)s::text[], %(parent)s::text[], %(checkpoint)s::jsonb[], %(metadata)s::jsonb[]
) ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata
"""
_DROP = """
DELETE FROM {table} WHERE thread_id = %(thread)s
AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT * FROM unnest(%(kept_ns)s::text[], %(kept_id)s::text[]))
"""
_DROP_VALUES = """
DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s
AND (checkpoint_ns, channel, version) NOT IN (
    SELECT * FROM unnest(%(live_ns)s::text[], %(live_channel)s::text[], %(live_version)s::text[])
)
"""
MOST_AT_REST = 64
"""Threads whose state stays in memory although all of it is on disk."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """A text or a number, so that LangGraph's saver does not take it for one and put it into a column of JSON."""

    value: Any


class CheckpointSerialiser(JsonPlusSerializer):
    """Types outside LangChain's messages are refused on reading."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=[])

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise a value."""
        return super().dumps_typed(obj.value if isinstance(obj, _Plain) else obj)


def as_kept(checkpoint: Checkpoint) -> Checkpoint:
    """Returns the checkpoint so that `CheckpointSerialiser` gets its texts and numbers, too. A column of JSON takes
    neither NUL nor half a character, and gives some numbers back as others."""
    values = checkpoint["channel_values"].items()
    plain = {name: _Plain(each) if isinstance(each, str | int | float) else each for name, each in values}
    return {**checkpoint, "channel_values": plain}


@dataclass(slots=True, eq=False, kw_only=True)
class _PostgresThread(ThreadInMemory):
    """All that is known of a thread."""

    claim: Claim
    """Under which it was read, or put last."""
    values: set[tuple[str, str, str]] = field(default_factory=set)
    """Values on disk: namespace, channel and version."""
    has_writes: bool
    """Whether anything that tasks wrote may be on disk."""


class PostgresCheckpoints(AsyncPostgresSaver):
    """The saver, with the verbs that it lacks.

    Under a claim, what is put stays in memory until `unwritten` is asked for it by a transaction of the records in the
    thread (docs/decisions/0007-checkpoints-reach-the-disk-when-something-rests-on-them.md). Without a claim it is
    written at once, as LangGraph's saver does. Its methods raise what SQLAlchemy would for errors of the driver.
    """

    def __init__(self, connections: AsyncConnectionPool[psycopg.AsyncConnection[DictRow]]) -> None:
        super().__init__(connections, serde=CheckpointSerialiser())
        # Each use takes a connection of its own.
        self.lock = nullcontext()  # type: ignore[assignment]
        self._threads: OrderedDict[str, _PostgresThread] = OrderedDict()
        """The latest last."""

    # ----------------------------------------------------------------------- what LangGraph asks of a saver

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint, or the one that `config` names, with its pending writes."""
        claim = current_claim()
        thread_id, namespace, wanted = place_in_graph(config)
        if claim is not None:
            newest = (await self._thread(thread_id, claim)).newest.get(namespace)
            if newest is not None and wanted in {None, newest.checkpoint_id}:
                return newest.as_tuple(thread_id, namespace)
            if wanted is None:
                return None
        return await super().aget_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint. It replaces the one before in its namespace, with what was written after that."""
        claim = current_claim()
        thread_id, namespace, parent = place_in_graph(config)
        if claim is None:
            self._threads.pop(thread_id, None)
            return await super().aput(config, as_kept(checkpoint), metadata, new_versions)
        thread = await self._thread(thread_id, claim)
        before = thread.newest.get(namespace)
        newest = NewestCheckpoint(
            checkpoint,
            get_serializable_checkpoint_metadata(config, metadata),
            parent,
            before.size if before is not None else 0,
        )
        if namespace == "":
            # The other namespaces were of tasks of the one before, which have all ended.
            thread.newest.clear()
        thread.newest[namespace] = newest
        return config_of(thread_id, namespace, newest.checkpoint_id)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote. What comes too late for its checkpoint has no reader any more."""
        claim = current_claim()
        thread_id, namespace, checkpoint_id = place_in_graph(config)
        if claim is None:
            self._threads.pop(thread_id, None)
            await super().aput_writes(config, writes, task_id, task_path)
            return
        newest = (await self._thread(thread_id, claim)).newest.get(namespace)
        if newest is not None and newest.checkpoint_id == checkpoint_id:
            newest.add(writes, task_id, task_path, self._storable)

    # -------------------------------------------------------------------------------- what it lacks

    async def has_pending_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something was written after this root checkpoint that no later one has taken in."""
        claim = current_claim()
        if claim is not None:
            newest = (await self._thread(thread_id, claim)).newest.get("")
            return newest is not None and newest.checkpoint_id == checkpoint_id and bool(newest.writes)
        async with self._cursor() as cursor:
            await cursor.execute(_HAS_PENDING_WRITES, {"thread": thread_id, "checkpoint": checkpoint_id})
            row = await cursor.fetchone()
        return row is not None and bool(row["found"])

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each namespace that an open task owns; drop the rest, with the
        next transaction of the thread. Under a claim.

        Newest per thread alone would delete the conversation, newest root alone would forget given approvals.
        """
        claim = current_claim()
        if claim is None:
            raise RuntimeError("threads are pruned by whoever runs them")
        thread = await self._thread(thread_id, claim)
        kept = {"", *live_namespaces}
        thread.newest = {namespace: each for namespace, each in thread.newest.items() if namespace in kept}
        thread.pruned = True

    async def unwritten(self, thread_id: str, locked: LockedName) -> Unwritten | None:
        """What a transaction has to write that has locked the thread. None: all that was put is on disk, or was put
        under an older claim, so that it changes nothing any more.

        Raises what the serialiser raises; what cannot be serialised is forgotten, as if the process had died before it
        was put.
        """
        thread = self._threads.get(thread_id)
        if thread is None or not thread.unwritten():
            return None
        if (thread.claim.epoch, thread.claim.marker) != (locked.epoch, locked.marker):
            del self._threads[thread_id]
            return None
        rows = _PostgresRows.of(thread)
        try:
            if sum(each.size for _, each, _ in rows.newest) < LONG_STATE:
                values = rows.values(thread_id, self.serde)
            else:
                values = await asyncio.to_thread(rows.values, thread_id, self.serde)
        except Exception:
            self.forget(thread_id)
            raise
        # From now on it may be on disk, also if nobody is told so.
        thread.has_rows, thread.has_writes = True, thread.has_writes or "write" in values
        return Unwritten(rows.statement(values), values, partial(self._is_written, thread_id, rows))

    def forget(self, thread_id: str) -> None:
        """What was put in this thread is not to be written: it never can be."""
        self._threads.pop(thread_id, None)

    # ------------------------------------------------------------------------------------ memory and tables

    async def _thread(self, thread_id: str, claim: Claim) -> _PostgresThread:
        """What is known of a thread. What was put under an older claim is not known any more, unless all of it is on
        disk and nobody else can have written since."""
        if claim.lost:
            raise Overtaken(claim.place)
        thread = self._threads.get(thread_id)
        if thread is not None and thread.claim is not claim:
            if claim.follows(thread.claim) and not thread.unwritten():
                thread.claim = claim
            elif thread.claim.epoch < claim.epoch:
                thread = None
            else:
                claim.lose()
                raise Overtaken(claim.place)
        if thread is None:
            read = await self._read(thread_id, claim)
            thread = self._threads.get(thread_id)
            if thread is None or thread.claim.epoch < claim.epoch:  # meanwhile others may have read it, and gone on
                thread = self._threads[thread_id] = read
            elif thread.claim is not claim:
                claim.lose()
                raise Overtaken(claim.place)
        self._threads.move_to_end(thread_id)
        self._forget_the_oldest()
        return thread

    def _forget_the_oldest(self) -> None:
        if len(self._threads) > MOST_AT_REST:
            at_rest = [each for each, thread in self._threads.items() if not thread.unwritten()]
            for thread_id in at_rest[: len(self._threads) - MOST_AT_REST]:
                del self._threads[thread_id]

    async def _read(self, thread_id: str, claim: Claim) -> _PostgresThread:
        async with self._cursor() as cursor:
            await cursor.execute(_NEWEST, {"thread": thread_id}, binary=True)
            rows = await cursor.fetchall()
        size = sum(len(value) for row in rows for _, _, value in row["channel_values"] or () if value is not None)
        size += sum(len(value[3]) for row in rows for value in row["pending_writes"] or ())
        if size < LONG_STATE:
            return self._made_of(rows, claim)
        return await asyncio.to_thread(self._made_of, rows, claim)

    def _made_of(self, rows: Sequence[DictRow], claim: Claim) -> _PostgresThread:
        has_writes = any(row["pending_writes"] for row in rows)
        thread = _PostgresThread(claim=claim, has_rows=bool(rows), has_writes=has_writes)
        for row in rows:
            found, namespace = row["channel_values"] or [], row["checkpoint_ns"]
            inline = row["checkpoint"].get("channel_values") or {}
            checkpoint = {**row["checkpoint"], "channel_values": inline | self._load_blobs(found)}
            writes = {
                (task_id.decode(), int(index)): TaskWrite(
                    task_path.decode(), channel.decode(), self.serde.loads_typed((kind.decode(), value)), on_disk=True
                )
                for task_id, channel, kind, value, task_path, index in row["pending_writes"] or ()
            }
            size = sum(len(value) for _, _, value in found if value is not None)
            thread.newest[namespace] = NewestCheckpoint(
                cast("Checkpoint", checkpoint),
                row["metadata"],
                row["parent_checkpoint_id"],
                size,
                on_disk=True,
                writes=writes,
            )
            versions = checkpoint["channel_versions"]
            thread.values |= {(namespace, each[0].decode(), str(versions[each[0].decode()])) for each in found}
        return thread

    def _is_written(self, thread_id: str, rows: _PostgresRows) -> None:
        thread = rows.thread
        for _, newest, writes in rows.newest:
            newest.on_disk = True
            for _, write in writes:
                write.on_disk = True
        thread.has_rows = True
        thread.has_writes = (thread.has_writes and not rows.pruned) or any(each.writes for _, each, _ in rows.newest)
        if not rows.pruned:
            thread.values |= rows.live
            return
        thread.values = rows.live
        if {namespace: each for namespace, each, _ in rows.newest} == thread.newest:
            # At rest, and all that is left of it is on disk. What is short stays in memory, among the newest.
            thread.pruned = False
            if (
                sum(each.size for each in thread.newest.values()) > LONG_STATE
                and self._threads.get(thread_id) is thread
            ):
                del self._threads[thread_id]

    def _storable(self, channel: str, value: Any) -> Any:
        """An exception holds all that was in its frames: it is kept as it is read back."""
        return self.serde.loads_typed(self.serde.dumps_typed(value)) if channel == ERROR_CHANNEL else value

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[psycopg.AsyncCursor[DictRow]]:
        try:
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor
        except psycopg.Error as error:
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error, hide_parameters=True) from error


@dataclass(frozen=True, slots=True)
class _PostgresRows:
    """What of a thread goes to disk now. Collected at once; serialised afterwards, perhaps in a thread."""

    thread: _PostgresThread
    newest: NewestWithWrites
    on_disk: frozenset[tuple[str, str, str]]
    live: set[tuple[str, str, str]]
    """The values of the newest checkpoints: namespace, channel and version."""
    has_rows: bool
    has_writes: bool
    pruned: bool
    """Whether all else is to be dropped."""

    @classmethod
    def of(cls, thread: _PostgresThread) -> _PostgresRows:
        """All that it takes, as it is now."""
        newest = thread.newest_with_writes()
        live = {
            (namespace, channel, str(each.checkpoint["channel_versions"][channel]))
            for namespace, each, _ in newest
            for channel in _values_apart(each.checkpoint)
            if channel in each.checkpoint["channel_versions"]
        }
        return cls(
            thread, newest, frozenset(thread.values), live, thread.has_rows, thread.has_writes, pruned=thread.pruned
        )

    def values(self, thread_id: str, serde: SerializerProtocol) -> dict[str, Any]:
        """The parameters of `statement`."""
        found: dict[str, Any] = {"thread": thread_id}
        put = [(namespace, each) for namespace, each, _ in self.newest if not each.on_disk]
        values, metadata, checkpoints = [], [], []
        for namespace, each in put:
            apart = _values_apart(each.checkpoint)
            versions, each.size = each.checkpoint["channel_versions"], 0
            for channel, value in apart.items():
                place = namespace, channel, str(versions.get(channel))
                if place in self.live and place not in self.on_disk:
                    values.append((*place, *serde.dumps_typed(value)))
                    each.size += len(values[-1][-1])
            inline = {name: value for name, value in each.checkpoint["channel_values"].items() if name not in apart}
            checkpoints.append(json.dumps({**each.checkpoint, "channel_values": inline}))
            metadata.append(json.dumps(each.metadata))
        if put:
            found |= {"ns": [namespace for namespace, _ in put], "id": [each.checkpoint_id for _, each in put]}
            found |= {"parent": [each.parent for _, each in put], "checkpoint": checkpoints, "metadata": metadata}
        if values:
            value_names = "value_ns", "value_channel", "value_version", "value_type", "value"
            found |= zip(value_names, map(list, zip(*values, strict=True)), strict=True)
        writes = [
            (namespace, each.checkpoint_id, task, w.task_path, index, w.channel, *serde.dumps_typed(w.value))
            for namespace, each, unwritten in self.newest
            for (task, index), w in unwritten
        ]
        if writes:
            kinds = "ns", "checkpoint", "task", "path", "idx", "channel", "type"
            write_names = *(f"write_{kind}" for kind in kinds), "write"
            found |= zip(write_names, map(list, zip(*writes, strict=True)), strict=True)
        if self.pruned and self.has_rows:
            found |= {
                "kept_ns": [ns for ns, _, _ in self.newest],
                "kept_id": [e.checkpoint_id for _, e, _ in self.newest],
            }
            live = sorted(self.live)
            found |= {"live_ns": [each[0] for each in live], "live_channel": [each[1] for each in live]}
            found["live_version"] = [each[2] for each in live]
        return found

    def statement(self, values: Mapping[str, Any]) -> str:
        """One statement for all of it. Its parts see the tables as they were before it, and each row but once."""
        parts = []
        if "value" in values:
            parts.append(_PUT_VALUES)
        if "write" in values:
            parts.append(_PUT_WRITES)
        if "id" in values:
            parts.append(_PUT_CHECKPOINTS)
        if self.pruned and self.has_rows:
            parts += [_DROP.format(table="checkpoints"), _DROP_VALUES]
            parts += [_DROP.format(table="checkpoint_writes")] if self.has_writes else []
        *before, last = parts
        named = ", ".join(f"part{number} AS ({part})" for number, part in enumerate(before))
        return f"WITH {named} {last}" if named else last


def _values_apart(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The values that have rows of their own: a column of JSON takes neither NUL nor half a character, and gives some
    numbers back as others."""
    return {
        name: value
        for name, value in checkpoint["channel_values"].items()
        if value is not None and not isinstance(value, bool)
    }


@asynccontextmanager
async def postgres_checkpoints(address: str, *, most_connections: int) -> AsyncIterator[PostgresCheckpoints]:
    """The saver over a database that `upgrade_postgres` has made ready. `most_connections`: at once.

    Raises what SQLAlchemy does when the database cannot be reached.
    """
    settings = connection_settings("synchronous_commit=off")
    of_driver = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    connections = connection_pool(
        connection_parameters(address, settings) | of_driver,
        name="checkpoints",
        most_connections=most_connections,
        timeout=LOCK_SECONDS,
    )
    try:
        try:
            await connections.open(wait=True, timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error) from error
        yield PostgresCheckpoints(connections)
    finally:
        await connections.close()


def make_marker(connection: sa.Connection) -> None:
    """Make what tells claims that the server has crashed, where it is missing."""
    if not connection.exec_driver_sql(_HAS_MARKER).scalar():
        connection.exec_driver_sql(_MAKE_MARKER)


def make_tables(connection: psycopg.Connection[Any]) -> None:
    """Make or migrate the tables of LangGraph's saver. `connection`: commits each statement, since an index that is
    built while others write cannot be built within a transaction. Blocks. One process at a time."""
    PostgresSaver(connection).setup()
