"""One SQLite file, opened for each piece of work.

A connection per call costs less than a millisecond and leaves nothing to share between threads; SQLite's own locks
keep parallel calls, and parallel processes, apart.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

LOCK_TIMEOUT = 10.0
"""Seconds to wait for another writer before giving up."""


def create(path: Path, schema: str) -> None:
    """Make the file and its folder when they are missing, and bring the tables into it.

    Raises `OSError` or `sqlite3.Error` when the file cannot be used.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)  # SQLite makes what it puts beside it as private
    with closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema)


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for looking only; rows can be read by column name."""
    with closing(_connect(path)) as connection:
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction that holds the write lock from its start: what it reads cannot change before it writes."""
    with closing(_connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
