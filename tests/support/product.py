"""A whole product on loopback: in this process, or as the process a person would start."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from aiohttp import web

from app import ADDRESS, running
from bot.crypto import kept_key
from bot.settings import Settings, variable
from tests.support import postgres_cluster
from tests.support.empty_database import empty_database
from tests.support.forks import ROOT, STARTS_WITHIN, Fork, forked, quick_python
from tests.support.ports import free_port

KEY = "A" * 43 + "="
"""What secrets are sealed with, with `--postgres`."""
PASSWORD = "open sesame"
"""Of the page, with `--postgres`."""


@dataclass
class ProductFolder:
    """Everything the product has on disk, in one folder of a test."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    makes_its_records: bool = False
    """Whether they are left to the product to make, instead of being copied for it."""
    _database: str = field(default="", init=False)
    """With `--postgres`: its address."""
    _port: str = field(default="", init=False)
    """With `--postgres`: where the product listens, after a restart too."""

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that the product is started with, these among them. Makes what they name, where it is
        missing."""
        if "MCP_CONFIG" not in self.variables:
            self.bundled_tool_servers()
        given = {**self.variables, **more}
        return {
            "HOST": "127.0.0.1",
            "MODEL_RETRIES": "0",
            "LIMIT_TURNS_PER_MINUTE": "0",
            "LIMIT_THREAD_TURNS_PER_MINUTE": "0",
            "MEMORY": "false",  # a model is asked once more after a turn: those that count see to it themselves
            **(self._with_postgres(given) if postgres_cluster.is_used() else self._with_sqlite()),
            **given,
        }

    @property
    def database(self) -> str:
        """The address of its records."""
        if "DATABASE_URL" in self.variables:
            return self.variables["DATABASE_URL"]
        if not postgres_cluster.is_used():
            return f"sqlite:///{self.folder / 'data' / 'countersign.db'}"
        if not self._database:
            self._database = postgres_cluster.emptied_database()
        return self._database

    def key(self) -> bytes:
        """What its secrets are sealed with."""
        return KEY.encode() if postgres_cluster.is_used() else kept_key(self.folder / "data")

    def _with_sqlite(self) -> dict[str, str]:
        records = self.folder / "data" / "countersign.db"
        if not (self.makes_its_records or records.parent.exists()):
            empty_database(records)
        return {"PORT": "0", "DATABASE_URL": self.database}

    def _with_postgres(self, given: Mapping[str, str]) -> dict[str, str]:
        """With what several processes need to know. `PUBLIC_URL` says where it listens, which has to be known before;
        and where that is set, the page is for nobody without a password."""
        self._port = self._port or ("0" if "PUBLIC_URL" in given else str(free_port()))
        port = given.get("PORT") or self._port
        return {
            "PORT": port,
            "DATABASE_URL": self.database,
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
            "ENCRYPTION_KEY": KEY,
            "WEB_PASSWORD": PASSWORD,
        }

    def tool_servers(self, servers: Mapping[str, Any]) -> None:
        """Write its `mcp.json`."""
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        self.variables["MCP_CONFIG"] = str(path)

    def bundled_tool_servers(self, *names: str) -> None:
        """Servers of the project's own `mcp.json`, with their data in this folder; no names: the calendar and the tasks
        (each is a process, and takes half a second of CPU to start)."""
        bundled = json.loads((ROOT / "mcp.json").read_text())["mcpServers"]
        servers = {name: bundled[name] for name in names or ("calendar", "tasks")}
        for name, entry in servers.items():
            command, *arguments = quick_python(*entry["args"])
            entry |= {"command": command, "args": arguments, "cwd": str(ROOT)}
            entry["env"] = {f"{name.upper()}_DB": str(self.folder / f"{name}.db")}
        self.tool_servers(servers)

    def policy(self, text: str) -> None:
        """Write its policy file."""
        path = self.folder / "policy.yaml"
        path.write_text(text)
        self.variables["POLICY_FILE"] = str(path)

    def agents(self, text: str) -> None:
        """Write its `agents.yaml`."""
        path = self.folder / "agents.yaml"
        path.write_text(text)
        self.variables["AGENTS_FILE"] = str(path)


class GivenSettings(Settings):
    """Settings that come from nowhere but what is given."""

    @classmethod
    def settings_customise_sources(cls, *_: Any, init_settings: Any, **__: Any) -> tuple[Any, ...]:
        return (init_settings,)


@asynccontextmanager
async def product_here(home: ProductFolder, kind: type[GivenSettings] = GivenSettings) -> AsyncIterator[str]:
    """The product in this process, on real sockets; its address."""
    variables = home.environment()
    aliases = {variable(name): str(field.validation_alias or name) for name, field in kind.model_fields.items()}
    given: dict[str, Any] = {aliases[name]: value for name, value in variables.items() if name in aliases and value}
    others = {name: value for name, value in variables.items() if name not in aliases}
    async with AsyncExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, others))  # libraries look for theirs there
        application = await stack.enter_async_context(running(kind(**given)))
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", int(variables["PORT"]))
        await site.start()
        stack.push_async_callback(site.stop)
        host, port = runner.addresses[0][:2]
        application[ADDRESS].listens_on(port)
        yield f"http://{host}:{port}"


class ProductProcess:
    """The product as a process of its own, which can be killed."""

    def __init__(self, home: ProductFolder, program: Sequence[str] = ("app.py",)) -> None:
        self._home = home
        self._program = program
        self._log = home.folder / "product.log"
        self._process: Fork | None = None
        self.url = ""

    async def start(self) -> str:
        """Start it and wait until it listens; its address."""
        beginning = self._log.stat().st_size if self._log.exists() else 0
        environment = {**os.environ, **self._home.environment(LOG_FORMAT="json")}
        with self._log.open("ab") as log:
            self._process = await forked(
                *self._program, environment=environment, output=log.fileno(), errors=log.fileno()
            )
        async with asyncio.timeout(STARTS_WITHIN):
            while not (found := re.search(rb'"url": ?"(http[^"]+)"', self._log.read_bytes()[beginning:])):
                if self._process.code is not None:
                    raise AssertionError(f"it did not start:\n{self.log()[-3000:]}")
                await asyncio.sleep(0.02)
        self.url = found[1].decode()
        return self.url

    async def kill(self) -> None:
        """kill -9; returns when it is gone."""
        if self._process is not None:
            await self._process.kill()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send(number)

    async def terminate(self) -> int:
        """SIGTERM, and wait for its end; its exit code."""
        assert self._process is not None
        self._process.send(signal.SIGTERM)
        return await asyncio.wait_for(self._process.wait(), STARTS_WITHIN)

    def log(self) -> str:
        """What it logged."""
        return self._log.read_text()

    def log_beside_arguments(self) -> str:
        """What it logged, but for the arguments of tool calls, which the line of each call has."""
        return re.sub(r'"gen_ai\.tool\.call\.arguments": ?"(?:[^"\\]|\\.)*"', "", self.log())


@asynccontextmanager
async def product_process(home: ProductFolder) -> AsyncIterator[ProductProcess]:
    """The product as a process, killed in the end."""
    process = ProductProcess(home)
    try:
        await process.start()
        yield process
    finally:
        await process.kill()
