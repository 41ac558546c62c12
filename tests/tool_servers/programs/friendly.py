"""A well-behaved server made with FastMCP: `friendly.py stdio`, or `friendly.py http|sse PORT` (0: any,
then printed)."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.utilities.types import Image
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, ToolAnnotations
from pydantic import BaseModel
from starlette.applications import Starlette

mcp = FastMCP("friendly", log_level="ERROR")


class Person(BaseModel):
    name: str
    age: int


class Size(BaseModel):
    size: int


@mcp.tool(title="Say it again", annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
def echo(text: str, times: int = 1) -> str:
    """Repeats a text."""
    return text * times


@mcp.tool()
def person() -> Person:
    """Somebody, as structured content."""
    return Person(name="Ana", age=7)


@mcp.tool()
async def slow(ctx: Context, steps: int = 3) -> str:  # type: ignore[type-arg]  # FastMCP finds it by this annotation
    """Reports progress."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(0.01)
    return "done"


@mcp.tool()
async def hang() -> str:
    """Never answers."""
    await asyncio.sleep(3600)
    return "too late"


@mcp.tool()
def die() -> str:
    """Ends the process in the middle of the call."""
    os._exit(3)


@mcp.tool()
def broken(text: str) -> str:
    """Fails with what it is given."""
    raise ValueError(text)


@mcp.tool()
def picture() -> Image:
    """An image."""
    return Image(data=b"\x89PNG" + bytes(30_000), format="png")


@mcp.tool()
def environment(name: str) -> str:
    """Gives away a variable of its environment."""
    return os.environ.get(name, "")


@mcp.tool()
def link_needed() -> str:
    """Wants a link to be opened first."""
    link = ElicitRequestURLParams(
        mode="url", message="Connect your drive", url="https://drive.test/connect?e=1", elicitationId="e1"
    )
    raise UrlElicitationRequiredError([link])


@mcp.tool()
async def form_needed(ctx: Context) -> str:  # type: ignore[type-arg]
    """Wants a form to be filled in."""
    answer = await ctx.elicit(message="Which size?", schema=Size)
    return answer.action


@mcp.tool()
async def grow(ctx: Context) -> str:  # type: ignore[type-arg]
    """Adds a tool and says so."""

    @mcp.tool()
    def grown() -> str:
        """New."""
        return "grown"

    await ctx.session.send_tool_list_changed()
    return "changed"


async def serve_http(app: Starlette, port: int) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", port))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] in {"http", "sse"}:
        app = mcp.sse_app() if sys.argv[1] == "sse" else mcp.streamable_http_app()
        asyncio.run(serve_http(app, int(sys.argv[2])))
    else:
        mcp.run("stdio")
