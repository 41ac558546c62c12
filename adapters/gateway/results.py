"""What a client is told of a call, in MCP's types: results, errors and tasks. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from mcp.shared.exceptions import McpError, UrlElicitationRequiredError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ContentBlock,
    ElicitRequestURLParams,
    ErrorData,
    GetTaskPayloadResult,
    Task,
    TextContent,
)
from pydantic import TypeAdapter, ValidationError

from bot.gateway.views import GatewayCallView, GatewayResult
from bot.safe_text import LONGEST_NAME, visible_line

CALL, STATUS, CHANGED = "countersign/call", "countersign/status", "countersign/changed"
"""Keys in the `_meta` of our results: the call's id, whether it still waits, whether its arguments were edited."""
_RELATED_TASK = "io.modelcontextprotocol/related-task"
POLL_SECONDS = 2.0
"""How often a client should ask after a task: people decide, not machines."""
SHORTEST_TASK, LONGEST_TASK = 60.0, 86_400.0
"""Seconds that the result of a task is kept for, at least and at most; who does not say gets the most."""
_NO_STRUCTURE = (
    "The call succeeded. Don’t make it again. It’s marked as an error only because the structured result that the "
    "tool’s output schema promises isn’t available."
)
_LOST = (
    "The result of this call was returned before and is no longer kept. Check how things are now before you make the "
    "call again."
)
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


def tool_result(result: GatewayResult, *, promises_structure: bool) -> CallToolResult:
    """Returns the result of a call that has ended: what the tool returned, after our own sentence if there is one.

    Args:
        promises_structure: whether the tool has an output schema. Clients refuse a success without what it promises.
    """
    is_error = result.is_error
    said = [result.text] if result.text else []
    if promises_structure and result.structured is None and not is_error:
        is_error = True
        said.append(_NO_STRUCTURE)
    return CallToolResult(
        content=[*(_text(text) for text in said), *(_block(block) for block in result.content)],
        structuredContent=dict(result.structured) if result.structured is not None else None,
        isError=is_error,
        _meta={CHANGED: True} if result.changed else None,
    )


def still_waiting(view: GatewayCallView) -> CallToolResult:
    """Returns what a client gets that has waited long enough: an error, since there is no result, that says how to go
    on."""
    said = _unfinished(view, "Call the same tool again with the same arguments to keep waiting")
    return CallToolResult(
        content=[_text(said)],
        isError=True,
        _meta={CALL: view.gateway_call_id, STATUS: view.status},
    )


def lost() -> CallToolResult:
    """Returns the result of a call of which nothing is kept any more."""
    return CallToolResult(content=[_text(_LOST)], isError=True)


def refused(said: str) -> CallToolResult:
    """Returns the result of a call that was not begun.

    Args:
        said: why, in a sentence for a model.
    """
    return CallToolResult(content=[_text(said)], isError=True)


def unknown_tool(name: str) -> McpError:
    """Returns the error for a tool that is not there, as the specification has it."""
    return McpError(ErrorData(code=INVALID_PARAMS, message=f"Unknown tool: {visible_line(name, LONGEST_NAME)}"))


def link_needed(view: GatewayCallView, link: str) -> UrlElicitationRequiredError:
    """Returns the error that has the client show its person a link.

    Args:
        view: of a call that waits for a sign-in.
        link: which only the caller may have.
    """
    wait = view.waits_for
    if wait is None:
        raise ValueError("the call waits for nothing")
    message = f"{_sentence(wait.text)} Then make the same call again."
    elicitation = ElicitRequestURLParams(mode="url", message=message, url=link, elicitationId=wait.subject)
    return UrlElicitationRequiredError([elicitation], message)


# ------------------------------------------------------------------------------------------------- tasks
def task_seconds(ttl: int | None) -> float:
    """Returns how long the result of a task is kept, in seconds from its beginning. `ttl`: what the client asks for, in
    milliseconds."""
    if ttl is None:
        return LONGEST_TASK
    return max(SHORTEST_TASK, min(ttl, int(LONGEST_TASK * 1000)) / 1000)


def task_of(view: GatewayCallView) -> Task:
    """Returns the task that a call is."""
    return Task(**task_facts(view))


def task_facts(view: GatewayCallView) -> dict[str, Any]:
    """Returns what MCP says of a task, by its names; for results that are tasks too."""
    return {
        "taskId": view.gateway_call_id,
        "status": _task_status(view),
        "statusMessage": _status_message(view),
        "createdAt": datetime.fromtimestamp(view.begun_at, UTC),
        "lastUpdatedAt": datetime.fromtimestamp(view.changed_at, UTC),
        "ttl": int(view.task_seconds * 1000) if view.task_seconds is not None else None,
        "pollInterval": int(POLL_SECONDS * 1000),
    }


def task_result(result: CallToolResult, gateway_call_id: str) -> GetTaskPayloadResult:
    """Returns the result of a call as that of its task: the same, with the task's id in its `_meta`."""
    written = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    written["_meta"] = {**written.get("_meta", {}), _RELATED_TASK: {"taskId": gateway_call_id}}
    return GetTaskPayloadResult.model_validate(written)


def unknown_task(task_id: str) -> McpError:
    """Returns the error for a task that is not there, or that is somebody else's."""
    return McpError(ErrorData(code=INVALID_PARAMS, message=f"Task not found: {visible_line(task_id, LONGEST_NAME)}"))


def ended_task(view: GatewayCallView) -> McpError:
    """Returns the error for taking back a task that has ended."""
    said = f"This task has ended ({_task_status(view)}), so it can’t be canceled."
    return McpError(ErrorData(code=INVALID_PARAMS, message=said))


def unfinished_task(view: GatewayCallView) -> McpError:
    """Returns the error for who has waited for the result of a task as long as is possible. No result: clients would
    take it for the task's."""
    said = _unfinished(view, "Ask for the result of this task again to keep waiting")
    return McpError(ErrorData(code=INTERNAL_ERROR, message=said))


def _task_status(view: GatewayCallView) -> Literal["working", "input_required", "completed", "failed", "cancelled"]:
    if view.cancelled:
        return "cancelled"
    match view.status:
        case "running":
            return "working"
        case "waiting":
            return "input_required"
        case "ended":
            return "failed" if view.result is not None and view.result.is_error else "completed"


def _status_message(view: GatewayCallView) -> str | None:
    if view.cancelled:
        return "Canceled."
    if view.is_stopped:
        return progress_message(view)
    if view.waits_for is not None:
        return view.waits_for.text
    if view.result is not None and view.result.text:
        return view.result.text
    return None


# ----------------------------------------------------------------------------------------------- wording
def progress_message(view: GatewayCallView) -> str:
    """Returns what a client that waits is told, in one sentence."""
    if view.is_stopped:
        return "An operator has stopped Countersign. The call goes on when they let everything go on."
    return view.waits_for.text if view.waits_for is not None else "The call is still running."


def _unfinished(view: GatewayCallView, again: str) -> str:
    """What a client is told that has waited long enough.

    Args:
        again: how it goes on, without a full stop.
    """
    wait = view.waits_for
    so_far = wait.so_far if wait is not None and wait.so_far else "it won’t be made twice"
    return f"{_sentence(progress_message(view))} {again}; {so_far}."


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _block(block: Mapping[str, Any]) -> ContentBlock:
    """What is no content of MCP's becomes text: one such block would have a client refuse the whole result."""
    try:
        return _BLOCK.validate_python(block)
    except ValidationError:
        return _text(json.dumps(block, ensure_ascii=False))
