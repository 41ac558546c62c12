"""Calls that stopped in the middle and are made again, or not: what their answers still count for."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.interrupts import Answered, Approved, Declined, OutcomeSettled, SignedIn
from graph.nodes.use_tools import MOST_SIGN_INS
from graph.ports import TRIED_BEFORE, AccountNeeded, Failed, Given, OutcomeUnknown, SignInNeeded, Succeeded
from tests.graph.parts import Bench, does, rig, turn
from tests.graph.test_elicitation import one_after_the_other, question
from tests.graph.test_running import LIVE, kinds

M = {"size": "M"}


async def test_a_link_that_was_opened_in_the_middle_of_a_call_counts_as_an_answer(tmp_path: Path) -> None:
    link = SignInNeeded("https://x.test/", "", None, 1)
    bench = Bench(["free"], outcomes={"free": one_after_the_other(link, question(2), Succeeded("done"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: SignedIn()}, LIVE)
        await r.agent.resume("t", "r2", {status.interrupts[0].interrupt_id: Answered(values=M)}, LIVE)
        assert [c.answers for c in bench.callers][1] == (Given(1, "accept"),)
        assert [given.number for given in bench.callers[2].answers] == [1, 2]


@pytest.mark.parametrize("needed", [AccountNeeded("github"), SignInNeeded("https://x.test/", "")])
async def test_a_call_that_ended_with_a_link_begins_anew(tmp_path: Path, needed: AccountNeeded | SignInNeeded) -> None:
    bench = Bench(["free"], outcomes={"free": one_after_the_other(needed, Succeeded("done"))})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: SignedIn()}, LIVE)
        assert bench.callers[-1].answers == ()


async def test_trying_again_is_told_apart_from_going_on(tmp_path: Path) -> None:
    outcomes = one_after_the_other(question(), OutcomeUnknown("lost"), Succeeded("done"))
    bench = Bench(["free"], outcomes={"free": outcomes})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Answered(values=M)}, LIVE)
        assert kinds(status) == ["outcome"]
        del bench.attempts["m1.0.0"]
        again = OutcomeSettled(choice="try_again", by="Ana")
        await r.agent.resume("t", "r2", {status.interrupts[0].interrupt_id: again}, LIVE)
        assert [(len(c.answers), c.over) for c in bench.callers] == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    "then", [Failed("shop is unavailable. Nothing was called."), SignInNeeded("https://x.test/", "")]
)
async def test_a_try_that_did_nothing_does_not_hide_that_an_earlier_one_may_have_taken_effect(
    tmp_path: Path, then: Failed | SignInNeeded
) -> None:
    """Rule 4: what is unknown is said to be, or the model says "nothing was called" and somebody asks for it again."""
    bench = Bench(["free"], outcomes={"free": one_after_the_other(OutcomeUnknown("lost"), then)})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        del bench.attempts["m1.0.0"]
        again = OutcomeSettled(choice="try_again", by="Ana")
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: again}, LIVE)
        if kinds(status) == ["sign_in"]:
            await r.agent.resume("t", "r2", {status.interrupts[0].interrupt_id: Declined()}, LIVE)
            assert [TRIED_BEFORE in call.text for call in bench.unmade] == [True]
        told = [m.text for m in r.model.seen[-1] if m.type == "tool"]
        assert [TRIED_BEFORE in text for text in told] == [True]


async def test_what_was_answered_about_other_arguments_answers_nothing(tmp_path: Path) -> None:
    bench = Bench(["ask_a"], outcomes={"ask_a": one_after_the_other(question(), Succeeded("done"))})
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        bench.permitted = False
        status = await r.agent.resume("t", "r2", {status.interrupts[0].interrupt_id: Answered(values=M)}, LIVE)
        assert kinds(status) == ["approval"]
        edited = Approved(by=("Ana",), arguments={"k": 2}, edited_by="web:ana")
        await r.agent.resume("t", "r3", {status.interrupts[0].interrupt_id: edited}, LIVE)
        assert [given.digest for given in bench.callers[-1].answers] == [""]


@pytest.mark.parametrize("number", [1, 2])
async def test_the_model_is_told_what_is_known_of_a_call_that_was_left(tmp_path: Path, number: int) -> None:
    bench = Bench(["free"], outcomes={"free": question(number)})
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        await r.agent.settle("t", "m2", "something new")
        await r.agent.begin(turn("m3"), "hello", LIVE)
        assert ["Outcome unknown" in m.text for m in r.model.seen[-1] if m.type == "tool"] == [True]


async def test_an_answer_that_comes_too_late_leaves_no_call_waiting(tmp_path: Path) -> None:
    bench = Bench(["free"], outcomes={"free": question()})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.names = ["other"]
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Answered(values=M)}, LIVE)
        assert (status.interrupts, bench.given_up) == ((), ["m1.0.0"])


@pytest.mark.parametrize("needed", [AccountNeeded("github"), SignInNeeded("https://x.test/", "")])
async def test_a_server_that_asks_for_a_sign_in_each_time_is_called_a_few_times_only(
    tmp_path: Path, needed: AccountNeeded | SignInNeeded
) -> None:
    """Rule 4: that it did nothing before is its own word."""
    bench = Bench(["free"], outcomes={"free": needed})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        for times in range(MOST_SIGN_INS):
            assert kinds(status) == ["sign_in"]
            status = await r.agent.resume("t", f"r{times}", {status.interrupts[0].interrupt_id: SignedIn()}, LIVE)
        assert (status.interrupts, len(bench.called)) == ((), MOST_SIGN_INS + 1)
        assert "asked for another sign-in after 3 of them" in status.spoken[-1].text
