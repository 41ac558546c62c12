"""Rows of `audit`. Nothing here changes or deletes one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from bot.audit.entries import Link, VoteCast
from bot.records.addresses import shown_address, sqlite_file
from bot.records.database import Transaction, reader
from bot.records.prefixes import of_turn
from bot.records.rule_counts import keys_query, rounds_by_call, rounds_query
from bot.records.statements import Prepared
from bot.records.tables import approvals, attempts, audit, votes
from bot.rules.outcomes import ApprovalRound

AT_A_TIME = 500
"""Entries that are read at once: a log of millions never has to fit into memory."""
MOST_OUT_OF_ORDER = 10_000
"""Entries among which the first or the last one of a time range is looked for by its number: processes that write at
one moment, and clocks that are set, make the order of time another one than that of the numbers."""
STATEMENT_SECONDS = 600
"""How long PostgreSQL may look for one part of the log: attempts without an entry are looked for in all of it."""
CONNECT_SECONDS = 10

read_link = reader(Link)
"""Makes an entry of its row."""
_SAME = audit.alias()
_NEWEST = Prepared(
    sa.select(audit, sa.exists().where(_SAME.c.key == sa.bindparam("of")).label("has_key"))
    .order_by(audit.c.seq.desc())
    .limit(1)
)
_WITH_KEY = Prepared(sa.select(audit.c.entry).where(audit.c.key == sa.bindparam("of")))
_NEWEST_NUMBER = Prepared(sa.select(audit.c.seq).order_by(audit.c.seq.desc()).limit(1))
_ADD = Prepared(sa.insert(audit))
_VOTES = Prepared(
    sa.select(votes, approvals.c.round)
    .join(approvals, approvals.c.approval_id == votes.c.approval_id)
    .where(approvals.c.call_id == sa.bindparam("call"))
    .order_by(votes.c.at, votes.c.person_id)
)


async def newest(tx: Transaction, key: str) -> tuple[Link | None, bool]:
    """The last link of the chain, none before the first; and whether this end of a call has been written down."""
    row = await tx.one(_NEWEST, {"of": key})
    return (None, False) if row is None else (read_link(row), bool(row.has_key))


async def with_key(tx: Transaction, key: str) -> str | None:
    """The entry that is kept under a key, as it was written; `None`: there is none."""
    row = await tx.one(_WITH_KEY, {"of": key})
    return None if row is None else str(row.entry)


async def newest_number(tx: Transaction) -> int:
    """The number of the newest entry; 0: there is none."""
    row = await tx.one(_NEWEST_NUMBER)
    return 0 if row is None else int(row.seq)


async def add(tx: Transaction, link: Link, *, at: float) -> None:
    """Write the next link down. Raises `IntegrityError` where it is not the next: two writers must not both be."""
    await tx.run(_ADD, {**asdict(link), "at": at})


async def votes_on_call(tx: Transaction, call_id: str) -> Sequence[VoteCast]:
    """The votes on all rounds of a call, oldest first."""
    rows = await tx.all(_VOTES, {"call": call_id})
    return [VoteCast(r.round, r.person_id, r.name, r.verb, r.authority, r.reason, r.at) for r in rows]


async def entries_of_turn(tx: Transaction, turn: str) -> Sequence[str]:
    """What was written down of the calls of a turn, by the key of its delivery: JSON, oldest first."""
    query = sa.select(audit.c.entry).where(of_turn(audit.c.key, turn)).order_by(audit.c.seq)
    return [row.entry for row in await tx.all(query)]


async def newest_of_turn(tx: Transaction, turn: str, limit: int) -> Sequence[str]:
    """The same, of the newest `limit`."""
    query = sa.select(audit.c.entry).where(of_turn(audit.c.key, turn)).order_by(audit.c.seq.desc()).limit(limit)
    return [row.entry for row in reversed(await tx.all(query))]


async def links(tx: Transaction, since: float | None, until: float | None, *, after: int, limit: int) -> Sequence[Link]:
    """Entries by number, of a time range (seconds since the epoch, `until` not included), after one of them."""
    query = sa.select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
    query = query if since is None else query.where(audit.c.at >= since)
    query = query if until is None else query.where(audit.c.at < until)
    return [read_link(row) for row in await tx.all(query)]


async def numbers_within(tx: Transaction, since: float | None, until: float | None) -> tuple[int, int]:
    """The numbers of the first and the last entry of a time range (seconds since the epoch, `until` not included): all
    between belong to it, as in `AuditReader.dated_links`. The first is the larger one where there is none."""
    row = await tx.one(_ends(since, until))
    return (1, 0) if row is None or row.first is None or row.last is None else (int(row.first), int(row.last))


def _ends(since: float | None, until: float | None) -> sa.Select[Any]:
    """Selects these two numbers, each among the entries next to that moment: asked for the lowest number of all from a
    moment on, PostgreSQL goes through the numbers, and reads whatever was written before."""
    first, last = sa.select(sa.func.min(audit.c.seq)), sa.select(sa.func.max(audit.c.seq))
    if since is not None:
        after = sa.select(audit.c.seq).where(audit.c.at >= since).order_by(audit.c.at).limit(MOST_OUT_OF_ORDER)
        first = sa.select(sa.func.min(after.subquery().c.seq))
    if until is not None:
        before = sa.select(audit.c.seq).where(audit.c.at < until).order_by(audit.c.at.desc()).limit(MOST_OUT_OF_ORDER)
        last = sa.select(sa.func.max(before.subquery().c.seq))
    return sa.select(first.scalar_subquery().label("first"), last.scalar_subquery().label("last"))


async def dated_links(tx: Transaction, after: int, limit: int) -> Sequence[tuple[Link, float]]:
    """Entries by number, after one of them, each with the time under which it is found."""
    query = sa.select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
    return [(read_link(row), row.at) for row in await tx.all(query)]


async def unwritten(tx: Transaction, after: str, limit: int) -> tuple[Sequence[str], str]:
    """The attempts, as `{call_id}:{number}:{status}`, of which the ledger knows an end and the log does not, among the
    next `limit` attempts by their ids; and the last of these, empty: there are no more.

    Args:
        after: the last of those that were looked at before.
    """
    some = (
        sa.select(attempts.c.attempt_id, attempts.c.status, attempts.c.judged.is_not(sa.null()).label("known"), _KEY)
        .where(attempts.c.attempt_id > after)
        .order_by(attempts.c.attempt_id)
        .limit(limit)
        .subquery()
    )
    rows = await tx.all(
        sa.select(some.c.attempt_id, some.c.status, some.c.known, some.c.key, _is_written(some.c.key).label("written"))
        .select_from(some)
        .order_by(some.c.attempt_id)
    )
    missing = [row.key for row in rows if row.known and row.status in _ENDED and not row.written]
    return missing, rows[-1].attempt_id if len(rows) == limit else ""


_ENDED = ("done", "failed", "unknown")
_KEY = (attempts.c.call_id + ":" + sa.cast(attempts.c.number, sa.Text) + ":" + attempts.c.status).label("key")


def _is_written(key: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(audit.c.key == key)


class AuditReader:
    """The log as anybody who may read the records reads it, also while the bot writes. Blocks: for commands only."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def links(self, since: float | None = None, until: float | None = None) -> Iterator[Link]:
        """The entries by number; of a time range (seconds since the epoch, `until` not included) or all."""
        yield from (link for link, _ in self.dated_links(since, until))

    def dated_links(self, since: float | None = None, until: float | None = None) -> Iterator[tuple[Link, float]]:
        """Yields links as `links` does, each with the time under which it is found.

        Of a time range all between its first and its last one: when it was, a process says before it knows which number
        it will be, and a gap in the numbers would look like an entry that was taken out.
        """
        query = sa.select(audit).order_by(audit.c.seq).limit(AT_A_TIME)
        if since is not None or until is not None:
            first, last = self._connection.execute(_ends(since, until)).one()
            if first is None or last is None:
                return
            query = query.where(audit.c.seq.between(first, last))
        further = query
        while rows := self._connection.execute(further).all():
            yield from ((read_link(row), row.at) for row in rows)
            further = query.where(audit.c.seq > rows[-1].seq)

    def numbers_of(self, keys: Collection[str]) -> Mapping[str, int]:
        """Key → number, of the entries that there are with these keys."""
        return {row.key: row.seq for row in self._connection.execute(keys_query(keys))}

    def rounds_of(self, call_ids: Collection[str]) -> Mapping[str, Sequence[ApprovalRound]]:
        """The rounds of asking people about calls, by call and in order."""
        return rounds_by_call(self._connection.execute(rounds_query(call_ids)).all())

    def unwritten(self) -> Iterator[str]:
        """The attempts, as `{call_id}:{number}:{status}`, of which the ledger knows an end and the log does not."""
        query = (
            sa.select(_KEY)
            .where(attempts.c.judged.is_not(sa.null()), attempts.c.status.in_(_ENDED), ~_is_written(_KEY.element))
            .order_by(attempts.c.started_at)
        )
        yield from (row.key for row in self._connection.execute(query))


