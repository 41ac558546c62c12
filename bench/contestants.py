"""Starts what is measured, each time from an empty folder, and ends it."""

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
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

from bench.cores import AROUND, MEASURED, move_to
from bench.slack_client import slack_variables

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


@asynccontextmanager
async def house(
    model_url: str | None,
    *,
    chat: Mapping[str, str] | None = None,
    prepared: Callable[[Path], None] | None = None,
) -> AsyncIterator[Contestant]:
    """The bot with a model at `model_url` and the bench's tool server, or (`None`) exactly as `make run` starts it;
    `chat`: connected to a chat platform by these variables, without the page; `prepared`: puts records into its folder
    before it starts."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        folder = Path(name)
        variables = {"DATABASE_URL": f"sqlite:///{folder}/countersign.db", "LLM_MODEL": "demo", "LOG_FORMAT": "json"}
        variables |= {"LIMIT_TURNS_PER_MINUTE": "0", "LIMIT_THREAD_TURNS_PER_MINUTE": "0"}
        variables |= {"CALENDAR_DB": f"{folder}/calendar.sqlite", "TASKS_DB": f"{folder}/tasks.sqlite"}
        if model_url is not None:
            config = folder / "mcp.json"
            config.write_text(json.dumps({"mcpServers": {"bench": _tool_server()}}))
            variables |= {"MCP_CONFIG": str(config), **_model(model_url)}
        variables |= chat or {}
        if prepared is not None:
            await asyncio.to_thread(prepared, folder)
        async with _running(["app.py"], variables, folder, pinned=model_url is not None) as contestant:
            yield contestant


@asynccontextmanager
async def baseline(model_url: str, *, pinned: bool = True) -> AsyncIterator[Contestant]:
    """The bare agent."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        variables = {"BASELINE_DB": f"{name}/baseline.db", **_model(model_url)}
        async with _running(["-m", "bench.baseline"], variables, Path(name), pinned=pinned) as contestant:
            yield contestant


@asynccontextmanager
async def bare_bolt(api_url: str) -> AsyncIterator[Contestant]:
    """A Bolt app that only acknowledges."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        variables = slack_variables(api_url)
        async with _running(["-m", "bench.bare_bolt"], variables, Path(name), pinned=True) as contestant:
            yield contestant


@asynccontextmanager
async def bare_handler() -> AsyncIterator[Contestant]:
    """An aiohttp handler that only answers."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as name:
        async with _running(["-m", "bench.bare_handler"], {}, Path(name), pinned=True) as contestant:
            yield contestant


@asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """The model of both; its base URL."""
    command = [sys.executable, "-m", "bench.model_server"]
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
    return {"command": sys.executable, "args": arguments, "env": variables, "trustAnnotations": True}


@asynccontextmanager
async def _running(
    arguments: list[str], variables: Mapping[str, str], folder: Path, *, pinned: bool
) -> AsyncIterator[Contestant]:
    log = folder / "log"
    environment = {**os.environ, "HOST": "127.0.0.1", "PORT": "0", **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed house has its bytecode
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
