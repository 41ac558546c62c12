"""The MCP server of the bench, over stdio. Its tools answer with the moment at which they were called.

`python -m bench.tool_server [CPU]`: a child would inherit the bot's core, so it moves to its own.
"""

from __future__ import annotations

import sys
import time

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

from bench.cores import move_to

server = FastMCP("bench", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False), structured_output=False)
async def read(text: str) -> str:
    """Look something up."""
    return f"{time.monotonic():.6f} {text}"


@server.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=False), structured_output=False)
async def write(text: str) -> str:
    """Change something."""
    return f"{time.monotonic():.6f} {text}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        move_to(int(sys.argv[1]))
    server.run(transport="stdio")
