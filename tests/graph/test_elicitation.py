"""A tool asks in the middle of its call: the thread is at rest until the requester answers, then the call goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.interrupts import Answered, Declined, Dismissed, ElicitationAsked, FieldType, FormField, SignedIn
from graph.ports import AccountNeeded, Failed, Given, QuestionPut, SignInNeeded, Succeeded, ToolOutcome
from tests.graph.parts import Bench, rig, turn
from tests.graph.test_running import LIVE, does, kinds

SCHEMA = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}


def question(number: int = 1) -> QuestionPut:
    fields = (FormField(name="size", label="Size", type=FieldType.CHOICE, options=("S", "M")),)
    return QuestionPut(number, "Which size?", fields, SCHEMA)


def one_after_the_other(*outcomes: ToolOutcome) -> Any:
    left: Iterator[ToolOutcome] = iter(outcomes)
    return lambda _: next(left)


async def test_the_question_is_asked_and_the_call_goes_on_with_the_answer(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": one_after_the_other(question(), Succeeded("ordered M"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert (kinds(status), status.at_rest) == (["elicitation"], True)
        asked = status.interrupts[0].asked
        assert isinstance(asked, ElicitationAsked)
        assert (asked.server, asked.message, asked.number, asked.requester) == ("s", "Which size?", 1, "web:ana")
        assert (asked.fields, asked.schema_) == (question().fields, SCHEMA)
        answer = Answered(values={"size": "M"})
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: answer}, LIVE)
        assert (status.spoken[-1].text, bench.attempts["m1.0.0"]) == ("ordered M", Succeeded("ordered M"))
        assert [caller.answers for caller in bench.callers] == [
            (),
            (Given(1, "accept", {"size": "M"}, question().digest),),
        ]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_no_is_told_to_the_tool(tmp_path: Path, action: Any) -> None:
    bench = Bench(["free"], outcomes={"free": one_after_the_other(question(), Succeeded("nothing ordered"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Dismissed(action=action)}, LIVE)
        assert (bench.callers[-1].answers, status.spoken[-1].text) == (
            (Given(1, action, digest=question().digest),),
            "nothing ordered",
        )


async def test_a_second_question_keeps_the_first_answer(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": one_after_the_other(question(), question(2), Succeeded("ordered"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        for size in ("S", "M"):
            answer = Answered(values={"size": size})
            status = await r.agent.resume("t", f"r{size}", {status.interrupts[0].interrupt_id: answer}, LIVE)
        digest = question().digest
        assert bench.callers[-1].answers == (
            Given(1, "accept", {"size": "S"}, digest),
            Given(2, "accept", {"size": "M"}, digest),
        )
        assert status.at_rest and not status.interrupts


@pytest.mark.parametrize(("outcome", "unmade"), [(question(), []), (SignInNeeded("https://x/", ""), ["superseded"])])
async def test_what_is_open_of_a_call_is_ended_with_the_turn(
    tmp_path: Path, outcome: ToolOutcome, unmade: list[str]
) -> None:
    """Rule 4: one that only asked may have acted, so nothing says that it was not made."""
    bench = Bench(["free"], outcomes={"free": outcome})
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.settle("t", "m2", "something new")
        assert (status.at_rest, status.interrupts, bench.given_up, len(bench.called)) == (True, (), ["m1.0.0"], 1)
        assert [each.status for each in bench.unmade] == unmade


async def test_a_missing_account_stops_the_call_until_its_owner_has_signed_in(tmp_path: Path) -> None:
    needed = AccountNeeded("github", 'Bearer scope="repo"')
    bench = Bench(["free"], outcomes={"free": one_after_the_other(needed, Succeeded("mine", owner="web:ana"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert (kinds(status), bench.needed) == (["sign_in"], [needed])
        assert "scope" not in status.interrupts[0].asked.model_dump_json()
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: SignedIn()}, LIVE)
        assert (status.spoken[-1].text, len(bench.called)) == ("mine", 2)


async def test_a_call_whose_owner_does_not_sign_in_is_not_made(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": AccountNeeded("github")})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Declined()}, LIVE)
        assert (len(bench.called), bench.given_up) == (1, ["m1.0.0"])
        assert "did not want to sign in" in status.spoken[-1].text


async def test_what_a_personal_server_says_of_a_failure_is_for_its_owner_alone(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": Failed("no repository ana/secret", owner="web:ana")})
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert "ana/secret" in r.model.seen[-1][-1].text
        await r.agent.begin(turn("m2", "web:ben"), "what happened?", LIVE)
        assert [m.text for m in r.model.seen[-1] if m.type == "tool"] == ["[result for that person only]"]
