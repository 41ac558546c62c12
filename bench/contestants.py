"""Starts what is measured, and ends it: for figures each time from an empty folder, for a smoke once for all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
import psutil

from bench.cores import AROUND, MEASURED, move_to
from bench.slack_client import SlackApi, slack_api
from bench.teams_client import TeamsApi, teams_api

ROOT = Path(__file__).parents[1]
STARTS_WITHIN = 60.0
POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Contestant:
    """A running process."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    started_in: float
    """Seconds from the start of the process to the first 200 of `/health-check`."""

    def memory(self) -> int:
        """Resident bytes of the process itself; its tool servers are not counted."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def stored(self) -> int:
        """Bytes of its SQLite files as they are after a checkpoint of the write-ahead log."""
        return sum(_size(file) for file in self.folder.glob("*.db"))


def _size(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (pages,), (size,) = (connection.execute(f"PRAGMA {p}").fetchone() for p in ("page_count", "page_size"))
    return int(pages * size)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the contestants talk to: servers that run during the whole of a run."""

    model_url: str
    slack: SlackApi
    teams: TeamsApi


Opening = AbstractAsyncContextManager[Contestant]
Prepare = Callable[[Path], None]
"""Puts records into the folder of the product."""


class Contestants(Protocol):
    """Where the measures get what they measure. Each method opens one contestant for as long as it is used."""

    @property
    def around(self) -> Surroundings:
        """What all of them talk to."""
        ...

    def product(self, *, chat: Mapping[str, str] | None = None, prepare: Prepare | None = None) -> Opening:
        """The bot with the bench's model and tool server. `chat`: the variables of a chat platform, instead of the
        page; `prepare`: called with its folder."""
        ...

    def product_as_made(self) -> Opening:
        """The bot exactly as `make run` starts it."""
        ...

    def replica(self, variables: Mapping[str, str], *, model_url: str | None = None) -> Opening:
        """The bot in Slack, started with these variables, too. `model_url`: another model; then it is one of several
        that are measured together, on whatever core is free."""
        ...

    def bare_agent(self) -> Opening:
        """The agent of an afternoon, in Slack."""
        ...

    def bare_handler(self) -> Opening:
        """An aiohttp handler that only answers."""
        ...


@dataclass(frozen=True, slots=True)
class Fresh:
    """Each from an empty folder and ended after its use, as figures want it."""

    around: Surroundings

    def product(self, *, chat: Mapping[str, str] | None = None, prepare: Prepare | None = None) -> Opening:
        """With `prepare` called before it starts."""
        return _product(self.around.model_url, chat=chat, prepare=prepare)

    def product_as_made(self) -> Opening:
        """With the model that is built in."""
        return _product(None)

    def replica(self, variables: Mapping[str, str], *, model_url: str | None = None) -> Opening:
        """On a core, unless it has a model of its own."""
        chat = {**self.around.slack.variables(), **variables}
        return _product(model_url or self.around.model_url, chat=chat, pinned=model_url is None)

    def bare_agent(self) -> Opening:
        """With its file and its tool server."""
        return _bare_agent(self.around)

    def bare_handler(self) -> Opening:
        """aiohttp alone."""
        return _bare_handler()


class Shared:
    """One product with the page and both chat platforms, and one of each other contestant, for all measures of a smoke,
    where starting thirty processes would take minutes and say nothing."""

    def __init__(self, around: Surroundings, running: Mapping[str, Contestant]) -> None:
        self.around = around
        self._running = running

    @asynccontextmanager
    async def product(
        self, *, chat: Mapping[str, str] | None = None, prepare: Prepare | None = None
    ) -> AsyncIterator[Contestant]:
        """With `prepare` called while it runs. It is connected to each `chat` already."""
        if prepare is not None:
            await asyncio.to_thread(prepare, self._running["product"].folder)
        yield self._running["product"]

    def product_as_made(self) -> Opening:
        """The same product."""
        return self.product()

    def replica(self, variables: Mapping[str, str], *, model_url: str | None = None) -> Opening:
        """One of its own: where it has its records cannot be shared."""
        chat = {**self.around.slack.variables(), **variables}
        return _product(model_url or self.around.model_url, chat=chat, pinned=False)

    @asynccontextmanager
    async def bare_agent(self) -> AsyncIterator[Contestant]:
        """The bare agent."""
        yield self._running["agent"]

    @asynccontextmanager
    async def bare_handler(self) -> AsyncIterator[Contestant]:
        """aiohttp alone."""
        yield self._running["handler"]


@asynccontextmanager
async def shared() -> AsyncIterator[Shared]:
    """All contestants, started together."""
    async with surroundings() as around, AsyncExitStack() as stack:
        everywhere = {**around.slack.variables(), **around.teams.variables(), "WEB_ENABLED": "true"}
        openings = {
            "product": _product(around.model_url, chat=everywhere, pinned=False),
            "agent": _bare_agent(around, pinned=False),
            "handler": _bare_handler(pinned=False),
        }
        running = await asyncio.gather(*(stack.enter_async_context(opening) for opening in openings.values()))
        yield Shared(around, dict(zip(openings, running, strict=True)))


