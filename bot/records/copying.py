"""Copies an installation that was begun on SQLite to PostgreSQL: all of it in one transaction, or nothing.

Values go over as they lie in the file, so that JSON keeps its text (the audit log's hashes rest on it, and null is not
the same as nothing), and row by row, so that the records never have to fit into memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg
import sqlalchemy as sa
from langgraph.checkpoint.postgres import PostgresSaver
from sqlalchemy.pool import NullPool

from bot.audit.entries import Link, faults
from bot.data_folder import folder_lock
from bot.records.addresses import shown_address
from bot.records.audit import AuditReader, cause_of
from bot.records.memory_store import STORE_COLUMNS, STORE_TABLE, memory_file
from bot.records.postgres_checkpoints import CheckpointSerialiser, as_kept
from bot.records.startup import NEWEST_REVISION, NewerSchemaError, upgrade_postgres
from bot.records.tables import audit, metadata

Tables = Sequence[sa.Table]
CONNECT_SECONDS = 10
_PRODUCT = "countersign"
"""What the product's connections are called."""
_OF_LANGGRAPH = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", STORE_TABLE)
_WRITE_COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type"
_READ_CHECKPOINTS = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = :product AND pid != pg_backend_pid()
"""


class CopyError(Exception):
    """Nothing was copied; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied."""

    rows: dict[str, int]
    """By table."""
    newest: str
    """Number and hash of the audit log's last entry, with a colon between; empty: there is none."""
    faults: int
    """What was wrong with the audit log, in the file already."""
    left: Sequence[str]
    """Tables in the file that are none of ours."""


def copy_records(file: Path, address: str, further: Callable[[], Tables]) -> Copied:
    """Copy the records in a file, with the checkpoints and the memories beside it, to an empty database. Blocks: for a
    command only.

    Args:
        file: is not changed.
        address: of PostgreSQL.
        further: the tables that others keep beside the records; asked for only if there are such.

    Raises `CopyError`, `FolderInUseError` and `NewerSchemaError`.
    """
    if not file.is_file():
        raise CopyError(f"{file}: there are no records")
    beside = file.with_suffix(".checkpoints.db")
    if not beside.is_file():
        raise CopyError(
            f"{beside} is missing, which holds the agent's state. Restore it, or start Countersign on {file} once: "
            "then conversations start again, and open requests in them are void."
        )
    with (
        _told(file, address),
        folder_lock(file.resolve().parent),
        _reading(file) as records,
        _reading(beside) as checkpoints,
        _memories_beside(file) as memories,
    ):
        _check_schema(records, file)
        tables, left = _tables_in(records, further)
        with _connected(address) as connection:
            _check_target(connection, address, tables)
        if (revision := upgrade_postgres(address)) != NEWEST_REVISION:
            raise NewerSchemaError(
                f"The database was made by a newer version of Countersign (schema {revision}; this version knows "
                f"{NEWEST_REVISION}). Copy with that version."
            )
        with _connected(address) as connection:
            beside_it = _Beside(checkpoints, memories)
            return Copied(**_copy_all(records, beside_it, connection, address, tables), left=left)


# ------------------------------------------------------------------------------------------- what is refused


def _check_schema(records: sqlite3.Connection, file: Path) -> None:
    names = _names_in(records)
    row = records.execute("SELECT version_num FROM alembic_version").fetchone() if "alembic_version" in names else None
    if row is None:
        raise CopyError(f"{file}: there are no records in it")
    if row[0] > NEWEST_REVISION:
        raise NewerSchemaError(
            f"{file} was made by a newer version of Countersign (schema {row[0]}; this version knows "
            f"{NEWEST_REVISION}). Copy it with that version."
        )
    if row[0] < NEWEST_REVISION:
        raise CopyError(
            f"{file} was made by an older version of Countersign (schema {row[0]}; this version has "
            f"{NEWEST_REVISION}). Start this version on it once, which upgrades it; stop it; then copy."
        )


def _check_target(connection: sa.Connection, address: str, tables: Tables) -> None:
    """Raises `CopyError` unless nothing is in there and nobody works with it."""
    there = set(sa.inspect(connection).get_table_names())
    for name in (*(table.name for table in (*metadata.sorted_tables, *tables)), *_OF_LANGGRAPH):
        if name in there and connection.scalar(sa.text(f'SELECT EXISTS (SELECT FROM "{name}")')):  # noqa: S608 (our own)
            raise CopyError(f"{shown_address(address)} is not empty: there are rows in {name}. Copy to a new database.")
    if connection.scalar(sa.text(_OTHERS), {"product": _PRODUCT}):
        raise CopyError(f"A Countersign works with {shown_address(address)}. Stop it first.")


