"""Opens the records and the checkpoints together, since the one relies on the other, and migrates the schema."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import structlog
from sqlalchemy.pool import NullPool

from bot.data_folder import private_file
from bot.records import tables  # noqa: F401  # its tables stand in the same metadata
from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from bot.records.database import Database
from bot.records.sqlite import sqlite_database
from bot.records.tables import metadata

if TYPE_CHECKING:
    from bot.records.postgres_checkpoints import PostgresCheckpoints


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept on disk."""

    database: Database
    checkpoints: Checkpoints | PostgresCheckpoints


@asynccontextmanager
async def open_records(file: Path) -> AsyncIterator[Records]:
    """The records in a SQLite file, migrated, with the checkpoints beside it.

    Raises `NewerSchemaError` and `DamagedFileError`.
    """
    beside = file.with_suffix(".checkpoints.db")
    async with AsyncExitStack() as stack:
        with told_when_damaged(file, moved_away=f"Without it (and {beside.name}, then) everything begins anew."):
            await asyncio.to_thread(upgrade_sqlite, file)
        with told_when_damaged(
            beside, moved_away="Without it conversations begin anew, and what waits for people in them is void."
        ):
            checkpoints = await stack.enter_async_context(sqlite_checkpoints(beside))
        database = sqlite_database(file, foundation=checkpoints)
        with told_when_damaged(file, moved_away=f"Without it (and {beside.name}, then) everything begins anew."):
            await database.open()
        stack.push_async_callback(database.close)
        yield Records(database, checkpoints)


@asynccontextmanager
async def open_postgres_records(address: str, *, most_connections: int) -> AsyncIterator[Records]:
    """The records and the checkpoints in one PostgreSQL database (`postgresql://…`), migrated. Other processes may use
    them at the same time. `most_connections`: at once, for the records and for the checkpoints each.

    Raises `NewerSchemaError`, and what SQLAlchemy raises when the database cannot be reached.
    """
    from bot.records.postgres_checkpoints import postgres_checkpoints  # noqa: PLC0415  # SQLite has no use for it
    from bot.records.postgresql import postgres_database  # noqa: PLC0415  # the same

    await asyncio.to_thread(upgrade_postgres, address)
    async with AsyncExitStack() as stack:
        made = postgres_checkpoints(address, most_connections=most_connections)
        checkpoints = await stack.enter_async_context(made)
        database = postgres_database(address, most_connections=most_connections)
        stack.push_async_callback(database.close)
        await database.open()
        yield Records(database, checkpoints)


# ----------------------------------------------------------------------------------------- the schema
log = structlog.get_logger(__name__)
NEWEST_REVISION = "0010"
"""The newest revision in `migrations/versions`; a test keeps it true."""


class NewerSchemaError(Exception):
    """The database was made by a newer version of the program."""


def upgrade_sqlite(path: Path) -> None:
    """Migrate the file to `NEWEST_REVISION`; makes it when it is missing. Blocks: call it in a thread.

    Alembic is imported only when there is something to migrate, since that costs a third of a second at every start.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    private_file(path)
    revision = _revision(path)
    if revision == NEWEST_REVISION:
        return
    if revision is not None and revision > NEWEST_REVISION:
        raise NewerSchemaError(
            f"{path} was made by a newer version of Countersign (schema {revision}; this version knows "
            f"{NEWEST_REVISION}). Start that version, or restore a backup."
        )
    if revision is not None:
        log.info("records_upgrading", schema=revision, to=NEWEST_REVISION, megabytes=path.stat().st_size // 1_000_000)
    began = time.monotonic()
    engine = sa.create_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            # The driver begins nothing by itself before a CREATE TABLE: without this, a process that is killed here
            # would leave half a schema behind, on which no later start could build.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if revision is None and not sa.inspect(connection).get_table_names():
                _make(connection)
            else:
                upgrade(connection)
    finally:
        engine.dispose()
    if revision is not None:
        log.info("records_upgraded", schema=NEWEST_REVISION, seconds=round(time.monotonic() - began, 1))


def _make(connection: sa.Connection) -> None:
    """The present schema in an empty database, as all migrations together would leave it (a test compares them)."""
    metadata.create_all(connection)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc "
        "PRIMARY KEY (version_num))"
    )
    connection.execute(
        sa.text("INSERT INTO alembic_version (version_num) VALUES (:newest)"), {"newest": NEWEST_REVISION}
    )


_UPGRADE_LOCK = 6_723_941_208
"""Number of PostgreSQL's advisory lock around upgrades."""
UPGRADE_SECONDS = 600.0
"""How long a start waits for another process that upgrades the schema."""
_UPGRADE_PAUSE = 0.1


