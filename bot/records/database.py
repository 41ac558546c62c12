"""Transactions over the records, whatever database they are in, and how statements and rows are written down."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from dataclasses import fields
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from bot.records.claims import Overtaken
from bot.records.locks import UNLOCKED, NoLocks
from bot.records.statements import Prepared, Values
from bot.repeated_failures import RepeatedFailure

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

LONGEST_STRETCH = 0.003
"""Seconds of reading rows after which others have their turn on the event loop."""
RowT = TypeVar("RowT")
DoneT = TypeVar("DoneT")
Row = Any
"""A tuple with the names of its columns as attributes, and `_fields`."""
Statement = Prepared | sa.Executable
"""Prepared where turns and clicks execute it: building it each time costs many times what SQLite needs for it."""


class NotOnDisk(RuntimeError):  # noqa: N818 (what became of it)
    """A transaction, or what it rests on, could not be put to disk."""


_OF_WHAT_WAS_WRITTEN = (sa.exc.DataError, sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.NotSupportedError)


_OUTAGES = (
    NotOnDisk,
    Overtaken,
    sa.exc.PendingRollbackError,
    sa.exc.ResourceClosedError,
    sa.exc.TimeoutError,
)


def is_outage(error: Exception) -> bool:
    """Whether an error says that the records cannot be used now (the disk is full, the file is locked or damaged, what
    they rest on cannot be kept, another process writes them now), rather than that something does not fit into them."""
    match error:
        case sa.exc.DBAPIError():
            return not isinstance(error, _OF_WHAT_WAS_WRITTEN)
        case sqlite3.Error():  # of the checkpoints' file
            return not isinstance(error, sqlite3.DataError | sqlite3.IntegrityError | sqlite3.ProgrammingError)
        case _:
            return isinstance(error, _OUTAGES)


_STATES_AWAY = ("08", "53", "57", "25006", "25P03", "55P03")
"""Beginnings of SQLSTATE: no connection, no resources, ended by the operator or a crash; a server that takes no writes
now; a transaction that was ended because this process stood still in it; a lock that somebody else did not give back in
time."""
_STATEMENT_TOOK_TOO_LONG = "57014"


def is_away(error: Exception) -> bool:
    """Whether an error says that the server of the records, or the connection to it, went away or takes no more now:
    whatever was done then, it is no fault of that. Never so with SQLite, which has no server."""
    if isinstance(error, sa.exc.TimeoutError):
        return True  # no connection was free
    if not isinstance(error, sa.exc.DBAPIError) or isinstance(error, _OF_WHAT_WAS_WRITTEN):
        return False
    of_driver = error.orig
    if of_driver is None or not hasattr(of_driver, "sqlstate"):
        return False
    state = of_driver.sqlstate  # none: the driver says so, and no server
    return state is None or (state.startswith(_STATES_AWAY) and state != _STATEMENT_TOOK_TOO_LONG)


AT_LAST_SECONDS = 75.0
"""How long what cannot be had again is tried to be written: longer than a database should be away."""
_AGAIN_SECONDS = 0.5
KEPT_OR_LOST_SECONDS = AT_LAST_SECONDS + _AGAIN_SECONDS + 25.0
"""After which that is written or given up: a last try may begin just in time, wait for a connection, and then for an
answer that does not come."""


async def written_at_last(write: Callable[[], Awaitable[DoneT]]) -> DoneT:
    """Returns what a transaction returns that is tried until the server of the records is there again. For what cannot
    be had again, such as a token in place of one that is used up. It may be on disk although its end was not heard of,
    so the second try has to come to the same.

    Any outage is worth another try here, also one that counts as somebody's fault elsewhere (`is_away`): what is given
    up is lost.

    Raises what the last try raised, which began within `AT_LAST_SECONDS` or just after, and at once what is no outage,
    or one that does not pass.
    """
    failure, until = RepeatedFailure("not_written_yet"), time.monotonic() + AT_LAST_SECONDS
    while True:
        try:
            return await write()
        except Exception as error:
            passes = is_outage(error) and not isinstance(error, Overtaken)  # another process has the place for good
            if not passes or time.monotonic() >= until:
                raise
            failure.failed(error)
        await asyncio.sleep(_AGAIN_SECONDS)


class Transaction(ABC):
    """One transaction, and what is to happen once it is on disk."""

    __slots__ = ("_afterwards",)

    def __init__(self) -> None:
        self._afterwards: list[Callable[[], None]] = []

    @abstractmethod
    async def run(self, statement: Statement, values: Values | None = None) -> None:
        """Execute a statement whose rows nobody needs. `values`: of its parameters, and of the columns it sets."""

    @abstractmethod
    async def one(self, statement: Statement, values: Values | None = None) -> Row | None:
        """The first row, or none."""

    @abstractmethod
    async def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row]:
        """All rows."""

    @abstractmethod
    async def lock(self, *names: str) -> None:
        """Let nobody else change what these names stand for until the transaction ends. For what is locked last
        (`bot.records.locks.AUDIT`): who locks in another order may wait for each other for ever."""

    @abstractmethod
    def needs(self, *names: str) -> None:
        """Says what has to be locked by now. Raises `NotLocked` where it is not: see `locking_as_found`."""

    def wakes(self, *names: str) -> None:  # noqa: B027  # one process needs nobody to be told
        """There is something to handle in these threads, once this is committed: where several processes could, one of
        them looks after it."""

    def shows(self, *lanes: str) -> None:  # noqa: B027  # the same
        """There is something to show in these lanes, once this is committed; that waits for no turns."""

    async def check_claim(self) -> None:  # noqa: B027  # one process is never overtaken
        """Raises `Overtaken` when another process has taken over the place for which this task runs."""

    async def first(
        self, read: Callable[[Row], RowT], statement: Statement, values: Values | None = None
    ) -> RowT | None:
        """What `read` makes of the first row, or none."""
        row = await self.one(statement, values)
        return read(row) if row is not None else None

    async def each(self, statement: Statement, every: Iterable[Values]) -> Sequence[Row]:
        """The first row for each of these values, where there is one, in their order.

        For rows with a column that may be long: each may take milliseconds, and how many there are is up to people. So
        others have their turn on the event loop in between, and what is read is not the records of one moment.
        """
        rows: list[Row] = []
        pauses = Pauses()
        for values in every:
            row = await self.one(statement, values)
            if row is not None:
                rows.append(row)
            await pauses.when_due()
        return rows

    async def changes(self, statement: sa.Update | sa.Delete) -> bool:
        """Execute a change of one row; whether there was one to change."""
        # RETURNING, never rowcount: some drivers count a conflict as a row.
        return await self.one(statement.returning(*statement.table.primary_key)) is not None

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do this when the transaction is committed, and never if it is not. The action must not raise."""
        # SQLite commits the transactions of several tasks together: what is logged is about this one.
        self._afterwards.append(partial(copy_context().run, action))

    def committed(self) -> None:
        """Do what was to be done afterwards."""
        for action in self._afterwards:
            action()


