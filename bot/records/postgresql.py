"""The records in PostgreSQL, which several processes write at the same time.

SQLite has one writer, so what a transaction reads stays true until it is on disk. Here each transaction says by names
what nobody else may change meanwhile: the rows of `locks` with these names are locked, in sorted order, before anything
is read. A thread's name stands for its place (`place_of`), whose sessions share drafts and the order of posts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from bot.records.claims import Claim, Overtaken, current_claim, place_of
from bot.records.database import NotLocked, Row, Statement, Transaction, seen_through
from bot.records.locks import NoLocks
from bot.records.statements import MakeRow, Prepared, Values, as_sqlalchemys

LOCK_SECONDS = 10
"""How long a transaction waits for another's lock before it gives up."""
STATEMENT_SECONDS = 60
"""How long one statement may take: the connection may lead nowhere."""
CONNECT_SECONDS = 10
IDLE_SECONDS = 4
"""How long a transaction may do nothing before the server ends it: its process may have been stopped, and others wait
for what it has locked."""
UNHEARD_SECONDS = 15
"""How long the server's machine may be silent, to what is sent or asked of it, until a connection is given up."""
ALONE_SECONDS = 45
"""How long somebody waits who wants to be alone with something: as long as a service may take to answer, and more."""
MOST_ALONE = 4
"""How many are, at once: each has a connection."""
_ALONE = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_LOCK = "SELECT name, epoch FROM locks WHERE name = ANY(%(names)s) ORDER BY name FOR UPDATE"
_MAKE_LOCKS = "INSERT INTO locks (name, epoch) SELECT unnest(%(names)s::text[]), 0 ON CONFLICT DO NOTHING"
_EPOCH = "SELECT epoch FROM locks WHERE name = %(name)s"
_HELD = "SELECT coalesce(held, false) FROM locks WHERE name = %(name)s"
_CLAIM = "UPDATE locks SET epoch = epoch + 1, held = true WHERE name = %(name)s RETURNING epoch"
MOST_KNOWN = 100_000
"""Names of locks that are remembered as made; about 10 MB."""
Fetched = TypeVar("Fetched")


WakePlaces = Callable[[Any, Sequence[str]], Awaitable[None]]
"""Makes sure, in the transaction on the driver's connection, that somebody looks after these places. Must not raise for
one that is looked after already."""


class PostgresTransaction(Transaction):
    """One transaction on a connection of its own."""

    __slots__ = ("_connection", "_database", "_driver", "_locked", "_woken")

    def __init__(
        self, connection: AsyncConnection, driver: Any, database: PostgresDatabase, locked: Iterable[str] = ()
    ) -> None:
        super().__init__()
        self._connection = connection
        self._driver = driver
        self._database = database
        self._locked = set(map(place_of, locked))
        self._woken: set[str] = set()

    @property
    def driver(self) -> Any:
        """The driver's connection."""
        return self._driver

    def wakes(self, *names: str) -> None:
        """There is something to handle or to show in these threads or lanes, once this is committed."""
        self._woken.update(place_of(name) for name in names)

    @property
    def woken(self) -> Sequence[str]:
        """The places in which there is something to do; not the one whose run this belongs to, which sees to it."""
        claim = current_claim()
        return sorted(place for place in self._woken if claim is None or claim.lost or place != claim.place)

    async def check_claim(self) -> None:
        """Raises `Overtaken` when this task runs under a claim that is not the newest."""
        claim = current_claim()
        if claim is None:
            return
        cursor = await self._driver.execute(_EPOCH, {"name": claim.place})
        row = await cursor.fetchone()
        if claim.lost or row is None or row[0] != claim.epoch:
            claim.lose()
            raise Overtaken(claim.place)

    async def run(self, statement: Statement, values: Values | None = None) -> None:
        """Execute a statement whose rows nobody needs."""
        if isinstance(statement, Prepared):
            await self._execute(statement, values)
        else:
            await self._connection.execute(statement, values)

    async def one(self, statement: Statement, values: Values | None = None) -> Row | None:
        """The first row, or none."""
        if isinstance(statement, Prepared):
            cursor, row = await self._execute(statement, values)
            fetched = await cursor.fetchone()
            return None if fetched is None else row(fetched)
        return (await self._connection.execute(statement, values)).first()

    async def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row]:
        """All rows."""
        if isinstance(statement, Prepared):
            cursor, row = await self._execute(statement, values)
            return [row(fetched) for fetched in await cursor.fetchall()]
        return (await self._connection.execute(statement, values)).all()

    async def lock(self, *names: str) -> None:
        """Lock these, for the rest of the transaction. Raises `Overtaken` when one is a place that this task ran under
        a claim that is not the newest."""
        missing = [name for name in names if place_of(name) not in self._locked]
        if missing:
            await self._database.lock(self._driver, missing)
            self._locked.update(map(place_of, missing))

    def needs(self, *names: str) -> None:
        """Says what has to be locked by now. Raises `NotLocked` where it is not."""
        missing = frozenset(name for name in names if place_of(name) not in self._locked)
        if missing:
            raise NotLocked(missing)

    async def _execute(self, statement: Prepared, values: Values | None) -> tuple[Any, MakeRow]:
        dialect = self._database.dialect
        compiled = statement.compiled(dialect, values or {})
        try:
            cursor = await self._driver.execute(compiled.sql, compiled.parameters(values))
        except compiled.errors as error:
            raise as_sqlalchemys(error, dialect, compiled.sql) from error
        return cursor, compiled.row_maker(cursor, dialect)


