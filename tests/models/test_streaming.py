from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from demo_model.model import DemoChatModel
from graph.models.openai import _text_alone
from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import AnswerTimes, Retry, pause_before, stream_message
from graph.usage import total_tokens, use_of
from tests.fakes.openai_server import Reply, ToolUse, fake_openai
from tests.models.conftest import KEY, ONCE, QUICK, Connect

ASK: list[AnyMessage] = [SystemMessage("rules"), HumanMessage("hi")]
TOOLS = [{"type": "function", "function": {"name": "tasks__add_task", "parameters": {"type": "object"}}}]


class Shown:
    """Collects the text that people would have seen."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def __call__(self, text: str) -> None:
        self.pieces.append(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


# ------------------------------------------------------------------------------------------------ answers


async def test_text_is_shown_piece_by_piece_and_returned_whole(connect: Connect) -> None:
    shown = Shown()
    async with fake_openai([Reply(text="Good morning to you", usage=(12, 7))]) as server:
        message = await stream_message(connect(server), ASK, shown)
    assert shown.pieces == ["Good", " morning", " to", " you"]
    assert message.content == "Good morning to you"
    assert type(message) is AIMessage
    assert message.usage_metadata is not None
    assert (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]) == (12, 7)


async def test_no_count_of_tokens_is_larger_than_a_checkpoint_takes(connect: Connect) -> None:
    """Rule 10: a service that counted wrong failed the turn after its calls were made, again and again."""
    async with fake_openai([Reply(text="Hello", usage=(10**30, -(10**30)))]) as server:
        message = await stream_message(connect(server), ASK, Shown())
    assert JsonPlusSerializer().loads_typed(JsonPlusSerializer().dumps_typed(message)) == message


async def test_the_first_piece_is_shown_before_the_answer_is_finished(connect: Connect) -> None:
    go_on, seen = asyncio.Event(), asyncio.Event()
    text = "one two"

    async def brain(_request: dict[str, Any]) -> Reply:
        return Reply(text=text, wait_for=go_on)

    async with fake_openai(brain) as server:
        task = asyncio.create_task(stream_message(connect(server), ASK, lambda _: seen.set()))
        await server.asked(1)
        assert not seen.is_set()
        go_on.set()
        assert (await task).content == text
    assert seen.is_set()


async def test_calls_come_back_with_their_arguments_and_the_text_beside_them(connect: Connect) -> None:
    calls = [ToolUse("tasks__add_task", {"title": "buy milk"}), ToolUse("tasks__list_tasks")]
    async with fake_openai([Reply(text="I will", calls=calls)]) as server:
        message = await stream_message(connect(server).bind_tools(TOOLS), ASK, Shown())
        assert server.requests[0]["tools"] == TOOLS
    assert message.content == "I will"
    assert [(c["name"], c["args"], c["id"]) for c in message.tool_calls] == [
        ("tasks__add_task", {"title": "buy milk"}, "call_0"),
        ("tasks__list_tasks", {}, "call_1"),
    ]
    assert message.invalid_tool_calls == []


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('{"title": "buy mi', "not valid JSON"),
        ('{"title": "buy milk"', "not valid JSON"),
        ("buy milk", "not valid JSON"),
        ('["buy milk"]', "not a JSON object"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
async def test_arguments_that_cannot_be_read_are_told_and_never_guessed(
    connect: Connect, written: str, says: str
) -> None:
    good = ToolUse("tasks__add_task", {"title": "bread"})
    async with fake_openai([Reply(calls=[ToolUse("tasks__add_task", written), good])]) as server:
        message = await stream_message(connect(server), ASK, Shown())
    assert [c["args"] for c in message.tool_calls] == [{"title": "bread"}]
    (broken,) = message.invalid_tool_calls
    assert (broken["name"], broken["args"], broken["id"]) == ("tasks__add_task", written, "call_0")
    assert says in (broken["error"] or "")


async def test_the_first_piece_of_a_call_is_when_the_answer_began(connect: Connect) -> None:
    """Also where nothing is shown: the calls are passed on in the end, all at once."""
    times = AnswerTimes()
    async with fake_openai([Reply(calls=[ToolUse("tasks__add_task", {"title": "buy milk"})], pause=0.05)]) as server:
        await stream_message(connect(server), ASK, Shown(), times=times)
    assert times.first is not None
    assert time.monotonic() - times.first >= 2 * 0.05, "at least two more events came later"


async def test_line_breaks_within_strings_are_fine(connect: Connect) -> None:
    async with fake_openai([Reply(calls=[ToolUse("tasks__add_task", '{"title": "a\nb"}')])]) as server:
        message = await stream_message(connect(server), ASK, Shown())
    assert message.tool_calls[0]["args"] == {"title": "a\nb"}


async def test_what_goes_out_is_asked_with_usage_key_and_wire_ids(connect: Connect) -> None:
    long = "slack:T1:C1:1732150000.123456.0.0" * 3
    call: Any = {"name": "tasks__add_task", "args": {}, "id": long, "type": "tool_call"}
    messages = [*ASK, AIMessage("", tool_calls=[call]), ToolMessage("done", tool_call_id=long, name="tasks__add_task")]
    async with fake_openai([Reply(text="ok")]) as server:
        await stream_message(connect(server), messages, Shown())
        (request,) = server.requests
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert request["stream"] is True
    assert request["stream_options"] == {"include_usage": True}
    assert request["messages"][3]["tool_call_id"] == request["messages"][2]["tool_calls"][0]["id"]
    assert len(request["messages"][3]["tool_call_id"]) <= 40


async def test_a_model_that_does_not_stream_is_fine_too() -> None:
    shown = Shown()
    message = await stream_message(FakeListChatModel(responses=["hello"]), ASK, shown)
    assert (message.content, shown.text) == ("hello", "hello")


# ------------------------------------------------------------------------------------------------ trying again


@pytest.mark.parametrize(
    "failure",
    [
        Reply(status=429, error={"code": "rate_limit_exceeded"}, headers={"Retry-After": "0"}),
        Reply(status=500),
        Reply(status=503, error="<html>upstream</html>"),
        Reply(text="never seen", drop_after=0),
        Reply(text="never seen", drop_after=1),
        Reply(calls=[ToolUse("tasks__add_task", {"title": "lost"})], drop_after=2),
        Reply(calls=[ToolUse("tasks__add_task", {"title": "lost"})], drop_after=3, end_early=True),
        Reply(text=""),
        Reply(raw="data: {broken\n\n"),
    ],
)
async def test_a_failure_before_anything_was_shown_is_tried_again_from_nothing(
    connect: Connect, failure: Reply
) -> None:
    shown = Shown()
    good = Reply(text="Here", calls=[ToolUse("tasks__list_tasks")])
    async with fake_openai([failure, failure, good]) as server:
        message = await stream_message(connect(server), ASK, shown, retry=QUICK)
        assert len(server.requests) == 3
        assert server.requests[0] == server.requests[2]
    assert (shown.text, message.content) == ("Here", "Here")
    assert [c["name"] for c in message.tool_calls] == ["tasks__list_tasks"]


@pytest.mark.parametrize("end_early", [True, False])
async def test_a_break_after_something_was_shown_is_final(connect: Connect, *, end_early: bool) -> None:
    shown = Shown()
    async with fake_openai([Reply(text="one two three", drop_after=3, end_early=end_early)]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server), ASK, shown, retry=QUICK)
        assert len(server.requests) == 1
    assert caught.value.trouble is Trouble.BROKE_OFF
    assert shown.text == "one two"


async def test_after_the_last_try_the_failure_is_told(connect: Connect) -> None:
    async with fake_openai(lambda _: Reply(status=500)) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server), ASK, Shown(), retry=QUICK)
        assert len(server.requests) == 1 + QUICK.times
    assert caught.value.trouble is Trouble.SERVER_FAILED
    assert caught.value.__cause__ is not None


async def test_the_service_is_given_the_time_it_asks_for(connect: Connect) -> None:
    busy = Reply(status=429, headers={"Retry-After": "0.3"})
    async with fake_openai([busy, Reply(text="ok")]) as server:
        await stream_message(connect(server), ASK, Shown(), retry=QUICK)
        assert server.times[1] - server.times[0] >= 0.3


async def test_people_are_told_at_once_when_the_service_wants_a_long_time(connect: Connect) -> None:
    async with fake_openai([Reply(status=429, headers={"Retry-After": "120"})]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server), ASK, Shown(), retry=QUICK)
        assert len(server.requests) == 1
    assert caught.value.retry_after == 120


def test_pauses_double_up_to_the_longest_and_are_spread() -> None:
    problem, retry = ModelProblem(Trouble.SERVER_FAILED), Retry(times=9, first_pause=1, longest_pause=5)
    assert [pause_before(n, problem, retry, 0.0) for n in range(5)] == [0.5, 1.0, 2.0, 2.5, 2.5]
    assert pause_before(1, problem, retry, 0.999) == pytest.approx(2.0, abs=0.01)
    assert pause_before(9, problem, retry, 0.0) is None


def test_only_what_may_pass_is_tried_again() -> None:
    retry = Retry()
    tried_again = {t for t in Trouble if pause_before(0, ModelProblem(t), retry, 0.5) is not None}
    assert tried_again == {
        Trouble.RATE_LIMITED,
        Trouble.TIMED_OUT,
        Trouble.UNREACHABLE,
        Trouble.SERVER_FAILED,
        Trouble.BROKE_OFF,
        Trouble.MALFORMED,
    }


# ------------------------------------------------------------------------------------------------ time and cancelling


async def test_a_service_that_does_not_answer_in_time_is_told_so(connect: Connect) -> None:
    never = asyncio.Event()

    async def silent(_request: dict[str, Any]) -> Reply:
        await never.wait()
        return Reply()

    async with fake_openai(silent) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server, timeout=0.2), ASK, Shown(), retry=ONCE)
        never.set()
    assert caught.value.trouble is Trouble.TIMED_OUT


@pytest.mark.parametrize("keep_alive", [True, False])
async def test_a_service_that_falls_silent_in_mid_answer_is_told_so(connect: Connect, *, keep_alive: bool) -> None:
    never = asyncio.Event()
    async with fake_openai([Reply(text="one", wait_for=never, keep_alive=keep_alive)]) as server:
        with pytest.raises(ModelProblem) as caught:
            async with asyncio.timeout(10):
                await stream_message(connect(server, timeout=0.5), ASK, Shown(), retry=ONCE)
        never.set()
    assert caught.value.trouble is Trouble.TIMED_OUT


async def test_cancelling_ends_the_request_and_is_not_a_problem_of_the_model(connect: Connect) -> None:
    never = asyncio.Event()
    async with fake_openai([Reply(text="one", wait_for=never)]) as server:
        task = asyncio.create_task(stream_message(connect(server), ASK, Shown(), retry=QUICK))
        await server.asked(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(server.requests) == 1
        never.set()


async def test_a_fault_in_showing_is_not_blamed_on_the_model(connect: Connect) -> None:
    def fails(_text: str) -> None:
        raise LookupError("the page is gone")

    async with fake_openai([Reply(text="one two")]) as server:
        with pytest.raises(LookupError):
            await stream_message(connect(server), ASK, fails, retry=QUICK)
        assert len(server.requests) == 1


async def test_many_answers_at_once_do_not_mix(connect: Connect) -> None:
    def echo(request: dict[str, Any]) -> Reply:
        return Reply(text=f"you said {request['messages'][-1]['content']}")

    async with fake_openai(echo) as server:
        model = connect(server)

        async def ask(n: int) -> str:
            shown = Shown()
            await stream_message(model, [HumanMessage(f"number {n}")], shown)
            return shown.text

        assert await asyncio.gather(*(ask(n) for n in range(20))) == [f"you said number {n}" for n in range(20)]


@contextlib.asynccontextmanager
async def _closed_port() -> AsyncIterator[str]:
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    yield f"http://127.0.0.1:{port}/v1"


async def test_a_service_that_is_not_there_is_told_so(connect: Connect) -> None:
    async with fake_openai([]) as server, _closed_port() as address:
        server.base_url = address
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server), ASK, Shown(), retry=ONCE)
    assert caught.value.trouble is Trouble.UNREACHABLE


# ------------------------------------------------------------------------------------------------ what it cost


async def test_tokens_are_estimated_where_the_service_does_not_count_them() -> None:
    question: list[AnyMessage] = [SystemMessage("x" * 400), HumanMessage("y" * 400)]
    message = await stream_message(FakeListChatModel(responses=["z" * 400]), question, Shown())
    assert 300 <= total_tokens(use_of(message, 0.0)) <= 310


async def test_tokens_are_estimated_where_the_service_says_that_there_were_none(connect: Connect) -> None:
    question: list[AnyMessage] = [SystemMessage("x" * 400), HumanMessage("y" * 400)]
    async with fake_openai([Reply(text="z" * 400, usage=(0, 0))]) as server:
        message = await stream_message(connect(server), question, Shown(), retry=ONCE)
    assert 300 <= total_tokens(use_of(message, 0.0)) <= 310


async def test_what_a_service_counts_in_its_first_and_in_its_last_piece_is_both_counted(connect: Connect) -> None:
    def piece(delta: dict[str, str], reason: str | None, given: int, made: int) -> str:
        usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        said = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "any", "choices": [choice]}
        return f"data: {json.dumps({**said, 'usage': usage})}\n\n"

    raw = piece({"content": "hi"}, None, 120, 0) + piece({}, "stop", 0, 40) + "data: [DONE]\n\n"
    async with fake_openai([Reply(raw=raw)]) as server:
        message = await stream_message(connect(server), ASK, Shown(), retry=ONCE)
    use = use_of(message, 0.0)
    assert (use["input_tokens"], use["output_tokens"]) == (120, 40)


async def test_the_demo_model_costs_nothing() -> None:
    assert total_tokens(use_of(await stream_message(DemoChatModel(), ASK, Shown()), 0.0)) == 0


PLAIN = {"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": None, "logprobs": None}


@pytest.mark.parametrize(
    "more",
    [
        {"choices": [PLAIN | {"finish_reason": "stop"}]},
        {"choices": [PLAIN | {"stop_reason": "max_tokens"}]},
        {"choices": [PLAIN | {"native_finish_reason": "SAFETY"}]},
        {"choices": [PLAIN | {"error": {"code": 502}}]},
        {"choices": [PLAIN | {"logprobs": {"content": []}}]},
        {"choices": [PLAIN | {"delta": {"content": "a", "tool_calls": [{"index": 0}]}}]},
        {"choices": [PLAIN | {"delta": {"content": "a", "function_call": {"name": "f"}}}]},
        {"choices": [PLAIN | {"delta": {"content": "a", "refusal": "no"}}]},
        {"choices": [PLAIN | {"delta": {"content": "a", "role": "tool"}}]},
        {"choices": [PLAIN | {"delta": {"content": [{"type": "text", "text": "a"}]}}]},
        {"choices": [PLAIN | {"delta": {"content": None}}]},
        {"choices": [PLAIN | {"delta": None}]},
        {"choices": [PLAIN, PLAIN]},
        {"choices": [None]},
        {"choices": []},
        {"choices": None},
        {"choices": [PLAIN], "type": "content.delta"},
    ],
    ids=str,
)
def test_only_what_is_nothing_but_text_goes_past_langchain(more: dict[str, Any]) -> None:
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "f"}
    assert _text_alone(event | {"choices": [PLAIN], "usage": None}) == "a"
    assert _text_alone(event | more) is None


@pytest.mark.parametrize("event", ["text", None, [], 1, {}])
def test_what_is_no_event_is_for_langchain_to_refuse(event: Any) -> None:
    assert _text_alone(event) is None


@pytest.mark.parametrize(("said", "counted"), [(-5, 0), (10**40, 100_000_000), (15, 15)])
def test_a_service_that_miscounts_is_believed_within_reason(said: int, counted: int) -> None:
    """It can neither give a person their budget back, nor say what no record holds."""
    usage = {"input_tokens": 0, "output_tokens": said, "total_tokens": said}
    assert total_tokens(use_of(AIMessage("x", usage_metadata=usage), 0.0)) == counted
