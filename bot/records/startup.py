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

from bot.data_folder import folder_lock, private_file
from bot.records import tables  # noqa: F401  # its tables stand in the same metadata
from bot.records.addresses import sqlite_file
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
        with told_when_damaged(
            file, moved_away=f"Without it (and {beside.name}, then) everything starts from nothing."
        ):
            await asyncio.to_thread(upgrade_sqlite, file)
        with told_when_damaged(
            beside, moved_away="Without it conversations start again, and open requests in them are void."
        ):
            checkpoints = await stack.enter_async_context(sqlite_checkpoints(beside))
        database = sqlite_database(file, foundation=checkpoints)
        with told_when_damaged(
            file, moved_away=f"Without it (and {beside.name}, then) everything starts from nothing."
        ):
            await database.open()
        stack.push_async_callback(database.close)
        yield Records(database, checkpoints)


@asynccontextmanager
async def open_postgres_records(address: str, *, most_connections: int) -> AsyncIterator[Records]:
    """The records and the checkpoints in one PostgreSQL database (`postgresql://…`), migrated. Other processes may use
    them at the same time. `most_connections`: at once, for the records and for the checkpoints each.

    Raises `NewerSchemaError`, `SettingsDroppedError`, and what SQLAlchemy raises when the database cannot be reached.
    """
    from bot.records.postgres_checkpoints import postgres_checkpoints  # noqa: PLC0415  # SQLite has no use for it
    from bot.records.postgresql import postgres_database  # noqa: PLC0415  # the same

    await asyncio.to_thread(upgrade_postgres, address)
    async with AsyncExitStack() as stack:
        made = postgres_checkpoints(address, most_connections=most_connections)
        checkpoints = await stack.enter_async_context(made)
        database = postgres_database(address, checkpoints, most_connections=most_connections)
        stack.push_async_callback(database.close)
        await database.open()
        await _check_limits(database)
        yield Records(database, checkpoints)


class SettingsDroppedError(Exception):
    """What stands between this process and PostgreSQL does not pass on how a connection is to be; the message says what
    to do."""


async def _check_limits(database: Database) -> None:
    """Poolers may leave out what a connection asks for when it begins. Then a process that stands still keeps what it
    has locked, and everybody waits for it without end."""
    async with database.reading() as tx:
        row = await tx.one(sa.text("SELECT current_setting('idle_in_transaction_session_timeout')"))
    if row is None or row[0] == "0":
        raise SettingsDroppedError(
            "DATABASE_URL: a pooler drops the time limits of connections (pgbouncer: ignore_startup_parameters). "
            "Connect to PostgreSQL directly: each process has a pool of its own."
        )


# ----------------------------------------------------------------------------------------- the schema
log = structlog.get_logger(__name__)
NEWEST_REVISION = "0024"
"""The newest revision in `migrations/versions`; a test keeps it true."""
OLDEST_PROGRAM = "0010"
"""The newest revision that the oldest program knows which can work with PostgreSQL's present schema, beside this
program and after it. Each revision after it only adds what that program can do without; a test sees to it. One that
takes something away raises this, and programs before it do not start any more."""


class NewerSchemaError(Exception):
    """The database was made by a newer version of the program."""


class UpgradeError(Exception):
    """The records could not be upgraded; the message says why."""


def upgraded_records(address: str) -> str:
    """Upgrade the records at an address; the revision that they then have. Blocks. Raises `FolderInUseError`,
    `NewerSchemaError` and `UpgradeError`."""
    file = sqlite_file(address)
    try:
        if file is None:
            return upgrade_postgres(address)
        with folder_lock(file.resolve().parent):
            upgrade_sqlite(file)
    except TimeoutError as error:
        raise UpgradeError(f"DATABASE_URL: {error}") from error
    except sa.exc.DBAPIError as error:
        raise UpgradeError(f"DATABASE_URL: the records cannot be upgraded: {error.orig}") from error
    return NEWEST_REVISION


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


_LOCK_SECONDS = 2
"""How long a migration waits for a table that others use. Whoever wants it next waits behind the migration."""
_LOCK_PAUSE = 1.0
_IN_USE = {"55P03", "40P01"}
"""SQLSTATEs of a lock that was waited for too long, and of two who wait for each other."""
_WORKS_FROM = "works from revision "


