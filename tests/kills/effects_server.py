"""A tool server in a process of its own, which survives the kills: every effect is a line in a file.

`python effects_server.py FOLDER SEED` writes its port to standard output; `FOLDER/acts` and `FOLDER/looks` hold one
key per line, in the order in which they took effect.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

LONGEST = 0.08
"""Seconds that an act goes on after its effect, at most."""
HANGING = "hang"
"""An act whose key begins so takes effect and never answers."""
HELD = "hold"
"""An act, or a look, whose key begins so takes effect and answers once there is `FOLDER/go`."""


def build(folder: Path, seed: str) -> FastMCP:
    """The server over one folder."""
    server = FastMCP("effects", log_level="CRITICAL")

    @server.tool()
    async def act(key: str) -> str:
        """Do something that shows."""
        _append(folder / "acts", key)
        if key.startswith(HANGING):
            await asyncio.Event().wait()
        await _held(folder, key)
        await asyncio.sleep(random.Random(f"{seed}:{key}").uniform(0, LONGEST))
        return f"acted on {key}"

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
    async def look(key: str) -> str:
        """Look something up."""
        _append(folder / "looks", key)
        await _held(folder, key)
        return f"looked at {key}"

    return server


async def _held(folder: Path, key: str) -> None:
    while key.startswith(HELD) and not (folder / "go").exists():
        await asyncio.sleep(0.01)


def _append(path: Path, key: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, f"{key}\n".encode())
    finally:
        os.close(handle)


def main() -> None:
    """Serve until killed."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    application = build(Path(sys.argv[1]), sys.argv[2]).streamable_http_app()
    server = uvicorn.Server(
        uvicorn.Config(application, log_level="error", log_config=None, timeout_graceful_shutdown=1)
    )
    asyncio.run(server.serve(sockets=[listening]))


if __name__ == "__main__":
    main()