@asynccontextmanager
async def surroundings() -> AsyncIterator[Surroundings]:
    """The model, Slack's Web API and Microsoft's side, running."""
    async with model_server() as model_url, slack_api() as slack, teams_api() as teams:
        yield Surroundings(model_url, slack, teams)


@asynccontextmanager
async def _product(
    model_url: str | None,
    *,
    chat: Mapping[str, str] | None = None,
    prepare: Prepare | None = None,
    pinned: bool = True,
) -> AsyncIterator[Contestant]:
    """Without a `model_url` exactly as `make run` starts it, and not bound to a core."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        folder = Path(name)
        variables = {"DATABASE_URL": f"sqlite:///{folder}/countersign.db", "LLM_MODEL": "demo", "LOG_FORMAT": "json"}
        variables |= {"LIMIT_TURNS_PER_MINUTE": "0", "LIMIT_THREAD_TURNS_PER_MINUTE": "0"}
        variables |= {"LIMIT_GATEWAY_CALLS_PER_MINUTE": "0"}
        variables |= {"CALENDAR_DB": f"{folder}/calendar.sqlite", "TASKS_DB": f"{folder}/tasks.sqlite"}
        if model_url is not None:
            config = folder / "mcp.json"
            config.write_text(json.dumps({"mcpServers": {"bench": {**_tool_server(), "trustAnnotations": True}}}))
            variables |= {"MCP_CONFIG": str(config), **_model(model_url)}
        variables |= chat or {}
        if prepare is not None:
            await asyncio.to_thread(prepare, folder)
        async with _running(["app.py"], variables, folder, pinned=pinned and model_url is not None) as contestant:
            yield contestant


@asynccontextmanager
async def _bare_agent(around: Surroundings, *, pinned: bool = True) -> AsyncIterator[Contestant]:
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        folder = Path(name)
        tools = folder / "tools.json"
        tools.write_text(json.dumps({"transport": "stdio", **_tool_server()}))
        variables = {"BARE_AGENT_DB": f"{folder}/agent.db", "BARE_AGENT_TOOLS": str(tools)}
        variables |= {**_model(around.model_url), **around.slack.variables()}
        async with _running(["-m", "bench.bare_agent"], variables, folder, pinned=pinned) as contestant:
            yield contestant


@asynccontextmanager
async def _bare_handler(*, pinned: bool = True) -> AsyncIterator[Contestant]:
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        async with _running(["-m", "bench.bare_handler"], {}, Path(name), pinned=pinned) as contestant:
            yield contestant


@asynccontextmanager
async def model_server(seconds: float = 0.0) -> AsyncIterator[str]:
    """A model that answers after so many seconds; its base URL."""
    command = [sys.executable, "-m", "bench.model_server", str(seconds)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        yield line.decode().strip()
    finally:
        process.kill()
        process.communicate()


def _model(url: str) -> Mapping[str, str]:
    return {"LLM_MODEL": "bench", "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}


def _tool_server() -> Mapping[str, object]:
    arguments = ["-m", "bench.tool_server", str(AROUND)]
    variables = {"PYTHONPATH": str(ROOT)}
    return {"command": sys.executable, "args": arguments, "env": variables}


@asynccontextmanager
async def _running(
    arguments: list[str], variables: Mapping[str, str], folder: Path, *, pinned: bool
) -> AsyncIterator[Contestant]:
    log = folder / "log"
    environment = {**os.environ, "HOST": "127.0.0.1", "PORT": "0", **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed product has its bytecode
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    # A child begins where its parent is, and that is not where it shall be measured.
    move_to(*([MEASURED] if pinned else []), process=process.pid)
    try:
        url = await _listening(process, log)
        yield Contestant(url, process, folder, await _healthy(url) - began)
    finally:
        _end(process)


async def _listening(process: subprocess.Popen[bytes], log: Path) -> str:
    async with asyncio.timeout(STARTS_WITHIN):
        while not (found := re.search(rb'"url": ?"(http[^"]+)"', log.read_bytes())):
            if process.poll() is not None:
                raise RuntimeError(f"it did not start:\n{log.read_text()[-3000:]}")
            await asyncio.sleep(POLL_SECONDS)
    return found[1].decode()


async def _healthy(url: str) -> float:
    async with aiohttp.ClientSession() as http, asyncio.timeout(STARTS_WITHIN):
        while True:
            async with http.get(f"{url}/health-check") as response:
                if response.status == 200:
                    return time.monotonic()
            await asyncio.sleep(POLL_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with its children: nothing it holds is needed any more."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.wait()
