"""OpenAI's newest models take tools only at `/v1/responses`: what `stream_message` promises holds there too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from graph.models import close_model
from graph.models.openai import create_openai_model
from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import stream_message
from tests.models.conftest import ONCE

ARGUMENTS = '{"title": "buy milk"}'
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_0", "name": "tasks__add_task", "status": "completed"}
TEXT = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
PART = {"type": "output_text", "annotations": [], "logprobs": []}
OUTPUT = [{**TEXT, "content": [{**PART, "text": "I will."}]}, {**CALL, "arguments": ARGUMENTS}]
USAGE = {
    "input_tokens": 12,
    "output_tokens": 7,
    "total_tokens": 19,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


def response(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "gpt-test",
        "status": status,
        "output": output,
        "usage": USAGE,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": response("in_progress", [])},
    {"type": "response.output_item.added", "output_index": 0, "item": {**TEXT, "content": []}},
    {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "msg_1", "part": PART},
    *(
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "item_id": "msg_1",
            "delta": piece,
            "logprobs": [],
        }
        for piece in ("I ", "will.")
    ),
    {"type": "response.output_item.done", "output_index": 0, "item": OUTPUT[0]},
    {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
    *(
        {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": piece}
        for piece in (ARGUMENTS[:9], ARGUMENTS[9:])
    ),
    {"type": "response.output_item.done", "output_index": 1, "item": OUTPUT[1]},
    {"type": "response.completed", "response": response("completed", OUTPUT)},
]


@asynccontextmanager
async def service(events: list[dict[str, Any]], journal: list[dict[str, Any]]) -> AsyncIterator[BaseChatModel]:
    async def answer(request: web.Request) -> web.Response:
        journal.append(await request.json())
        lines = [
            f"event: {e['type']}\ndata: {json.dumps({**e, 'sequence_number': n})}\n\n" for n, e in enumerate(events)
        ]
        return web.Response(text="".join(lines), content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/responses", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        model = create_openai_model("gpt-test", base_url=address, api_key=SecretStr("k"), timeout=10)
        yield model.model_copy(update={"use_responses_api": True, "store": False})
        await close_model(model)
    finally:
        await runner.cleanup()


async def test_text_calls_and_usage_come_back_as_from_chat_completions() -> None:
    shown: list[str] = []
    journal: list[dict[str, Any]] = []
    long = "slack:T1:C1:1732150000.123456.0.0" * 3
    earlier: Any = {"name": "tasks__list_tasks", "args": {}, "id": long, "type": "tool_call"}
    messages = [HumanMessage("hi"), AIMessage("", tool_calls=[earlier]), ToolMessage("[]", tool_call_id=long)]
    async with service(EVENTS, journal) as model:
        message = await stream_message(model, messages, shown.append, retry=ONCE)
    assert shown == ["I ", "will."]
    assert message.content == "I will."
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [("tasks__add_task", {"title": "buy milk"})]
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == 19
    assert journal[0]["store"] is False
    ids = {item["call_id"] for item in journal[0]["input"] if "call_id" in item}
    assert len(ids) == 1
    assert all(len(call_id) <= 40 for call_id in ids)


async def test_arguments_that_are_said_once_and_not_with_the_call_are_not_taken_for_none() -> None:
    """Rule 12: a gateway says them when they are complete, and not again with the item; `add()` may be everything."""
    said = {
        "type": "response.function_call_arguments.done",
        "output_index": 1,
        "item_id": "fc_1",
        "name": "tasks__add_task",
    }
    done = {"type": "response.output_item.done", "output_index": 1, "item": {**CALL, "arguments": ""}}
    events = [*EVENTS[:7], {**said, "arguments": ARGUMENTS}, done, EVENTS[-1]]
    async with service(events, []) as model:
        message = await stream_message(model, [HumanMessage("hi")], lambda _: None, retry=ONCE)
    assert message.tool_calls == []
    assert [call["name"] for call in message.invalid_tool_calls] == ["tasks__add_task"]


async def test_a_stream_without_its_end_is_no_answer() -> None:
    async with service(EVENTS[:-1], []) as model:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(model, [HumanMessage("hi")], lambda _: None, retry=ONCE)
    assert caught.value.trouble is Trouble.BROKE_OFF


INCOMPLETE = {**response("incomplete", OUTPUT[:1]), "incomplete_details": {"reason": "max_output_tokens"}}


def cut(*, after: int, **item: Any) -> list[dict[str, Any]]:
    """The events up to one of them, and the end of an answer that was cut. `item`: how the call is said to be done."""
    done = {"type": "response.output_item.done", "output_index": 1, "item": {**OUTPUT[1], **item}}
    return [*EVENTS[:after], *([done] if item else []), {"type": "response.incomplete", "response": INCOMPLETE}]


@pytest.mark.parametrize(
    "events",
    [
        cut(after=7),
        cut(after=8),
        cut(after=9),
        cut(after=10),
        cut(after=9, status="incomplete", arguments=""),
        [*EVENTS[:9], EVENTS[-1]],
        [*cut(after=9, arguments="{}")[:-1], EVENTS[-1]],
        [*cut(after=9, arguments=None)[:-1], EVENTS[-1]],
    ],
    ids=["begun", "half", "all of it", "done", "incomplete", "not said to be done", "another", "nothing"],
)
async def test_a_cut_answer_leaves_no_call(events: list[dict[str, Any]]) -> None:
    """Rule 12: what the model had not said to the end is no call that anybody could approve."""
    async with service(events, []) as model:
        message = await stream_message(model, [HumanMessage("hi")], lambda _: None, retry=ONCE)
    assert message.tool_calls == []
    assert [(c["name"], "cut off" in (c["error"] or "")) for c in message.invalid_tool_calls] == [
        ("tasks__add_task", True)
    ]
    assert message.content == "I will."


@pytest.mark.parametrize(
    ("end", "trouble"),
    [
        ({"type": "response.failed", "response": {"error": {"code": "server_error"}}}, Trouble.SERVER_FAILED),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, Trouble.RATE_LIMITED),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}, Trouble.RATE_LIMITED),
    ],
)
async def test_a_failure_in_the_middle_is_told_as_what_it_is(end: dict[str, Any], trouble: Trouble) -> None:
    if "response" in end:
        end = {**end, "response": {**response("failed", []), **end["response"]}}
    async with service([EVENTS[0], end], []) as model:
        with pytest.raises(ModelProblem) as failed:
            await stream_message(model, [HumanMessage("hi")], lambda _: None, retry=ONCE)
    assert failed.value.trouble is trouble


async def test_a_filtered_answer_is_told_so() -> None:
    filtered = {**INCOMPLETE, "incomplete_details": {"reason": "content_filter"}}
    async with service([*EVENTS[:9], {"type": "response.incomplete", "response": filtered}], []) as model:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(model, [HumanMessage("hi")], lambda _: None, retry=ONCE)
    assert caught.value.trouble is Trouble.FILTERED
