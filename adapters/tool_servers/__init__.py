"""The MCP client: runs the tool servers of `mcp.json` and calls their tools, as `graph.ports.Tools`.

config = load_config(Path("mcp.json"), os.environ)      # ConfigError: path, line, reason
servers = ToolServers(config)
await servers.start()                                   # returns at once
await servers.settled(20)
...
await servers.close()
"""
