"""A conversation carries a bounded history, and one person's results stay theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.calls import FOREIGN_RESULT
from graph.models import ModelProblem, Trouble
from graph.ports import Succeeded
from graph.prompts import (
    FOLD_EVERY,
    MOST_CARRIED,
    VERBATIM_TURNS,
    conversation,
    extract,
    for_requester,
    summary_request,
    to_fold,
    turns,
)
from graph.state import Silent
from policies.model import Mode
from tests.graph.parts import Bench, does, rig, turn


def talk(count: int) -> list[AnyMessage]:
    return [m for n in range(count) for m in (HumanMessage(f"q{n}", id=f"q{n}"), AIMessage(f"a{n}", id=f"a{n}"))]


def test_the_last_twenty_turns_are_not_folded() -> None:
    assert to_fold(talk(VERBATIM_TURNS + FOLD_EVERY - 1)) == []
    folded = to_fold(talk(VERBATIM_TURNS + FOLD_EVERY))
    assert [m.text for m in folded if isinstance(m, HumanMessage)] == [f"q{n}" for n in range(FOLD_EVERY)]


def busy(count: int, calls: int, result: str = "x", arguments: str = "x") -> list[AnyMessage]:
    """Turns, each with an answer that makes calls, their results, and an answer."""
    messages: list[AnyMessage] = []
    for n in range(count):
        made = [{"name": "s__a", "args": {"k": arguments}, "id": f"{n}.{i}"} for i in range(calls)]
        results = [ToolMessage(result, tool_call_id=f"{n}.{i}", name="s__a") for i in range(calls)]
        messages += [HumanMessage(f"q{n}"), AIMessage("", tool_calls=made), *results, AIMessage(f"a{n}")]
    return messages


@pytest.mark.parametrize(
    "messages",
    [busy(10, 50), busy(6, 4, result="x" * 50_000), busy(6, 4, arguments="x" * 50_000)],
    ids=["messages", "results", "arguments"],
)
def test_turns_that_are_too_much_together_are_folded_before_there_are_many(messages: list[AnyMessage]) -> None:
    """Rule 13: all that is carried is put together anew for each answer of the model, which took 80 ms for the calls
    of 25 turns."""
    folded = to_fold(messages)
    kept = messages[len(folded) :]
    assert folded
    assert folded == messages[: len(folded)]
    assert isinstance(kept[0], HumanMessage), "whole turns"
    assert len(turns(kept)) > 2
    assert len(kept) <= 0.75 * MOST_CARRIED
    assert to_fold(kept) == []
    assert len(to_fold(kept + messages[-len(turns(kept)[-1]) :])) == 0, "not every turn pays for a summary"


def test_the_newest_turn_is_carried_however_much_it_is() -> None:
    newest = busy(1, MOST_CARRIED)
    assert to_fold(newest) == []
    assert to_fold(talk(3) + newest) == talk(3)


async def test_a_long_conversation_stays_small_and_remembers_by_its_summary(tmp_path: Path) -> None:
    def answering(messages: list) -> AIMessage:
        if messages[0].text.startswith("Summarise"):
            return AIMessage("They talked about many numbers.")
        return AIMessage("hello")

    async with rig(tmp_path, answering, Bench([])) as r:
        for number in range(VERBATIM_TURNS + FOLD_EVERY + 1):
            await r.agent.begin(turn(f"m{number}"), f"number {number}", Silent())
        shown = r.model.seen[-1]
        people = [m.text for m in shown if isinstance(m, HumanMessage)]
        assert people == [f"number {n}" for n in range(FOLD_EVERY, VERBATIM_TURNS + FOLD_EVERY + 1)]
        assert "They talked about many numbers." in shown[0].text
        assert r.problems() == []


async def test_without_a_model_for_the_summary_the_beginnings_are_kept(tmp_path: Path) -> None:
    def answering(messages: list) -> AIMessage:
        if messages[0].text.startswith("Summarise"):
            raise ModelProblem(Trouble.UNREACHABLE, sentence="down")
        return AIMessage("hello")

    async with rig(tmp_path, answering, Bench([])) as r:
        for number in range(VERBATIM_TURNS + FOLD_EVERY + 1):
            await r.agent.begin(turn(f"m{number}"), f"number {number}", Silent())
        assert "number 0" in r.model.seen[-1][0].text


def test_a_summary_never_grows_beyond_its_limit() -> None:
    summary = ""
    for _ in range(50):
        summary = extract(summary, talk(30))
    assert len(summary) <= 4_000


PERSONAL: list[AnyMessage] = [
    HumanMessage("my mail", id="q", additional_kwargs={"name": "Ana"}),
    AIMessage("", id="a", tool_calls=[{"name": "s__mail", "args": {}, "id": "c"}]),
    ToolMessage("salary: 100", tool_call_id="c", name="s__mail", additional_kwargs={"owner": "web:ana"}),
]


def test_another_persons_turn_does_not_see_a_personal_result() -> None:
    assert for_requester(PERSONAL, "web:ana")[2].text == "salary: 100"
    assert for_requester(PERSONAL, "web:ben")[2].text == FOREIGN_RESULT


def test_the_prompt_of_another_persons_turn_does_not_hold_it_either() -> None:
    shown = conversation(
        {"messages": PERSONAL}, turn("m2", "web:ben"), now=0.0, mode=Mode.DEFAULT, unavailable=(), offers_tools=True
    )
    assert "salary" not in str(shown)


def test_a_summary_belongs_to_everybody_so_personal_results_are_left_out_of_it() -> None:
    assert "salary" not in str(summary_request("", PERSONAL))
    assert "salary" not in extract("", PERSONAL)


async def test_a_personal_result_is_masked_in_the_next_persons_turn(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": Succeeded("salary: 100", owner="web:ana")})
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", Silent())
        await r.agent.begin(turn("m2", "web:ben"), "hi", Silent())
        results = [m.text for m in r.model.seen[-1] if isinstance(m, ToolMessage)]
        assert results == [FOREIGN_RESULT]
        await r.agent.begin(turn("m3"), "hi", Silent())
        assert [m.text for m in r.model.seen[-1] if isinstance(m, ToolMessage)] == ["salary: 100"]
