"""What a client is told of a call, in MCP's types."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

from adapters.gateway.results import (
    LONGEST_TASK,
    SHORTEST_TASK,
    ended_task,
    link_needed,
    refused,
    still_waiting,
    task_of,
    task_result,
    task_seconds,
    tool_result,
    unfinished_task,
    unknown_tool,
)
from adapters.gateway.tools import listed_tool
from bot.gateway.views import GatewayCallView, GatewayResult, GatewayWait
from policies.model import Annotations, Tool

RUNNING = GatewayCallView("c1", "calendar", "create_event", "running", 100.0, 101.0)
ASKED = GatewayWait("approval", "Waiting for Ana to approve it in Slack.", "a1")
WAITING = replace(RUNNING, status="waiting", waits_for=ASKED)
DONE = GatewayResult(False, content=[{"type": "text", "text": "made"}], structured={"id": 7, "note": None})
ENDED = replace(RUNNING, status="ended", result=DONE)


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def test_a_result_is_as_the_tool_returned_it() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {"priority": 1.0}}
    told = tool_result(replace(DONE, content=[*DONE.content, image]), promises_structure=True)
    written = told.model_dump(by_alias=True, mode="json", exclude_none=True)
    assert written == {
        "content": [{"type": "text", "text": "made"}, image],
        "structuredContent": {"id": 7, "note": None},
        "isError": False,
    }


def test_our_own_sentence_stands_before_what_the_tool_returned() -> None:
    told = tool_result(replace(DONE, text="Ana changed the title.", changed=True), promises_structure=True)
    assert texts(told) == ["Ana changed the title.", "made"]
    assert (told.structuredContent, told.meta) == (DONE.structured, {"countersign/changed": True})


def test_a_success_without_the_promised_structure_says_that_it_is_not_to_be_repeated() -> None:
    told = tool_result(GatewayResult(False, "Ana says that it was done."), promises_structure=True)
    assert told.isError
    assert "Don’t make it again" in texts(told)[1]
    assert not tool_result(GatewayResult(False, "Done."), promises_structure=False).isError


def test_a_block_that_mcp_does_not_know_becomes_text() -> None:
    told = tool_result(GatewayResult(False, content=[{"type": "hologram", "of": "lamp"}]), promises_structure=False)
    assert texts(told) == ['{"type": "hologram", "of": "lamp"}']


def test_who_has_waited_long_enough_is_told_for_what_how_to_go_on_and_how_far_the_call_is() -> None:
    waiting = replace(WAITING, waits_for=replace(ASKED, so_far="nothing has been done yet"))
    told = still_waiting(waiting)
    assert texts(told) == [
        "Waiting for Ana to approve it in Slack. Call the same tool again with the same arguments to keep waiting; "
        "nothing has been done yet."
    ]
    assert told.isError
    assert told.meta == {"countersign/call": "c1", "countersign/status": "waiting"}
    assert unfinished_task(waiting).error.message == (
        "Waiting for Ana to approve it in Slack. Ask for the result of this task again to keep waiting; nothing has "
        "been done yet."
    )


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol_and_a_refusal_a_result() -> None:
    error = unknown_tool("no\u202esuch").error
    assert (error.code, error.message) == (-32602, "Unknown tool: no⟨U+202E⟩such")
    told = refused("Too many calls.")
    assert (told.isError, texts(told)) == (True, ["Too many calls."])


def test_a_sign_in_is_asked_for_by_its_link() -> None:
    wait = GatewayWait("sign_in", "Ana must connect their account", "s1")
    error = link_needed(replace(WAITING, waits_for=wait), "https://example.com/oauth/start?s=x").error
    assert error.code == -32042
    (elicitation,) = error.data["elicitations"]  # type: ignore[index]
    assert elicitation == {
        "mode": "url",
        "elicitationId": "s1",
        "url": "https://example.com/oauth/start?s=x",
        "message": "Ana must connect their account. Then make the same call again.",
    }


# ------------------------------------------------------------------------------------------------- tasks
@pytest.mark.parametrize(
    ("view", "status"),
    [
        (RUNNING, "working"),
        (WAITING, "input_required"),
        (ENDED, "completed"),
        (replace(ENDED, result=GatewayResult(True, "Rejected by Ana.")), "failed"),
        (replace(ENDED, cancelled=True, result=GatewayResult(True, "Taken back.")), "cancelled"),
        (replace(RUNNING, cancelled=True), "cancelled"),
    ],
)
def test_a_task_has_the_status_of_its_call(view: GatewayCallView, status: str) -> None:
    task = task_of(replace(view, task_seconds=60.0))
    assert (task.status, task.ttl, task.createdAt.timestamp()) == (status, 60_000, 100.0)
    assert status in str(ended_task(view))


def test_the_result_of_a_task_is_that_of_the_call_and_names_the_task() -> None:
    told = task_result(tool_result(replace(DONE, changed=True), promises_structure=True), "c1")
    assert told.model_dump(by_alias=True, mode="json", exclude_none=True) == {
        "_meta": {"countersign/changed": True, "io.modelcontextprotocol/related-task": {"taskId": "c1"}},
        "content": [{"type": "text", "text": "made"}],
        "structuredContent": {"id": 7, "note": None},
        "isError": False,
    }


@given(st.none() | st.integers() | st.integers(min_value=10**300, max_value=10**320))
def test_a_task_is_kept_for_a_bounded_time_whatever_is_asked_for(ttl: int | None) -> None:
    assert SHORTEST_TASK <= task_seconds(ttl) <= LONGEST_TASK


# ------------------------------------------------------------------------------------------------- tools
TOOL = Tool("calendar", "create_event", "Create", "Creates.", {"type": "object"}, Annotations(read_only=False))


def test_a_tool_is_listed_as_its_server_declares_it_and_may_be_called_as_a_task() -> None:
    declared = {
        "name": "create_event",
        "title": "Create",
        "description": "Creates.",
        "inputSchema": {"type": "object", "properties": {"a": {"default": None}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": False, "title": "Make"},
        "icons": [{"src": "https://example.com/i.png", "sizes": ["48x48"]}],
        "execution": {"taskSupport": "forbidden"},
        "_meta": {"example.com/x": [1]},
    }
    listed = listed_tool(TOOL, declared, own_name=False).model_dump(by_alias=True, mode="json", exclude_none=True)
    assert listed == {**declared, "name": "calendar__create_event", "execution": {"taskSupport": "optional"}}
    assert listed_tool(TOOL, declared, own_name=True).name == "create_event"


@pytest.mark.parametrize("declared", [None, {"inputSchema": "none", "annotations": 3}])
def test_of_a_tool_whose_declaration_cannot_be_had_it_is_listed_what_is_known(declared: dict[str, object]) -> None:
    listed = listed_tool(TOOL, declared, own_name=True).model_dump(by_alias=True, mode="json", exclude_none=True)
    assert listed == {
        "name": "create_event",
        "title": "Create",
        "description": "Creates.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": False},
        "execution": {"taskSupport": "optional"},
    }
