"""How SQLite executes the statements of the records."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

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
    "ix_plans_open",
    "ix_sign_ins_open",
    "ix_sign_ins_open_for",
    "ix_attempts_undecided",
    "ix_attempts_undecided_for",
    "ix_authorizations_code",
    "ix_authorizations_open",
    "ix_connections_ended",
    "ix_halts_open",
}
"""Indexes whose rows leave them when they are done with: reading one through is reading what is open."""

_SCAN = re.compile(r"^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")


class Executed(NamedTuple):
    """One statement."""

    sql: str
    parameters: Any


def recording(file: Path) -> tuple[sa.Engine, list[Executed]]:
    """An engine over a file, and what is executed on its connections, by whatever way."""
    found: list[Executed] = []

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE", "INSERT"}:
                found.append(Executed(sql, parameters))
            return super().execute(sql, parameters)

    class Connection(sqlite3.Connection):
        def cursor(self, *_: Any) -> Any:
            return super().cursor(Cursor)

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            made: sqlite3.Cursor = self.cursor()
            return made.execute(sql, parameters)

    return sa.create_engine(f"sqlite:///{file}", poolclass=NullPool, connect_args={"factory": Connection}), found


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
