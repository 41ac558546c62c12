"""The records in PostgreSQL, which several processes write at the same time.

SQLite has one writer, so what a transaction reads stays true until it is on disk. Here each transaction says by names
what nobody else may change meanwhile: the rows of `locks` with these names are locked, in sorted order, before anything
is read. A thread's name stands for its place (`place_of`), whose sessions share drafts and the order of posts.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.util import greenlet_spawn

from bot.records.claims import Claim, Overtaken, current_claim, place_of
from bot.records.database import NotLocked, NotOnDisk, Row, Statement, Transaction, seen_through
from bot.records.leases import Leases
from bot.records.locks import UNLOCKED, NoLocks
from bot.records.postgres_connections import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    BoundedConnection,
    PatientConnection,
    connection_parameters,
    has_ended,
)
from bot.records.statements import MakeRow, Prepared, Values, raising_sqlalchemys

LOCK_SECONDS = 10
"""How long a transaction waits for another's lock before it gives up."""
STATEMENT_SECONDS = ANSWER_SECONDS - 1
"""How long one statement may take, so that the server gives up before its connection is closed."""
IDLE_SECONDS = 4
"""How long a transaction may do nothing before the server ends it: its process may have been stopped, and others wait
for what it has locked."""
ALONE_SECONDS = 45
"""How long somebody waits who wants to be alone with something: as long as a service may take to answer, and more."""
MOST_ALONE = 12
"""How many are, at once: each has a connection."""
MOST_ALONE_AT_ONE = 3
"""How many of these ask one service, which may be slow to answer: the others are for those who ask another one."""
_ALONE = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_LOCK = (
    "SELECT name, epoch, (SELECT id FROM crash_marker), coalesce(held, false) FROM locks "
    "WHERE name = ANY(%(names)s) ORDER BY name FOR UPDATE"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_MAKE_LOCKS = "INSERT INTO locks (name, epoch) SELECT unnest(%(names)s::text[]), 0 ON CONFLICT DO NOTHING"
_EPOCH = "SELECT epoch, (SELECT id FROM crash_marker) FROM locks WHERE name = %(name)s"
_MARK = "INSERT INTO crash_marker (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING"
_MARKED = "SELECT id FROM crash_marker"
_CLAIM = """
WITH before AS (SELECT name, epoch, coalesce(held, false) AS held FROM locks WHERE name = %(name)s FOR UPDATE)
UPDATE locks SET epoch = locks.epoch + 1, held = true FROM before WHERE locks.name = before.name
RETURNING locks.name, locks.epoch, (SELECT id FROM crash_marker), before.held
"""
"""Locks a place, too. Returns the new epoch, and whether it was held before."""
_OF_WHAT_IS_WRITTEN = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)
_MADE_AT = "made_at"
"""What is noted of a connection of the pool, on the clock of `time.monotonic`."""
MOST_KNOWN = 100_000
"""Names of locks that are remembered as made; about 10 MB."""
Fetched = TypeVar("Fetched")


WakePlaces = Callable[["PostgresTransaction", Mapping[str, bool]], AbstractAsyncContextManager[None]]
"""Makes sure, in this transaction, that somebody looks after these places; and whether there
is something to handle, rather than merely to show. Must not raise for one that is looked after already. The
transaction is committed within it."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What is in memory of a thread and not on disk."""

    statement: str
    values: Values
    written: Callable[[], None]
    """Called when it is committed."""


@dataclass(frozen=True, slots=True)
class LockedName:
    """What stands in the row that a transaction has locked under a name."""

    epoch: int
    """The newest."""
    marker: UUID | None
    """As a claim to it would have now."""
    held: bool
    """Whether somebody has claimed it and not released it."""


class CheckpointFoundation(Protocol):
    """What the transactions of a turn rest on: its checkpoints."""

    async def unwritten(self, thread_id: str, locked: LockedName) -> Unwritten | None:
        """What a transaction has to write that has locked the thread. Raises what keeps it from being written."""
        ...

    def forget(self, thread_id: str) -> None:
        """What is in memory of the thread cannot be written."""
        ...


NOTHING_LOCKED: Mapping[str, LockedName] = {}


