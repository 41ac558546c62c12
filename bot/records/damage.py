"""Files of the records that SQLite cannot read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class DamagedFileError(Exception):
    """A file cannot be read as a database; the message says which, and what to do."""


@contextmanager
def told_when_damaged(file: Path, *, moved_away: str) -> Iterator[None]:
    """Raises `DamagedFileError` for what SQLite says of a damaged file within it. `moved_away`: what it means to start
    without the file, as a sentence."""
    try:
        yield
    except (sqlite3.DatabaseError, sa.exc.DatabaseError) as error:
        cause = error.orig if isinstance(error, sa.exc.DatabaseError) else error
        # The lower byte is the kind of error (https://sqlite.org/rescode.html, extended result codes).
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise
        raise DamagedFileError(
            f"{file} is damaged ({cause}). Restore it from a backup, or move it away with the files {file.name}-wal "
            f"and {file.name}-shm beside it, if there are any. {moved_away}"
        ) from error
