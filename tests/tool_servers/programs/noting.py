"""A server that notes what it receives: `noting.py FILE stdio`, or `noting.py FILE http` (the port is printed).

Its one tool takes anything; Python's own notation of the arguments is appended to FILE, a line for each call.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

FILE = Path(sys.argv[1])
server: Server[Any, Any] = Server("noting")


@server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
async def list_tools() -> list[types.Tool]:
    return [types.Tool(name="note", inputSchema={"type": "object"})]


@server.call_tool(validate_input=False)
async def note(_name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    with FILE.open("a", encoding="ascii") as notes:
        notes.write(ascii(arguments) + "\n")
    return [types.TextContent(type="text", text="noted")]


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http() -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with manager.run():
            yield

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(serve_http() if sys.argv[2] == "http" else serve_stdio())
