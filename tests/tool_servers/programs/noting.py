"""A server that notes what it receives: `noting.py FILE stdio`, or with `http` or `sse` (the port is printed).

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
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with manager.run():
            yield

    await listen(Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan))


async def serve_sse() -> None:
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.routing import Mount

    transport = SseServerTransport("/messages/")

    async def events(scope: Any, receive: Any, send: Any) -> None:
        async with transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    await listen(Starlette(routes=[Mount("/messages", app=transport.handle_post_message), Mount("/", app=events)]))


async def listen(app: Any) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run({"stdio": serve_stdio, "http": serve_http, "sse": serve_sse}[sys.argv[2]]())
