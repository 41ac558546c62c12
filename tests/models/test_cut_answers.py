"""An answer that was cut holds no last call (rule 12: nobody approves what the model had not said to the end), and
however it streams, reading it holds nobody up (rule 13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field

from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import stream_message
from graph.models.tool_calls import LONGEST_ANSWER, MOST_BEGUN, MOST_CALLS, MOST_VALUES_TOGETHER, WrittenCalls
from tests.fakes.openai_server import Reply, ToolUse, fake_openai
from tests.models.conftest import ONCE, Connect
from tests.support.cpu import at_most_cpu

ASK = [HumanMessage("hi")]
PURGE = ToolUse("crm__purge", "")
CUT = ("length", "max_tokens", "MAX_TOKENS", "a reason of tomorrow")


async def answered(connect: Connect, reply: Reply) -> Any:
    async with fake_openai([reply]) as server:
        return await stream_message(connect(server), ASK, lambda _: None, retry=ONCE)


@pytest.mark.parametrize("reason", CUT)
@pytest.mark.parametrize("written", ["", "{}", '{"customer": 7}', '{"customer": 7'])
async def test_the_last_call_of_a_cut_answer_is_no_call(connect: Connect, reason: str, written: str) -> None:
    message = await answered(connect, Reply(calls=[ToolUse("crm__purge", written)], finish_reason=reason))
    assert message.tool_calls == []
    (broken,) = message.invalid_tool_calls
    assert broken["name"] == "crm__purge"
    assert "cut off" in broken["error"]


async def test_calls_before_the_last_one_stand_if_they_are_complete(connect: Connect) -> None:
    calls = [ToolUse("crm__find", {"name": "ACME"}), PURGE, ToolUse("crm__find", '{"name"'), ToolUse("crm__find", "{}")]
    message = await answered(connect, Reply(calls=calls, finish_reason="length"))
    assert [call["args"] for call in message.tool_calls] == [{"name": "ACME"}]
    assert [call["name"] for call in message.invalid_tool_calls] == ["crm__purge", "crm__find", "crm__find"]


async def test_no_arguments_are_none_when_the_answer_ended_properly(connect: Connect) -> None:
    message = await answered(connect, Reply(calls=[PURGE]))
    assert [call["args"] for call in message.tool_calls] == [{}]


async def test_a_filter_in_mid_call_leaves_no_call(connect: Connect) -> None:
    with pytest.raises(ModelProblem) as caught:
        await answered(connect, Reply(calls=[PURGE], finish_reason="content_filter"))
    assert caught.value.trouble is Trouble.FILTERED


@pytest.mark.parametrize(
    ("beside", "stand"),
    [
        ({"native_finish_reason": "MAX_TOKENS"}, 0),
        ({"native_finish_reason": "MALFORMED_FUNCTION_CALL"}, 0),
        ({"native_finish_reason": "SAFETY"}, 0),
        ({"stop_reason": "length"}, 0),
        ({"error": {"code": 502, "message": "The provider has gone."}}, 0),
        ({"native_finish_reason": "STOP", "error": None}, 1),
        ({"native_finish_reason": "", "stop_reason": 151645}, 1),
        ({"stop_reason": "<|im_end|>"}, 1),
    ],
)
async def test_a_gateway_says_beside_a_proper_end_what_really_ended_it(
    connect: Connect, beside: dict[str, Any], stand: int
) -> None:
    """Rule 12: nobody approves the rest of a call that the model never wrote."""
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "crm__purge", "arguments": ""}}
    pieces = [
        {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls", **beside},
    ]
    events = [{"id": "a", "object": "chat.completion.chunk", "choices": [piece]} for piece in pieces]
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    message = await answered(connect, Reply(raw=raw))
    assert (len(message.tool_calls), len(message.invalid_tool_calls)) == (stand, 1 - stand)


class AnotherProvider(BaseChatModel):
    """Streams pieces of LangChain's own, with what it says at the end."""

    metadata: dict[str, Any]
    afterwards: dict[str, Any] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "another"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for index, text in enumerate(['{"name": "ACME"}', "{}"]):
            piece = tool_call_chunk(name="crm__call", args=text, id=f"c{index}", index=index)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=self.metadata))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=self.afterwards))