# ------------------------------------------------------------------------------------------------- copying


@dataclass(frozen=True, slots=True)
class _Beside:
    """The files beside the records."""

    checkpoints: sqlite3.Connection
    memories: sqlite3.Connection | None
    """`None`: nothing was ever remembered."""


def _copy_all(
    records: sqlite3.Connection,
    beside: _Beside,
    connection: sa.Connection,
    address: str,
    tables: Tables,
) -> dict[str, Any]:
    driver: psycopg.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    for table in tables:
        table.create(connection, checkfirst=True)
    _lock(connection, address, tables)
    _check_target(connection, address, tables)
    rows = {table.name: _copy_table(records, driver, table) for table in tables}
    rows |= _copy_checkpoints(beside.checkpoints, driver)
    if beside.memories is not None:
        rows[STORE_TABLE] = _copy_memories(beside.memories, driver)
    for table in tables:
        _set_counter(connection, table)
    found = list(faults(AuditReader(connection).links()))
    if found != list(faults(_links(records))):
        raise CopyError("The audit log is not the same in the copy: nothing was copied.")
    _check_counts(connection, rows)
    last = sa.select(audit.c.seq, audit.c.hash).order_by(audit.c.seq.desc()).limit(1)
    newest = connection.execute(last).first()
    return {"rows": rows, "newest": f"{newest.seq}:{newest.hash}" if newest else "", "faults": len(found)}


def _lock(connection: sa.Connection, address: str, tables: Tables) -> None:
    """Until the end nobody else writes there: neither a product that is started now, nor another copy."""
    names = ", ".join(f'"{name}"' for name in (*(table.name for table in tables), *_OF_LANGGRAPH))
    try:
        connection.execute(sa.text(f"LOCK TABLE {names} IN EXCLUSIVE MODE NOWAIT"))
    except sa.exc.OperationalError as error:
        raise CopyError(f"Something else works with {shown_address(address)}. Stop it first.") from error


def _copy_table(records: sqlite3.Connection, driver: psycopg.Connection, table: sa.Table) -> int:
    names = [row[1] for row in records.execute(f'PRAGMA table_info("{table.name}")')]
    if unknown := set(names) - {column.name for column in table.columns}:
        raise CopyError(f"The table {table.name} has columns that this version does not know: {sorted(unknown)}")
    truths = [isinstance(table.columns[name].type, sa.Boolean) for name in names]
    columns = ", ".join(f'"{name}"' for name in names)
    rows = records.execute(f'SELECT {columns} FROM "{table.name}"')  # noqa: S608 (our own)
    with driver.cursor() as cursor:
        return _streamed(cursor, table.name, columns, (_row(table.name, names, truths, row) for row in rows))


def _row(table: str, names: Sequence[str], truths: Sequence[bool], row: Sequence[Any]) -> Iterator[Any]:
    for name, is_truth, value in zip(names, truths, row, strict=True):
        if isinstance(value, bytes):
            raise CopyError(f"In the table {table}, the column {name} holds bytes where text belongs: it was changed")
        yield bool(value) if is_truth and value is not None else value


