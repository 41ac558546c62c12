"""How processes connect to PostgreSQL, and which connections they throw away.

The server may restart, be away, or be another one from now on; what is between may let through what is sent one way
only. So every answer is waited for within a time; a connection that got none, or that leads to a server which takes no
writes, is closed by itself, and whoever finds a closed one makes a new one. To find that out nobody is asked anything.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

ANSWER_SECONDS = 15
"""How long the server, or its machine, may be silent when something is asked of it, until its connection is closed.
More than it waits for a lock, or takes for a statement."""
CONNECT_SECONDS = 5
"""How long each host of an address may take to connect."""
PREPARED_AFTER = 1
"""Uses of a statement on a connection after which it is prepared there."""
MOST_PREPARED = 400
"""Statements that a connection keeps prepared, one for all of the same text and types of parameters: more than there
are in turns and clicks."""
CANCEL_SECONDS = 1.0
"""How long a statement that nobody waits for any more may take to end, until its connection is closed."""
AGAIN_SECONDS = 1.0
"""Between two tries of a pool to connect, however long the server has been away."""
Fetched = TypeVar("Fetched")
_LEVELS_OF_THE_END = {"FATAL", "PANIC"}
"""Of errors with which the server ends the connection."""


class BoundedConnection(psycopg.AsyncConnection[Any]):
    """A connection that closes itself when the server does not answer within `answer_seconds`, has ended it, or takes
    no writes (any more)."""

    answer_seconds: float = ANSWER_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared_max = MOST_PREPARED

    async def wait(
        self,
        gen: PQGen[Fetched],
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109  # as the driver calls it
    ) -> Fetched:
        """Do what exchanges something with the server. Raises what the driver raises."""
        within = self.answer_seconds if timeout is None else timeout
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval, within)
        except psycopg.Error as error:
            if timeout is None and _is_the_end(error):  # whoever says how long it may take knows what to do then
                self.pgconn.finish()
            raise
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._end_statement(gen, interval)
            raise

    async def _end_statement(self, gen: PQGen[Any], interval: float) -> None:
        """Nobody waits for the statement any more. The connection is closed when that does not end soon: the driver
        would wait for seconds, and so would whoever is cancelled, on a connection that leads nowhere."""
        until = time.monotonic() + CANCEL_SECONDS
        try:
            await self.cancel_safe(timeout=CANCEL_SECONDS)
            await waiting.wait_async(gen, self.pgconn.socket, interval, max(0.0, until - time.monotonic()))
        except psycopg.errors.QueryCanceled:
            pass
        except psycopg.Error:
            self.pgconn.finish()
        except BaseException:  # cancelled once more: what the server does is not known
            self.pgconn.finish()
            raise

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109  # the same
        """Ask the server to end the statement. Where it cannot be asked, the connection is closed."""
        try:
            await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))
        except psycopg.Error:
            self.pgconn.finish()
            raise


class PatientConnection(BoundedConnection):
    """One whose server may wait for somebody's lock for longer."""

    answer_seconds = 60


def _is_the_end(error: psycopg.Error) -> bool:
    match error:
        case psycopg.errors.ReadOnlySqlTransaction():
            return True
        case psycopg.errors.PipelineAborted():
            return False
        case psycopg.OperationalError() if error.sqlstate is None:
            return True  # nothing of the server's: no answer came, or no connection is there
        case _:
            return error.diag.severity_nonlocalized in _LEVELS_OF_THE_END


def has_ended(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether an idle connection leads nowhere any more as far as this machine knows: the server has told it something,
    which it does when it ends it. Asks nobody."""
    if connection.closed:
        return True
    told = select.poll()
    told.register(connection.fileno(), select.POLLIN)
    return bool(told.poll(0))


def connection_parameters(address: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the driver connects with: an address as libpq reads it, of one server or of several of which one
    takes writes (`postgresql://…@first,second:5433/…`), and our settings where it says nothing else. A server that
    takes no writes is none, unless the address says so (`target_session_attrs`). Raises `psycopg.ProgrammingError`: it
    is no address."""
    given = conninfo_to_dict(address)
    options = " ".join(str(each["options"]) for each in (given, settings) if each.get("options"))
    prepared = {"prepare_threshold": PREPARED_AFTER}
    return {"target_session_attrs": "read-write", **prepared, **settings, **given, "options": options}


def reading_engine(address: str, name: str, *, connect_seconds: int, statement_seconds: int) -> sa.Engine:
    """Connections for a command that only reads: each of their transactions does. Of several servers they are to the
    one that the processes write to, as far as that can be told without the right to write; where the address names one
    alone, to that, whatever it is. They block, and raise what the driver raises.

    Args:
        address: as for `connection_parameters`.
        name: what the server calls it.
        connect_seconds: how long each server has.
        statement_seconds: likewise, for each statement.
    """

    def connect() -> psycopg.Connection[Any]:
        given: dict[str, Any] = conninfo_to_dict(address)
        has_several = "," in str(given.get("hostaddr") or given.get("host") or "")
        wanted = str(given.get("target_session_attrs") or "read-write")
        if wanted == "read-write":  # to libpq nothing that only reads is
            wanted = "primary" if has_several else "any"
        settings = f"-c statement_timeout={statement_seconds}s -c timezone=UTC"
        given |= {"options": f"{given.get('options') or ''} {settings}".strip(), "target_session_attrs": wanted}
        made = psycopg.connect(**given | {"connect_timeout": connect_seconds, "application_name": name})
        made.read_only = True
        return made

    return sa.create_engine("postgresql+psycopg://", creator=connect, poolclass=sa.NullPool, hide_parameters=True)


def connection_pool(
    parameters: Mapping[str, Any], *, name: str, most_connections: int, timeout: float
) -> AsyncConnectionPool[Any]:
    """A pool to be opened. It finds out by itself when the server is back.

    Args:
        timeout: seconds that somebody waits for a connection.
    """

    async def checked(connection: BoundedConnection) -> None:
        if has_ended(connection):
            await connection.close()
            # What is idle besides has probably ended, too, and the pool would pause longer after each.
            await pool.drain()
            raise psycopg.OperationalError("the server has ended the connection")

    pool = AsyncConnectionPool[Any](
        connection_class=BoundedConnection,
        kwargs=dict(parameters),
        min_size=1,
        max_size=most_connections,
        timeout=timeout,
        check=checked,
        # The pool would pause for twice as long after each try, up to minutes. When it gives up, it begins anew.
        reconnect_timeout=AGAIN_SECONDS,
        reconnect_failed=_begin_anew,
        open=False,
        name=name,
    )
    return pool


async def _begin_anew(pool: AsyncConnectionPool[Any]) -> None:
    if not pool.closed:
        await pool.check()