class LentConnection:
    """A connection of the pool, while somebody uses it. Each of its statements is a transaction of its own until one
    begins. SQLAlchemy's is made around it only for statements that are not prepared: to make and to close one costs as
    much as a statement."""

    __slots__ = ("_engine", "_made", "_pooled", "driver")

    def __init__(self, engine: AsyncEngine, pooled: sa.PoolProxiedConnection) -> None:
        self._engine = engine
        self._pooled = pooled
        self._made: AsyncConnection | None = None
        self.driver: Any = pooled.driver_connection
        """The driver's own connection."""

    @property
    def is_clean(self) -> bool:
        """Whether giving it back takes nothing that has to be waited for."""
        return self._made is None and self.driver.pgconn.transaction_status == TransactionStatus.IDLE

    def sqlalchemys(self) -> AsyncConnection:
        """SQLAlchemy's connection over the same one of the driver."""
        if self._made is None:
            self._made = AsyncConnection(self._engine, sa.Connection(self._engine.sync_engine, self._pooled))
        return self._made

    async def give_back(self) -> None:
        """Give it back to the pool. What is not committed is rolled back."""
        if self._made is not None:
            await self._made.close()
        else:
            await greenlet_spawn(self._pooled.close)

    async def invalidate(self) -> None:
        """Have the pool forget it."""
        if self._made is not None:
            await self._made.invalidate()
        else:
            await greenlet_spawn(self._pooled.invalidate)


class PostgresTransaction(Transaction):
    """One transaction on a connection of its own."""

    __slots__ = ("_database", "_driver", "_lent", "_locked", "_woken")

    def __init__(
        self,
        lent: LentConnection,
        database: PostgresDatabase,
        locked: Mapping[str, LockedName] = NOTHING_LOCKED,
    ) -> None:
        super().__init__()
        self._lent = lent
        self._driver = lent.driver
        self._database = database
        self._locked = dict(locked)
        self._woken: dict[str, bool] = {}

    @property
    def driver(self) -> Any:
        """The driver's connection."""
        return self._driver

    def wakes(self, *names: str) -> None:
        """There is something to handle in these threads, once this is committed."""
        self._woken.update((place_of(name), True) for name in names)

    def shows(self, *lanes: str) -> None:
        """There is something to show in these lanes, once this is committed."""
        for lane in lanes:
            self._woken.setdefault(place_of(lane), False)

    @property
    def woken(self) -> Mapping[str, bool]:
        """The places in which there is something to do, in one order for all, and whether there is something to handle;
        not the one whose run this belongs to, which sees to it."""
        claim = current_claim()
        woken = sorted(self._woken.items())
        return {place: handles for place, handles in woken if claim is None or claim.lost or place != claim.place}

    def has_free(self, place: str) -> bool:
        """Whether the place is locked, and nobody has claimed it and not released it."""
        return place in self._locked and not self._locked[place].held

    def as_locked(self, name: str) -> LockedName:
        """What stands in the row that was locked under this name."""
        return self._locked[place_of(name)]

    @property
    def told(self) -> Sequence[str]:
        """Of the woken places those that somebody may look after now. Whoever claims another one does so after this
        transaction, and finds what it has kept."""
        return [place for place in self.woken if place not in self._locked or self._locked[place].held]

    async def check_claim(self) -> None:
        """Raises `Overtaken` when this task runs under a claim that is not the newest."""
        claim = current_claim()
        if claim is None:
            return
        row = await (await self.execute(_EPOCH, {"name": claim.place})).fetchone()
        if claim.lost or row != (claim.epoch, claim.marker):
            claim.lose()
            raise Overtaken(claim.place)

    async def execute(self, sql: str, parameters: Any = None) -> Any:
        """Execute a statement in PostgreSQL's own words. Returns the driver's cursor."""
        with raising_sqlalchemys(self._database.dialect, sql):
            return await self._driver.execute(sql, parameters)

    async def run(self, statement: Statement, values: Values | None = None) -> None:
        """Execute a statement whose rows nobody needs."""
        if isinstance(statement, Prepared):
            await self._execute(statement, values)
        else:
            await self._lent.sqlalchemys().execute(statement, values)

    async def one(self, statement: Statement, values: Values | None = None) -> Row | None:
        """The first row, or none."""
        if isinstance(statement, Prepared):
            cursor, row = await self._execute(statement, values)
            fetched = await cursor.fetchone()
            return None if fetched is None else row(fetched)
        return (await self._lent.sqlalchemys().execute(statement, values)).first()

    async def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row]:
        """All rows."""
        if isinstance(statement, Prepared):
            cursor, row = await self._execute(statement, values)
            return [row(fetched) for fetched in await cursor.fetchall()]
        return (await self._lent.sqlalchemys().execute(statement, values)).all()

    async def lock(self, *names: str) -> None:
        """Lock these, for the rest of the transaction. Raises `Overtaken` when one is a place that this task ran under
        a claim that is not the newest."""
        missing = [name for name in names if place_of(name) not in self._locked]
        if missing:
            self._locked |= await self._database.lock(self._driver, missing)

    def needs(self, *names: str) -> None:
        """Says what has to be locked by now. Raises `NotLocked` where it is not."""
        missing = frozenset(name for name in names if place_of(name) not in self._locked)
        if missing:
            raise NotLocked(missing)

    async def _execute(self, statement: Prepared, values: Values | None) -> tuple[Any, MakeRow]:
        dialect = self._database.dialect
        compiled = statement.compiled(dialect, values or {})
        cursor = await self.execute(compiled.sql, compiled.parameters(values))
        return cursor, compiled.row_maker(cursor, dialect)