class Pauses:
    """Gives others their turn on the event loop, in a loop that reads many rows."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def when_due(self) -> None:
        """Pauses, if this task has worked for `LONGEST_STRETCH`."""
        if time.monotonic() - self._since >= LONGEST_STRETCH:
            await asyncio.sleep(0)
            self._since = time.monotonic()


class Database(Protocol):
    """The records. A transaction is on disk when its block ends, or nothing of it is.

    SQLite has one writer, so what a transaction reads stays true until it ends. PostgreSQL has many: there a
    transaction names what nobody else may change meanwhile, mostly the thread that it is about. What it locks is said
    each time, or that it is nothing (`bot.records.locks`).
    """

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that reads what is committed. Waits for no writer."""
        ...

    def writing(self, thread_id: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: all of it is on disk when the block ends, or none of it.

        `thread_id`: what it locks, and the only thread on whose checkpoints it may rest; `UNLOCKED`: it locks none, and
        may rest on those of any. `locks`: what it locks besides.
        """
        ...

    def writing_apart(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that rests on no checkpoint, such as that a post was shown, so it puts none to disk."""
        ...

    def writing_urgently(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that somebody outside waits for: it goes before those that only turns wait for."""
        ...

    def alone(self, name: str, service: str) -> AbstractAsyncContextManager[None]:
        """Within it no other process is within it under this name, for as long as somebody outside takes to answer. No
        transaction: others go on. Within one process its callers see to that themselves.

        `service`: who is asked within it. One that is slow to answer holds up only what asks the same one."""
        ...


# ------------------------------------------------------------- what is found late that has to be locked


class NotLocked(Exception):  # noqa: N818  # what it is about
    """A transaction relies on something that it has not locked."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class BeginTransaction(Protocol):
    """Begins a transaction, as `Database.writing_urgently` does."""

    def __call__(self, lock: str | NoLocks, /, *locks: str) -> AbstractAsyncContextManager[Transaction]:
        """Begins it, with these locked."""
        ...


async def locking_as_found(
    begin: BeginTransaction, work: Callable[[Transaction], Awaitable[DoneT]], *locks: str
) -> DoneT:
    """Does work in a transaction that finds out by reading what it has to lock, and says so by `Transaction.needs`.
    When that is not locked yet, nothing of it is kept and it is done anew, with these names locked from its beginning.

    Args:
        begin: one of the methods of `Database` that begin a transaction.
        work: what is done; it has no effect but in its transaction before it has said what it needs.
        locks: what is known to be needed.
    """
    names = set(locks)
    while True:
        try:
            async with begin(*sorted(names)) if names else begin(UNLOCKED) as tx:
                return await work(tx)
        except NotLocked as missing:
            if missing.names <= names:
                raise  # a lock that was named is not held: waiting longer changes nothing
            names |= missing.names


# --------------------------------------------------------------------------------------- lists


async def seen_through(task: asyncio.Future[None]) -> None:
    """Waits for the task, however often it is cancelled meanwhile, and raises that afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    task.result()
    if cancelled is not None:
        raise cancelled


def unless_longer(table: sa.Table, *columns: sa.Column[Any], without: sa.Column[Any] | None = None) -> sa.Select[Any]:
    """Selects rows for a list: these columns of JSON are null where they have more than the parameter `longest`
    characters together, and `characters` says how many. What is long is then not parsed, which holds the event loop.

    Args:
        without: a column that is not selected.
    """
    characters = sum((sa.func.coalesce(sa.func.length(sa.cast(c, sa.Text)), 0) for c in columns), sa.literal(0))
    longest = sa.bindparam("longest", type_=sa.BigInteger)
    names = {column.name for column in columns}
    others = [column for column in table.c if column.name not in names and column is not without]
    short = [sa.case((characters <= longest, column), else_=sa.null()).label(column.name) for column in columns]
    return sa.select(*others, *short, characters.label("characters"))


# ------------------------------------------------------------------------------- INSERT … ON CONFLICT


async def insert_new(tx: Transaction, table: sa.Table, row: Values) -> bool:
    """Insert a row; false when it collides with one that is there."""
    return await tx.one(_insert_new(table), row) is not None


@cache
def _insert_new(table: sa.Table) -> Prepared:
    return Prepared(lambda dialect: insert_for(dialect, table).on_conflict_do_nothing().returning(*table.primary_key))


async def upsert(tx: Transaction, table: sa.Table, row: Values, update: Iterable[str] | None = None) -> None:
    """Insert a row, or give the one with its primary key these of its values. `update`: names of columns; `None`: all
    that are no part of the key."""
    key = [column.name for column in table.primary_key]
    updated = [name for name in row if name not in key] if update is None else update
    await tx.run(_upsert(table, tuple(updated)), row)


@cache
def _upsert(table: sa.Table, updated: tuple[str, ...]) -> Prepared:
    def statement(dialect: str) -> sa.Insert:
        insert = insert_for(dialect, table)
        values = {name: insert.excluded[name] for name in updated}
        return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=values)

    return Prepared(statement)


def insert_for(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """Returns an INSERT that can say what becomes of a conflict."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415  # 3 MB that SQLite has no use for

    return postgresql.insert(table)


# --------------------------------------------------------------------------------- rows as dataclasses


def reader(row_class: type[RowT], **read: Callable[[Any], Any]) -> Callable[[Row], RowT]:
    """What makes a dataclass of a row with columns of the names of its fields. `read`: what makes the value of a field
    of its column's, where it is not the same."""
    names = [each.name for each in fields(row_class)]  # type: ignore[arg-type]  # a dataclass
    converted = [(names.index(name), convert) for name, convert in read.items()]

    @cache
    def values_of(columns: tuple[str, ...]) -> Callable[[Row], Iterable[Any]]:
        return itemgetter(*(columns.index(name) for name in names))

    def made(row: Row) -> RowT:
        values = list(values_of(row._fields)(row))
        for at, convert in converted:
            values[at] = convert(values[at])
        return row_class(*values)

    return made
