"""Calls of our own (a question, a plan, a file to read) that cannot be made as the model wrote them: it is told why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import invalid_tool_call

from graph.calls import CLARIFICATION
from graph.files import READ_FILE
from graph.plans import DELEGATE
from graph.state import Silent, TurnOptions
from tests.graph.parts import Answering, Bench, rig, turn

LIVE = Silent()


def first(calling: AIMessage) -> Answering:
    """A model that makes these calls first, and then repeats what it was told."""

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        told = [message.text for message in messages if message.type == "tool"]
        return AIMessage(" | ".join(told)) if told else calling

    return answering


def call_of(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "c1"}])


async def told(tmp_path: Path, calling: AIMessage, options: TurnOptions | None = None) -> str:
    """What the model is told of its calls."""
    async with rig(tmp_path, first(calling), Bench(["free"])) as r:
        status = await r.agent.begin(turn("m1", options=options), "go", LIVE)
        assert (status.at_rest, status.interrupts, r.problems()) == (True, (), [])
        return status.spoken[-1].text


@pytest.mark.parametrize("name", [CLARIFICATION, DELEGATE, READ_FILE])
async def test_in_a_turn_without_tools_none_is_made(tmp_path: Path, name: str) -> None:
    said = await told(tmp_path, call_of(name, question="which?"), TurnOptions(tools=False))
    assert said == "Failed: this turn has no tools. The call was not made."


@pytest.mark.parametrize("name", [CLARIFICATION, DELEGATE, READ_FILE])
async def test_of_arguments_that_cannot_be_read_the_model_hears_why(tmp_path: Path, name: str) -> None:
    written = invalid_tool_call(name=name, args='{"question": ', id="c1", error=None)
    said = await told(tmp_path, AIMessage("", invalid_tool_calls=[written]))
    assert said.startswith("Failed: ")
    assert "JSON" in said


@pytest.mark.parametrize(
    ("calling", "reason"),
    [
        (call_of(CLARIFICATION, context="of two"), "a clarification needs a question."),
        (call_of(CLARIFICATION, question=["which?"]), "a clarification needs a question."),
        (call_of(READ_FILE, file=7), "file"),
        (call_of(READ_FILE, file="file_9"), "there is no such file in this conversation."),
        (call_of(DELEGATE, tasks=[]), "the plan was not begun: "),
    ],
)
async def test_what_is_wrong_with_a_call_is_said(tmp_path: Path, calling: AIMessage, reason: str) -> None:
    said = await told(tmp_path, calling)
    assert said.startswith("Failed: ")
    assert reason in said


async def test_fields_that_are_none_are_left_out_of_a_question(tmp_path: Path) -> None:
    fields = [{"name": "a", "label": "A", "type": "text"}, {"name": "b", "type": "no type"}, "c"]
    async with rig(tmp_path, first(call_of(CLARIFICATION, question="which?", fields=fields)), Bench([])) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
    (interrupt,) = status.interrupts
    assert [each.name for each in interrupt.asked.fields] == ["a"]