def cause_of(error: sa.exc.DBAPIError) -> str:
    """What the driver says, in one line."""
    return " ".join(str(error.orig).split())


class UnreadableLogError(Exception):
    """There is no audit log that could be read; the message says why."""


def audit_at(address: str) -> AbstractContextManager[AuditReader]:
    """The log at an address, opened for reading only. Raises `UnreadableLogError`."""
    file = sqlite_file(address)
    return postgres_audit(address) if file is None else sqlite_audit(file)


@contextmanager
def postgres_audit(address: str) -> Iterator[AuditReader]:
    """The log in a PostgreSQL database as it is at one moment. Raises `UnreadableLogError`."""
    from bot.records.postgres_connections import reading_engine  # noqa: PLC0415  # SQLite has no use for it

    shown = shown_address(address)
    try:
        engine = reading_engine(
            address, "countersign audit", connect_seconds=CONNECT_SECONDS, statement_seconds=STATEMENT_SECONDS
        ).execution_options(isolation_level="REPEATABLE READ")
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table(audit.name):
                raise UnreadableLogError(f"{shown}: there are no records yet")
            yield AuditReader(connection)
    except sa.exc.DBAPIError as error:
        raise UnreadableLogError(f"{shown}: the audit log cannot be read: {cause_of(error)}") from error


@contextmanager
def sqlite_audit(file: Path) -> Iterator[AuditReader]:
    """The log in a database file, opened for reading only. Raises `UnreadableLogError`."""
    if not file.is_file():
        raise UnreadableLogError(f"{file}: there are no records yet")
    engine = sa.create_engine("sqlite://", creator=lambda: _read_only(file), poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            yield AuditReader(connection)
    except sa.exc.DBAPIError as error:
        raise UnreadableLogError(f"{file}: the audit log cannot be read: {error.orig}") from error
    finally:
        engine.dispose()


def _read_only(file: Path) -> sqlite3.Connection:
    # A backup on a disk that is mounted read-only, where SQLite cannot make its own files beside it.
    beside = file.with_name(f"{file.name}-wal")
    stands_still = os.statvfs(file).f_flag & os.ST_RDONLY and not (beside.exists() and beside.stat().st_size)
    how = "mode=ro&immutable=1" if stands_still else "mode=ro"
    connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?{how}", uri=True)
    # What is no text any more was touched: it must be read to be told of.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection
