"""What Anthropic's and Google's services are asked, what becomes of their answers, and of their failures: against
strict stand-ins written from the types of their SDKs."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from anthropic._constants import ANTHROPIC_API_VERSION
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, InvalidToolCall, SystemMessage, ToolMessage
from pydantic import SecretStr

from graph.models import ModelProblem, ModelSpec, Trouble, close_model, create_model
from graph.models.streaming import AnswerTimes, stream_message
from graph.nodes.policy_router import CHOOSE, create_router
from graph.observing import NOBODY, TurnHandling
from graph.prompts import summary_request
from graph.state import Turn
from graph.usage import total_tokens
from tests.fakes.model_service import ModelService
from tests.fakes.openai_server import Reply, ToolUse
from tests.models.conftest import ONCE, QUICK, Spent
from tests.models.native import ANTHROPIC, GOOGLE, NATIVE, Native, tool
from tests.support.cpu import at_most_cpu

KEY = "key-that-nobody-may-read"
ASK: list[AnyMessage] = [SystemMessage("rules"), HumanMessage("hi")]
TURN = Turn(
    delivery="m1",
    requester="web:ana",
    requester_name="Ana",
    time_zone="UTC",
    platform="web",
    channel="",
    thread_id="t",
)
ADD = tool("tasks__add", properties={"title": {"type": "string"}}, required=["title"])

Use = Callable[..., BaseChatModel]

each_service = pytest.mark.parametrize("native", NATIVE, ids=str)


@pytest.fixture
async def use() -> AsyncIterator[Use]:
    """Makes a model that talks to a stand-in; its connections are closed in the end."""
    made: list[BaseChatModel] = []

    def use(native: Native, server: ModelService, *, timeout: float = 10.0) -> BaseChatModel:
        made.append(create_model(ModelSpec(native.model, server.base_url, SecretStr(KEY), timeout)))
        return made[-1]

    yield use
    for model in made:
        await close_model(model)


def nothing(_text: str) -> None:
    """Shows nothing."""


# ------------------------------------------------------------------------------------------------ answers


@each_service
async def test_text_is_shown_piece_by_piece_and_returned_whole_with_its_tokens(native: Native, use: Use) -> None:
    shown: list[str] = []
    async with native.fake([Reply(text="Good morning to you", usage=(12, 7))]) as server:
        message = await stream_message(use(native, server), ASK, shown.append)
        assert server.refused == []
    assert shown == ["Good", " morning", " to", " you"]
    assert message.content == "Good morning to you"
    assert type(message) is AIMessage
    assert message.usage_metadata is not None
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (12, 7)


async def test_tokens_of_a_question_that_are_counted_in_the_beginning_and_not_again_in_the_end_count(use: Use) -> None:
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 120, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 0, "output_tokens": 40},
        },
    ]
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    async with ANTHROPIC.fake([Reply(raw=raw)]) as server:
        message = await stream_message(use(ANTHROPIC, server), ASK, nothing)
    assert message.usage_metadata is not None
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (120, 40)


@each_service
async def test_the_first_piece_is_shown_before_the_answer_is_finished(native: Native, use: Use) -> None:
    go_on, seen = asyncio.Event(), asyncio.Event()

    def show(_text: str) -> None:
        seen.set()

    async with native.fake([Reply(text="one two", wait_for=go_on)]) as server:
        task = asyncio.create_task(stream_message(use(native, server), ASK, show))
        async with asyncio.timeout(10):
            await seen.wait()
        assert not task.done()
        go_on.set()
        assert (await task).content == "one two"


@each_service
async def test_parallel_calls_come_back_in_order_with_the_text_beside_them(native: Native, use: Use) -> None:
    calls = [
        ToolUse("tasks__add", {"title": "buy milk"}),
        ToolUse("tasks__add", {"title": "b"}),
        ToolUse("tasks__list"),
    ]
    async with native.fake([Reply(text="I will", calls=calls)]) as server:
        model = use(native, server).bind_tools([ADD, tool("tasks__list")])
        message = await stream_message(model, ASK, nothing)
        assert server.refused == []
    assert message.content == "I will"
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [
        ("tasks__add", {"title": "buy milk"}),
        ("tasks__add", {"title": "b"}),
        ("tasks__list", {}),
    ]
    assert message.invalid_tool_calls == []


async def test_the_first_piece_of_a_call_is_when_the_answer_began(use: Use) -> None:
    """Also where nothing is shown: the calls are passed on in the end, all at once. Google's come whole."""
    times, calls = AnswerTimes(), [ToolUse("tasks__add", {"title": title}) for title in ("a", "b", "c")]
    async with ANTHROPIC.fake([Reply(calls=calls, pause=0.05)]) as server:
        await stream_message(use(ANTHROPIC, server).bind_tools([ADD]), ASK, nothing, times=times)
    assert times.first is not None
    assert time.monotonic() - times.first >= 2 * 0.05, "at least two more events came later"


async def test_arguments_that_cannot_be_read_are_told_and_never_guessed(use: Use) -> None:
    """Google's calls come as JSON objects: there is no way to write one that is none."""
    calls = [ToolUse("tasks__add", '{"title": "buy mi'), ToolUse("tasks__add", {"title": "bread"})]
    async with ANTHROPIC.fake([Reply(calls=calls)]) as server:
        message = await stream_message(use(ANTHROPIC, server).bind_tools([ADD]), ASK, nothing)
    assert [c["args"] for c in message.tool_calls] == [{"title": "bread"}]
    (broken,) = message.invalid_tool_calls
    assert (broken["name"], broken["args"]) == ("tasks__add", '{"title": "buy mi')
    assert "not valid JSON" in (broken["error"] or "")


@each_service
async def test_the_last_call_of_an_answer_that_was_cut_is_none(native: Native, use: Use) -> None:
    calls = [ToolUse("tasks__add", {"title": "milk"}), ToolUse("tasks__add", {"title": "bread"})]
    async with native.fake([Reply(calls=calls, finish_reason=native.cut)]) as server:
        message = await stream_message(use(native, server).bind_tools([ADD]), ASK, nothing)
    assert [c["args"] for c in message.tool_calls] == [{"title": "milk"}]
    assert "cut off" in (message.invalid_tool_calls[0]["error"] or "")


@each_service
async def test_a_long_text_or_call_in_small_pieces_takes_linear_time(native: Native, use: Use) -> None:
    """LangChain parses what there is of a call's arguments anew with each piece, and keeps text as blocks that it
    joins in quadratic time."""
    text = "word " * 20_000
    calls = [ToolUse("tasks__add", {"title": "x" * 200_000})]
    async with native.fake([Reply(text=text, calls=calls)]) as server:
        model = use(native, server).bind_tools([ADD])
        with at_most_cpu(20):
            message = await stream_message(model, ASK, nothing)
    assert message.text == text
    assert len(message.tool_calls[0]["args"]["title"]) == 200_000


# ------------------------------------------------------------------------------------------------ what is asked

BROKEN: InvalidToolCall = {
    "type": "invalid_tool_call",
    "id": "d1.0.1",
    "name": "tasks__add",
    "args": '{"title',
    "error": "not valid JSON",
}


