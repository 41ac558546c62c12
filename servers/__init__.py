"""Bundled MCP servers: real processes that speak MCP and know nothing of the bot."""
