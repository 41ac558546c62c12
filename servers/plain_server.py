"""An MCP server whose mistakes read as plain sentences.

FastMCP reports a mistake as `Error executing tool x: 1 validation error for xArguments …` with links to pydantic, and
silently drops arguments that the tool does not have. Both end up in front of people, so both are mended here, at the
two methods that FastMCP registers as its handlers. It also runs a tool that blocks in the event loop; here a tool is a
blocking function and runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ContentBlock, Tool, ToolAnnotations
from pydantic import Field, StringConstraints, ValidationError

from servers import requester

READS = ToolAnnotations(readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False)
ADDS = ToolAnnotations(readOnlyHint=False, destructiveHint=False, idempotentHint=False, openWorldHint=False)
MARKS = ToolAnnotations(readOnlyHint=False, destructiveHint=False, idempotentHint=True, openWorldHint=False)
"""Changes a state that can be changed back; doing it twice is doing it once."""
REPLACES = ToolAnnotations(readOnlyHint=False, destructiveHint=True, idempotentHint=True, openWorldHint=False)
"""Overwrites or removes what was there (the specification calls everything but pure additions destructive)."""


class PlainServer(FastMCP):
    """A FastMCP server that refuses unknown arguments and says what is wrong in sentences. Its tools find in
    `requester.asking` for whom they are called."""

    requesters = requester.Requesters("")
    """Tells for whom a call is made: at first nobody in particular."""

    def add_tool(self, fn: Callable[..., Any], *args: Any, **options: Any) -> None:
        """Register a blocking function as a tool, as the decorator `tool` does; each call runs in a thread."""

        @wraps(fn)
        async def in_a_thread(**arguments: Any) -> Any:
            return await asyncio.to_thread(fn, **arguments)

        super().add_tool(in_a_thread, *args, **options)

    async def list_tools(self) -> list[Tool]:
        """The tools, their schemas closed: what is not listed in them is refused."""
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"inputSchema": {**tool.inputSchema, "additionalProperties": False}})
            for tool in tools
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool; a `ToolError` (an `isError` result) says in sentences why it cannot be done."""
        meta = self.get_context().request_context.meta
        told = (meta.model_extra or {}) if meta else {}
        files = told.get(requester.FILES)
        files = files if isinstance(files, dict) else {}
        try:
            who = self.requesters.requester_of(told.get(requester.KEY), name, arguments, files)
        except requester.RequesterUnknown as unknown:
            raise ToolError(str(unknown)) from unknown
        asking, asking_in = requester.asking.set(who.person), requester.asking_in.set(who.channel)
        handed_over = requester.handed_over.set(files)
        try:
            return await self._called(name, arguments)
        finally:
            requester.asking.reset(asking)
            requester.asking_in.reset(asking_in)
            requester.handed_over.reset(handed_over)

    async def _called(self, name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock] | dict[str, Any]:
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
            if isinstance(error.__cause__, CallRefused):
                raise ToolError(str(error.__cause__)) from error
            raise


LONGEST_TITLE = 200
"""Characters; longer titles break every calendar and list view. Our own choice."""
LONGEST_TEXT = 2000
"""Characters of a location or a note. Our own choice."""
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TITLE)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_TEXT)]


def described(title: str, description: str, *, example: str = "") -> Any:
    """Label and help of an argument, as a form shows them, and an example, which no form shows: models read it.

    An argument that may be left out (`… | None = None`) keeps a plain schema, which a form can be drawn from, rather
    than a choice between something and null; null is accepted all the same, because models send it.
    """
    examples = [example] if example else None
    return Field(title=title, description=description, examples=examples, json_schema_extra=_plain)


def _plain(schema: dict[str, Any]) -> None:
    schema.pop("default", None)
    something, *_ = schema.pop("anyOf", [{}])
    schema.update({**something, **schema})


class CallRefused(Exception):  # noqa: N818 - it is an answer, not a defect
    """The call cannot be done as asked, and nothing was changed. Its text is one sentence for people."""


def refusal_of(error: ValidationError) -> str:
    """Every mistake in a call's arguments, one sentence each, on one line."""
    return " ".join(_sentence(mistake) for mistake in error.errors(include_url=False))


def unknown_arguments(given: Sequence[str], known: Sequence[str]) -> str:
    """The sentence for arguments that the tool does not have."""
    names = ", ".join(f"“{name}”" for name in given)
    return f"Unknown argument {names}: this tool takes {', '.join(known) or 'none'}."


def _sentence(mistake: Any) -> str:
    name = ".".join(str(part) for part in mistake["loc"]) or "arguments"
    limits = mistake.get("ctx", {})
    match mistake["type"]:
        case "missing":
            return f"“{name}” is missing: give it a value."
        case "string_too_short":
            return f"“{name}” is empty: give it some text."
        case "string_too_long":
            return f"“{name}” is too long: {len(mistake['input'])} characters, at most {limits['max_length']} fit."
        case "too_long":
            return f"“{name}” has too many entries: at most {limits['max_length']} fit."
        case "uuid_parsing" | "uuid_type":
            return f"“{name}” is not an id: take the “id” (a UUID) from a list."
        case "literal_error":
            return f"“{name}” must be {limits['expected']}."
        case "value_error":
            return f"“{name}”: {limits['error']}"
        case _:
            return f"“{name}”: {mistake['msg']}."