@each_service
async def test_a_conversation_with_everything_in_it_is_taken(native: Native, use: Use) -> None:
    add: Any = {"type": "tool_call", "name": "tasks__add", "args": {"title": None, "deep": [[{"a": 1.5}]]}}
    messages: list[AnyMessage] = [
        SystemMessage("rules"),
        HumanMessage("[Said in this thread before]\nhello"),
        HumanMessage("add milk"),
        AIMessage(
            " \n", id="d1.0", tool_calls=[{**add, "id": "slack:T1:C1:17.5.0.0" * 5}], invalid_tool_calls=[BROKEN]
        ),
        ToolMessage("the arguments were not valid JSON", tool_call_id="d1.0.1", name="tasks__add", status="error"),
        ToolMessage("[" * 100_000, tool_call_id="slack:T1:C1:17.5.0.0" * 5, name="tasks__add"),
        AIMessage("", id="d1.1", tool_calls=[{**add, "id": "d1.1.0"}]),
        ToolMessage("", tool_call_id="d1.1.0", name="tasks__add"),
        AIMessage("Added.  ", id="d1.2"),
        AIMessage("", id="d1.3"),
        AIMessage("Stopped there.", id="d1.4"),
        AIMessage("Once more.", id="d1.5", tool_calls=[{**add, "id": "d1.5.0"}, {**add, "id": "d1.5.1"}]),
        ToolMessage("NaN", tool_call_id="d1.5.0", name="tasks__add"),
        ToolMessage('{"output": 1}', tool_call_id="d1.5.1", name="tasks__add"),
        HumanMessage(" "),
        HumanMessage("and now?"),
    ]
    async with native.fake([Reply(text="ok")]) as server:
        message = await stream_message(use(native, server).bind_tools([ADD]), messages, nothing, retry=ONCE)
        assert server.refused == []
        sent = json.dumps(server.requests[0], ensure_ascii=False)
        if native is GOOGLE:
            parts = [part for content in server.requests[0]["contents"] for part in content["parts"]]
            results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
            assert results[2:] == [{"output": ""}, {"output": "NaN"}, {"output": '{"output": 1}'}], (
                "as text, not parsed"
            )
    assert message.text == "ok"
    assert all(words in sent for words in ("add milk", "Added.", "Stopped there.", '{\\"output\\": 1}', "NaN"))


@each_service
async def test_a_result_answers_its_own_call_whatever_came_first(native: Native, use: Use) -> None:
    calls: list[Any] = [{"type": "tool_call", "name": f"t__{n}", "args": {}, "id": f"d.0.{n}"} for n in range(3)]
    results = [ToolMessage(f"result {n}", tool_call_id=f"d.0.{n}", name=f"t__{n}") for n in (2, 0, 1)]
    async with native.fake([Reply(text="ok")]) as server:
        await stream_message(
            use(native, server), [HumanMessage("do"), AIMessage("", tool_calls=calls), *results], nothing
        )
        assert server.refused == []
        answer = json.dumps(server.requests[0])
    assert [answer.find(f"result {n}") for n in range(3)] == sorted(answer.find(f"result {n}") for n in range(3))


SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a choice at the root": {
        "anyOf": [
            {"properties": {"id": {"type": "string"}}, "required": ["id"]},
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]
    },
    "a reference at the root": {
        "$ref": "#/definitions/Task",
        "definitions": {"Task": {"type": "object", "properties": {"title": {"type": "string"}}}},
    },
    "all of several": {
        "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    },
    "keywords of every kind": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "made by a generator",
        "additionalProperties": False,
        "properties": {
            "title": {
                "type": "string",
                "minLength": 1,
                "maxLength": 9,
                "pattern": "^a",
                "default": "a",
                "examples": ["a"],
            },
            "when": {"type": ["string", "null"], "format": "date-time", "deprecated": True},
            "mail": {"type": "string", "format": "email", "contentEncoding": "base64"},
            "count": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2, "enum": [2, 4]},
            "flag": {"const": True},
            "kind": {"const": "a"},
            "mixed": {"enum": ["a", None, 1]},
            "any": True,
            "none": {"not": {}},
            "open": {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "minProperties": 1},
            "map": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMaximum": 3}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "uniqueItems": True},
            "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string", "minLength": 2}}]},
            "if": {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {}},
            "tree": {"$ref": "#/$defs/Tree", "description": "beside a reference"},
            "far": {"$ref": "https://example.com/schema.json"},
        },
        "required": ["title", "not there"],
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"left": {"$ref": "#/$defs/Tree"}, "leaf": {"type": "string", "pattern": "a"}},
                "dependentRequired": {"left": ["leaf"]},
            }
        },
        "unevaluatedProperties": False,
    },
}


@each_service
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
async def test_whatever_a_tool_takes_is_described_as_the_service_wants_it(
    native: Native, use: Use, schema: dict[str, Any]
) -> None:
    before = json.dumps(schema)
    definition = {"type": "function", "function": {"name": "a__b", "description": "Does it.", "parameters": schema}}
    async with native.fake([Reply(text="ok")]) as server:
        await stream_message(use(native, server).bind_tools([definition, ADD]), ASK, nothing, retry=ONCE)
        assert server.refused == []
        offered = json.dumps(server.requests[0]["tools"])
    assert '"a__b"' in offered
    assert '"tasks__add"' in offered
    assert json.dumps(schema) == before, "a tool's own schema stays as it is"


