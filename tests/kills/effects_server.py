"""A tool server in a process of its own, which survives the kills: every effect is a line in a file.

`python effects_server.py FOLDER SEED` writes its port to standard output; `FOLDER/acts` and `FOLDER/looks` hold one
key per line, in the order in which they took effect. `FOLDER/tries` has one for each try, also those that failed, and
`FOLDER/previews` one for each preview.
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
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations

LONGEST = 0.08
"""Seconds that an act goes on after its effect, at most."""
HANGING = "hang"
"""An act whose key begins so takes effect and never answers."""
HELD = "hold"
"""An act, or a look, whose key begins so takes effect and answers once there is `FOLDER/go`; so does a preview, but for
the first one."""
DRIFTING = "drift"
"""What has this in its key is shown in another way by its first preview than by all others."""


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

    @server.tool()
    async def attempt(title: str, key: str) -> str:
        """Do something that fails the first time, for certain, and shows each other time."""
        is_first = key not in _lines(folder / "tries")
        _append(folder / "tries", key)
        await _held(folder, key)
        if is_first:
            raise ToolError(f"{title} did not work")
        _append(folder / "acts", key)
        return f"{title} worked"

    @server.tool()
    async def change(key: str) -> str:
        """Do something that shows, and of which there is a preview."""
        _append(folder / "acts", key)
        await asyncio.sleep(random.Random(f"{seed}:{key}").uniform(0, LONGEST))
        return f"changed {key}"

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
    async def show_change(key: str) -> dict[str, dict[str, str]]:
        """What a change would do."""
        is_first = key not in _lines(folder / "previews")
        _append(folder / "previews", key)
        if not is_first:
            await _held(folder, key)
        return {"before": {"key": key, "state": "new" if is_first and DRIFTING in key else "old"}}

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


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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
