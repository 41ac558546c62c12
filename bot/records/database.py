"""The database: readers that wait for nobody, and on SQLite one writer at a time, the urgent one first.

SQLite's statements run in the event loop and only the commit, which waits for the disk, in a thread: a statement takes
some tens of microseconds, and a trip of each to a thread and back cost ten times that
(docs/decisions/0002-sqlite-in-the-loop.md).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Row
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 10.0
"""How long a transaction waits for another process that writes (a person with a shell) before it gives up."""
BUSY_PAUSE = 0.01
RowT = TypeVar("RowT")
Values = Mapping[str, Any]
"""Parameter or column → value. What every turn executes is written once with parameters: composing a statement anew
costs several times what SQLite needs to execute it."""


@dataclass(slots=True)
class Transaction:
    """One transaction, and what is to happen once it is on disk."""

    connection: sa.Connection
    _afterwards: list[Callable[[], None]] = field(default_factory=list)

    async def run(self, statement: sa.Executable, values: Values | None = None) -> None:
        """Execute a statement whose rows nobody needs. `values`: of its parameters, and of the columns it sets."""
        self.connection.execute(statement, values)

    async def one(self, statement: sa.Executable, values: Values | None = None) -> Row[Any] | None:
        """The first row, or none."""
        return self.connection.execute(statement, values).first()

    async def first(
        self, read: Callable[[Row[Any]], RowT], statement: sa.Executable, values: Values | None = None
    ) -> RowT | None:
        """What `read` makes of the first row, or none."""
        row = await self.one(statement, values)
        return read(row) if row is not None else None

    async def all(self, statement: sa.Executable, values: Values | None = None) -> Sequence[Row[Any]]:
        """All rows."""
        return self.connection.execute(statement, values).all()

    async def changes(self, statement: sa.Update | sa.Delete) -> bool:
        """Execute a change of one row; whether there was one to change."""
        # RETURNING, never rowcount: some drivers count a conflict as a row.
        return await self.one(statement.returning(*statement.table.primary_key)) is not None

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do this when the transaction is committed, and never if it is not. The action must not raise."""
        self._afterwards.append(action)

    def committed(self) -> None:
        """Do what was to be done afterwards."""
        for action in self._afterwards:
            action()


class Database:
    """The records in one SQLite file. `open` before use, `close` in the end.

    `foundation`: puts to disk what the transactions of a turn rest on (its checkpoints); blocks, called in a thread.
    """

    def __init__(self, engine: sa.Engine, foundation: Callable[[], None]) -> None:
        self._engine = engine
        self._foundation = foundation
        self._turnstile = _Turnstile()
        self._writer: sa.Connection | None = None
        self._reader: sa.Connection | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")

    async def open(self) -> None:
        """Connect."""
        self._writer = await asyncio.to_thread(self._engine.connect)
        reader = await asyncio.to_thread(self._engine.connect)
        self._reader = reader.execution_options(isolation_level="AUTOCOMMIT")

    async def close(self) -> None:
        """Wait for the transaction that is under way, then disconnect."""
        async with self._turnstile.passage(urgent=True):
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = None
        self._disk.shutdown()
        self._engine.dispose()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """A transaction that reads what is committed. Waits for no writer."""
        yield Transaction(_opened(self._reader))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        """A transaction: all of it is on disk when the block ends, or none of it."""
        async with self._turnstile.passage(urgent=False), self._transaction(self._foundation) as transaction:
            yield transaction

    @asynccontextmanager
    async def writing_urgently(self) -> AsyncIterator[Transaction]:
        """A transaction that somebody outside waits for: it goes before those that only turns wait for."""
        async with self._turnstile.passage(urgent=True), self._transaction(_nothing) as transaction:
            yield transaction

    @asynccontextmanager
    async def _transaction(self, foundation: Callable[[], None]) -> AsyncIterator[Transaction]:
        connection = _opened(self._writer)

        def commit() -> None:
            foundation()
            connection.commit()

        await _begin(connection)
        transaction = Transaction(connection)
        try:
            yield transaction
            cancelled = await self._to_disk(commit)
        except BaseException:
            # Also on cancellation, and when the commit failed: the one writer must be clean for the next.
            connection.rollback()
            raise
        # Although the task may have been cancelled meanwhile: it is on disk, so whoever waits for it must be woken.
        transaction.committed()
        if cancelled is not None:
            raise cancelled

    async def _to_disk(self, commit: Callable[[], None]) -> asyncio.CancelledError | None:
        """See a commit through however often the task is cancelled: half of one leaves the writer unusable.

        Returns the cancellation, when there was one; raises what the commit raises.
        """
        work = asyncio.get_running_loop().run_in_executor(self._disk, commit)
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as cancellation:
                cancelled = cancellation
        work.result()
        return cancelled