@each_service
async def test_of_a_choice_between_arguments_the_model_is_shown_all(native: Native, use: Use) -> None:
    choice = tool("a__b", **SCHEMAS["a choice at the root"])
    async with native.fake([Reply(text="ok")]) as server:
        await stream_message(use(native, server).bind_tools([choice]), ASK, nothing, retry=ONCE)
        offered = server.requests[0]["tools"][0]
    schema = (
        offered["input_schema"] if native is ANTHROPIC else offered["functionDeclarations"][0]["parametersJsonSchema"]
    )
    assert schema["properties"].keys() == {"id", "name"}
    assert "required" not in schema, "neither is needed where there is the other"


async def test_a_tool_whose_arguments_cannot_be_named_does_not_take_the_others_with_it(
    use: Use, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anthropic refuses the whole request, whatever it is about."""
    odd = tool("a__search", properties={"$filter": {"type": "string"}, "top": {"type": "integer"}})
    async with ANTHROPIC.fake([Reply(text="ok"), Reply(text="ok")]) as server:
        await stream_message(use(ANTHROPIC, server).bind_tools([odd, ADD]), ASK, nothing, retry=ONCE)
        await stream_message(use(ANTHROPIC, server).bind_tools([odd]), ASK, nothing, retry=ONCE)
        assert server.refused == []
        assert [tool["name"] for tool in server.requests[0]["tools"]] == ["tasks__add"]
        assert "tools" not in server.requests[1]
    logged = caplog.text + capsys.readouterr().out
    assert "a__search" in logged
    assert "$filter" in logged


async def test_a_server_whose_name_begins_with_a_digit_can_be_called(use: Use) -> None:
    """Google's functions begin with a letter or an underscore."""
    call: Any = {"type": "tool_call", "name": "365__mail", "args": {}, "id": "d.0.0"}
    history = [
        HumanMessage("look"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("1", tool_call_id="d.0.0", name="365__mail"),
    ]
    async with GOOGLE.fake([Reply(calls=[ToolUse("_365__mail")])]) as server:
        message = await stream_message(
            use(GOOGLE, server).bind_tools([tool("365__mail")]), history, nothing, retry=ONCE
        )
        assert server.refused == []
    assert [c["name"] for c in message.tool_calls] == ["365__mail"]


@pytest.mark.parametrize("temperature", [None, 0.0, 0.5])
async def test_an_agents_temperature_goes_along_and_no_other(temperature: float | None) -> None:
    async with GOOGLE.fake([Reply(text="ok")]) as server:
        spec = ModelSpec(GOOGLE.model, server.base_url, SecretStr(KEY), temperature=temperature)
        model = create_model(spec)
        await stream_message(model.bind_tools([ADD]), ASK, nothing, retry=ONCE)
        await close_model(model)
        assert server.refused == []
        (sent,) = server.requests
    assert sent["generationConfig"].get("temperature") == temperature


def test_a_temperature_is_refused_at_the_start_where_the_service_has_none() -> None:
    """Or each request would be, with any temperature."""
    with pytest.raises(ModelProblem, match="takes no temperature") as caught:
        create_model(ModelSpec(ANTHROPIC.model, api_key=SecretStr(KEY), temperature=0.0))
    assert caught.value.trouble is Trouble.NOT_CONFIGURED


@each_service
async def test_the_router_picks_tool_types_by_it(native: Native, use: Use) -> None:
    async with native.fake([Reply(calls=[ToolUse(CHOOSE, {"types": ["mail"]})], usage=(7, 3))]) as server:
        route = create_router(use(native, server), ONCE, NOBODY, time.time, Spent())
        picked = await route([HumanMessage("write a mail")], ["mail", "drive"], TurnHandling(TURN, "m1"))
        assert server.refused == []
    assert picked.use is not None
    assert (picked.categories, total_tokens(picked.use)) == (["mail"], 10)


@each_service
async def test_the_earlier_conversation_is_summarised_by_it(native: Native, use: Use) -> None:
    async with native.fake([Reply(text="Ana asked for a lamp.")]) as server:
        folded: list[AnyMessage] = [HumanMessage("make a lamp"), AIMessage("made")]
        message = await stream_message(use(native, server), summary_request("", folded), nothing, retry=ONCE)
        assert server.refused == []
    assert message.text == "Ana asked for a lamp."


# ------------------------------------------------------------------------------------------------ failures

TOO_LONG = {"message": "prompt is too long: 210000 tokens > 200000 maximum"}
NO_CREDIT = {"message": "Your credit balance is too low to access the Anthropic API."}
OVER = {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}
WRONG = {"message": "API key not valid. Please pass a valid API key.", "details": [{"reason": "API_KEY_INVALID"}]}
DAILY = {"details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}
WAIT = {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "120s"}]}


def sent(kind: str) -> Reply:
    """An error of Anthropic's within an answer."""
    return Reply(raw=f'event: error\ndata: {{"type": "error", "error": {{"type": "{kind}", "message": "no"}}}}\n\n')


def ended(*reasons: Any) -> Reply:
    """An answer of either service that says more than once why it ended."""
    text = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}}
    ends = [
        {
            "type": "message_delta",
            "delta": {"stop_reason": each},
            "candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": each}],
        }
        for each in reasons
    ]
    return Reply(raw="".join(f"data: {json.dumps(event)}\n\n" for event in [text, *ends]))


