"""A real MCP server on loopback whose tools are functions of the test, so that a test can hold a call in the middle."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.tools import Tool
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, ToolAnnotations
from pydantic import BaseModel

from tests.support.asgi import served_asgi


@dataclass
class Workshop:
    """A tool server with a few tools, and what was done with them."""

    done: list[str] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    signed_in: bool = False
    url: str = ""
    server: FastMCP = field(init=False)

    def __post_init__(self) -> None:
        # A copy of each with the method of this workshop.
        tools = [tool.model_copy(update={"fn": getattr(self, tool.name)}) for tool in _described()]
        self.server = FastMCP("workshop", tools=tools)

    async def make(self, what: str, count: int = 1) -> str:
        """Make something."""
        self.done.append(f"make {what} {count}")
        return f"made {what}"

    async def make_slowly(self, what: str) -> str:
        """Make something; takes until the test says so."""
        self.done.append(f"make_slowly {what}")
        self.started.set()
        await self.may_end.wait()
        return f"made {what} slowly"

    async def look(self, what: str) -> str:
        """Look at something."""
        self.looked.append(what)
        return f"{what} looks fine"

    async def report(self, what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        """Make something and report how far it is; of something slow, half until the test says so."""
        await ctx.report_progress(1, 2, f"half of {what}")
        if what.startswith("slow"):
            await self.may_end.wait()
        return f"made all of {what}"

    async def fail(self, what: str) -> str:
        """Fails."""
        raise ValueError(f"{what} is broken")

    async def delete(self, what: str) -> str:
        """Delete something."""
        self.done.append(f"delete {what}")
        return f"deleted {what}"

    async def make_with_account(self, what: str) -> str:
        """Make something with the person's own account."""
        if not self.signed_in:
            link = "https://accounts.example.com/start?ticket=top-secret-ticket"
            request = ElicitRequestURLParams(mode="url", message="Connect your account", url=link, elicitationId="e1")
            raise UrlElicitationRequiredError([request])
        self.done.append(f"make_with_account {what}")
        return f"made {what} with the account"


@cache
def _described() -> list[Tool]:
    """The tools of every workshop: to find out what they take, by their types, takes longer than to start a server."""
    reads = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
    some = Workshop.__new__(Workshop)
    return [
        Tool.from_function(some.make, title="Make it"),
        Tool.from_function(some.make_slowly, title="Make it slowly"),
        Tool.from_function(some.look, title="Look at it", annotations=reads),
        Tool.from_function(some.fail, title="Break"),
        Tool.from_function(some.report, title="Report", annotations=reads),
        Tool.from_function(some.make_with_account, title="Make with account"),
        Tool.from_function(some.delete, title="Delete it"),
    ]


@asynccontextmanager
async def serving(server: FastMCP) -> AsyncIterator[str]:
    """Serve it over streamable HTTP; the address of its endpoint."""
    listening = socket.create_server(("127.0.0.1", 0))
    async with served_asgi(server.streamable_http_app(), listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"


@asynccontextmanager
async def workshop() -> AsyncIterator[Workshop]:
    """The workshop, running."""
    made = Workshop()
    async with serving(made.server) as url:
        made.url = url
        yield made
        made.may_end.set()


def entry(shop: Workshop, **more: Any) -> dict[str, Any]:
    """Its entry in `mcp.json`."""
    return {"url": shop.url, "trustAnnotations": True, **more}


class Seat(BaseModel):
    """What the tool asks for."""

    seat: str


async def reserve(what: str, ctx: Context[Any, Any, Any]) -> str:
    """Reserve something; asks which seat."""
    answer = await ctx.elicit("Which seat?", Seat)
    return f"{what} in {answer.data.seat}" if answer.action == "accept" else "nothing"
