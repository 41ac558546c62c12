"""Processes of the product on one PostgreSQL, each with a port of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from tests.kills.mortal import MortalProduct
from tests.support.forks import STARTS_WITHIN
from tests.support.ports import free_port
from tests.support.product import KEY, PASSWORD, ProductFolder

SHARED = {"ENCRYPTION_KEY": KEY, "PUBLIC_URL": "http://127.0.0.1:3978", "WEB_PASSWORD": PASSWORD}
"""Variables that each of several processes needs."""


class Replica(MortalProduct):
    """One of several processes, and those that are started in its place."""

    def __init__(self, home: ProductFolder, port: int, program: Sequence[str], variables: dict[str, str]) -> None:
        super().__init__(home, port)
        self.name = home.folder.name
        self._program = program
        self._variables = variables

    async def begin(self) -> None:
        """Begin to start it (again)."""
        await self.fork(*self._program, **self._variables)

    async def up(self) -> None:
        """Start it (again), and wait until it takes work."""
        await self.begin()
        await self.ready()

    async def ready(self) -> None:
        """Wait until it takes work."""
        async with asyncio.timeout(STARTS_WITHIN), aiohttp.ClientSession() as http:
            while not await self._is_ready(http):
                assert self.code is None, f"{self.name} ended:\n{self.log()[-3000:]}"
                await asyncio.sleep(0.05)

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.url}/ready") as response:
                return response.status == 200
        except (aiohttp.ClientError, ConnectionError):
            return False

    def stand_still(self) -> None:
        """SIGSTOP: it does nothing any more, and keeps all that it has."""
        self.send(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    @property
    def stands_still(self) -> bool:
        """Whether it was stopped, by itself or by somebody else."""
        pid = self.pid
        if pid is None or self.code is not None:
            return False
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return status.rpartition(")")[2].split()[0] == "T"


@asynccontextmanager
async def replicas(
    home: ProductFolder, address: str, *, count: int = 2, program: Sequence[str] = ("app.py",), **variables: str
) -> AsyncIterator[Sequence[Replica]]:
    """So many replicas on the database at this address, none of them started yet; killed with the block.

    Args:
        home: the variables that they have in common; each gets a folder of its own in its folder.
        program: as whose command line of Python they run.
        variables: further ones, of all.
    """
    common = {**home.variables, **SHARED, "DATABASE_URL": address}
    async with AsyncExitStack() as stack:
        made = []
        for number in range(count):
            folder = home.folder / f"replica-{number}"
            folder.mkdir()
            of_one = ProductFolder(folder, dict(common), makes_its_records=True)
            made.append(Replica(of_one, free_port(), program, variables))
            stack.push_async_callback(made[-1].kill)
        yield made