FAILURES = [
    *(
        (native, reply, trouble)
        for native in NATIVE
        for reply, trouble in [
            (Reply(status=401, error={"message": f"bad key {KEY}"}), Trouble.WRONG_KEY),
            (Reply(status=403), Trouble.NO_ACCESS),
            (Reply(status=404), Trouble.UNKNOWN_MODEL),
            (Reply(status=404, error="<html>not here</html>"), Trouble.UNKNOWN_MODEL),
            (Reply(status=413, error="too large"), Trouble.TOO_LONG),
            (Reply(status=429), Trouble.RATE_LIMITED),
            (Reply(status=400, error={"message": "temperature: unknown"}), Trouble.REFUSED),
            (Reply(status=500), Trouble.SERVER_FAILED),
            (Reply(status=502, error="<html>bad gateway</html>"), Trouble.SERVER_FAILED),
            (Reply(status=503), Trouble.SERVER_FAILED),
            (Reply(status=504), Trouble.TIMED_OUT),
            (Reply(status=500, error="[" * 60_000), Trouble.SERVER_FAILED),
            (Reply(text="half", finish_reason=native.filtered), Trouble.FILTERED),
            (Reply(text="x", drop_after=1), Trouble.BROKE_OFF),
            (Reply(text="x", drop_after=1, end_early=True), Trouble.BROKE_OFF),
            (Reply(raw="data: {broken\n\n"), Trouble.MALFORMED),
            (Reply(raw="data: 1\n\n"), Trouble.MALFORMED),
            (Reply(raw='data: "text"\n\n'), Trouble.MALFORMED),
            (Reply(raw="data: " + "[" * 60_000 + "\n\n"), Trouble.MALFORMED),
            (Reply(raw="<html>a proxy's sign-in page</html>"), Trouble.MALFORMED),
            (Reply(raw=""), Trouble.MALFORMED),
            (Reply(text=""), Trouble.MALFORMED),
            (Reply(text="x", headers={"Content-Encoding": "gzip"}), Trouble.BROKE_OFF),
        ]
    ),
    (ANTHROPIC, Reply(status=402), Trouble.QUOTA_GONE),
    (ANTHROPIC, Reply(status=400, error=NO_CREDIT), Trouble.QUOTA_GONE),
    (ANTHROPIC, Reply(status=400, error=TOO_LONG), Trouble.TOO_LONG),
    (ANTHROPIC, Reply(status=529), Trouble.SERVER_FAILED),
    (ANTHROPIC, sent("overloaded_error"), Trouble.SERVER_FAILED),
    (ANTHROPIC, sent("rate_limit_error"), Trouble.RATE_LIMITED),
    (ANTHROPIC, sent("something_new"), Trouble.SERVER_FAILED),
    (ANTHROPIC, Reply(raw='data: {"type": "content_block_delta", "index": 0}\n\n'), Trouble.MALFORMED),
    (
        ANTHROPIC,
        Reply(raw='data: {"type": "content_block_start", "index": [], "content_block": 1}\n\n'),
        Trouble.MALFORMED,
    ),
    (GOOGLE, Reply(status=400, error=WRONG), Trouble.WRONG_KEY),
    (GOOGLE, Reply(status=400, error=OVER), Trouble.TOO_LONG),
    (GOOGLE, Reply(status=429, error=DAILY), Trouble.QUOTA_GONE),
    (GOOGLE, Reply(raw='data: {"error": {"code": 503, "message": "overloaded"}}\n\n'), Trouble.SERVER_FAILED),
    (GOOGLE, Reply(raw='data: {"error": {"code": 429, "message": "slow down"}}\n\n'), Trouble.RATE_LIMITED),
    (GOOGLE, Reply(raw='data: {"promptFeedback": {"blockReason": "SAFETY"}}\n\n'), Trouble.FILTERED),
    (GOOGLE, Reply(raw='data: {"candidates": 5}\n\n'), Trouble.MALFORMED),
    (
        GOOGLE,
        Reply(raw='data: {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}\n\n'),
        Trouble.BROKE_OFF,
    ),
    (GOOGLE, Reply(finish_reason="MALFORMED_FUNCTION_CALL"), Trouble.MALFORMED),
    # What is said afterwards takes no end back, and what is no word is none.
    (ANTHROPIC, ended("refusal", "end_turn"), Trouble.FILTERED),
    (GOOGLE, ended("SAFETY", "STOP"), Trouble.FILTERED),
    (ANTHROPIC, ended(["end_turn"]), Trouble.MALFORMED),
    (GOOGLE, ended(5), Trouble.MALFORMED),
]


