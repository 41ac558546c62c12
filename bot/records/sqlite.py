"""The records in one SQLite file: readers that wait for nobody, and one writer at a time, the urgent one first.

SQLite's statements run in the event loop and only the commit, which waits for the disk, in a thread: a statement takes
some tens of microseconds, and a trip of each to a thread and back cost ten times that
(docs/decisions/0002-sqlite-in-the-loop.md).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from bot.records.database import NotOnDisk, Row, Statement, Transaction, seen_through
from bot.records.locks import UNLOCKED, NoLocks
from bot.records.statements import Prepared, Values, all_rows, first_row, no_row, raising_sqlalchemys

BUSY_SECONDS = 10.0
"""How long a transaction waits for another process that writes (a person with a shell) before it gives up."""
BUSY_PAUSE = 0.01
CACHED_STATEMENTS = 512
"""Statements that SQLite's driver keeps compiled on each connection: more than there are."""
Opened = TypeVar("Opened")
MOST_TOGETHER = 32
"""Transactions that share a commit at most, so that the first of them does not wait for ever."""
_BEGIN = Prepared(sa.text("BEGIN IMMEDIATE"))
_SAVE = Prepared(sa.text("SAVEPOINT own"))
_RELEASE = Prepared(sa.text("RELEASE own"))
_TAKE_BACK = Prepared(sa.text("ROLLBACK TO own"))


class SqliteTransaction(Transaction):
    """One transaction on the one connection that writes, or on the one that reads."""

    __slots__ = ("_driver", "connection", "is_within_another")

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__()
        self.connection = connection
        self.is_within_another = False
        """Whether others wrote before it that go to disk with it, so that it has a savepoint of its own."""
        self._driver: Any = connection.connection.driver_connection
        """The driver's own connection, on which prepared statements are executed."""

    async def run(self, statement: Statement, values: Values | None = None) -> None:
        """Execute a statement whose rows nobody needs. `values`: of its parameters, and of the columns it sets."""
        if isinstance(statement, Prepared):
            statement.execute(self.connection, self._driver, values, no_row)
        else:
            self.connection.execute(statement, values)

    async def one(self, statement: Statement, values: Values | None = None) -> Row | None:
        """The first row, or none."""
        if isinstance(statement, Prepared):
            return statement.execute(self.connection, self._driver, values, first_row)
        return self.connection.execute(statement, values).first()

    async def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row]:
        """All rows."""
        if isinstance(statement, Prepared):
            return statement.execute(self.connection, self._driver, values, all_rows)
        return self.connection.execute(statement, values).all()

    async def lock(self, *names: str) -> None:
        """There is one writer."""

    def needs(self, *names: str) -> None:
        """There is one writer."""

    @property
    def is_open(self) -> bool:
        """Whether the driver is in a transaction: SQLite ends it by itself when the disk is full or fails."""
        return bool(self._driver.in_transaction)

    def commit(self) -> None:
        """Put it to disk. Blocks."""
        # SQLAlchemy knows of a transaction only when one of its own statements was executed in it.
        if self.connection.in_transaction():
            self.connection.commit()
            return
        with raising_sqlalchemys(self.connection.dialect):
            self._driver.commit()

    def roll_back(self) -> None:
        """Take it back."""
        self.connection.rollback()
        self._driver.rollback()


class Foundation(Protocol):
    """What the transactions of a turn rest on: its checkpoints."""

    async def prepare(self, thread_id: str) -> None:
        """Gets ready what there is of this thread. Raises what keeps it from being put to disk."""
        ...

    def sync(self, *thread_ids: str) -> None:
        """Puts to disk what there is of these threads, or of all when none is named. Blocks; called in a thread."""
        ...