@pytest.mark.parametrize(
    ("metadata", "stand"),
    [
        ({"finish_reason": "STOP"}, 2),
        ({"stop_reason": "tool_use"}, 2),
        ({"done_reason": "stop"}, 2),
        ({"finish_reason": "MAX_TOKENS"}, 1),
        ({"finish_reason": "MALFORMED_FUNCTION_CALL"}, 1),
        ({"stop_reason": "max_tokens"}, 1),
        ({"done_reason": "length"}, 1),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, 1),
        ({"finish_reason": "tool_calls", "stop_reason": "max_tokens"}, 1),
        ({"finish_reason": "stop", "status": "incomplete"}, 1),
        ({"finish_reason": "stop", "native_finish_reason": "MAX_TOKENS"}, 1),
        ({"finish_reason": "stop", "native_finish_reason": "STOP"}, 2),
        ({"finish_reason": "stop", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}, 1),
        ({"finish_reason": "stop", "native_finish_reason": "SAFETY"}, 1),
        ({"finish_reason": "stop", "status": "failed"}, 1),
        ({"finish_reason": "stop", "stop_reason": "<|eot_id|>"}, 2),
        ({}, 1),
    ],
)
async def test_other_providers_say_it_in_words_of_their_own(metadata: dict[str, Any], stand: int) -> None:
    message = await stream_message(AnotherProvider(metadata=metadata), ASK, lambda _: None, retry=ONCE)
    assert (len(message.tool_calls), len(message.invalid_tool_calls)) == (stand, 2 - stand)


@pytest.mark.parametrize("reason", ["length", "error", "a word that nobody knows"])
async def test_what_was_cut_stays_cut_whatever_a_gateway_says_afterwards(reason: str) -> None:
    """Rule 12: nobody approves the rest of a call that the model never wrote."""
    said = AnotherProvider(metadata={"finish_reason": reason}, afterwards={"finish_reason": "stop"})
    message = await stream_message(said, ASK, lambda _: None, retry=ONCE)
    assert (len(message.tool_calls), len(message.invalid_tool_calls)) == (1, 1)


async def test_what_a_filter_ended_is_no_answer_whatever_a_gateway_says_afterwards() -> None:
    """Rule 12."""
    said = AnotherProvider(metadata={"finish_reason": "content_filter"}, afterwards={"finish_reason": "stop"})
    with pytest.raises(ModelProblem) as told:
        await stream_message(said, ASK, lambda _: None, retry=ONCE)
    assert told.value.trouble is Trouble.FILTERED


async def test_an_answer_that_was_under_way_and_then_ended_is_whole() -> None:
    said = AnotherProvider(metadata={"status": "in_progress"}, afterwards={"status": "completed"})
    message = await stream_message(said, ASK, lambda _: None, retry=ONCE)
    assert (len(message.tool_calls), len(message.invalid_tool_calls)) == (2, 0)


# ------------------------------------------------------------------------------------------------ how much