@pytest.mark.parametrize(("native", "reply", "trouble"), FAILURES, ids=lambda v: getattr(v, "value", None))
async def test_each_failure_has_its_own_sentence_and_says_no_secret(
    native: Native, use: Use, reply: Reply, trouble: Trouble
) -> None:
    async with native.fake([reply]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(use(native, server), ASK, nothing, retry=ONCE)
        assert server.refused == []
        assert caught.value.trouble is trouble
        assert caught.value.sentence == str(caught.value) == ModelProblem(trouble).sentence
        assert server.base_url not in caught.value.sentence
        assert native.key_of(server.headers[0]) == KEY


@each_service
async def test_the_cause_is_kept_for_the_log_with_what_the_service_said(native: Native, use: Use) -> None:
    async with native.fake([Reply(status=400, error={"message": "temperature: unknown"})]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(use(native, server), ASK, nothing, retry=ONCE)
    logged = "".join(traceback.format_exception(caught.value))
    assert "status 400: temperature: unknown" in logged
    assert KEY not in logged
    assert KEY not in repr(use(native, server))


@each_service
@pytest.mark.parametrize(
    "failure",
    [
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(status=503, error="<html>upstream</html>"),
        Reply(text="never seen", drop_after=0),
        Reply(calls=[ToolUse("tasks__add", {"title": "lost"})], drop_after=1),
        Reply(text=""),
    ],
)
async def test_a_failure_before_anything_was_shown_is_tried_again_by_us_alone(
    native: Native, use: Use, failure: Reply
) -> None:
    shown: list[str] = []
    good = Reply(text="Here", calls=[ToolUse("tasks__add", {"title": "milk"})])
    async with native.fake([failure, failure, good]) as server:
        message = await stream_message(use(native, server).bind_tools([ADD]), ASK, shown.append, retry=QUICK)
        assert len(server.requests) == 3
        assert server.requests[0] == server.requests[2]
    assert ("".join(shown), message.content) == ("Here", "Here")
    assert len(message.tool_calls) == 1


@each_service
async def test_no_client_tries_again_beneath_us(native: Native, use: Use) -> None:
    async with native.fake(lambda _: Reply(status=503)) as server:
        with pytest.raises(ModelProblem):
            await stream_message(use(native, server), ASK, nothing, retry=ONCE)
        assert len(server.requests) == 1


@each_service
async def test_a_break_after_something_was_shown_is_final(native: Native, use: Use) -> None:
    shown: list[str] = []
    async with native.fake([Reply(text="one two three four five", drop_after=4)]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(use(native, server), ASK, shown.append, retry=QUICK)
        assert len(server.requests) == 1
    assert caught.value.trouble is Trouble.BROKE_OFF
    assert "".join(shown).startswith("one two")


@pytest.mark.parametrize(
    ("native", "busy"),
    [(ANTHROPIC, Reply(status=429, headers={"Retry-After": "120"})), (GOOGLE, Reply(status=429, error=WAIT))],
    ids=str,
)
async def test_people_are_told_at_once_when_the_service_wants_a_long_time(
    native: Native, use: Use, busy: Reply
) -> None:
    """Google says it in the body of its error."""
    async with native.fake([busy]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(use(native, server), ASK, nothing, retry=QUICK)
        assert len(server.requests) == 1
    assert caught.value.retry_after == 120


@each_service
@pytest.mark.parametrize("keep_alive", [True, False])
async def test_a_service_that_falls_silent_in_mid_answer_is_told_so(
    native: Native, use: Use, *, keep_alive: bool
) -> None:
    never = asyncio.Event()
    async with native.fake([Reply(text="one", wait_for=never, keep_alive=keep_alive)]) as server:
        with pytest.raises(ModelProblem) as caught:
            async with asyncio.timeout(10):
                await stream_message(use(native, server, timeout=0.5), ASK, nothing, retry=ONCE)
        never.set()
    assert caught.value.trouble is Trouble.TIMED_OUT


@each_service
async def test_a_service_that_does_not_answer_in_time_is_told_so(native: Native, use: Use) -> None:
    never = asyncio.Event()

    async def silent(_request: dict[str, Any]) -> Reply:
        await never.wait()
        return Reply()

    async with native.fake(silent) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(use(native, server, timeout=0.2), ASK, nothing, retry=ONCE)
        never.set()
    assert caught.value.trouble is Trouble.TIMED_OUT


@each_service
async def test_a_service_that_is_not_there_is_told_so(native: Native, use: Use) -> None:
    async with native.fake([]) as server:
        pass
    with pytest.raises(ModelProblem) as caught:
        await stream_message(use(native, server), ASK, nothing, retry=ONCE)
    assert caught.value.trouble is Trouble.UNREACHABLE


@each_service
async def test_the_key_goes_to_no_other_address(native: Native, use: Use) -> None:
    """It is in a header of the service's own, which an HTTP client that follows redirects takes along."""
    async with native.fake(lambda _: Reply(text="stolen")) as other:

        def elsewhere(_request: Any) -> Reply:
            return Reply(status=307, error="", headers={"Location": other.base_url + "/v1/messages"})

        async with native.fake(elsewhere) as server:
            with pytest.raises(ModelProblem) as caught:
                await stream_message(use(native, server), ASK, nothing, retry=ONCE)
        assert other.requests == []
    assert caught.value.trouble is Trouble.REFUSED


@each_service
async def test_the_keys_of_the_environment_go_nowhere_they_were_not_configured_for(
    native: Native, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "LANGSMITH_API_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    async with native.fake([Reply(text="ok")]) as server:
        model = create_model(ModelSpec(native.model, server.base_url))
        await stream_message(model, ASK, nothing, retry=ONCE)
        await close_model(model)
        assert "sk-of-somebody" not in str(server.headers)


@each_service
async def test_nothing_of_a_conversation_or_a_key_is_logged(
    native: Native, use: Use, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with native.fake([Reply(status=503), Reply(text="told in confidence")]) as server:
        await stream_message(use(native, server), [HumanMessage("a secret of Ana's")], nothing, retry=QUICK)
    shown = capsys.readouterr()
    logged = caplog.text + shown.out + shown.err
    assert not any(words in logged for words in (KEY, "a secret of Ana's", "told in confidence"))


@each_service
async def test_a_stand_in_refuses_what_the_service_would(native: Native) -> None:
    """Or all of this would prove nothing."""
    import aiohttp

    good, bad = WRONG_REQUESTS[native.prefix]
    path = "/v1/messages" if native is ANTHROPIC else "/v1beta/models/gemini-3-test:streamGenerateContent?alt=sse"
    async with native.fake(lambda _: Reply(text="ok")) as server, aiohttp.ClientSession() as session:
        headers = {"anthropic-version": ANTHROPIC_API_VERSION}
        async with session.post(server.base_url + path, json=good, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        for change in bad:
            async with session.post(server.base_url + path, json={**good, **change}, headers=headers) as answer:
                assert answer.status == web.HTTPBadRequest.status_code, change


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


_CALL = {"type": "tool_use", "id": "c1", "name": "t", "input": {}}
_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "1"}
_HI = {"type": "text", "text": "hi"}


def turn(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


_FC, _FR = {"functionCall": {"name": "t", "args": {}}}, {"functionResponse": {"name": "t", "response": {}}}
_SIGNED = {**_FC, "thoughtSignature": "c2tpcA=="}


def function(**more: Any) -> dict[str, Any]:
    return {"tools": [{"functionDeclarations": [{"name": "t", "description": "d", **more}]}]}


WRONG_REQUESTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "anthropic": (
        {"model": "claude-test", "max_tokens": 9, "stream": True, "messages": [said("user", _HI)]},
        [
            {"temperature": 1},
            {"max_tokens": "9"},
            {"messages": []},
            {"messages": [said("assistant", _HI)]},
            {"messages": [said("user", _HI), said("assistant", _HI)]},
            {"messages": [said("user")]},
            {"messages": [said("user", {"type": "text", "text": " "})]},
            {"messages": [said("user", {"type": "text", "text": "a", "id": "b"})]},
            {"messages": [said("user", _HI), said("assistant", _CALL), said("user", _HI)]},
            {"messages": [said("user", _HI), said("assistant", _CALL), said("user", _HI, _RESULT)]},
            {"messages": [said("user", _RESULT)]},
            {"messages": [said("user", _HI), said("assistant", _CALL, _CALL), said("user", _RESULT)]},
            {"messages": [said("user", _HI), said("assistant", {**_CALL, "id": "a.b"}), said("user", _RESULT)]},
            {"system": ""},
            {"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]},
            {"tools": [{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]},
            {"tools": [{"name": "a", "input_schema": {"type": "object", "properties": {"$a": {}}}}]},
            {"tools": [{"name": "a", "input_schema": {}}]},
            {"tools": [{"name": "a", "input_schema": {"type": "object", "properties": {"a": {"type": "text"}}}}]},
        ],
    ),
    "google": (
        {"contents": [turn("user", {"text": "hi"})]},
        [
            {"content": []},
            {"contents": []},
            {"contents": [turn("user")]},
            {"contents": [turn("user", {"text": ""})]},
            {"contents": [turn("assistant", {"text": "hi"})]},
            {"contents": [turn("user", {"txt": "hi"})]},
            {"contents": [turn("user", {"text": "hi"}), turn("model", {"text": "hi"})]},
            {"contents": [turn("user", {"text": "hi"}), turn("model", _FC), turn("user", _FR)]},
            {"contents": [turn("user", {"text": "hi"}), turn("model", _SIGNED, _FC), turn("user", _FR)]},
            {
                "contents": [
                    turn("user", {"text": "hi"}),
                    turn("model", {"text": "a"}),
                    turn("model", _SIGNED),
                    turn("user", _FR),
                ]
            },
            {"contents": [turn("user", _FR)]},
            {"generationConfig": {"warmth": 1}},
            function(name="1t"),
            function(parameters={"type": "OBJECT", "exclusiveMinimum": 1}),
            function(parametersJsonSchema={"type": "object", "$schema": "x"}),
            function(parametersJsonSchema={"type": "object", "properties": {"a": {"pattern": "x"}}}),
            function(parametersJsonSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}),
            function(parametersJsonSchema={"type": "object", "required": ["a"]}),
        ],
    ),
}
