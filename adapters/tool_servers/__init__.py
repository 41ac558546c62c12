"""The house's MCP client: runs the tool servers of `mcp.json` and calls their tools, as `graph.ports.Tools`.

config = load_config(Path("mcp.json"), os.environ)      # ConfigError: path, line, reason
servers = ToolServers(config)
await servers.start()                                   # returns at once
await servers.settled(20)
...
await servers.close()
"""

from __future__ import annotations

from adapters.tool_servers.accounts import AccountTokens, Catalogues
from adapters.tool_servers.config import AccountConfig, ConfigError, Http, ServerConfig, ToolServersConfig, load_config
from adapters.tool_servers.life import Timings
from adapters.tool_servers.looking_up import look_up
from adapters.tool_servers.servers import ServerStatus, ToolServers

__all__ = [
    "AccountConfig",
    "AccountTokens",
    "Catalogues",
    "ConfigError",
    "Http",
    "ServerConfig",
    "ServerStatus",
    "Timings",
    "ToolServers",
    "ToolServersConfig",
    "load_config",
    "look_up",
]