def streamed(text: str, size: int) -> Reply:
    """An answer with one call whose arguments come in pieces of this size."""
    begin = {"index": 0, "id": "c0", "type": "function", "function": {"name": "crm__note", "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": text[at : at + size]}} for at in range(0, len(text), size)]
    deltas: list[tuple[dict[str, Any], str | None]] = [({"tool_calls": [piece]}, None) for piece in [begin, *pieces]]
    events = [{"choices": [{"index": 0, "delta": d, "finish_reason": f}]} for d, f in [*deltas, ({}, "tool_calls")]]
    return Reply(raw="".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")


@pytest.mark.parametrize("written", [["all"], [], True, False, 7, 0])
async def test_arguments_that_are_neither_text_nor_an_object_are_no_call(connect: Connect, written: Any) -> None:
    """A service that parses them by itself: what it says was meant to be something, and is not "no arguments"."""
    piece = {"index": 0, "id": "c0", "function": {"name": "crm__purge", "arguments": written}}
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": "tool_calls"}]}]
    message = await answered(connect, Reply(raw="".join(f"data: {json.dumps(event)}\n\n" for event in events)))
    assert message.tool_calls == []
    assert "not a JSON object" in message.invalid_tool_calls[0]["error"]


@pytest.mark.parametrize(("characters", "size", "seconds"), [(100_000, 10**6, 0.2), (100_000, 50, 1.0)])
@pytest.mark.parametrize("broken", [True, False])
async def test_long_arguments_cost_no_more_than_reading_them(
    connect: Connect, characters: int, size: int, seconds: float, *, broken: bool
) -> None:
    text = json.dumps({"note": "x" * characters})
    reply = streamed(text[:-2] if broken else text, size)
    async with fake_openai([reply]) as server:
        model = connect(server)
        with at_most_cpu(seconds):
            message = await stream_message(model, ASK, lambda _: None, retry=ONCE)
    assert (len(message.tool_calls), len(message.invalid_tool_calls)) == ((0, 1) if broken else (1, 0))


@pytest.mark.parametrize("size", [50_000, 10**7])
async def test_arguments_beyond_the_limit_are_no_call(connect: Connect, size: int) -> None:
    message = await answered(connect, streamed(json.dumps({"note": "x" * 1_000_000}), size))
    assert message.tool_calls == []
    assert "longer than 1,000,000 characters" in message.invalid_tool_calls[0]["error"]


async def test_calls_beyond_the_limit_are_told_and_not_made(connect: Connect) -> None:
    calls = [ToolUse("crm__find", {"id": n}, f"c{n}") for n in range(MOST_CALLS + 10)]
    message = await answered(connect, Reply(calls=calls))
    assert [call["args"]["id"] for call in message.tool_calls] == list(range(MOST_CALLS))
    assert [call["error"] for call in message.invalid_tool_calls] == [
        f"the answer held {MOST_CALLS + 10} calls, of which only the first {MOST_CALLS} were taken"
    ]


def test_an_answer_that_begins_one_call_after_the_other_is_given_up() -> None:
    """Rule 13: something of each is remembered, 0.5 GB of as many as fit into an answer."""
    calls = WrittenCalls()
    with pytest.raises(ModelProblem) as problem:
        for number in range(MOST_BEGUN + MOST_CALLS + 1):
            calls.add(number, call_id=f"c{number}", name="crm__find", text="{}")
    assert problem.value.trouble is Trouble.TOO_MUCH


async def test_the_values_of_all_calls_of_an_answer_are_bounded_together() -> None:
    """Rule 13: forty calls with 7,500 lists each, which are kept and copied together, held the event loop for 0.8 s."""
    calls = WrittenCalls()
    each = MOST_VALUES_TOGETHER // 4
    for number in range(6):
        calls.add(number, call_id=f"c{number}", name="crm__find", text=json.dumps({"q": [[]] * (each - 1)}))
    reading = asyncio.create_task(calls.read(cut=False))
    for _ in range(6):
        await asyncio.sleep(0)
        assert not reading.done(), "others have their turn after each call"
    readable, unreadable = await reading
    assert [call["id"] for call in readable] == ["c0", "c1", "c2", "c3"]
    assert [call["id"] for call in unreadable] == ["c4", "c5"]
    assert "20,000 values together" in (unreadable[0]["error"] or "")


def test_an_answer_without_an_end_is_not_read_on() -> None:
    calls = WrittenCalls()
    with pytest.raises(ModelProblem) as caught:
        for _ in range(100):
            calls.add(0, name="crm__note", text="x" * (LONGEST_ANSWER // 50))
    assert caught.value.trouble is Trouble.TOO_MUCH
    assert not caught.value.transient


async def test_a_long_text_is_whole(connect: Connect) -> None:
    text, shown = " ".join(map(str, range(3_000))), list[str]()
    async with fake_openai([Reply(text=text)]) as server:
        message = await stream_message(connect(server), ASK, shown.append, retry=ONCE)
    assert message.content == "".join(shown) == text
    assert len(shown) < 1_200


async def test_calls_that_a_service_numbers_alike_are_told_apart_by_their_ids() -> None:
    calls = WrittenCalls()
    for call_id, text in (("a", '{"n": 1}'), ("b", '{"n"'), ("b", ": 2}"), (None, " ")):
        calls.add(0, call_id=call_id, name="crm__find" if call_id == "a" else None, text=text)
    calls.add(None, name="crm__find", text="{}")
    readable, unreadable = await calls.read(cut=False)
    assert [call["args"] for call in readable] == [{"n": 1}, {}]
    assert [call["error"] for call in unreadable] == ["the call names no tool"]


ODD_PIECES: dict[str, list[tuple[int | None, str | None, str | None, str]]] = {
    "a new id in each piece": [(0, "x1", "crm__purge", ""), (0, "x2", None, '{"days"'), (0, "x3", None, ": 5}")],
    "a new id and the name in each piece": [(0, "x1", "crm__purge", ""), (0, "x2", "crm__purge", '{"days": 5}')],
    "the name in each piece and no number": [(None, None, "crm__purge", ""), (None, None, "crm__purge", '{"days": 5}')],
    "the arguments before the name": [(None, None, None, '{"days": 5}'), (None, "a", "crm__purge", "")],
    "another number for the arguments": [(0, "a", "crm__purge", ""), (1, None, None, '{"days": 5}')],
    "another number for the same id": [(0, "a", "crm__purge", ""), (1, "a", None, '{"days": 5}')],
    "the name in pieces and no number": [(None, "a", "crm__", ""), (None, None, "purge", '{"days": 5}')],
}


@pytest.mark.parametrize("pieces", ODD_PIECES.values(), ids=ODD_PIECES)
async def test_a_call_whose_arguments_went_astray_is_not_made_without_them(
    pieces: list[tuple[int | None, str | None, str | None, str]],
) -> None:
    """Rule 12: the model wrote `purge(days=5)`, and `purge()` is everything."""
    calls = WrittenCalls()
    for number, call_id, name, text in pieces:
        calls.add(number, call_id=call_id, name=name, text=text)
    readable, unreadable = await calls.read(cut=False)
    assert all(call["args"] == {"days": 5} for call in readable)
    assert any("no arguments came" in (call["error"] or "") for call in unreadable)


@pytest.mark.parametrize("number", [0, None])
async def test_pieces_of_calls_in_turns_belong_where_their_ids_say(number: int | None) -> None:
    """Rule 12."""
    calls = WrittenCalls()
    for call_id in ("a", "b"):
        calls.add(number, call_id=call_id, name="crm__purge", text="")
    for text in ('{"days":', " 5}"):
        for call_id in ("a", "b"):
            calls.add(number, call_id=call_id, text=text)
    readable, unreadable = await calls.read(cut=False)
    assert [(call["id"], call["args"]) for call in readable] == [("a", {"days": 5}), ("b", {"days": 5})]
    assert unreadable == []


async def test_one_call_after_the_other_may_have_the_same_id_and_no_number() -> None:
    calls = WrittenCalls()
    for name, text in (("crm__find", '{"id": 1}'), ("crm__purge", '{"days": 5}')):
        calls.add(None, call_id="call_0", name=name, text="")
        calls.add(None, call_id="call_0", text=text)
    readable, unreadable = await calls.read(cut=False)
    assert [call["args"] for call in readable] == [{"id": 1}, {"days": 5}]
    assert unreadable == []


async def test_while_an_answer_of_very_many_empty_lines_is_read_others_have_their_turn(connect: Connect) -> None:
    """Rule 13: 64 KB of them, which come at once, held the event loop for 75 ms."""
    turns, size = 0, 200_000

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    end = json.dumps({"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]})
    reply = Reply(raw="\n" * size + f"data: {end}\n\ndata: [DONE]\n\n", headers={"Content-Type": "text/event-stream"})
    at_work = asyncio.create_task(others())
    message = await answered(connect, reply)
    at_work.cancel()
    assert message.text == "Hello"
    assert turns > size // 4_096
