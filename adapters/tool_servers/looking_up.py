"""What one tool is, asked of its server, for commands that only want to know."""

from __future__ import annotations

from adapters.tool_servers.config import ToolServersConfig
from adapters.tool_servers.servers import ToolServers
from policies.model import Tool

LOOK_UP_SECONDS = 15.0
"""That a server is given to say what its tools are."""


async def look_up(name: str, config: ToolServersConfig) -> Tool | None:
    """The tool called `{server}__{tool}`, as its server describes it now; `None` when there is none of that name, or
    its server does not start. Only that server is started, and ended again."""
    # A server's own name may hold the separator too, so there can be several.
    asked = tuple(server for server in config.servers if name.startswith(f"{server.name}__"))
    tools = ToolServers(ToolServersConfig(asked))
    await tools.start()
    try:
        await tools.settled(LOOK_UP_SECONDS)
        return tools.find(name)
    finally:
        await tools.close()
