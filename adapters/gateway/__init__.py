"""`/mcp`: other agents use the tools by MCP, under the same policy and cards."""
