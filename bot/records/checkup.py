"""Whether the records can be reached and read by this version, looked at without a lock and without a change."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from bot.audit.entries import in_utc
from bot.file_checkup import is_there
from bot.findings import Finding, HeardTimes, doubtful, fine, wrong
from bot.records.addresses import shown_address, sqlite_file
from bot.records.audit_pushes import PushRow
from bot.records.database import reader
from bot.records.memory_store import memory_file
from bot.records.startup import NEWEST_REVISION, NewerSchemaError, check_newer
from bot.records.tables import audit, audit_pushes, connections, halts, metadata, oauth_clients, sign_ins

_DATABASE, _SCHEMA, _STOP, _SEALED, _PUSH = "database", "schema", "stop", "encryption key", "audit push"
_UP = ".venv/bin/python app.py migrate up"
_SECONDS = 5
_READING_SECONDS = 2.0
"""For each file of SQLite: some gigabytes of one that was read lately. Our own choice: all looks together have 14."""
_BETWEEN_LOOKS = 1_000
"""Steps of SQLite between two looks at the time: some tens of microseconds."""
MOST_SEALED = 200
"""Rows of each kind that are tried: who has lost the key cannot open one of them."""
SealedColumn = tuple[sa.ColumnElement[str], sa.ColumnElement[bool]]
"""A column that holds what is sealed, and of which rows it is still needed."""
_IN_USE: tuple[SealedColumn, ...] = (
    (connections.c.sealed_tokens, connections.c.status == "active"),
    (oauth_clients.c.sealed_client, sa.true()),
    (sign_ins.c.sealed_link, sign_ins.c.status == "open"),
)
"""What is sealed and still needed. The rest may be older than a change of keys, and nobody opens it any more."""
Unseal = Callable[[str], str | None]


def record_findings(
    address: str, unseal: Unseal | None, times: HeardTimes, beside: Sequence[SealedColumn] = ()
) -> list[Finding]:
    """What there is to say of the records at an address. Blocks: call it in a thread.

    Args:
        unseal: opens what was sealed; `None`: there is no key.
        beside: what others keep sealed in tables of their own.
    """
    file = sqlite_file(address)
    if file is not None and not is_there(file):
        return [_before_the_first_start(file)]
    if file is not None and not file.is_file():
        return [wrong(_DATABASE, f"{file}: is not a file", "Set DATABASE_URL to another file.")]
    if file is not None and (closed := _not_ours(file.parent, file, *_companions(file))) is not None:
        return [closed]
    try:
        with _opened(address) as connection:
            shown = shown_address(address)
            found = [fine(_DATABASE, f"{shown}: can be reached"), *_schema(connection, shown)]
            found += _server(connection, times) if file is None else _files(file)
            tables = sa.inspect(connection).get_table_names()
            if halts.name in tables:
                found += _stopped(connection, shown)
            found += _sealed(connection, unseal, [each for each in (*_IN_USE, *beside) if _is_kept(each, tables)])
            return found
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        return [_unreachable(address, file, getattr(error, "orig", error))]


def _before_the_first_start(file: Path) -> Finding:
    """Whether the file can be made."""
    place = Path(os.path.realpath(file))
    there = next(each for each in place.parents if is_there(each))
    if not there.is_dir():
        return wrong(
            _DATABASE,
            f"{file}: cannot be made, since {there} is not a folder",
            "Set DATABASE_URL to a file in a folder.",
        )
    if (closed := _not_ours(there)) is not None:
        return closed
    if place.is_symlink():
        return wrong(_DATABASE, f"{file}: is a link to itself", "Set DATABASE_URL to another file.")
    return fine(_DATABASE, f"{file}: is made at the first start")


def _not_ours(folder: Path, *files: Path) -> Finding | None:
    """Which of a folder of records and the files in it this user may not write; `None`: it may write all that is
    there."""
    ways = [(folder, os.W_OK | os.X_OK), *((each, os.R_OK | os.W_OK) for each in files if is_there(each))]
    closed = next((path for path, way in ways if not os.access(path, way, effective_ids=True)), None)
    if closed is None:
        return None
    if os.statvfs(closed).f_flag & os.ST_RDONLY:
        remedy = "Mount it for writing again (dmesg says why it is so), or set DATABASE_URL to another folder."
        return wrong(_DATABASE, f"{closed}: its file system is mounted read-only", remedy)
    user = os.geteuid()
    where = f"{closed}: cannot be written by the user who runs this ({user})"
    return wrong(_DATABASE, where, f"Start as its owner, set DATABASE_URL to another folder, or: chown {user} {closed}")


def push_findings(address: str, destination: str) -> list[Finding]:
    """How far the audit log was pushed to a destination (`bot.audit.pushing.destination_of`); nothing where the records
    cannot be read, which is found by itself. Blocks: call it in a thread."""
    file = sqlite_file(address)
    if file is not None and not file.is_file():
        return []
    try:
        with _opened(address) as connection:
            if not sa.inspect(connection).has_table(audit_pushes.name):
                return []
            row = connection.execute(
                sa.select(audit_pushes).where(audit_pushes.c.destination == destination)
            ).one_or_none()
            newest = connection.scalar(sa.select(sa.func.max(audit.c.seq))) or 0
    except (sa.exc.DBAPIError, sqlite3.Error):
        return []
    return [_pushed(_push_row(row) if row is not None else None, newest)]


_push_row = reader(PushRow)


def _pushed(row: PushRow | None, newest: int) -> Finding:
    pushed = row.seq if row is not None else 0
    count = f"{pushed:,} of {newest:,} entries were taken"
    if row is None or row.failing_since is None:
        return fine(_PUSH, f"AUDIT_PUSH_URL: {count}")
    where = f"AUDIT_PUSH_URL: {row.problem}, since {in_utc(row.failing_since)}; {count}"
    return wrong(_PUSH, where, "Compare AUDIT_PUSH_URL and AUDIT_PUSH_TOKEN with the SIEM: docs/operations.md#siem")


def _unreachable(address: str, file: Path | None, cause: object) -> Finding:
    if file is None:  # the driver's text names who connects to what, and never the password
        where = f"DATABASE_URL: PostgreSQL at {shown_address(address)} cannot be used: {str(cause).strip()[:300]}"
        return wrong(_DATABASE, where, "Start PostgreSQL, or set DATABASE_URL right: docs/deployment.md")
    where = f"{file} cannot be read: {cause}"
    return wrong(_DATABASE, where, "See docs/operations.md#lost-and-damaged-files; a backup is restored as said there.")


@contextmanager
def _opened(address: str) -> Iterator[sa.Connection]:
    """A connection that cannot write. Raises what SQLAlchemy and SQLite raise."""
    file = sqlite_file(address)
    if file is not None:
        engine = sa.create_engine("sqlite://", creator=lambda: _sqlite(file), poolclass=NullPool, hide_parameters=True)
    else:
        from bot.records.postgres_connections import reading_engine  # noqa: PLC0415  # SQLite has no use for it

        engine = reading_engine(address, "countersign doctor", connect_seconds=_SECONDS, statement_seconds=_SECONDS)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _sqlite(file: Path) -> sqlite3.Connection:
    """Read as it stands where nobody works with it: SQLite would make its own files beside it. What another process has
    written and not moved into the file yet is beside it, and is read with it."""
    beside = file.with_name(f"{file.name}-wal")
    how = "mode=ro" if beside.exists() and beside.stat().st_size else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(file.resolve()))}?{how}", uri=True, timeout=_SECONDS, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _schema(connection: sa.Connection, shown: str) -> list[Finding]:
    if "alembic_version" not in sa.inspect(connection).get_table_names():
        return [fine(_SCHEMA, f"{shown}: is empty; the first start makes the tables")]
    revision = str(connection.scalar(sa.text("SELECT version_num FROM alembic_version")))
    if revision == NEWEST_REVISION:
        return [fine(_SCHEMA, f"{shown}: is {revision}, as this version needs it")]
    if revision > NEWEST_REVISION:
        try:
            check_newer(connection, revision)
        except NewerSchemaError as error:
            return [wrong(_SCHEMA, str(error), "Start the newer version, or restore a backup: docs/operations.md")]
        return [fine(_SCHEMA, f"{shown}: is {revision}, newer than {NEWEST_REVISION}, and this version can use it")]
    where = f"{shown}: is {revision}, and this version needs {NEWEST_REVISION}: the next start upgrades it"
    return [doubtful(_SCHEMA, where, f"Make a backup, then start, or: {_UP}")]


def _files(file: Path) -> list[Finding]:
    """Whether the records, and the checkpoints and the memories, which have files of their own, are whole."""
    found = []
    for each in (file, *_companions(file)):
        if each.exists():
            try:
                # A second look is at another moment, if somebody was just writing.
                damage = _damage(each) and _damage(each)
            except sqlite3.Error as error:
                damage = str(error)
            if damage:
                found.append(_unreachable(str(each), each, damage))
    return found


def _damage(file: Path) -> str:
    """What is damaged in a file, as far as it is read in `_READING_SECONDS`; empty: nothing. Raises what SQLite
    raises."""
    until = monotonic() + _READING_SECONDS
    with closing(_sqlite(file)) as connection:
        connection.set_progress_handler(lambda: monotonic() > until, _BETWEEN_LOOKS)
        try:
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.OperationalError:
            if monotonic() > until:
                return ""
            raise
    return "" if said == "ok" else said.splitlines()[-1]


def _companions(file: Path) -> tuple[Path, Path]:
    return file.with_suffix(".checkpoints.db"), memory_file(file)


_RIGHTS = sa.text("""
SELECT current_user AS role, current_database() AS database, pg_is_in_recovery() AS follows,
    current_setting('default_transaction_read_only') = 'on' AS reads_only, current_schema() AS schema,
    has_schema_privilege(current_schema(), 'CREATE') AS may_make,
    (SELECT 'write to the table ' || min(relname) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND (relname = ANY(:tables) OR relname ~ '^(checkpoint|procrastinate)')
        AND NOT (has_table_privilege(oid, 'INSERT')
            AND (relname = 'audit' OR has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')))
    ) AS closed,
    (SELECT 'use the sequence ' || min(numbers.relname) FROM pg_class AS numbers
        JOIN pg_depend ON objid = numbers.oid AND deptype = 'a' JOIN pg_class AS numbered ON numbered.oid = refobjid
        WHERE numbers.relnamespace = current_schema()::regnamespace AND classid = 'pg_class'::regclass
        AND (numbered.relname = ANY(:tables) OR numbered.relname ~ '^procrastinate')
        AND CASE WHEN numbers.relkind = 'S' THEN NOT has_sequence_privilege(numbers.oid, 'USAGE') END
    ) AS closed_numbers
""")
"""What the role may do with our tables, those of the libraries, and what numbers their rows: a right to a table is none
to its sequence. The audit log is only added to."""


def _server(connection: sa.Connection, times: HeardTimes) -> list[Finding]:
    """What only a server can do wrong. Each start makes the tables that are missing, and fails without the right to."""
    now = connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())"))
    times.heard("PostgreSQL", float(now or 0))
    found = connection.execute(_RIGHTS, {"tables": list(metadata.tables)}).one()
    if found.follows:
        where = "DATABASE_URL: leads to a server that takes no writes"
        return [wrong(_DATABASE, where, "Name the primary, or several servers: docs/deployment.md")]
    if found.reads_only:
        where = f"DATABASE_URL: {found.role} can only read in {found.database} (default_transaction_read_only)"
        remedy = "Look why: services set it while their disk is full. Else: ALTER DATABASE or ALTER ROLE … RESET …"
        return [wrong(_DATABASE, where, remedy)]
    schema = found.schema or "the schema public"
    remedy = f"Let it own them: ALTER DATABASE {found.database} OWNER TO {found.role}; and its tables likewise."
    if not found.may_make:
        return [wrong(_DATABASE, f"DATABASE_URL: {found.role} may not make tables in {schema}", remedy)]
    if closed := found.closed or found.closed_numbers:
        return [wrong(_DATABASE, f"DATABASE_URL: {found.role} may not {closed}", remedy)]
    return []


def _stopped(connection: sa.Connection, shown: str) -> list[Finding]:
    """Whether an operator has stopped everything. Not why: that is in their own words, and may hold anything."""
    row = connection.execute(sa.select(halts.c.person_id, halts.c.at).where(halts.c.ended_at.is_(None))).first()
    if row is None:
        return []
    where = f"{shown}: {row.person_id} has stopped everything, since {in_utc(row.at)}: nothing runs"
    return [doubtful(_STOP, where, "An operator lets it go on: docs/operations.md#stopping-everything")]


def _is_kept(sealed: SealedColumn, tables: Collection[str]) -> bool:
    """Whether there are tables for it: older versions, and installations without a use for it, have none."""
    return all(each.name in tables for each in sa.select(*sealed).get_final_froms() if isinstance(each, sa.Table))


def _sealed(connection: sa.Connection, unseal: Unseal | None, columns: Sequence[SealedColumn]) -> list[Finding]:
    if not columns:
        return []
    tried = lost = 0
    for column, needed in columns:
        for (sealed,) in connection.execute(sa.select(column).where(needed).limit(MOST_SEALED)):
            tried += 1
            lost += unseal is None or unseal(sealed) is None
    if not lost:
        return [fine(_SEALED, f"opens all {tried} that were tried" if tried else "nothing is sealed yet")]
    where = f"ENCRYPTION_KEY: {lost} of {tried} sealed tokens and links cannot be opened with it"
    remedy = "Put the right key back, behind a comma after the new one: docs/accounts.md#keys-and-their-rotation"
    return [wrong(_SEALED, where, remedy)]