class PostgresDatabase:
    """The records in one PostgreSQL database. `open` before use, `close` in the end."""

    def __init__(self, engine: AsyncEngine, alone: AsyncEngine, foundation: CheckpointFoundation | None = None) -> None:
        self._engine = engine
        sa.event.listen(engine.sync_engine, "checkout", self._made_since_one_broke)
        self._broken_at = -math.inf
        """When a connection of the pool was found broken last, on the clock of `time.monotonic`."""
        self._foundation = foundation
        self._alone = alone
        """Makes a connection each time."""
        self._leases = Leases(self)
        self._few_alone = asyncio.Semaphore(MOST_ALONE)
        self._few_at: defaultdict[str, asyncio.Semaphore] = defaultdict(partial(asyncio.Semaphore, MOST_ALONE_AT_ONE))
        """By service; those that are configured."""
        self._next: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """What is locked → held by the one transaction of this process that waits to lock it."""
        self._made: set[str] = set()
        """Names of locks that have a row."""
        self._committing: set[asyncio.Task[None]] = set()
        self.answered_at = -math.inf
        """When the server had last done what was asked of it, on the clock of `time.monotonic`."""
        self.wake_places: WakePlaces | None = None
        """Entered just before a commit with the places in which there is something to do then."""
        self.woke_places: Callable[[Sequence[str]], None] | None = None
        """Called just after it with those among them that somebody may look after."""

    @property
    def dialect(self) -> sa.Dialect:
        """For which statements are compiled."""
        return self._engine.dialect

    async def open(self) -> None:
        """Connect. Raises what the driver raises."""
        async with self._engine.connect():
            pass

    async def close(self) -> None:
        """Wait for the commits that are under way, then disconnect."""
        await asyncio.gather(*self._committing, return_exceptions=True)
        await self._engine.dispose()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresTransaction]:
        """A transaction that reads what is committed, each statement what is committed by then."""
        async with self.at_once() as tx:
            yield tx

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[PostgresTransaction]:
        """Each statement is a transaction of its own, which is committed when it has ended."""
        async with self._lent() as lent:
            yield PostgresTransaction(lent, self)
        self.answered_at = time.monotonic()

    def writing(self, thread_id: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """A transaction that locks this thread, and whatever else it names. It puts the thread's checkpoints to disk,
        too: it may rest on them."""
        return self._writing(thread_id, *locks, rests_on=thread_id)

    def writing_apart(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """As `writing`, without checkpoints."""
        return self._writing(lock, *locks)

    def writing_urgently(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """As `writing_apart`: here nobody waits for the one writer."""
        return self._writing(lock, *locks)

    @asynccontextmanager
    async def alone(self, name: str, service: str) -> AsyncIterator[None]:
        """Within it no other process is within it under this name. On a connection of its own, made for it: somebody
        outside is waited for, and what is done meanwhile needs those of the pool.

        The lock goes with its connection, although whoever has it may go on without: a lease keeps the others out then.
        """
        async with self._few_at[service], self._few_alone, _connected(self._alone) as connection:
            await connection.execute(_ALONE, {"name": name})
            async with self._leases.held(name):
                yield

    async def claim(self, place: str) -> Claim:
        """Take over a place. From now on what belongs to earlier claims changes nothing."""
        async with self.claiming(place) as (_, claim):
            return claim

    @asynccontextmanager
    async def claiming(self, place: str) -> AsyncIterator[tuple[PostgresTransaction, Claim]]:
        """A transaction that takes over a place, with the claim that holds once it is committed."""
        async with self._writing(place, locking=_CLAIM) as tx:
            locked = tx.as_locked(place)
            marker = locked.marker
            if marker is None:  # the first claim ever, or since a crash
                await tx.execute(_MARK)
                (marker,) = await (await tx.execute(_MARKED)).fetchone()
            yield tx, Claim(place, locked.epoch, marker, taken_over=locked.held)

    @asynccontextmanager
    async def _writing(
        self, *locks: str | NoLocks, rests_on: str | NoLocks = UNLOCKED, locking: str = _LOCK
    ) -> AsyncIterator[PostgresTransaction]:
        names = [lock for lock in locks if isinstance(lock, str)]
        async with AsyncExitStack() as stack:
            async with self._in_order(names):
                lent = await stack.enter_async_context(self._lent())
                driver = lent.driver
                with raising_sqlalchemys(self.dialect, _BEGIN):
                    await driver.execute(_BEGIN)
                locked = await self.lock(driver, names, locking) if names else NOTHING_LOCKED
            transaction = PostgresTransaction(lent, self, locked)
            yield transaction
            if isinstance(rests_on, str) and self._foundation is not None:
                await self._write_what(rests_on, self._foundation, transaction, locked[place_of(rests_on)])
            woken, told = transaction.woken, transaction.told
            if woken and self.wake_places is not None:
                await stack.enter_async_context(self.wake_places(transaction, woken))
            await self._see_commit_through(transaction, told)

    @asynccontextmanager
    async def _in_order(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Within it nobody else here gets a connection to lock one of these with: whoever came first is the first to
        lock it. They would wait for it in any order, each with a connection; and while another process has it and
        stands still, none would be left for all others."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(LOCK_SECONDS):
                    for name in sorted({place_of(each) for each in names}):
                        await stack.enter_async_context(self._next.setdefault(name, asyncio.Lock()))
            except TimeoutError:
                raise sa.exc.TimeoutError("others wait here for the same lock, and do not get it") from None
            yield

    async def _write_what(
        self, thread_id: str, foundation: CheckpointFoundation, transaction: PostgresTransaction, locked: LockedName
    ) -> None:
        """Write the checkpoints that the transaction rests on."""
        try:
            unwritten = await foundation.unwritten(thread_id, locked)
        except Exception as cause:
            raise NotOnDisk(f"{type(cause).__name__}: {cause}") from cause
        if unwritten is None:
            return
        with raising_sqlalchemys(self.dialect):
            try:
                await transaction.driver.execute(unwritten.statement, unwritten.values)
            except _OF_WHAT_IS_WRITTEN as cause:
                foundation.forget(thread_id)  # it would stand in the way of the transaction that says so
                raise NotOnDisk(type(cause).__name__) from cause
        transaction.afterwards(unwritten.written)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[LentConnection]:
        """A connection, which has been given back when the block ends: whoever is cancelled meanwhile waits for that.
        It is dropped instead, with all that were made before, if it is broken."""
        try:
            with raising_sqlalchemys(self.dialect):
                raw = await greenlet_spawn(self._engine.sync_engine.raw_connection)
        except sa.exc.InvalidRequestError as error:
            raise sa.exc.TimeoutError("a new connection, too, was ended at once") from error
        lent = LentConnection(self._engine, raw)
        try:
            yield lent
        except BaseException:
            if lent.driver.closed:
                self._broken_at = time.monotonic()
                await seen_through(asyncio.create_task(lent.invalidate()))
            raise
        finally:
            if lent.is_clean:
                await lent.give_back()  # waits for nothing
            else:
                await seen_through(asyncio.create_task(lent.give_back()))

    def _made_since_one_broke(self, _connection: Any, record: sa.pool.ConnectionPoolEntry, *_: Any) -> None:
        """Another connection is made in place of one that is older: it leads to where the broken one did."""
        if record.info[_MADE_AT] < self._broken_at:
            raise sa.exc.DisconnectionError

    async def lock(self, driver: Any, names: Sequence[str], locking: str = _LOCK) -> Mapping[str, LockedName]:
        """Lock these names on a connection until its transaction ends. Returns what stands there, by place. `locking`:
        the statement that does it."""
        sorted_names = sorted({place_of(name) for name in names})
        missing = [name for name in sorted_names if name not in self._made]
        with raising_sqlalchemys(self.dialect, locking):
            if missing:
                await driver.execute(_MAKE_LOCKS, {"names": missing})
            cursor = await driver.execute(locking, {"names": sorted_names, "name": sorted_names[0]})
        rows = await cursor.fetchall()
        if len(self._made) > MOST_KNOWN:
            self._made.clear()
        self._made.update(sorted_names)  # what is rolled back is found missing by the count below
        if len(rows) < len(sorted_names):
            self._made.difference_update(sorted_names)
            return await self.lock(driver, names, locking)
        locked = {name: LockedName(*row) for name, *row in rows}
        claim = current_claim()
        if claim is not None and any(
            row.marker != claim.marker or (name == claim.place and row.epoch != claim.epoch)
            for name, row in locked.items()
        ):
            claim.lose()
            raise Overtaken(claim.place)
        return locked

    async def _see_commit_through(self, transaction: PostgresTransaction, told: Sequence[str]) -> None:
        """Commit; whoever is cancelled meanwhile waits for it: it may be on disk all the same, and what follows from it
        follows."""
        committing = asyncio.create_task(self._committed(transaction, told))
        self._committing.add(committing)
        committing.add_done_callback(self._committing.discard)
        await seen_through(committing)

    async def _committed(self, transaction: PostgresTransaction, told: Sequence[str]) -> None:
        await self._commit(transaction.driver)
        self.answered_at = time.monotonic()
        transaction.committed()
        if told and self.woke_places is not None:
            self.woke_places(told)

    async def _commit(self, driver: Any) -> None:
        if driver.pgconn.transaction_status == TransactionStatus.INERROR:  # COMMIT would roll it back without an error
            raise NotOnDisk("one of its statements failed, and nothing was made of that")
        with raising_sqlalchemys(self.dialect):
            await driver.commit()


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection, which has been given back when the block ends: whoever is cancelled meanwhile waits for that. What
    was done in the block is done, though the connection may have ended before."""
    connection = await engine.connect()
    try:
        yield connection
    finally:
        with suppress(sa.exc.DBAPIError):
            await seen_through(asyncio.create_task(connection.close()))


def connection_settings(*settings: str) -> dict[str, Any]:
    """How the driver connects: no lock, statement, connection or dead network is waited for without end. `settings`: of
    the server, more than these, as `name=value`."""
    lasting = (
        f"lock_timeout={LOCK_SECONDS}s",
        f"statement_timeout={STATEMENT_SECONDS}s",
        f"idle_in_transaction_session_timeout={IDLE_SECONDS}s",
        "timezone=UTC",
    )
    return {
        "options": " ".join(f"-c {each}" for each in (*lasting, *settings)),
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "countersign",
        "keepalives_idle": ANSWER_SECONDS // 3,
        "keepalives_interval": ANSWER_SECONDS // 3,
        "keepalives_count": 2,
        "tcp_user_timeout": ANSWER_SECONDS * 1_000,
    }


def postgres_database(
    address: str, foundation: CheckpointFoundation | None = None, *, most_connections: int
) -> PostgresDatabase:
    """A database at an address (`postgresql://…`), durable at every commit. `foundation`: what its transactions put to
    disk with them; `most_connections`: at once, and besides them `MOST_ALONE`."""
    waits = f"lock_timeout={ALONE_SECONDS}s", f"statement_timeout={ALONE_SECONDS + 1}s"
    settings = connection_settings(*waits, f"idle_in_transaction_session_timeout={ALONE_SECONDS}s")
    alone = _engine(address, settings, PatientConnection, poolclass=NullPool)
    by_itself = connection_settings() | {"autocommit": True}  # it begins and commits transactions itself
    return PostgresDatabase(_pooled(address, by_itself, most_connections), alone, foundation)


def postgres_engine(address: str, *, most_connections: int, **further: Any) -> AsyncEngine:
    """What connects to an address, with limits for everything that waits. `further`: for SQLAlchemy."""
    return _pooled(address, connection_settings(), most_connections, **further)


def _pooled(address: str, settings: dict[str, Any], most_connections: int, **further: Any) -> AsyncEngine:
    # The connection that was used last is used next: statements are prepared on each anew.
    pool = {"pool_size": most_connections, "max_overflow": 0, "pool_timeout": LOCK_SECONDS, "pool_use_lifo": True}
    engine = _engine(address, settings, BoundedConnection, **pool, **further)
    sa.event.listen(engine.sync_engine, "connect", _made)
    sa.event.listen(engine.sync_engine, "checkout", _still_open)
    return engine


def _engine(address: str, settings: dict[str, Any], connection: type[BoundedConnection], **further: Any) -> AsyncEngine:
    parameters = connection_parameters(address, settings)
    return create_async_engine(
        "postgresql+psycopg://",
        async_creator=lambda: connection.connect(**parameters),
        hide_parameters=True,  # what people wrote and tools returned is not for error messages, which end up in logs
        **further,
    )


def _made(_connection: Any, record: sa.pool.ConnectionPoolEntry) -> None:
    record.info[_MADE_AT] = time.monotonic()


def _still_open(connection: Any, *_: Any) -> None:
    """Another connection is made in place of one that the server has ended, before anybody relies on it."""
    if has_ended(connection.driver_connection):
        raise sa.exc.DisconnectionError
