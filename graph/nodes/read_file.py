"""Reads more of a file that was handed over in the conversation."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from graph.calls import WITHOUT_TOOLS, superseded, tool_message
from graph.files import arguments_of_reading, part_of
from graph.nodes import Node
from graph.options import has_tools
from graph.ports import Ports
from graph.state import RunContext, Turn


class ReadFileState(TypedDict):
    """A call of `read_file` in its own branch."""

    call: dict[str, Any]
    """As `graph.state.ToolCallState.call`."""
    turn: Turn


def read_file(ports: Ports) -> Node:
    """The node. It asks nobody: whoever is in the conversation was given the file."""

    async def read_file(state: ReadFileState, runtime: Runtime[RunContext]) -> dict[str, Any]:
        return {"messages": [await _read(ports, state["call"], state["turn"], runtime.context)]}

    return read_file


async def _read(ports: Ports, call: dict[str, Any], turn: Turn, context: RunContext) -> ToolMessage:
    if context.settling:
        return tool_message(call, superseded(context.settling), failed=True)
    if not has_tools(turn):
        return tool_message(call, WITHOUT_TOOLS, failed=True)
    if call.get("error"):
        return tool_message(call, f"Failed: {call['error']}", failed=True)
    wanted = arguments_of_reading(call["args"])
    if isinstance(wanted, str):
        return tool_message(call, f"Failed: {wanted}.", failed=True)
    file_id, start, find = wanted
    content = await ports.files.of_thread(turn["thread_id"], file_id)
    if content is None:
        return tool_message(call, "Failed: there is no such file in this conversation.", failed=True)
    return tool_message(call, await asyncio.to_thread(part_of, content, start, find))
