from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_openai_messages

from graph.models.wire import wire_id, wire_messages
from tests.fakes.openai_server import wire_problem


def call(call_id: str, name: str = "calendar__create_event", **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=call_id, type="tool_call")


def answer(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


def sent(messages: list[AnyMessage]) -> list[dict[str, Any]]:
    result = convert_to_openai_messages(wire_messages(messages))
    assert isinstance(result, list)
    return result


LONG = "slack:T0123456789:C0123456789:1732150000.123456.3.0"


def test_long_ids_become_short_ones_and_calls_still_fit_their_answers() -> None:
    _, assistant, tool = sent([HumanMessage("hi"), AIMessage("", tool_calls=[call(LONG)]), answer(LONG)])
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] == wire_id(LONG)
    assert len(wire_id(LONG)) == 29
    assert wire_id(LONG).startswith("call_")


def test_answers_follow_in_the_order_of_the_calls_however_they_came() -> None:
    messages = [AIMessage("", tool_calls=[call("a"), call("b"), call("c")]), answer("c"), answer("a"), answer("b")]
    assert [m.tool_call_id for m in wire_messages(messages)[1:]] == [wire_id("a"), wire_id("b"), wire_id("c")]


def test_an_answer_that_came_after_a_person_spoke_goes_back_to_its_call() -> None:
    messages = [AIMessage("", tool_calls=[call("a")]), HumanMessage("still there?"), answer("a")]
    assert [m.type for m in wire_messages(messages)] == ["ai", "tool", "human"]


def test_an_id_that_a_model_used_again_later_is_answered_where_it_belongs() -> None:
    messages: list[AnyMessage] = [
        AIMessage("", tool_calls=[call("call_0")]),
        answer("call_0", "first"),
        AIMessage("", tool_calls=[call("call_0")]),
        answer("call_0", "second"),
    ]
    assert [m.text for m in wire_messages(messages) if m.type == "tool"] == ["first", "second"]


def test_an_answer_belongs_to_the_newest_call_of_its_id() -> None:
    messages: list[AnyMessage] = [
        AIMessage("lost", tool_calls=[call("call_0")]),
        HumanMessage("again"),
        AIMessage("", tool_calls=[call("call_0")]),
        answer("call_0"),
    ]
    assert [m.type for m in wire_messages(messages)] == ["ai", "human", "ai", "tool"]


def test_an_id_used_twice_in_one_message_is_told_apart() -> None:
    messages = [AIMessage("", tool_calls=[call("x"), call("x")]), answer("x", "1"), answer("x", "2")]
    assert wire_problem(sent(messages)) == ""
    assert [m.text for m in wire_messages(messages)[1:]] == ["1", "2"]


def test_unreadable_arguments_go_out_as_json_that_says_what_was_written() -> None:
    broken = InvalidToolCall(name="t", args='{"a": ', id="x", error="no JSON", type="invalid_tool_call")
    assistant, tool = sent([AIMessage("", invalid_tool_calls=[broken]), answer("x", "The arguments were not JSON.")])
    assert assistant["tool_calls"][0]["function"]["arguments"] == '{"unreadable_arguments": "{\\"a\\": "}'
    assert wire_problem([assistant, tool]) == ""


def test_a_name_that_no_service_takes_is_made_fit() -> None:
    (assistant, _) = wire_messages(
        [AIMessage("", tool_calls=[call("x", name="calendar.create event" * 9)]), answer("x")]
    )
    assert assistant.tool_calls[0]["name"] == ("calendar_create_event" * 9)[:64]


def test_what_is_ours_stays_at_home() -> None:
    messages: list[AnyMessage] = [
        SystemMessage("rules", id="s"),
        HumanMessage("hi", id="delivery", name="Ana Müller", additional_kwargs={"name": "Ana"}),
        AIMessage(
            [{"type": "reasoning", "id": "rs_1"}, {"type": "text", "text": "Looking."}],
            id="delivery.0",
            tool_calls=[call("a")],
            additional_kwargs={"errors": {}},
            response_metadata={"model_name": "x"},
        ),
        ToolMessage("r", tool_call_id="a", id="t", additional_kwargs={"owner": "web:ana"}, artifact={"secret": 1}),
    ]
    for message in wire_messages(messages):
        assert message.id is None
        assert message.additional_kwargs == {}
        assert message.response_metadata == {}
    assert wire_messages(messages)[2].content == "Looking."
    assert wire_messages(messages)[3].artifact is None


def test_the_given_messages_are_left_as_they_were() -> None:
    messages: list[AnyMessage] = [AIMessage("", tool_calls=[call(LONG)], id="m"), answer(LONG)]
    before = [m.model_dump() for m in messages]
    wire_messages(messages)
    assert [m.model_dump() for m in messages] == before


# ------------------------------------------------------------------------------------------------ any conversation

IDS = st.text(min_size=1, max_size=60)
ARGS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=2)


@st.composite
def conversations(draw: st.DrawFn) -> list[AnyMessage]:
    """Any conversation in which every call is answered: anywhere between its message and the end of its turn, in any
    order, with ids of any kind that may come again in later turns."""
    messages: list[AnyMessage] = [SystemMessage("rules")] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 4))):
        messages.append(HumanMessage(draw(st.text(max_size=8))))
        ids = draw(st.lists(IDS, max_size=4))
        split = draw(st.integers(0, len(ids)))
        readable = [call(i, name=draw(st.text(min_size=1, max_size=70)), **{"args": draw(ARGS)}) for i in ids[:split]]
        unreadable = [
            InvalidToolCall(name=None, args=draw(st.text(max_size=8)), id=i, error="", type="invalid_tool_call")
            for i in ids[split:]
        ]
        said = AIMessage(draw(st.text(max_size=8)), tool_calls=readable, invalid_tool_calls=unreadable)
        others = [HumanMessage("and?") for _ in range(draw(st.integers(0, 2)))]
        messages += [said, *draw(st.permutations([*(answer(i, f"to {i}") for i in ids), *others]))]
    return messages


@given(conversations())
def test_every_answered_conversation_goes_out_in_valid_order_and_whole(messages: list[AnyMessage]) -> None:
    out = wire_messages(messages)
    assert wire_problem(convert_to_openai_messages(out)) == ""
    assert len(out) == len(messages)
    assert sorted(m.text for m in out) == sorted(m.text for m in messages)
    assert [m.text for m in out if m.type != "tool"] == [m.text for m in messages if m.type != "tool"]
    assert wire_messages(messages) == out


@given(
    st.lists(
        st.builds(answer, IDS)
        | st.builds(HumanMessage, st.text(max_size=5))
        | st.builds(lambda i: AIMessage("", tool_calls=[call(i)]), IDS),
        max_size=8,
    )
)
def test_nothing_is_dropped_even_where_answers_are_missing(messages: list[AnyMessage]) -> None:
    assert sorted(m.type for m in wire_messages(messages)) == sorted(m.type for m in messages)
