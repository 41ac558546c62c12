"""Shared by the tests of the tool servers: real servers in real processes, from a written `mcp.json`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from adapters.tool_servers.config import load_config
from adapters.tool_servers.elicitation import Completed
from adapters.tool_servers.outcomes import AnswerContext, CallResult, outcome_of_result
from adapters.tool_servers.servers import ToolServers
from adapters.tool_servers.sessions import Timings
from graph.ports import Caller, Failed, Given, NotSent, Ready, ToolOutcome
from policies.model import Tool
from tests.support.forks import Fork, forked_with_output, quick_python

PROGRAMS = Path(__file__).parent / "programs"
CALLER = Caller(person="web:ana", thread_id="web:1", call_id="d1.0.0")
QUICK = Timings(start=30, ping_every=0.1, ping=10, first_pause=0.02, longest_pause=0.2, stable_after=30, patience=20)


@dataclass
class Heard:
    """A `Progress` that remembers."""

    steps: list[tuple[str, float | None]] = field(default_factory=list)

    def __call__(self, message: str, fraction: float | None) -> None:
        self.steps.append((message, fraction))


def server(program: str, *arguments: str | Path, **more: Any) -> dict[str, Any]:
    """An entry of `mcp.json` for one of the programs here that use a library."""
    command, *words = quick_python(PROGRAMS / program, *arguments)
    return {"command": command, "args": words, **more}


def bare_server(program: str, *arguments: str | Path, **more: Any) -> dict[str, Any]:
    """An entry of `mcp.json` for one of the programs here that start in no time."""
    return {"command": "python", "args": [str(PROGRAMS / program), *map(str, arguments)], **more}


@asynccontextmanager
async def listening(program: str, *arguments: str | Path) -> AsyncIterator[tuple[Fork, int]]:
    """One of the programs here, and the port that it says it listens on; killed in the end."""
    process, said = await forked_with_output(PROGRAMS / program, *arguments)
    try:
        with said:
            port = int(await asyncio.to_thread(said.readline))
        yield process, port
    finally:
        await process.kill()


@asynccontextmanager
async def running(
    folder: Path,
    entries: Mapping[str, Any],
    *,
    environ: Mapping[str, str] | None = None,
    timings: Timings = QUICK,
    result_limit: int = 16_000,
    tokens: Any = None,
    catalogues: Any = None,
    completed: Completed | None = None,
) -> AsyncIterator[ToolServers]:
    """Tool servers that are started and settled, and closed in the end."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    servers = ToolServers(
        load_config(file, os.environ if environ is None else environ),
        timings=timings,
        result_limit=result_limit,
        tokens=tokens,
        catalogues=catalogues,
        completed=completed,
    )
    await servers.start()
    try:
        assert await servers.settled(60), servers.status()
        yield servers
    finally:
        await servers.close()


async def call(
    servers: ToolServers,
    full_name: str,
    heard: Heard | None = None,
    *,
    caller: Caller = CALLER,
    answers: tuple[Given, ...] = (),
    **arguments: Any,
) -> ToolOutcome:
    """Call a tool by the name that the model uses."""
    tool = await servers.find(full_name)
    assert tool is not None, f"no tool {full_name} among {[each.full_name for each in await servers.available()]}"
    return await made(servers, tool, arguments, replace(caller, answers=answers), heard)


async def made(
    servers: ToolServers, tool: Tool, arguments: dict[str, Any], caller: Caller = CALLER, heard: Heard | None = None
) -> ToolOutcome:
    """Prepare a call and send it, once more if the request never left: as the graph does."""
    for _ in range(2):
        async with servers.prepared(tool, arguments, caller) as prepared:
            if not isinstance(prepared, Ready):
                return prepared
            outcome = await prepared.send(heard or Heard())
        if not isinstance(outcome, NotSent):
            return outcome
    return Failed(f"{tool.server} is unavailable: it {outcome.reason}. Nothing was called.")


def outcome_of(
    content: Sequence[Any], structured: Any = None, *, limit: int = 16_000, secrets: Iterable[str] = (), **more: Any
) -> Any:
    """What becomes of a result with this content; `more`: of the context, and whether it `is_error`."""
    result = CallResult(content=list(content), structuredContent=structured, isError=more.pop("is_error", False))
    context = AnswerContext(more.pop("server", "files"), limit, frozenset(secrets), **more)
    return outcome_of_result(result, context)


def lines(file: Path) -> list[str]:
    """The lines of a file; none when it is not there."""
    return file.read_text().splitlines() if file.exists() else []


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    import psutil

    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def until(condition: Any, what: str, within: float = 20.0) -> None:
    """Wait for a condition, polling; fails after `within` seconds."""
    deadline = asyncio.get_running_loop().time() + within
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            pytest.fail(f"{what} did not happen within {within} s")
        await asyncio.sleep(0.01)


async def until_found(servers: ToolServers, full_name: str) -> None:
    """Wait until there is a tool of that name."""
    async with asyncio.timeout(20):
        while await servers.find(full_name) is None:
            await asyncio.sleep(0.01)


def interpreter() -> str:
    """The running Python, for programs that are started without the code under test."""
    return sys.executable
