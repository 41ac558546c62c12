"""What each function of the records takes with a million rows in every table that grows, commit aside.

A statement runs in the event loop, so each may take 1 ms at most for up to 50 rows.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.figures import Figure, Limit
from bench.measures import Sizes
from bot.records import tables  # noqa: F401  # its tables stand in the same metadata
from bot.records.database import Row, Statement
from bot.records.sqlite import SqliteTransaction
from bot.records.startup import upgrade_sqlite
from bot.records.statements import Values
from bot.records.tables import metadata
from tests.support.record_calls import RecordCall, record_calls

MOST_MS = 1.0
A_THREAD = 50
"""Rows of a table in one thread, of one person and at one place."""
OPEN = 50
"""Rows of a table that are open, of all: as many as a statement may return within its millisecond."""
TIMES = 15
SLOWEST = 5
"""Functions that the table names."""

_THREAD = f"'web:' || (n / {A_THREAD})"
_PERSON = f"'web:p' || (n / {A_THREAD})"
_OPEN_OR = "CASE WHEN n % ({rows} / {open}) = 0 THEN '{one}' ELSE '{other}' END"
_ASK = """'{"verdict": "ask", "rule": "bench"}'"""
_PLACE = """'{"platform": "web", "key": "k", "address": {}, "channel": "", "direct": false, "has_threads": true}'"""


async def statements(sizes: Sizes) -> list[Figure]:
    """The slowest functions, and how many are slower than they may be."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        file = Path(folder) / "countersign.db"
        fill(file, sizes.rows)
        taken = await _all_timed(file, sizes.rows)
    slow = sum(ms > MOST_MS for ms in taken.values())
    what = f"{sizes.rows:,} rows a table"
    slowest = sorted(taken.items(), key=lambda each: -each[1])[:SLOWEST]
    return [
        Figure(f"{what}: functions of the records above {MOST_MS:g} ms, of {len(taken)}", slow, "", None, Limit(0)),
        *(Figure(f"… {name}: median", ms, "ms", None, Limit(MOST_MS)) for name, ms in slowest),
    ]


async def _all_timed(file: Path, rows: int) -> dict[str, float]:
    """By function, median milliseconds of its slowest statement."""
    engine = sa.create_engine(f"sqlite:///{file}")
    try:
        with engine.connect() as connection:
            return {call.name: await _timed(call, connection) for call in record_calls(_given(rows))}
    finally:
        engine.dispose()


async def _timed(call: RecordCall, connection: sa.Connection) -> float:
    taken = []
    for _ in range(TIMES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        timed = _Timed(connection)
        with suppress(sa.exc.IntegrityError):  # a row that is there already costs as much
            await call.make(timed)
        taken.append(max(timed.seconds, default=0.0))
        connection.rollback()
    return statistics.median(taken) * 1000


class _Timed(SqliteTransaction):
    """Notes how long each statement takes, with fetching its rows."""

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection)
        self.seconds: list[float] = []

    async def run(self, statement: Statement, values: Values | None = None) -> None:
        """Execute and note."""
        with self._noted():
            await super().run(statement, values)

    async def one(self, statement: Statement, values: Values | None = None) -> Row | None:
        """Execute and note."""
        with self._noted():
            return await super().one(statement, values)

    async def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row]:
        """Execute and note."""
        with self._noted():
            return await super().all(statement, values)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds.append(time.perf_counter() - began)


def _given(rows: int) -> dict[str, Any]:
    """Arguments that find `A_THREAD` rows, where there are as many."""
    middle = rows // 2 // A_THREAD
    number = middle * A_THREAD
    thread, person = f"web:{middle}", f"web:p{middle}"
    ids = ("approval_id", "clarification_id", "sign_in_id", "attempt_id", "grant_id", "connection_id")
    return {
        **dict.fromkeys(ids, f"id{number}"),
        **dict.fromkeys(("person_id", "requester", "of", "author"), person),
        "thread_id": thread, "place_key": thread, "lane": thread, "lanes": (thread,), "key": f"k{number}",
        "within": "web:", "platform": "web", "limit": A_THREAD, "now": float(rows - 1), "before": 1.0,
        "call_id": f"c{number}", "email": f"e{number}", "day": "2026-11-22", "message": f"m{number}",
        "subjects": tuple(f"id{n}" for n in range(number, number + A_THREAD)), "keys": (f"k{number}",),
        "person_ids": tuple(f"web:p{n}" for n in range(A_THREAD)), "among": (thread,), "after": f"id{number}",
        "seq": rows + 1,
    }  # fmt: skip


