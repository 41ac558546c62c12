"""One SQLite file, opened for each piece of work.

A connection per call costs less than a millisecond and leaves nothing to share between threads; SQLite's own locks
keep parallel calls, and parallel processes, apart.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

LOCK_TIMEOUT = 10.0
"""Seconds to wait for another writer before giving up."""
AGAIN_SECONDS = 0.01
"""Until a lock is asked for again where SQLite itself does not wait."""


def create(path: Path, schema: str) -> None:
    """Make the file and its folder when they are missing, and bring the tables into it.

    Raises `OSError` or `sqlite3.Error` when the file cannot be used.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)  # SQLite makes what it puts beside it as private
    with closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT)) as connection:
        begin_log(connection.execute, _is_busy)
        connection.executescript(schema)


def begin_log(execute: Callable[[str], object], is_busy: Callable[[Exception], bool]) -> None:
    """Begin the write-ahead log of a database, as soon as others let go of it. Of several that begin at the same
    moment, SQLite refuses this to all but one, without the wait that it has for other locks.

    Args:
        execute: runs a statement.
        is_busy: whether what `execute` raised says that another process holds the lock.

    Raises what `execute` raises.
    """
    given_up = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            execute("PRAGMA journal_mode = WAL")
        except Exception as error:  # each SQLite library has its own
            if not is_busy(error) or time.monotonic() > given_up:
                raise
            time.sleep(AGAIN_SECONDS)  # at the start, before anything is served
        else:
            return


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


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
