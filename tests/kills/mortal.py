"""The product that can be killed and started again in a moment, and the tool server that outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bot.turns.replicas import DEAD_SECONDS
from tests.api.contract_clients import with_tokens
from tests.fakes.openai_server import FakeOpenAI
from tests.support import postgres_cluster
from tests.support.forks import STARTS_WITHIN, Fork, forked, forked_with_output
from tests.support.ports import free_port
from tests.support.product import ProductFolder

PROGRAMS = Path(__file__).parent
TAKEOVER = DEAD_SECONDS + 2.0 if postgres_cluster.is_used() else 0.0
"""Seconds, at most, until what a dead process was busy with goes on in another."""


class MortalProduct:
    """Products, one after the other at the same address."""

    def __init__(self, home: ProductFolder, port: int) -> None:
        self._home = home
        self._port = port
        self._process: Fork | None = None
        self.url = f"http://127.0.0.1:{port}"

    async def fork(self, *program: str, **variables: str) -> None:
        """Begin to start the product, by this command line of Python when one is given."""
        of_the_product = self._home.environment(PORT=str(self._port), LOG_FORMAT="json")
        given = {**os.environ, **of_the_product, **variables}
        with (self._home.folder / "product.log").open("ab") as log:
            command = program or ("app.py",)
            self._process = await forked(*command, environment=given, output=log.fileno(), errors=log.fileno())

    async def listening(self) -> bool:
        """Wait until it answers; false when it ended instead."""
        async with asyncio.timeout(STARTS_WITHIN), aiohttp.ClientSession() as http:
            while self._process is not None and self._process.code is None:
                try:
                    async with http.get(f"{self.url}/health-check") as response:
                        return response.status == 200
                except (aiohttp.ClientError, ConnectionError):
                    await asyncio.sleep(0.01)
        return False

    async def start(self, *program: str, **variables: str) -> None:
        """Start the product and wait until it listens."""
        await self.fork(*program, **variables)
        if not await self.listening():
            raise AssertionError(f"the product did not start:\n{self.log()[-3000:]}")

    @property
    def pid(self) -> int | None:
        """The process that was started last."""
        return self._process.pid if self._process is not None else None

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended."""
        return self._process.code if self._process is not None else None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send(number)

    async def kill(self) -> None:
        """kill -9; returns when it is gone."""
        if self._process is not None:
            await self._process.kill()

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        self.ask_to_end()
        return await self.wait()

    def ask_to_end(self) -> None:
        """SIGTERM; returns at once."""
        self.send(signal.SIGTERM)

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None
        return await self._process.wait()

    def log(self) -> str:
        """What all products logged."""
        path = self._home.folder / "product.log"
        return path.read_text() if path.exists() else ""


@asynccontextmanager
async def mortal_product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product that has not been started yet; ended with the block."""
    product = MortalProduct(home, free_port())
    try:
        yield product
    finally:
        await product.kill()


@asynccontextmanager
async def effects_server(home: ProductFolder, seed: str) -> AsyncIterator[str]:
    """The tool server `effects`; its address. Also writes the `mcp.json` that names it."""
    server, said = await forked_with_output(PROGRAMS / "effects_server.py", home.folder, seed)
    with said:
        async with asyncio.timeout(STARTS_WITHIN):
            port = int(await asyncio.to_thread(said.readline))
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        previews = {"change": "show_change"}
        home.tool_servers({"effects": {"url": url, "trustAnnotations": True, "previewTools": previews}})
        yield url
    finally:
        await server.kill()


@asynccontextmanager
async def home_with_effects(folder: Path, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What a product that asks this model has on disk, with the tool server. Programs can use it, too."""
    home = with_tokens(ProductFolder(folder))
    home.variables["LIMIT_GATEWAY_CALLS_PER_MINUTE"] = "0"
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    async with effects_server(home, seed="7"):
        yield home