def fill(file: Path, rows: int) -> None:
    """So many rows in every table that grows, nearly all of them done with, in the schema as it is."""
    upgrade_sqlite(file)
    with closing(sqlite3.connect(file)) as connection:
        for pragma in ("synchronous=OFF", "journal_mode=MEMORY", "cache_size=-200000"):
            connection.execute(f"PRAGMA {pragma}")
        for table in metadata.sorted_tables:
            if table.name in {"oauth_clients", "catalogues"}:
                continue
            names = [column.name for column in table.columns]
            values = [_value(table.name, column, rows) for column in table.columns]
            numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})"
            listed = ", ".join(f'"{name}"' for name in names)
            connection.execute(f"INSERT INTO {table.name} ({listed}) {numbers} SELECT {', '.join(values)} FROM numbers")
        connection.commit()
        connection.execute("PRAGMA journal_mode=WAL")


_OF_ONE_THREAD = ("threads", "conversation_numbers", "gateway_calls", "plan_tasks", "thread_owners")
"""Tables in which a conversation has one row."""


def _value(table: str, column: sa.Column[Any], rows: int) -> str:
    """SQL for a column of row `n`."""
    either = _OPEN_OR.format(rows=rows, open=min(rows, OPEN), one="{one}", other="{other}")
    status = {
        "deliveries": either.format(one="waiting", other="done"),
        "approvals": either.format(one="pending", other="approved"),
        "clarifications": either.format(one="open", other="answered"),
        "sign_ins": either.format(one="open", other="done"),
        "attempts": either.format(one="unknown", other="done"),
        "authorizations": "'done'",
        "connections": "'active'",
    }
    special = {
        "status": status.get(table, "'done'"),
        "thread_id": "'web:' || n" if table in _OF_ONE_THREAD else _THREAD,
        "person_id": "'web:p' || n" if table in {"people", "usage", "identities"} else _PERSON,
        "requester": _PERSON,
        "requesters": f"json_array({_PERSON})",
        "place_key": "'web:' || n" if table == "places" else _THREAD,
        "lane": _THREAD,
        "place": "NULL" if table == "posts" else _PLACE,
        "subject": "'id' || n",
        "platform": "'web'",
        "call_id": "'c' || n",
        "key": "'k' || n",
        "post": "'k' || n",
        "message": "'m' || n",
        "settled_key": "'k' || n",
        "settled_at": f"CASE WHEN n % ({rows} / {min(rows, OPEN)}) = 0 THEN NULL ELSE n END",
        "kind": "CASE n % 4 WHEN 0 THEN 'timer' ELSE 'message' END" if table == "deliveries" else "'said'",
        "body": """'{"person": "web:p1", "name": "Ana", "text": "hello"}'""",
        "ask": _ASK,
        "risk": "'[]'",
        "choice": "NULL",
        "only_for": "NULL",
        "revision": "1",
        "sent_revision": f"CASE WHEN n % ({rows} / {min(rows, OPEN)}) = 0 THEN 0 ELSE 1 END",
        "day": "'2026-11-22'",
        "email": "'e' || n",
        "handed_to": "'[]'",
        "fields": "'[]'",
        "connection": f"'service' || (n % {A_THREAD})",
        "sealed_code": "NULL",
        "sealed_grant": "NULL",
        "number": "n" if table == "conversation_numbers" else "1",
    }  # fmt: skip
    if column.name in special:
        return special[column.name]
    if isinstance(column.type, sa.JSON):
        return "'{}'"
    if isinstance(column.type, sa.Integer | sa.BigInteger | sa.Float | sa.Boolean):
        return "1" if column.name in {"round", "urgent", "tries", "proven", "version"} else "n"
    return "'id' || n"