class SqliteDatabase:
    """The records in one SQLite file. `open` before use, `close` in the end.

    Transactions that wait for the writer at the same time share a commit, which waits for the disk as long for many as
    for one. Each is on disk when its block ends, or nothing of it is.
    """

    def __init__(self, engine: sa.Engine, foundation: Foundation) -> None:
        self._engine = engine
        self._foundation = foundation
        self._turnstile = _Turnstile(self._go_on)
        self._together: _Together | None = None
        """The transactions of the next commit: one may be under way, the others have ended."""
        self._writer: sa.Connection | None = None
        self._reader: sa.Connection | None = None
        self._reading: _Reading | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")

    async def open(self) -> None:
        """Connect."""
        self._writer = await asyncio.to_thread(self._engine.connect)
        reader = await asyncio.to_thread(self._engine.connect)
        self._reader = reader.execution_options(isolation_level="AUTOCOMMIT")
        self._reading = _Reading(SqliteTransaction(self._reader))

    async def close(self) -> None:
        """Wait for the transactions that are under way, then disconnect."""
        await self._turnstile.enter(urgent=True)
        while (together := self._together) is not None:
            self._commit(together)
            await asyncio.wait([together.on_disk])
            await self._turnstile.enter(urgent=True)
        try:
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = self._reading = None
        finally:
            self._turnstile.leave()
        self._disk.shutdown()
        self._engine.dispose()

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that reads what is committed. Waits for no writer."""
        return _opened(self._reading)

    def writing(self, thread_id: str | NoLocks, /, *_locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: all of it is on disk when the block ends, or none of it.

        `thread_id`: the only thread on whose checkpoints it may rest; `UNLOCKED`: it may rest on those of any.
        """
        return _Writing(self, _RestsOn(None if thread_id is UNLOCKED else thread_id), urgent=False)

    def writing_apart(self, _lock: str | NoLocks, /, *_locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that rests on no checkpoint, such as that a post was shown, so it puts none to disk."""
        return _Writing(self, None, urgent=False)

    def writing_urgently(self, _lock: str | NoLocks, /, *_locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that somebody outside waits for: it goes before those that only turns wait for."""
        return _Writing(self, None, urgent=True)

    def alone(self, name: str, service: str) -> AbstractAsyncContextManager[None]:
        """No other process has these records."""
        return nullcontext()

    async def begin(self, *, urgent: bool) -> SqliteTransaction:
        """Waits until it is this transaction's turn to write, and begins it. `keep` or `take_back` has to follow."""
        await self._turnstile.enter(urgent=urgent)
        try:
            transaction = SqliteTransaction(_opened(self._writer))
            if self._together is None:
                await _begin(transaction)
                self._together = _Together(asyncio.get_running_loop().create_future())
            else:
                await transaction.run(_SAVE)
                transaction.is_within_another = True
        except BaseException:
            self._go_on()
            raise
        return transaction

    async def keep(
        self, transaction: SqliteTransaction, rests_on: _RestsOn | None, *, urgent: bool
    ) -> asyncio.Future[None]:
        """Ends a transaction whose block has. Returns what is done when it is on disk, or fails when it cannot be put
        there. Raises what keeps this one from it; then nothing of it is kept."""
        together = self._together
        assert together is not None  # noqa: S101  # since `begin`
        try:
            if rests_on is not None and rests_on.thread_id is not None:
                await self._prepare(rests_on.thread_id)
            if transaction.is_within_another:
                await transaction.run(_RELEASE)
        except BaseException as cause:
            await self.take_back(transaction, cause)
            raise
        together.add(transaction, rests_on, urgent=urgent)
        self._go_on()
        return together.on_disk

    async def _prepare(self, thread_id: str) -> None:
        try:
            await self._foundation.prepare(thread_id)
        except Exception as cause:
            raise NotOnDisk(f"{type(cause).__name__}: {cause}") from cause

    async def take_back(self, transaction: SqliteTransaction, cause: BaseException) -> None:
        """Ends a transaction of which nothing is to be kept, because of `cause`."""
        try:
            if not transaction.is_within_another:
                transaction.roll_back()
            elif transaction.is_open:
                await transaction.run(_TAKE_BACK)
                await transaction.run(_RELEASE)
        finally:
            if not transaction.is_open and self._together is not None:
                self._fail(self._together, cause)
            self._go_on()

    def _go_on(self) -> None:
        """Lets in who goes next, in the same commit or after it. A commit takes as long for many as for one."""
        together = self._together
        if together is None or (
            self._turnstile.lets_in(urgent_only=together.is_urgent) and len(together.transactions) < MOST_TOGETHER
        ):
            self._turnstile.leave()
        else:
            self._commit(together)

    def _commit(self, together: _Together) -> None:
        committing = asyncio.get_running_loop().run_in_executor(self._disk, self.commit, together)
        committing.add_done_callback(partial(self._is_committed, together))

    def _fail(self, together: _Together, cause: BaseException) -> None:
        self._together = None
        if together.transactions:
            together.on_disk.set_exception(cause if isinstance(cause, Exception) else NotOnDisk("taken back"))

    def commit(self, together: _Together) -> None:
        """Put to disk what these transactions rest on, then themselves. Blocks; called in a thread."""
        if not together.transactions[-1].is_open:
            raise NotOnDisk("SQLite has ended the transaction by itself")  # to commit then would do nothing
        if together.rests_on is not None:
            try:
                self._foundation.sync(*together.rests_on)
            except Exception as cause:
                raise NotOnDisk(f"{type(cause).__name__}: {cause}") from cause
        together.transactions[-1].commit()

    def _is_committed(self, together: _Together, committing: asyncio.Future[None]) -> None:
        cause = committing.exception()
        self._together = None
        if cause is not None:
            # The one writer must be clean for the next.
            together.transactions[-1].roll_back()
            together.on_disk.set_exception(cause)
        else:
            # It is on disk although a task may have been cancelled meanwhile, so all who wait for it must be woken.
            for transaction in together.transactions:
                committing.get_loop().call_soon(transaction.committed)
            together.on_disk.set_result(None)
        self._turnstile.leave()


# Classes rather than generators with `asynccontextmanager`: a turn enters a dozen of these blocks.


class _Reading:
    """The block of a transaction that reads. It keeps nothing, so there is one for all."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._transaction = transaction

    async def __aenter__(self) -> SqliteTransaction:
        return self._transaction

    async def __aexit__(self, *_: object) -> None:
        pass


class _Writing:
    """The block of a transaction that writes."""

    __slots__ = ("_database", "_rests_on", "_transaction", "_urgent")

    def __init__(self, database: SqliteDatabase, rests_on: _RestsOn | None, *, urgent: bool) -> None:
        self._database = database
        self._rests_on = rests_on
        self._urgent = urgent

    async def __aenter__(self) -> SqliteTransaction:
        self._transaction = await self._database.begin(urgent=self._urgent)
        return self._transaction

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            await self._database.take_back(self._transaction, error)
            return
        on_disk = await self._database.keep(self._transaction, self._rests_on, urgent=self._urgent)
        await seen_through(on_disk)  # whoever is cancelled meanwhile: it may be on disk all the same


@dataclass(frozen=True, slots=True)
class _RestsOn:
    """The checkpoints that a transaction rests on."""

    thread_id: str | None
    """The only thread that they may be of; None: of any."""


@dataclass(slots=True, eq=False)
class _Together:
    """Transactions that are put to disk by one commit. Each but the first has a savepoint of its own until its block
    ends, so one that fails takes nothing back of the others."""

    on_disk: asyncio.Future[None]
    transactions: list[SqliteTransaction] = field(default_factory=list)
    is_urgent: bool = False
    """Whether somebody outside waits for one of them."""
    rests_on: set[str] | None = None
    """Threads whose checkpoints go first; empty: those of all; None: of none."""

    def add(self, transaction: SqliteTransaction, rests_on: _RestsOn | None, *, urgent: bool) -> None:
        """One whose block has ended."""
        self.transactions.append(transaction)
        self.is_urgent = self.is_urgent or urgent
        if rests_on is None:
            return
        if rests_on.thread_id is None:
            self.rests_on = set()
        elif self.rests_on is None:
            self.rests_on = {rests_on.thread_id}
        elif self.rests_on:
            self.rests_on.add(rests_on.thread_id)


class NoFoundation:
    """For transactions that rest on nothing."""

    async def prepare(self, thread_id: str) -> None:
        """There is nothing."""

    def sync(self, *thread_ids: str) -> None:
        """There is nothing."""


def _opened(connection: Opened | None) -> Opened:
    if connection is None:
        raise NotOnDisk("the database is not open")
    return connection


async def _begin(transaction: SqliteTransaction) -> None:
    """Take the write lock at once, and wait outside SQLite when another process has it: its own wait would block."""
    deadline = asyncio.get_running_loop().time() + BUSY_SECONDS
    while True:
        try:
            await transaction.run(_BEGIN)
        except sa.exc.OperationalError:
            transaction.roll_back()
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(BUSY_PAUSE)
        else:
            return


class _Turnstile:
    """A lock that lets the urgent go first, and within that the earliest; `leave` follows each `enter`."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on
        """Called when who was let in does not come."""
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    async def enter(self, *, urgent: bool) -> None:
        """Wait for nobody else to be within."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (0 if urgent else 1, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._go_on()
            raise

    def lets_in(self, *, urgent_only: bool) -> bool:
        """Whether somebody waits whom `leave` would let in; who is cancelled does not count."""
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        return bool(self._waiting) and not (urgent_only and self._waiting[0][0])

    def leave(self) -> None:
        """Let the next in."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


def sqlite_database(path: Path, foundation: Foundation | None = None) -> SqliteDatabase:
    """A database in one file, durable at every commit (WAL, `synchronous=FULL`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,
        connect_args={"check_same_thread": False, "cached_statements": CACHED_STATEMENTS},
        hide_parameters=True,  # what people wrote and tools returned is not for error messages, which end up in logs
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=0", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return SqliteDatabase(engine, foundation or NoFoundation())
