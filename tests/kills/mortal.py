"""A house that can be killed and started again in a moment, and the tool server that outlives it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.support.house import ROOT, STARTS_WITHIN, HouseFolder

PROGRAMS = Path(__file__).parent


class MortalHouse:
    """Houses, one after the other at the same address, each a fork of one program that has imported everything."""

    def __init__(self, home: HouseFolder, program: asyncio.subprocess.Process, port: int) -> None:
        self._home = home
        self._program = program
        self._port = port
        self._pid = 0
        self._ended: asyncio.Task[int] | None = None
        self.url = f"http://127.0.0.1:{port}"

    async def fork(self, **variables: str) -> None:
        """Begin to start a house."""
        assert self._program.stdin is not None
        given = {**self._home.environment(), "PORT": str(self._port), "LOG_FORMAT": "json", **variables}
        self._program.stdin.write(f"{json.dumps(given)}\n".encode())
        self._pid = await self._number()
        self._ended = asyncio.create_task(self._number(), name=f"end of house {self._pid}")

    async def listening(self) -> bool:
        """Wait until it answers; false when it ended instead."""
        async with asyncio.timeout(STARTS_WITHIN), aiohttp.ClientSession() as http:
            while self._ended is not None and not self._ended.done():
                try:
                    async with http.get(f"{self.url}/health-check") as response:
                        return response.status == 200
                except (aiohttp.ClientError, ConnectionError):
                    await asyncio.sleep(0.01)
        return False

    async def start(self, **variables: str) -> None:
        """Start a house and wait until it listens."""
        await self.fork(**variables)
        if not await self.listening():
            raise AssertionError(f"the house did not start:\n{self.log()[-3000:]}")

    async def kill(self) -> None:
        """kill -9; returns when it is gone."""
        os.kill(self._pid, signal.SIGKILL)
        await self.wait()

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        self.ask_to_end()
        return await self.wait()

    def ask_to_end(self) -> None:
        """SIGTERM; returns at once."""
        os.kill(self._pid, signal.SIGTERM)

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        assert self._ended is not None
        code = await asyncio.shield(self._ended)  # whoever waits may be cancelled; the answer is still to be read
        self._ended = None
        return code

    async def close(self) -> None:
        """End it if it runs."""
        if self._ended is not None:
            if not self._ended.done():
                os.kill(self._pid, signal.SIGKILL)
            await self.wait()

    def log(self) -> str:
        """What all houses logged."""
        path = self._home.folder / "house.log"
        return path.read_text() if path.exists() else ""

    async def _number(self) -> int:
        assert self._program.stdout is not None
        return int(await self._program.stdout.readline())


def free_port() -> int:
    """A port that nothing listens on, outside of the range from which the system takes ports for connections."""
    numbers = random.SystemRandom()
    while True:
        port = numbers.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


@asynccontextmanager
async def mortal_house(home: HouseFolder) -> AsyncIterator[MortalHouse]:
    """The program that forks houses; none runs yet."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.kills.fork_server",
        str(home.folder / "house.log"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    house = MortalHouse(home, program, free_port())
    try:
        assert program.stdout is not None
        async with asyncio.timeout(STARTS_WITHIN):
            assert await program.stdout.readline() == b"ready\n"
        yield house
    finally:
        await house.close()
        program.kill()
        await program.wait()


@asynccontextmanager
async def effects_server(home: HouseFolder, seed: str) -> AsyncIterator[str]:
    """The tool server `effects`; its address. Also writes the `mcp.json` that names it."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAMS / "effects_server.py"), str(home.folder), seed, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        async with asyncio.timeout(STARTS_WITHIN):
            port = int(await server.stdout.readline())
        url = f"http://127.0.0.1:{port}/mcp"
        home.tool_servers({"effects": {"url": url, "trustAnnotations": True}})
        yield url
    finally:
        server.kill()
        await server.wait()
