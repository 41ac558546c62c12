from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from demo_model.model import DemoChatModel
from demo_model.sentences import EXAMPLES
from tests.demo.chat import ALL_TOOLS, CLARIFY, TASKS, Chat
from tests.support.cpu import at_most_cpu
from translations import NAMES, gettext, in_language
from translations.extraction import PAGE, ROOT

NOW = SystemMessage("Now: 2026-11-21T09:00:00+01:00 (Europe/Berlin)")
OPENINGS = (
    "what is on my calendar ",
    "schedule something ",
    "create 2 events: ",
    "move the meeting at ",
    "add a task to ",
    "complete the task ",
    "Ana: delete the event ",
    "",
)


def valid(answer: AIMessage, bound: tuple[str, ...]) -> bool:
    ids = [call["id"] for call in answer.tool_calls]
    return (
        bool(str(answer.content).strip())
        and all(call["name"] in bound and isinstance(call["args"], dict) for call in answer.tool_calls)
        and len(set(ids)) == len(ids)
        and not answer.invalid_tool_calls
    )


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_what_the_page_suggests_is_understood_in_every_language(example: str, language: str) -> None:
    assert f't("{example}")' in (ROOT / PAGE / "conversation.js").read_text(encoding="utf-8")
    with in_language(language):
        suggested = gettext(example)
    answers = [DemoChatModel().bind_tools(ALL_TOOLS).answer([NOW, HumanMessage(text)]) for text in (example, suggested)]
    assert answers[0].tool_calls
    assert answers[0].tool_calls == answers[1].tool_calls


@given(opening=st.sampled_from(OPENINGS), text=st.text(max_size=200), bound=st.sets(st.sampled_from(ALL_TOOLS)))
def test_any_text_gets_a_valid_answer(opening: str, text: str, bound: set[str]) -> None:
    model = DemoChatModel().bind_tools(sorted(bound))
    assert valid(model.answer([NOW, HumanMessage(opening + text)]), tuple(bound))


TIMES = st.sampled_from(
    ["at 9", "25:00", "13pm", "31 February", "in 999 weeks", "noon-1pm", "from 2 to 1", "2026-99-99", "next sunday"]
)
OUTCOMES = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "Rejected by Ana. Reason: should be 10am",
            '{"values": {"title": "X", "date": "2026-11-30", "time": "10:00"}}',
            '{"values": {"title": 1, "date": null, "time": []}}',
            '{"answer": "X tomorrow at 9"}',
            '{"events": [{"title": null}, 1, {"id": 5, "title": "X", "start": "2026-11-21T15:00:00"}]}',
            '{"tasks": [{"id": "1", "title": "X"}, {"title": "X"}], "left_out": "many"}',
            '{"title": {"a": 1}, "start": "0001-01-01T00:00:00+14:00", "end": 7}',
            "[]",
        ]
    ),
)


@given(
    opening=st.sampled_from(OPENINGS), time=TIMES, text=st.text(max_size=20), outcomes=st.lists(OUTCOMES, max_size=8)
)
def test_any_results_get_a_valid_answer(opening: str, time: str, text: str, outcomes: list[str]) -> None:
    model = DemoChatModel().bind_tools(list(ALL_TOOLS))
    messages: list[BaseMessage] = [NOW, HumanMessage(f"{opening}{text} {time}")]
    for _ in range(4):
        answer = model.answer(messages)
        assert valid(answer, ALL_TOOLS)
        if not answer.tool_calls:
            break
        messages.append(answer)
        messages += [
            ToolMessage(outcomes.pop() if outcomes else "{}", tool_call_id=str(call["id"]))
            for call in answer.tool_calls
        ]


@pytest.mark.parametrize("said", ["help", "hello", "write me a poem", "", "cancel", "?"])
def test_what_it_does_not_understand_is_met_with_what_it_is_and_can_do(said: str) -> None:
    chat = Chat()
    chat.says(said)
    assert not chat.calls
    assert "No language model is connected" in chat.text
    assert "create a meeting called Standup tomorrow at 9am" in chat.text
    assert "list my tasks" in chat.text


def test_it_offers_only_what_is_connected() -> None:
    chat = Chat(tools=(*TASKS, CLARIFY))
    chat.says("help")
    assert "list my tasks" in chat.text
    assert "calendar" not in chat.text


def test_without_tools_it_says_that_it_can_do_nothing() -> None:
    chat = Chat(tools=())
    chat.says("help")
    assert "No language model is connected" in chat.text
    assert "Neither the calendar nor the tasks are connected" in chat.text


@pytest.mark.parametrize("said", ["what is on my calendar", "schedule something", "move the meeting at 3pm to 4pm"])
def test_a_tool_that_is_not_there_is_said_to_be_unavailable(said: str) -> None:
    chat = Chat(tools=(*TASKS, CLARIFY))
    chat.says(said)
    assert not chat.calls
    assert "of calendar is unavailable at the moment" in chat.text or "Neither" in chat.text


def test_one_missing_server_does_not_stop_the_other_half_of_a_request() -> None:
    chat = Chat(tools=(*TASKS, CLARIFY))
    chat.says("add a task to buy milk and create a meeting called Standup tomorrow at 9am")
    assert chat.names == ["tasks__add_task"]
    chat.results({"title": "buy milk"})
    assert "Added the task **buy milk**." in chat.text
    assert "create_event of calendar is unavailable" in chat.text


