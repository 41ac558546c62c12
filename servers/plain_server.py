"""An MCP server whose mistakes read as plain sentences.

FastMCP reports a mistake as `Error executing tool x: 1 validation error for xArguments …` with links to pydantic, and
silently drops arguments that the tool does not have. Both end up in front of people, so both are mended here, at the
two methods that FastMCP registers as its handlers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ContentBlock, Tool, ToolAnnotations
from pydantic import ValidationError

from servers.refusal import Refused, refusal_of, unknown_arguments

READS = ToolAnnotations(readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False)
ADDS = ToolAnnotations(readOnlyHint=False, destructiveHint=False, idempotentHint=False, openWorldHint=False)
MARKS = ToolAnnotations(readOnlyHint=False, destructiveHint=False, idempotentHint=True, openWorldHint=False)
"""Changes a state that can be changed back; doing it twice is doing it once."""
REPLACES = ToolAnnotations(readOnlyHint=False, destructiveHint=True, idempotentHint=True, openWorldHint=False)
"""Overwrites or removes what was there (the specification calls everything but pure additions destructive)."""


class PlainServer(FastMCP):
    """A FastMCP server that refuses unknown arguments and says what is wrong in sentences."""

    async def list_tools(self) -> list[Tool]:
        """The tools, their schemas closed: what is not listed in them is refused."""
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"inputSchema": {**tool.inputSchema, "additionalProperties": False}})
            for tool in tools
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool; a `ToolError` (an `isError` result) says in sentences why it cannot be done."""
        known = next(
            (list(tool.inputSchema["properties"]) for tool in await self.list_tools() if tool.name == name), None
        )
        if known is not None and (unknown := [given for given in arguments if given not in known]):
            raise ToolError(unknown_arguments(unknown, known))
        try:
            return await super().call_tool(name, arguments)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(refusal_of(error.__cause__)) from error
            if isinstance(error.__cause__, Refused):
                raise ToolError(str(error.__cause__)) from error
            raise