def _streamed(cursor: psycopg.Cursor[Any], table: str, columns: str, rows: Iterable[Iterable[Any]]) -> int:
    count = 0
    try:
        with cursor.copy(f'COPY "{table}" ({columns}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(tuple(row))
                count += 1
    except psycopg.DataError as error:
        # Without the value, which may be what somebody wrote.
        where = (error.diag.context or f"row {count + 1}").partition(":")[0]
        raise CopyError(
            f"Something in the table {table} does not fit into PostgreSQL ({type(error).__name__}; {where})."
        ) from None
    return count


def _copy_checkpoints(checkpoints: sqlite3.Connection, driver: psycopg.Connection) -> dict[str, int]:
    """LangGraph divides a checkpoint otherwise in PostgreSQL, so its own saver writes it. What tasks wrote since is the
    same bytes in both, and keeps its places among the writes of its task, which the saver would count anew."""
    saver = PostgresSaver(cast("psycopg.Connection[Any]", driver), serde=CheckpointSerialiser())
    count = 0
    for thread_id, namespace, checkpoint_id, parent, kind, value, described in checkpoints.execute(_READ_CHECKPOINTS):
        checkpoint = saver.serde.loads_typed((kind, value))
        place = {"thread_id": thread_id, "checkpoint_ns": namespace}
        if parent is not None:
            place["checkpoint_id"] = parent
        try:
            saver.put(
                {"configurable": place},
                as_kept(checkpoint),
                json.loads(described) if described is not None else {},
                checkpoint["channel_versions"],
            )
        except psycopg.DataError as error:
            raise CopyError(
                f"The checkpoint {checkpoint_id} of {thread_id} does not fit into PostgreSQL ({type(error).__name__})."
            ) from None
        count += 1
    rows = checkpoints.execute(f"SELECT {_WRITE_COLUMNS}, value FROM writes")  # noqa: S608 (our own)
    with driver.cursor() as cursor:
        written = _streamed(cursor, "checkpoint_writes", f"{_WRITE_COLUMNS}, blob", rows)
    return {"checkpoints": count, "checkpoint_writes": written}


def _copy_memories(memories: sqlite3.Connection, driver: psycopg.Connection) -> int:
    """LangGraph keeps the same columns in both. SQLite's times have no zone: they are UTC."""
    if STORE_TABLE not in _names_in(memories):
        return 0
    rows = memories.execute(f"SELECT {STORE_COLUMNS} FROM {STORE_TABLE}")  # noqa: S608 (our own)
    with driver.cursor() as cursor:
        return _streamed(cursor, STORE_TABLE, STORE_COLUMNS, map(_with_zones, rows))


def _with_zones(row: Sequence[Any]) -> Sequence[Any]:
    prefix, key, value, created, updated, *ends = row
    value = value.decode() if isinstance(value, bytes) else value
    return (prefix, key, value, f"{created}+00", f"{updated}+00", *ends)


def _set_counter(connection: sa.Connection, table: sa.Table) -> None:
    """The numbers that PostgreSQL gives from now on are higher than all that are there."""
    for column in table.primary_key:
        counter = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, column.name)))
        highest = connection.scalar(sa.select(sa.func.max(column))) if counter is not None else None
        if highest is not None:
            connection.execute(sa.select(sa.func.setval(counter, highest)))


def _check_counts(connection: sa.Connection, rows: dict[str, int]) -> None:
    for name, count in rows.items():
        there = connection.scalar(sa.text(f'SELECT count(*) FROM "{name}"'))  # noqa: S608 (our own)
        if there != count:
            raise CopyError(f"{there} rows of {count} arrived in the table {name}: nothing was copied.")


# --------------------------------------------------------------------------------------------- both ends


def _tables_in(records: sqlite3.Connection, further: Callable[[], Tables]) -> tuple[list[sa.Table], list[str]]:
    """The tables to copy, and the names of those that are not ours."""
    names = _names_in(records) - {"alembic_version", *metadata.tables}
    others = [table for table in further() if table.name in names] if names else []
    left = names - {table.name for table in others}
    return [*metadata.sorted_tables, *others], sorted(left)


def _names_in(records: sqlite3.Connection) -> set[str]:
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return {name for (name,) in records.execute(named)}


def _links(records: sqlite3.Connection) -> Iterator[Link]:
    for row in records.execute("SELECT seq, key, entry, previous, hash FROM audit ORDER BY seq"):
        yield Link(**dict(zip(("seq", "key", "entry", "previous", "hash"), row, strict=True)))


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """The file as it is at one moment."""
    with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN")
        yield connection


@contextmanager
def _memories_beside(file: Path) -> Iterator[sqlite3.Connection | None]:
    beside = memory_file(file)
    if not beside.is_file():
        yield None
        return
    with _reading(beside) as memories:
        yield memories


@contextmanager
def _connected(address: str) -> Iterator[sa.Connection]:
    """One transaction on the target."""
    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(
            address, connect_timeout=CONNECT_SECONDS, application_name=f"{_PRODUCT} migrate copy"
        ),
        poolclass=NullPool,
        hide_parameters=True,
    )
    with engine.begin() as connection:
        yield connection


@contextmanager
def _told(file: Path, address: str) -> Iterator[None]:
    """Raises `CopyError` for what either database says within it."""
    try:
        yield
    except sqlite3.Error as error:
        raise CopyError(f"{file}, or a file beside it, cannot be read: {error}") from error
    except sa.exc.DBAPIError as error:
        raise CopyError(f"{shown_address(address)} cannot be used: {cause_of(error)}") from error
    except psycopg.Error as error:
        cause = error.diag.message_primary or " ".join(str(error).split())  # not its detail, which has values
        raise CopyError(f"{shown_address(address)} cannot be used: {cause}") from error
