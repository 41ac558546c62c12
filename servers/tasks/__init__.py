"""The tasks MCP server: one list of things to do in one SQLite file."""