def _nothing() -> None:
    """What comes from outside rests on nothing."""


def _opened(connection: sa.Connection | None) -> sa.Connection:
    if connection is None:
        raise RuntimeError("the database is not open")
    return connection


async def _begin(connection: sa.Connection) -> None:
    """Take the write lock at once, and wait outside SQLite when another process has it: its own wait would block."""
    deadline = asyncio.get_running_loop().time() + BUSY_SECONDS
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except sa.exc.OperationalError:
            connection.rollback()
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(BUSY_PAUSE)
        else:
            return


class _Turnstile:
    """A lock that lets the urgent go first, and within that the earliest."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    @asynccontextmanager
    async def passage(self, *, urgent: bool) -> AsyncIterator[None]:
        await self._enter(urgent=urgent)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, *, urgent: bool) -> None:
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (0 if urgent else 1, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


def sqlite_database(path: Path, foundation: Callable[[], None] = _nothing) -> Database:
    """A database in one file, durable at every commit (WAL, `synchronous=FULL`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,
        connect_args={"check_same_thread": False},
        hide_parameters=True,  # what people wrote and tools returned is not for error messages, which end up in logs
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=0", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return Database(engine, foundation)


def unless_longer(table: sa.Table, *columns: sa.Column[Any]) -> sa.Select[Any]:
    """Selects rows for a list: these columns of JSON are null where they have more than the parameter `longest`
    characters together, and `characters` says how many. What is long is then not parsed, which holds the event loop."""
    characters = sum((sa.func.coalesce(sa.func.length(sa.cast(c, sa.Text)), 0) for c in columns), sa.literal(0))
    longest = sa.bindparam("longest", type_=sa.BigInteger)
    names = {column.name for column in columns}
    others = [column for column in table.c if column.name not in names]
    short = [sa.case((characters <= longest, column), else_=sa.null()).label(column.name) for column in columns]
    return sa.select(*others, *short, characters.label("characters"))


# ------------------------------------------------------------------------------- INSERT … ON CONFLICT


async def insert_new(tx: Transaction, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row; false when it collides with one that is there."""
    return await tx.one(_insert_new(tx.connection.dialect.name, table), row) is not None


@cache
def _insert_new(dialect: str, table: sa.Table) -> Any:
    return _insert(dialect, table).on_conflict_do_nothing().returning(*table.primary_key.columns)


async def upsert(tx: Transaction, table: sa.Table, row: Values, update: Values | None = None) -> None:
    """Insert a row, or update the one with its primary key: with `update`, or else with the whole of it."""
    key = [column.name for column in table.primary_key]
    update = {name: value for name, value in row.items() if name not in key} if update is None else update
    statement = _insert(tx.connection.dialect.name, table).values(row)
    await tx.run(statement.on_conflict_do_update(index_elements=key, set_=update))


def _insert(dialect: str, table: sa.Table) -> Any:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


# --------------------------------------------------------------------------------- rows as dataclasses


def reader(row_class: type[RowT], **read: Callable[[Any], Any]) -> Callable[[Row[Any]], RowT]:
    """What makes a dataclass of a row with columns of the names of its fields. `read`: what makes the value of a field
    of its column's, where it is not the same."""
    names = [each.name for each in fields(row_class)]  # type: ignore[arg-type]  # a dataclass

    def made(row: Row[Any]) -> RowT:
        values = row._mapping
        return row_class(**{name: read[name](values[name]) if name in read else values[name] for name in names})

    return made
