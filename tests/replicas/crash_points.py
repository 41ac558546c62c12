"""`python -m tests.replicas.crash_points`: a replica that dies, or stands still, at one chosen write.

A write is a transaction, named after what it does, or a post on its way to a platform. Each has two points: just before
it is on disk or has left, and just after. Besides, whatever a run writes is noted in the same transaction under its
epoch, so that afterwards it can be seen in which order they were written.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
import sqlalchemy as sa

import app
from adapters.web.sender import WebSender
from bot.records import places
from bot.records.claims import Claim, current_claim
from bot.records.postgresql import PostgresDatabase, PostgresTransaction
from tests.kills.crash_points import alone, write_whole
from tests.kills.facts import CHANGING
from tests.support.transactions import Execute, statement_of, wrap_statements

FOLDER = "REPLICAS_CRASHES"
"""Variable of the folder in which it is said where a replica is to die."""
Side = Literal["before", "after"]
Action = Literal["dies", "stands still"]

OF_RECORDS = {
    "accept": ("insert deliveries",),
    "decide": ("update approvals status",),
    "claim": ("claim",),
    "begin": ("update deliveries begun",),
    "attempt begins": ("an act begins",),
    "attempt ends": ("an act ends",),
    "conclude": ("update deliveries status",),
    "post kept": ("insert posts",),
    "post changed": ("update posts revision",),
    "post sent": ("update posts sent_revision",),
    "checkpoint": ("checkpoint",),
    "release": ("leave", "update locks held"),
}
"""Kinds of transactions, each with what it writes, if it is one of these."""
OF_POSTS = ("post under way",)
WRITES = (*OF_RECORDS, *OF_POSTS)
_NOTES = """
CREATE TABLE written (
    seq bigint GENERATED ALWAYS AS IDENTITY, place text NOT NULL, epoch bigint NOT NULL, what text NOT NULL,
    process integer NOT NULL
)
"""
_NOTE = "INSERT INTO written (place, epoch, what, process) VALUES (%s, %s, %s, %s)"
_STALE = """
SELECT place, epoch, newest, what, process, seq FROM (
    SELECT *, max(epoch) OVER (PARTITION BY place ORDER BY seq) AS newest FROM written
) AS noted WHERE epoch < newest ORDER BY seq
"""


@dataclass(frozen=True)
class CrashPoint:
    """Where a replica is to die or to stand still."""

    write: str
    side: Side
    action: Action
    left: int = 0
    """How often it is passed before."""


def make_notes(address: str) -> None:
    """Make the table in which runs note what they write. Blocks."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_NOTES)