def upgrade_postgres(address: str) -> None:
    """Migrate the database at this address to `NEWEST_REVISION`, and the checkpoints' tables to what the saver needs;
    makes the tables when there are none. Blocks: call it in a thread. Several processes may do it at once. Raises
    `NewerSchemaError`, and what SQLAlchemy and the driver raise."""
    from bot.records import postgres_checkpoints  # noqa: PLC0415  # SQLite has no use for it

    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as guard:
        deadline = time.monotonic() + UPGRADE_SECONDS
        # Not the lock that waits by itself: it would hold a transaction open, for which building an index waits.
        while not guard.scalar(sa.text("SELECT pg_try_advisory_lock(:number)"), {"number": _UPGRADE_LOCK}):
            if time.monotonic() > deadline:
                raise TimeoutError("another process has been upgrading the records for ten minutes")
            time.sleep(_UPGRADE_PAUSE)
        with engine.begin() as connection:
            _upgrade_postgres(connection)
            _upgrade_jobs(connection)
            postgres_checkpoints.make_guard(connection)
        driver: Any = guard.connection.driver_connection
        postgres_checkpoints.make_tables(driver)


_JOBS_VERSION = "SELECT obj_description('procrastinate_jobs'::regclass)"


def _upgrade_jobs(connection: sa.Connection) -> None:
    """The tables of Procrastinate, and the indexes that its jobs need. Which of its migrations they have had stands in
    the comment on one of them. Those that take something away ("post") are left out: processes of the version before
    may still run."""
    from importlib.resources import files  # noqa: PLC0415  # only where there are jobs

    from bot.records.places import INDEXES  # noqa: PLC0415  # only where there are jobs

    scripts = files("procrastinate.sql")
    names = sorted(each.name for each in (scripts / "migrations").iterdir() if each.name.endswith(".sql"))
    applied = None
    if connection.scalar(sa.text("SELECT to_regclass('procrastinate_jobs')")) is None:
        connection.exec_driver_sql((scripts / "schema.sql").read_text().replace("%", "%%"))
    else:
        applied = connection.scalar(sa.text(_JOBS_VERSION))
        for name in names:
            if applied is not None and name > applied and "_post_" not in name:
                connection.exec_driver_sql((scripts / "migrations" / name).read_text().replace("%", "%%"))
    if applied != names[-1]:
        connection.exec_driver_sql(f"COMMENT ON TABLE procrastinate_jobs IS '{names[-1]}'")
    for index in INDEXES:
        connection.exec_driver_sql(index)


def _upgrade_postgres(connection: sa.Connection) -> None:
    names = sa.inspect(connection).get_table_names()
    if "alembic_version" not in names:
        _make(connection)
        return
    revision = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    if revision is not None and revision > NEWEST_REVISION:
        raise NewerSchemaError(
            f"The database was made by a newer version of Countersign (schema {revision}; this version knows "
            f"{NEWEST_REVISION}). Start that version, or restore a backup."
        )
    if revision != NEWEST_REVISION:
        upgrade(connection)


def upgrade(connection: sa.Connection) -> None:
    """Migrate a database to `NEWEST_REVISION` in the connection's transaction."""
    from alembic import command  # noqa: PLC0415  # costly, and rarely needed

    command.upgrade(alembic_config(connection), NEWEST_REVISION)


def alembic_config(connection: sa.Connection) -> Any:
    """Alembic's configuration, without an ini file."""
    from alembic.config import Config  # noqa: PLC0415  # costly, and rarely needed

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def _revision(path: Path) -> str | None:
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:
            return None
    return row[0] if row else None


# -------------------------------------------------------------------------------------- damaged files
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
