"""A conversation carries a bounded history, and one person's results stay theirs."""

from __future__ import annotations

from pathlib import Path

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.calls import FOREIGN_RESULT
from graph.models import ModelProblem, Trouble
from graph.ports import Succeeded
from graph.prompts import FOLD_EVERY, VERBATIM_TURNS, conversation, extract, for_requester, summary_request, to_fold
from graph.state import Silent
from policies.model import Mode
from tests.graph.parts import Bench, does, rig, turn


def talk(count: int) -> list[AnyMessage]:
    return [m for n in range(count) for m in (HumanMessage(f"q{n}", id=f"q{n}"), AIMessage(f"a{n}", id=f"a{n}"))]


def test_the_last_twenty_turns_are_never_folded() -> None:
    assert to_fold(talk(VERBATIM_TURNS + FOLD_EVERY - 1)) == []
    folded = to_fold(talk(VERBATIM_TURNS + FOLD_EVERY))
    assert [m.text for m in folded if isinstance(m, HumanMessage)] == [f"q{n}" for n in range(FOLD_EVERY)]


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
        {"messages": PERSONAL}, turn("m2", "web:ben"), now=0.0, mode=Mode.DEFAULT, unavailable=(), has_tools=True
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
