"""How SQLite executes the statements of the records."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from bot.records import tables  # noqa: F401  # its tables stand in the same metadata
from bot.records.tables import metadata

SMALL = {"oauth_clients", "catalogues"}
"""One row per server or provider that the operator has configured."""
OF_OPEN_ROWS = {
    "ix_deliveries_waiting",
    "ix_deliveries_waiting_in",
    "ix_deliveries_work",
    "ix_deliveries_parked",
    "ix_posts_unsent",
    "ix_approvals_pending",
    "ix_approvals_pending_since",
    "ix_clarifications_open",
    "ix_clarifications_open_for",
    "ix_sign_ins_open",
    "ix_sign_ins_open_for",
    "ix_attempts_undecided",
    "ix_attempts_undecided_for",
    "ix_authorizations_code",
    "ix_authorizations_open",
    "ix_connections_ended",
}
"""Indexes whose rows leave them when they are done with: reading one through is reading what is open."""

_SCAN = re.compile(r"^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")


class Executed(NamedTuple):
    """One statement."""

    sql: str
    parameters: Any


@contextmanager
def recording(engine: sa.Engine) -> Iterator[list[Executed]]:
    """What is executed while the block runs."""
    found: list[Executed] = []

    def note(_connection: Any, _cursor: Any, sql: str, parameters: Any, *_: Any) -> None:
        if sql.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE", "INSERT"}:
            found.append(Executed(sql, parameters))

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def plan(connection: sqlite3.Connection, statement: Executed) -> list[str]:
    """SQLite's own words for how it executes a statement."""
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.parameters)
    return [str(row[3]) for row in rows]


def scans(steps: Iterable[str]) -> list[str]:
    """Those steps that read a whole table, or a whole index of one, whose rows stay for ever."""
    growing = set(metadata.tables) - SMALL
    found = []
    for step in steps:
        scan = _SCAN.match(step)
        if scan and scan[1] in growing and scan[2] not in OF_OPEN_ROWS:
            found.append(step)
    return found


def sorts(steps: Iterable[str]) -> list[str]:
    """Those steps that collect all rows before the first one comes out."""
    return [step for step in steps if "TEMP B-TREE" in step]