class PostgresDatabase:
    """The records in one PostgreSQL database. `open` before use, `close` in the end."""

    def __init__(self, engine: AsyncEngine, alone: AsyncEngine) -> None:
        self._engine = engine
        self._alone = alone
        """Makes a connection each time."""
        self._few_alone = asyncio.Semaphore(MOST_ALONE)
        self._made: set[str] = set()
        """Names of locks that have a row."""
        self._committing: set[asyncio.Task[None]] = set()
        self.wake_places: WakePlaces | None = None
        """Called just before a commit with the places in which there is something to do then."""
        self.woke_places: Callable[[Sequence[str]], None] | None = None
        """Called with them just after it."""

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
        async with _connected(self._engine) as connection, self._usable(connection) as driver:
            await _autocommitting(connection)
            yield PostgresTransaction(connection, driver, self)

    def writing(self, thread_id: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """A transaction that locks this thread, and whatever else it names."""
        return self._writing(thread_id, *locks)

    def writing_apart(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """As `writing`: here checkpoints need no order, since a commit puts to disk all that was written before."""
        return self._writing(lock, *locks)

    def writing_urgently(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[PostgresTransaction]:
        """As `writing`: here nobody waits for the one writer."""
        return self._writing(lock, *locks)

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[None]:
        """Within it no other process is within it under this name. On a connection of its own, made for it: somebody
        outside is waited for, and what is done meanwhile needs those of the pool."""
        async with self._few_alone, _connected(self._alone) as connection:
            await connection.execute(_ALONE, {"name": name})
            yield

    async def claim(self, place: str) -> Claim:
        """Take over a place. From now on what belongs to earlier claims changes nothing."""
        async with self.claiming(place) as (_, claim):
            return claim

    @asynccontextmanager
    async def claiming(self, place: str) -> AsyncIterator[tuple[PostgresTransaction, Claim]]:
        """A transaction that takes over a place, with the claim that holds once it is committed."""
        async with self._writing(place) as tx:
            cursor = await tx.driver.execute(_HELD, {"name": place})
            (held,) = await cursor.fetchone()
            cursor = await tx.driver.execute(_CLAIM, {"name": place})
            (epoch,) = await cursor.fetchone()
            yield tx, Claim(place, epoch, taken_over=held)

    @asynccontextmanager
    async def _writing(self, *locks: str | NoLocks) -> AsyncIterator[PostgresTransaction]:
        names = [lock for lock in locks if isinstance(lock, str)]
        async with _connected(self._engine) as connection, self._usable(connection) as driver:
            if names:
                await self.lock(driver, names)
            transaction = PostgresTransaction(connection, driver, self, names)
            yield transaction
            woken = transaction.woken
            if woken and self.wake_places is not None:
                try:
                    await self.wake_places(driver, woken)
                except self.dialect.loaded_dbapi.Error as error:
                    raise as_sqlalchemys(error, self.dialect) from error
            await self._commit(driver)
        transaction.committed()
        if woken and self.woke_places is not None:
            self.woke_places(woken)

    @asynccontextmanager
    async def _usable(self, connection: AsyncConnection) -> AsyncIterator[Any]:
        """Gives the driver's connection, and drops it afterwards, with all that are idle, if it is broken."""
        driver = (await connection.get_raw_connection()).driver_connection
        try:
            yield driver
        except BaseException:
            if driver is not None and driver.closed:
                await connection.invalidate()
                await self._engine.dispose(close=False)
            raise

    async def lock(self, driver: Any, names: Sequence[str]) -> None:
        """Lock these names on a connection until its transaction ends."""
        sorted_names = sorted({place_of(name) for name in names})
        missing = [name for name in sorted_names if name not in self._made]
        try:
            if missing:
                await driver.execute(_MAKE_LOCKS, {"names": missing})
            cursor = await driver.execute(_LOCK, {"names": sorted_names})
            epochs = dict(await cursor.fetchall())
        except self.dialect.loaded_dbapi.Error as error:
            raise as_sqlalchemys(error, self.dialect, _LOCK) from error
        if len(self._made) > MOST_KNOWN:
            self._made.clear()
        self._made.update(sorted_names)  # what is rolled back is found missing by the count below
        if len(epochs) < len(sorted_names):
            self._made.difference_update(sorted_names)
            await self.lock(driver, names)
            return
        claim = current_claim()
        if claim is not None and epochs.get(claim.place, claim.epoch) != claim.epoch:
            claim.lose()
            raise Overtaken(claim.place)

    async def _commit(self, driver: Any) -> None:
        """Commit; whoever is cancelled meanwhile waits for it: it may be on disk all the same."""
        committing = asyncio.create_task(_committed(driver, self.dialect))
        self._committing.add(committing)
        committing.add_done_callback(self._committing.discard)
        await seen_through(committing)


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection, which has been given back when the block ends: whoever is cancelled meanwhile waits for that."""
    connection = await engine.connect()
    try:
        yield connection
    finally:
        await seen_through(asyncio.create_task(connection.close()))


async def _autocommitting(connection: AsyncConnection) -> None:
    """Lets each statement be its own transaction until the connection is given back. As an option of an engine it would
    be set while it connects, and a connection that is cancelled then is lost to the pool."""
    try:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
    except BaseException:
        await seen_through(asyncio.create_task(connection.invalidate()))  # how far it came is not known
        raise


async def _committed(driver: Any, dialect: sa.Dialect) -> None:
    try:
        await driver.commit()
    except dialect.loaded_dbapi.Error as error:
        raise as_sqlalchemys(error, dialect) from error


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
        "keepalives_idle": UNHEARD_SECONDS // 3,
        "keepalives_interval": UNHEARD_SECONDS // 3,
        "keepalives_count": 2,
        "tcp_user_timeout": UNHEARD_SECONDS * 1_000,
    }


def postgres_database(address: str, *, most_connections: int) -> PostgresDatabase:
    """A database at an address (`postgresql://…`), durable at every commit. `most_connections`: at once, and besides
    them `MOST_ALONE`."""
    waits = f"lock_timeout={ALONE_SECONDS}s", f"idle_in_transaction_session_timeout={ALONE_SECONDS}s"
    alone = _engine(address, connection_settings(*waits), poolclass=NullPool)
    return PostgresDatabase(postgres_engine(address, most_connections=most_connections), alone)


def postgres_engine(address: str, *, most_connections: int, **further: Any) -> AsyncEngine:
    """What connects to an address, with limits for everything that waits. `further`: for SQLAlchemy."""
    pool = {"pool_size": most_connections, "max_overflow": 0, "pool_timeout": LOCK_SECONDS}
    return _engine(address, connection_settings(), **pool, **further)


def _engine(address: str, settings: dict[str, Any], **further: Any) -> AsyncEngine:
    return create_async_engine(
        sa.make_url(address).set(drivername="postgresql+psycopg"),
        connect_args=settings,
        hide_parameters=True,  # what people wrote and tools returned is not for error messages, which end up in logs
        **further,
    )
