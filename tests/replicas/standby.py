"""A second server that follows a cluster, and takes its place."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError

import psycopg
import sqlalchemy as sa

from tests.replicas.cluster import Cluster


class Standby:
    """Has all that its cluster has said is committed (synchronous replication)."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self.folder = folder

    def address_of_both(self, address: str) -> str:
        """The address of a database, with both servers: first the cluster, then this one."""
        url = sa.make_url(address)
        hosts = f"{url.query['host']},{self.folder}"
        both = url.set(query={"host": hosts, "port": "5432,5432", "target_session_attrs": "read-write"})
        return both.render_as_string(hide_password=False)

    async def promote(self) -> None:
        """From now on it takes writes."""
        await asyncio.to_thread(self._control, "promote")

    def begin(self) -> None:
        """Copy the cluster and follow it. Blocks."""
        where = ("-h", str(self._cluster.folder), "-U", "postgres")
        self._cluster.run("pg_basebackup", "-D", str(self.folder), "-R", "-c", "fast", "-X", "stream", *where)
        for lock in self.folder.glob(".s.PGSQL.*"):  # the cluster has its socket among its data
            lock.unlink()
        self._control("-o", f"-h '' -k {self.folder}", "-l", str(self.folder / "log"), "start")
        self._of_cluster("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")

    def end(self) -> None:
        """Stop it, and have the cluster wait for nobody any more. Blocks."""
        with suppress(CalledProcessError):
            self._control("-m", "immediate", "stop")
        self._cluster.ensure_running()
        self._of_cluster("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    def _of_cluster(self, *statements: str) -> None:
        with psycopg.connect(self._cluster.address_of("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _control(self, *arguments: str) -> None:
        self._cluster.run("pg_ctl", "-w", "-D", str(self.folder), *arguments)


@asynccontextmanager
async def standby_of(cluster: Cluster) -> AsyncIterator[Standby]:
    """A server that follows the cluster, which is ended with the block."""
    folder = cluster.folder.with_name("standby")
    folder.mkdir(mode=0o700)
    owner = cluster.folder.stat()
    shutil.chown(folder, owner.st_uid, owner.st_gid)
    standby = Standby(cluster, folder)
    try:
        await asyncio.to_thread(standby.begin)
        yield standby
    finally:
        await asyncio.to_thread(standby.end)
        shutil.rmtree(folder, ignore_errors=True)
