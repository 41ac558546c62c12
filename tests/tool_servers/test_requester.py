"""Whom a call is made for reaches the servers that are to know, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.server.fastmcp import Context, FastMCP

from adapters.tool_servers.servers import ToolServers
from graph.ports import Failed, Succeeded
from servers import requester
from servers.plain_server import PlainServer
from servers.requester import Requesters
from servers.tasks import build
from tests.support.forks import ROOT, quick_python
from tests.support.tools import serving
from tests.tool_servers.conftest import CALLER, call, running

SECRET = "one that a program made, and 32 characters long"
BOB = replace(CALLER, person="slack:T1:UBOB")


@asynccontextmanager
async def todo(tmp_path: Path, transport: str, their_secret: str = SECRET) -> AsyncIterator[ToolServers]:
    """The bundled task server, which `mcp.json` calls `todo`."""
    file = tmp_path / "tasks.db"
    if transport == "stdio":
        command, *arguments = quick_python("-m", "servers.tasks")
        entry = {"command": command, "args": arguments, "cwd": str(ROOT), "env": {"TASKS_DB": str(file)}}
        async with running(tmp_path, {"todo": {**entry, "tellRequester": True}}) as servers:
            yield servers
        return
    server = build(file)
    server.requesters = Requesters("todo", their_secret)
    async with serving(server) as url:
        entry = {"url": url, "tellRequester": True, "requesterSecret": "${SIGNING}"}
        async with running(tmp_path, {"todo": entry}, environ={"SIGNING": SECRET}) as servers:
            yield servers


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_everybody_has_a_list_of_their_own(tmp_path: Path, transport: str) -> None:
    async with todo(tmp_path, transport) as servers:
        odd = "buy Käse 🧀 \u2028"
        for title, person in (("buy milk", CALLER), (odd, BOB)):
            added = await call(servers, "todo__add_task", title=title, notes="a\nb", caller=person)
            assert isinstance(added, Succeeded), added
        for title, person in (("buy milk", CALLER), ("buy Käse", BOB)):
            listed = await call(servers, "todo__list_tasks", caller=person)
            assert isinstance(listed, Succeeded)
            assert (title in listed.text, listed.text.count('"title"')) == (True, 1)


async def test_what_is_signed_is_what_arrives(tmp_path: Path) -> None:
    server = PlainServer("forms")
    server.requesters = Requesters("forms", SECRET)

    @server.tool()
    def keep(values: dict[str, Any]) -> str:
        return requester.asking.get()

    odd = {"none": [None, {"none": None}], "numbers": [1, 1.0, -0.0, 1.5e9, 2**53 - 1], "\u2028🧀": "", "b": {}}
    async with serving(server) as url:
        entry = {"url": url, "tellRequester": True, "requesterSecret": SECRET}
        async with running(tmp_path, {"forms": entry}) as servers:
            outcome = await call(servers, "forms__keep", values=odd)
    assert isinstance(outcome, Succeeded), outcome
    assert CALLER.person in outcome.text


async def test_a_server_with_another_secret_believes_nothing(tmp_path: Path) -> None:
    async with todo(tmp_path, "http", SECRET[::-1]) as servers:
        outcome = await call(servers, "todo__list_tasks")
    assert isinstance(outcome, Failed)
    assert "is not signed with this server's secret" in str(outcome)


async def test_a_server_that_is_not_to_know_hears_nothing(tmp_path: Path) -> None:
    heard: list[Any] = []
    foreign = FastMCP("foreign")

    @foreign.tool()
    async def look(ctx: Context) -> str:  # type: ignore[type-arg]
        heard.append(ctx.request_context.meta and ctx.request_context.meta.model_extra)
        return "nothing"

    async with serving(foreign) as url, running(tmp_path, {"foreign": {"url": url}}) as servers:
        assert isinstance(await call(servers, "foreign__look"), Succeeded)
    assert heard == [{}]


async def test_who_is_to_know_the_channel_is_told_it_and_no_other(tmp_path: Path) -> None:
    server = PlainServer("forms")
    server.requesters = Requesters("forms", SECRET)

    @server.tool()
    def where() -> str:
        return f"in {requester.asking_in.get()!r}"

    there = replace(CALLER, channel="slack:T1:C1")
    async with serving(server) as url:
        entry = {"url": url, "tellRequester": True, "requesterSecret": SECRET}
        async with running(tmp_path, {"forms": entry}) as servers:
            untold = await call(servers, "forms__where", caller=there)
        async with running(tmp_path, {"forms": {**entry, "tellChannel": True}}) as servers:
            told = [await call(servers, "forms__where", caller=caller) for caller in (there, CALLER)]
    assert [each.text for each in (untold, *told) if isinstance(each, Succeeded)] == [
        "in None",
        "in 'slack:T1:C1'",
        "in ''",
    ]