def upgrade_postgres(address: str) -> str:
    """Migrate the database at this address to `NEWEST_REVISION`, and the tables of checkpoints and memories to what
    LangGraph needs; makes the tables when there are none. Returns the revision that it then has: a newer one is left as
    it is, if this program can work with it. Blocks: call it in a thread. Several processes may do it at once, also
    while others work with the database. Raises `NewerSchemaError`, and what SQLAlchemy and the driver raise."""
    import psycopg  # noqa: PLC0415  # SQLite has no use for it

    from bot.records import postgres_checkpoints, postgres_memory_store  # noqa: PLC0415  # the same
    from bot.records.postgres_connections import CONNECT_SECONDS, connection_parameters  # noqa: PLC0415  # the same

    settings = {"connect_timeout": CONNECT_SECONDS, "application_name": "countersign"}
    parameters = connection_parameters(address, settings)
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(**parameters), poolclass=NullPool
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as guard:
        deadline = time.monotonic() + UPGRADE_SECONDS
        # Not the lock that waits by itself: it would hold a transaction open, for which building an index waits.
        while not guard.scalar(sa.text("SELECT pg_try_advisory_lock(:number)"), {"number": _UPGRADE_LOCK}):
            if time.monotonic() > deadline:
                raise TimeoutError("another process has been upgrading the records for ten minutes")
            time.sleep(_UPGRADE_PAUSE)
        while (revision := _upgraded(engine)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the tables have been in use for ten minutes, so the records could not be upgraded")
            time.sleep(_LOCK_PAUSE)
        if revision == NEWEST_REVISION:
            _make_indexes(guard)
            driver: Any = guard.connection.driver_connection
            postgres_checkpoints.make_tables(driver)
            postgres_memory_store.make_store_tables(driver)
        return revision


def _upgraded(engine: sa.Engine) -> str | None:
    """The revision after one try; `None`: others kept a table in use for too long, and nothing was changed."""
    from bot.records import beginnings, live_answers, postgres_checkpoints  # noqa: PLC0415  # SQLite has no use for them

    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            revision = _upgrade_postgres(connection)
            if revision == NEWEST_REVISION:
                _upgrade_jobs(connection)
                postgres_checkpoints.make_marker(connection)
                beginnings.make_counter(connection)
                connection.exec_driver_sql(live_answers.TABLE)
            return revision
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) not in _IN_USE:
            raise
        log.info("records_in_use", note="the upgrade waits, and is tried again")
        return None


_JOBS_VERSION = "SELECT obj_description('procrastinate_jobs'::regclass)"


def _upgrade_jobs(connection: sa.Connection) -> None:
    """The tables of Procrastinate. Which of its migrations they have had stands in the comment on one of them. Those
    that take something away ("post") are left out: processes of the version before may still run."""
    from importlib.resources import files  # noqa: PLC0415  # only where there are jobs

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
    if applied is None or applied < names[-1]:  # never back: the one who has made newer ones comes again
        connection.exec_driver_sql(f"COMMENT ON TABLE procrastinate_jobs IS '{names[-1]}'")


_IS_WHOLE = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def _make_indexes(guard: sa.Connection) -> None:
    """The indexes that no migration makes. `guard`: commits each statement. Even one that finds its index there locks
    the table first: with two such locks in one transaction, a start and a process that writes would wait for each
    other."""
    from bot.records import places, prefixes  # noqa: PLC0415  # only PostgreSQL has them

    for name, content in places.INDEXES.items():
        if guard.scalar(sa.text("SELECT to_regclass(:name)"), {"name": name}) is None:
            guard.exec_driver_sql(f"CREATE INDEX {name} ON {content}")
    for name, content in prefixes.INDEXES.items():  # over all rows, which others go on writing
        is_whole = guard.scalar(_IS_WHOLE, {"name": name})
        if is_whole is False:  # building it broke off
            guard.exec_driver_sql(f"DROP INDEX CONCURRENTLY {name}")
        if not is_whole:
            guard.exec_driver_sql(f"CREATE INDEX CONCURRENTLY {name} ON {content}")


def _upgrade_postgres(connection: sa.Connection) -> str:
    if "alembic_version" not in sa.inspect(connection).get_table_names():
        _make(connection)
    else:
        revision = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
        if revision is not None and revision > NEWEST_REVISION:
            check_newer(connection, revision)
            return str(revision)
        if revision != NEWEST_REVISION:
            log.info("records_upgrading", schema=revision, to=NEWEST_REVISION)
            upgrade(connection)
            log.info("records_upgraded", schema=NEWEST_REVISION)
    # For older programs: they start on this schema, as those of them do that run already, or they say why not.
    told = _WORKS_FROM + OLDEST_PROGRAM
    if connection.scalar(sa.text(_TOLD)) != told:
        connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{told}'")
    return NEWEST_REVISION


_TOLD = "SELECT obj_description('alembic_version'::regclass)"


def check_newer(connection: sa.Connection, revision: str) -> None:
    """Raises `NewerSchemaError`, unless the newer program has said that this one can work with its schema."""
    told = (connection.scalar(sa.text(_TOLD)) if connection.dialect.name == "postgresql" else None) or ""
    if not told.startswith(_WORKS_FROM) or told.removeprefix(_WORKS_FROM) > NEWEST_REVISION:
        raise NewerSchemaError(
            f"The database was made by a newer version of Countersign (schema {revision}; this version knows "
            f"{NEWEST_REVISION}). Start that version, or restore a backup."
        )
    log.info("records_are_newer", schema=revision, known=NEWEST_REVISION)


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


def has_present_schema(path: Path) -> bool:
    """Whether a file needs no upgrade."""
    return _revision(path) == NEWEST_REVISION


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
