"""Tools as clients of the gateway see them: as their servers declare them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp.types
from pydantic import ValidationError

from policies.model import Tool

_EXECUTION, _OUTPUT = "execution", "outputSchema"


def listed_tool(tool: Tool, declared: Mapping[str, Any] | None, *, own_name: bool) -> mcp.types.Tool:
    """Returns a tool as it is listed: annotations, schemas and all else as its server says, and that it may be called
    as a task, whatever its server does.

    Args:
        declared: the entry of its server's list; `None`, or what is no entry of MCP's: what we know of the tool is
            listed.
        own_name: whether it is called as on its server, or by its full name.
    """
    ours = {"name": tool.name if own_name else tool.full_name, _EXECUTION: {"taskSupport": "optional"}}
    try:
        return mcp.types.Tool.model_validate({**(declared if declared is not None else _known(tool)), **ours})
    except ValidationError:
        return mcp.types.Tool.model_validate({**_known(tool), **ours})


def promises_structure(declared: Mapping[str, Any] | None) -> bool:
    """Returns whether a tool has an output schema: clients expect structured content of it."""
    return declared is not None and declared.get(_OUTPUT) is not None


def _known(tool: Tool) -> dict[str, Any]:
    said = tool.annotations
    return {
        "title": tool.title or None,
        "description": tool.description or None,
        "inputSchema": dict(tool.input_schema),
        "annotations": {
            "readOnlyHint": said.read_only,
            "destructiveHint": said.destructive,
            "idempotentHint": said.idempotent,
            "openWorldHint": said.open_world,
        },
    }
