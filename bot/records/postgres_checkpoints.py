"""Where the graph keeps its state on PostgreSQL: LangGraph's saver, whose writes are fenced by the run's claim.

A commit of a checkpoint does not wait for the disk. A commit of the records does, and puts to disk all that was
committed before it, so checkpoints are there when what rests on them is.
"""

from __future__ import annotations

import select
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from bot.records.claims import Claim, Overtaken, current_claim
from bot.records.postgresql import CONNECT_SECONDS, IDLE_SECONDS, LOCK_SECONDS, connection_settings

_OVERTAKEN = "40001"
"""SQLSTATE that the guard raises."""
_GUARD = "SELECT hold_place(%s, %s)"
# A process may be stopped in the middle of writing, and a takeover waits for what it holds. The server's limit for
# transactions that do nothing does not see it, since to the server more is to come.
_GUARD_FOR_A_WHILE = "SELECT hold_place(%s, %s), set_config('transaction_timeout', %s, true)"
_FOR_A_WHILE = 170_000
"""Version of the server from which on it has a limit for whole transactions."""
_HAS_GUARD = "SELECT to_regprocedure('hold_place(text, bigint)') IS NOT NULL"
# A guard that does something else needs another name: processes of two versions run side by side.
_MAKE_GUARD = f"""
CREATE FUNCTION hold_place(place text, claimed bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM locks WHERE name = place AND epoch = claimed FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another process has taken over' USING ERRCODE = '{_OVERTAKEN}';
    END IF;
END
$$
"""
_HAS_PENDING_WRITES = """
SELECT EXISTS (
    SELECT FROM checkpoint_writes
    WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint)s
) AND NOT EXISTS (
    SELECT FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id > %(checkpoint)s
) AS found
"""
_PRUNE = """
WITH kept AS MATERIALIZED (
    SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns, checkpoint_id, checkpoint -> 'channel_versions' AS versions
    FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = ANY(%(namespaces)s)
    ORDER BY checkpoint_ns, checkpoint_id DESC
), without_writes AS (
    DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s
    AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT checkpoint_ns, checkpoint_id FROM kept)
), without_values AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s
    AND (checkpoint_ns, channel, version) NOT IN (
        SELECT checkpoint_ns, key, value FROM kept CROSS JOIN LATERAL jsonb_each_text(versions)
    )
)
DELETE FROM checkpoints WHERE thread_id = %(thread)s
AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT checkpoint_ns, checkpoint_id FROM kept)
"""


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


class PostgresCheckpoints(AsyncPostgresSaver):
    """The saver, with the verbs that it lacks. What a run writes under a claim that is not the newest of its place
    raises `Overtaken` and changes nothing; the place is not claimed anew while something is being written.

    Its methods raise what SQLAlchemy would for errors of the driver.
    """

    def __init__(self, connections: AsyncConnectionPool[psycopg.AsyncConnection[DictRow]]) -> None:
        super().__init__(connections, serde=CheckpointSerialiser())
        # Each use takes a connection of its own.
        self.lock = nullcontext()  # type: ignore[assignment]

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint."""
        return await super().aput(config, as_kept(checkpoint), metadata, new_versions)

    async def has_pending_writes(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something was written after this root checkpoint that no later one has taken in."""
        async with self._cursor() as cursor:
            await cursor.execute(_HAS_PENDING_WRITES, {"thread": thread_id, "checkpoint": checkpoint_id})
            row = await cursor.fetchone()
        return row is not None and bool(row["found"])

    async def prune_thread(self, thread_id: str, live_namespaces: Sequence[str]) -> None:
        """Keep the newest checkpoint of the root and of each namespace that an open task owns; drop the rest.

        Newest per thread alone would delete the conversation, newest root alone would forget given approvals.
        """
        async with self._cursor(pipeline=True) as cursor:
            await cursor.execute(_PRUNE, {"thread": thread_id, "namespaces": ["", *live_namespaces]})

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[psycopg.AsyncCursor[DictRow]]:
        """A cursor. `pipeline`: for writing, all of it in one transaction, which begins with looking at the claim."""
        claim = current_claim() if pipeline else None
        try:
            async with super()._cursor(pipeline=pipeline) as cursor:
                if claim is not None:
                    await _hold(cursor, claim)
                yield cursor
        except psycopg.Error as error:
            if claim is not None and error.sqlstate == _OVERTAKEN:
                claim.lose()
                raise Overtaken(claim.place) from error
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error, hide_parameters=True) from error


async def _hold(cursor: psycopg.AsyncCursor[DictRow], claim: Claim) -> None:
    """Begin a transaction of this claim, which may take `IDLE_SECONDS` from when it holds the place."""
    if cursor.connection.info.server_version < _FOR_A_WHILE:
        await cursor.execute(_GUARD, (claim.place, claim.epoch))
    else:
        await cursor.execute(_GUARD_FOR_A_WHILE, (claim.place, claim.epoch, f"{int(IDLE_SECONDS * 1_000)}ms"))


@asynccontextmanager
async def postgres_checkpoints(address: str, *, most_connections: int) -> AsyncIterator[PostgresCheckpoints]:
    """The saver over a database that `upgrade_postgres` has made ready. `most_connections`: at once.

    Raises what SQLAlchemy does when the database cannot be reached.
    """
    more = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    connections = AsyncConnectionPool[psycopg.AsyncConnection[DictRow]](
        sa.make_url(address).set(drivername="postgresql").render_as_string(hide_password=False),
        kwargs=connection_settings("synchronous_commit=off") | more,
        min_size=1,
        max_size=most_connections,
        timeout=LOCK_SECONDS,
        check=_is_open,
        open=False,
        name="checkpoints",
    )
    try:
        try:
            await connections.open(wait=True, timeout=CONNECT_SECONDS)
        except psycopg.Error as error:
            raise sa.exc.DBAPIError.instance("", {}, error, psycopg.Error) from error
        yield PostgresCheckpoints(connections)
    finally:
        await connections.close()


async def _is_open(connection: psycopg.AsyncConnection[Any]) -> None:
    """Closes an idle connection that the server has ended, which it then has told on it, and raises. Asks nobody."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        await connection.close()
        raise psycopg.OperationalError("the server has ended the connection")


def make_guard(connection: sa.Connection) -> None:
    """Make what writes of checkpoints are fenced with, where it is missing. Needs the table of locks."""
    if not connection.exec_driver_sql(_HAS_GUARD).scalar():
        connection.exec_driver_sql(_MAKE_GUARD)


def make_tables(connection: psycopg.Connection[Any]) -> None:
    """Make or migrate the tables of LangGraph's saver. `connection`: commits each statement, since an index that is
    built while others write cannot be built within a transaction. Blocks. One process at a time."""
    PostgresSaver(connection).setup()