def stale_writes(address: str) -> list[dict[str, Any]]:
    """What was written under an epoch after a newer one. Blocks."""
    with psycopg.connect(address, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(_STALE).fetchall()


def arm(folder: Path, point: CrashPoint) -> None:
    """From now on the next replica that gets there dies or stands still, once."""
    with alone(folder / "armed"):
        write_whole(folder / "armed", json.dumps(asdict(point)))


def disarm(folder: Path) -> None:
    """Nobody dies any more."""
    with alone(folder / "armed"):
        (folder / "armed").unlink(missing_ok=True)


def who_got_there(folder: Path) -> int | None:
    """The process that has got to its point, and is forgotten with that; `None`: none so far."""
    reached = folder / "reached"
    if not reached.exists():
        return None
    pid = int(reached.read_text())
    reached.unlink()
    return pid


class CrashPoints:
    """The points of this process."""

    def __init__(self, folder: Path) -> None:
        self._armed, self._reached = folder / "armed", folder / "reached"
        self._written: dict[int, set[str]] = {}
        """Connection → what the transaction on it has written so far."""
        self._acts: set[str] = set()
        """Ids of the calls that need approval, as far as they began here: others may be made again."""

    def install(self) -> None:
        """Put a point before and after everything that is written."""
        self._watch_statements()
        self._watch_transactions()
        self._watch_what_is_no_statement()
        for name in ("send", "update"):
            self._watch_posts(name)

    def _pass(self, writes: set[str], side: Side) -> None:
        if not self._armed.exists():
            return
        with alone(self._armed):
            try:
                point = CrashPoint(**json.loads(self._armed.read_text()))
            except FileNotFoundError:
                return
            if point.side != side or point.write not in writes:
                return
            if point.left:
                write_whole(self._armed, json.dumps({**asdict(point), "left": point.left - 1}))
                return
            self._armed.unlink()
            write_whole(self._reached, str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL if point.action == "dies" else signal.SIGSTOP)

    # -------------------------------------------------------------------------------- what a transaction does

    def _watch_statements(self) -> None:
        def noting(execute: Execute) -> Execute:
            async def noted(tx: Any, statement: Any, values: Any = None) -> Any:
                writes = _writes_of(statement_of(tx, statement), values or {})
                self._of(tx.driver).update(writes, self._of_acts(writes, values or {}))
                return await execute(tx, statement, values)

            return noted

        wrap_statements(pytest.MonkeyPatch(), noting, PostgresTransaction)

    def _of_acts(self, writes: set[str], values: Any) -> set[str]:
        if "insert attempts" in writes and values["tool"] in CHANGING:
            self._acts.add(values["call_id"])
            return {"an act begins"}
        return {"an act ends"} if "update attempts status" in writes and values.get("call") in self._acts else set()

    def _of(self, driver: Any) -> set[str]:
        return self._written.setdefault(id(driver), set())

    def _watch_transactions(self) -> None:
        begin, claiming, commit = PostgresTransaction.__init__, PostgresDatabase.claiming, PostgresDatabase._commit

        def made(tx: PostgresTransaction, connection: Any, driver: Any, *arguments: Any) -> None:
            self._written.pop(id(driver), None)  # of one that was rolled back
            begin(tx, connection, driver, *arguments)

        @asynccontextmanager
        async def watched_claim(
            database: PostgresDatabase, place: str
        ) -> AsyncIterator[tuple[PostgresTransaction, Claim]]:
            async with claiming(database, place) as (tx, claim):
                yield tx, claim
                self._of(tx.driver).add("claim")
                await tx.execute(_NOTE, (claim.place, claim.epoch, "claim", os.getpid()))

        async def watched_commit(database: PostgresDatabase, driver: Any) -> None:
            written, claim = self._written.pop(id(driver), set()), current_claim()
            if claim is not None and written:
                await driver.execute(_NOTE, (claim.place, claim.epoch, ", ".join(sorted(written)), os.getpid()))
            writes = {name for name, does in OF_RECORDS.items() if written.intersection(does)}
            self._pass(writes, "before")
            await commit(database, driver)
            self._pass(writes, "after")

        setattr(PostgresTransaction, "__init__", made)  # noqa: B010  # mypy takes no assignment
        setattr(PostgresDatabase, "claiming", watched_claim)  # noqa: B010
        setattr(PostgresDatabase, "_commit", watched_commit)  # noqa: B010

    def _watch_what_is_no_statement(self) -> None:
        """What transactions write by the driver: the checkpoints on which they rest, and that a place is left."""
        write_what, leave = PostgresDatabase._write_what, places.leave

        async def watched_what(
            database: PostgresDatabase, thread_id: str, foundation: Any, tx: PostgresTransaction, locked: Any
        ) -> None:
            before = len(tx._afterwards)
            await write_what(database, thread_id, foundation, tx, locked)
            if len(tx._afterwards) > before:  # it is to be noted that they are written
                self._of(tx.driver).add("checkpoint")

        async def watched_leave(tx: PostgresTransaction, place: str) -> None:
            self._of(tx.driver).add("leave")
            await leave(tx, place)

        setattr(PostgresDatabase, "_write_what", watched_what)  # noqa: B010
        setattr(places, "leave", watched_leave)  # noqa: B010

    def _watch_posts(self, name: str) -> None:
        show = getattr(WebSender, name)

        async def watched(*arguments: Any) -> Any:
            self._pass(set(OF_POSTS), "before")
            shown = await show(*arguments)
            self._pass(set(OF_POSTS), "after")
            return shown

        setattr(WebSender, name, watched)


def _writes_of(statement: Any, values: Any) -> set[str]:
    match statement:
        case sa.Insert():
            return {f"insert {statement.table.name}"}
        case sa.Update():
            named = {getattr(column, "name", column) for column in statement._values or {}}
            columns = named | (values.keys() & set(statement.table.c.keys()))
            return {f"update {statement.table.name} {column}" for column in columns}
        case sa.Delete():
            return {f"delete {statement.table.name}"}
        case _:
            return set()


def _show_tasks(*_: Any) -> None:
    """Write what each task waits for, innermost last."""
    for task in asyncio.all_tasks():
        print(task.get_name(), file=sys.stderr)
        waiting: Any = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
            if frame is not None:
                print(f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}", file=sys.stderr)
            waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _show_tasks)  # for whoever wants to know why nothing happens
    CrashPoints(Path(os.environ[FOLDER])).install()
    sys.exit(app.main())