def test_a_name_in_front_of_the_message_is_not_part_of_it() -> None:
    chat = Chat()
    chat.says("Ana Maria: create a meeting called Standup tomorrow at 9am")
    assert chat.calls[0]["args"]["title"] == "Standup"


def test_only_the_newest_message_of_a_person_counts() -> None:
    chat = Chat()
    chat.says("add a task to buy milk")
    chat.results({"title": "buy milk"})
    chat.says("list my tasks")
    assert chat.names == ["tasks__list_tasks"]


def test_without_a_line_about_the_present_the_clock_is_used() -> None:
    model = DemoChatModel().bind_tools(["calendar__list_events"])
    answer = model.answer([HumanMessage("what is on my calendar")])
    assert answer.tool_calls[0]["args"]["start"].endswith("T00:00:00+00:00")


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "Europe"])
def test_an_unknown_zone_falls_back_to_the_offset(zone: str) -> None:
    model = DemoChatModel().bind_tools(["calendar__list_events"])
    now = SystemMessage(f"Now: 2026-11-21T09:00:00+05:30 ({zone})")
    answer = model.answer([now, HumanMessage("what is on my calendar")])
    assert answer.tool_calls[0]["args"]["start"] == "2026-11-21T00:00:00+05:30"


def test_a_day_beyond_a_clock_change_has_that_days_offset() -> None:
    chat = Chat()
    chat.says("create a meeting called Spring on 2027-04-01 at 9am")
    assert chat.calls[0]["args"]["start"] == "2027-04-01T09:00:00+02:00"


def test_an_hour_that_a_clock_change_leaves_out_moves_with_the_clock() -> None:
    chat = Chat()
    chat.says("create a meeting called Night on 2027-03-28 at 02:30")
    assert chat.calls[0]["args"]["start"] == "2027-03-28T03:30:00+02:00"


@tool
def tasks__add_task(title: str) -> str:
    """Add a task."""
    return title


@pytest.mark.parametrize(
    "definition",
    [
        "tasks__add_task",
        {"type": "function", "function": {"name": "tasks__add_task", "description": "", "parameters": {}}},
        {"name": "tasks__add_task", "description": "", "parameters": {}},
        tasks__add_task,
    ],
)
def test_tools_can_be_bound_by_name_definition_or_object(definition: Any) -> None:
    bound = DemoChatModel().bind_tools([definition], tool_choice="auto")
    assert bound.answer([NOW, HumanMessage("add a task to buy milk")]).tool_calls[0]["name"] == "tasks__add_task"


async def test_streamed_pieces_add_up_to_the_whole_answer() -> None:
    model = DemoChatModel().bind_tools(list(ALL_TOOLS))
    messages: list[BaseMessage] = [
        NOW,
        HumanMessage("create 2 events: Team Meeting at 10am and Lunch with Zoë at 12pm"),
    ]
    whole: AIMessageChunk | None = None
    pieces = 0
    async for piece in model.astream(messages):
        assert isinstance(piece, AIMessageChunk)
        whole = piece if whole is None else whole + piece
        pieces += 1
    expected = await model.ainvoke(messages)
    assert whole is not None
    assert pieces > 10
    assert whole.content == expected.content
    assert whole.tool_calls == expected.tool_calls
    assert not whole.invalid_tool_calls


async def test_the_same_messages_always_get_the_same_answer() -> None:
    model = DemoChatModel().bind_tools(list(ALL_TOOLS))
    messages = [NOW, HumanMessage("schedule something")]
    first, second = model.answer(messages), model.answer(messages)
    assert (first.content, first.tool_calls) == (second.content, second.tool_calls)


def test_a_request_for_a_summary_gets_the_beginnings_of_what_was_said() -> None:
    asked = [
        SystemMessage("Summarise the conversation so far."),
        HumanMessage("Ana: create a meeting\nAssistant: Created **Standup**. " + "x" * 500),
    ]
    answer = DemoChatModel().answer(asked)
    assert str(answer.content).startswith("Ana: create a meeting\nAssistant: Created **Standup**.")
    assert len(str(answer.content)) < 400
    assert not answer.tool_calls


def test_a_prompt_that_only_quotes_such_a_request_gets_an_answer() -> None:
    quoting = SystemMessage("Rules.\nEarlier in this conversation:\nAna: Summarise the conversation")
    answer = DemoChatModel().bind_tools(["tasks__list_tasks"]).answer([quoting, HumanMessage("list my tasks")])
    assert answer.tool_calls


@pytest.mark.parametrize(
    "text",
    [
        "create a meeting" + " " * 4000 + "x",
        "zzz " + "and list my tasks " * 250,
        "create events: " + "a and " * 650 + "b at 9",
        "delete " + "the " * 1000,
        "create a meeting " + "on 5 May 10am " * 300,
    ],
    ids=["blanks", "commands", "items", "articles", "times"],
)
def test_a_message_of_any_shape_is_read_before_anybody_waits(text: str) -> None:
    model = DemoChatModel().bind_tools(list(ALL_TOOLS))
    with at_most_cpu(0.25):
        model.answer([NOW, HumanMessage(text)])
