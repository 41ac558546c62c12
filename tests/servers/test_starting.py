from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.servers.conftest import ROOT, Client
from tests.support.forks import quick_python

TOKEN = "a-token-that-a-program-made"


@asynccontextmanager
async def process(*arguments: str, environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        *quick_python("-m", *arguments),
        env=environment,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await started.communicate()


async def address_of(server: asyncio.subprocess.Process) -> str:
    """Where it serves, which it says on stderr once it does."""
    assert server.stderr is not None
    async with asyncio.timeout(60):
        while line := (await server.stderr.readline()).decode():
            if match := re.search(r"http://(127\.0\.0\.1|0\.0\.0\.0):\d+", line):
                return match[0]
    raise AssertionError("the server ended without saying where it serves")


@pytest.mark.parametrize(("name", "tool"), [("calendar", "create_event"), ("tasks", "add_task")])
async def test_it_is_served_over_http_on_this_machine_too(environment: dict[str, str], name: str, tool: str) -> None:
    async with process(f"servers.{name}", "--http", "0", environment=environment) as server:
        address = await address_of(server)
        async with (
            streamable_http_client(f"{address}/mcp") as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            client = Client(session)
            assert tool in await client.tools()
            assert "“title” is missing" in await client.refusal(tool)


async def test_whoever_has_the_token_is_served_beyond_this_machine_and_nobody_else(environment: dict[str, str]) -> None:
    environment["TOOL_SERVER_TOKEN"] = f"{TOKEN}\n"  # as from a file
    async with process("servers.tasks", "--http=0", "--host=0.0.0.0", environment=environment) as server:
        address = (await address_of(server)).replace("0.0.0.0", "127.0.0.1")
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"{address}/health")).status_code == 200
            for given in ({}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Authorization": f"Basic {TOKEN}"}):
                for path in ("/mcp", "/mcp/", "/"):
                    assert (await http.post(address + path, json={}, headers=given)).status_code == 401
        async with (
            # As in a network of containers: the name in Host is none of loopback.
            httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}", "Host": "tasks:8931"}) as known,
            streamable_http_client(f"{address}/mcp", http_client=known) as (read, write, _),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            assert "add_task" in await Client(session).tools()


async def test_the_token_is_asked_for_on_this_machine_too_where_there_is_one(environment: dict[str, str]) -> None:
    environment["TOOL_SERVER_TOKEN"] = TOKEN
    async with process("servers.tasks", "--http=0", environment=environment) as server, httpx.AsyncClient() as http:
        assert (await http.post(f"{await address_of(server)}/mcp", json={})).status_code == 401


@pytest.mark.parametrize(
    ("token", "told"),
    [("", "tasks: 0.0.0.0 can be reached by others. Set TOOL_SERVER_TOKEN"), ("fifteen-letters", "is too short")],
)
async def test_without_a_good_token_nobody_else_is_let_in(environment: dict[str, str], token: str, told: str) -> None:
    environment["TOOL_SERVER_TOKEN"] = token
    async with process("servers.tasks", "--http=0", "--host=0.0.0.0", environment=environment) as server:
        _, errors = await server.communicate()
    assert server.returncode == 1
    assert told in errors.decode()


async def test_a_secret_that_can_be_guessed_ends_it_with_a_sentence(environment: dict[str, str]) -> None:
    environment["COUNTERSIGN_REQUESTER_SECRET"] = ""
    async with process("servers.tasks", environment=environment) as server:
        _, errors = await server.communicate()
    assert server.returncode == 1
    assert "COUNTERSIGN_REQUESTER_SECRET is too short. Use at least 32 characters." in errors.decode()


@pytest.mark.parametrize("port", ["65536", "²"])
async def test_a_port_that_is_none_ends_it_with_a_sentence(environment: dict[str, str], port: str) -> None:
    async with process("servers.tasks", f"--http={port}", environment=environment) as server:
        _, told = await server.communicate()
    assert server.returncode == 2
    assert "is not a port; give a number from 0 to 65535" in told.decode()


async def test_a_database_that_cannot_be_used_ends_it_with_a_sentence(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    environment["CALENDAR_DB"] = str(tmp_path / "file" / "calendar.db")
    async with process("servers.calendar", environment=environment) as server:
        _, told = await server.communicate()
    assert server.returncode == 1
    assert "Set CALENDAR_DB to a writable file." in told.decode()
    assert "Traceback" not in told.decode()
