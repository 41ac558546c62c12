"""Calls of other agents: programs that use the company's tools at `/mcp`, under the same policy and cards."""
