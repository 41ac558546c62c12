"""What is read for the card of a call, and calls that are asked about again because it has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph import card_facts
from graph.interrupts import Answered, ApprovalAsked, Approved, OutcomeSettled, SignedIn
from graph.ports import (
    AccountNeeded,
    Failed,
    OutcomeUnknown,
    Progress,
    Ready,
    SignInNeeded,
    Succeeded,
    ToolOutcome,
)
from graph.presentation import Preview
from graph.single_calls import SingleCalls, first_progress
from graph.state import RunContext, Silent
from policies.model import Lookup
from tests.graph.parts import POLICY, Bench, calls, does, ports_of, rig, turn
from tests.graph.test_elicitation import one_after_the_other, question
from tests.graph.test_judging import HARMLESS, granted
from tests.graph.test_running import kinds

LIVE = Silent()
SAYS: dict[str, Any] = {"reads_only": True, "preview_tool": "shows", "lookups": {"k": Lookup("gets", "id")}}
"""What is said of every tool of the bench: `shows` and `gets` are called for cards alone."""


def showing(before: Callable[[], Any], **more: Any) -> Bench:
    """A bench of which the preview tool shows what `before` returns."""
    outcomes = {"shows": lambda _: Succeeded(json.dumps({"before": before(), "after": {"at": "10:00"}}))}
    return Bench(["ask", "shows", "gets"], outcomes={**outcomes, **more}, more=SAYS)


def ran(bench: Bench, name: str = "ask") -> int:
    """How often a call of the model's was made, rather than one for a card."""
    return sum(":" not in call_id for call_id in bench.called)


async def test_a_call_that_is_asked_about_says_what_it_would_change_and_what_it_is_about(tmp_path: Path) -> None:
    bench = showing(lambda: {"at": "9:00"}, gets=lambda given: Succeeded(json.dumps({"title": f"Standup {given}"})))
    async with rig(tmp_path, does("ask"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    shown = bench.asked[0].presentation
    assert shown.preview is not None
    assert (shown.preview.before, shown.preview.after) == ({"at": "9:00"}, {"at": "10:00"})
    assert [(each.argument, each.title, each.source) for each in shown.known_ids] == [
        ("k", "Standup {'id': 1}", "s › gets")
    ]
    assert {(each.tool.name, each.failed) for each in bench.read_for_cards} == {("shows", False), ("gets", False)}


async def test_what_was_shown_is_what_is_there_when_the_call_is_made(tmp_path: Path) -> None:
    bench = showing(lambda: {"at": "9:00"})
    async with rig(tmp_path, does("ask"), bench) as r:
        await approve(r, await r.agent.begin(turn("m1"), "go", LIVE))
    assert (len(bench.asked), ran(bench)) == (1, 1)


async def test_a_call_is_asked_about_again_when_what_was_shown_has_changed(tmp_path: Path) -> None:
    """Rule 12: who approved saw the event at 9:00."""
    now = ["9:00"]
    bench = showing(lambda: {"at": now[0]})
    async with rig(tmp_path, does("ask"), bench) as r:
        waiting = await r.agent.begin(turn("m1"), "go", LIVE)
        now[0] = "11:00"
        again = await approve(r, waiting)
        assert ran(bench) == 0
        assert [(each.round, each.presentation.again) for each in bench.asked] == [(1, ""), (2, "changed")]
        assert bench.asked[1].presentation.preview is not None
        assert bench.asked[1].presentation.preview.before == {"at": "11:00"}
        await approve(r, again)
    assert (len(bench.asked), ran(bench)) == (2, 1)


async def test_a_standing_approval_is_no_answer_to_what_has_changed(tmp_path: Path) -> None:
    """Such as the one that was given by the very click that approved."""
    now = ["9:00"]
    bench = showing(lambda: {"at": now[0]})
    bench.more = {**SAYS, **HARMLESS}
    async with rig(tmp_path, does("ask"), bench) as r:
        waiting = await r.agent.begin(turn("m1"), "go", LIVE)
        now[0] = "11:00"
        bench.given.append(granted("ask", until=60.0))
        again = await approve(r, waiting)
        assert (len(bench.asked), ran(bench)) == (2, 0)
        await approve(r, again)
        assert (len(bench.asked), ran(bench)) == (2, 1)
        await r.agent.begin(turn("m2"), "go", LIVE)
    assert (len(bench.asked), ran(bench)) == (2, 2), "the next one runs without asking"


async def test_a_standing_approval_given_with_an_edit_is_no_answer_either(tmp_path: Path) -> None:
    """The preview of the edited call is another than whoever edited it has seen."""
    shows = {"shows": lambda given: Succeeded(json.dumps({"before": given}))}
    bench = Bench(["ask", "shows"], outcomes=shows, more={**SAYS, **HARMLESS})
    async with rig(tmp_path, calls_with({"k": 2}), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.given.append(granted("ask", until=60.0))  # of {"k": 1}, to which it is edited
        edited = Approved(by=("Ana",), arguments={"k": 1}, edited_by="web:ana")
        again = await r.agent.resume("t", "d2", {status.interrupts[0].interrupt_id: edited}, LIVE)
        assert ([each.arguments for each in bench.asked], ran(bench)) == ([{"k": 2}, {"k": 1}], 0)
        await approve(r, again)
    assert (len(bench.asked), ran(bench)) == (2, 1)


def calls_with(arguments: dict[str, Any]) -> Callable[[Sequence[BaseMessage]], AIMessage]:
    """A model that makes one call with these arguments."""

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        if any(m.type == "tool" for m in messages):
            return AIMessage("done")
        return AIMessage("", tool_calls=[{"name": "s__ask", "args": arguments, "id": "c"}])

    return answering


async def test_a_call_is_asked_about_again_when_nobody_can_tell_whether_it_has_changed(tmp_path: Path) -> None:
    outcomes = [Succeeded('{"before": {"at": "9:00"}}'), AccountNeeded("s"), AccountNeeded("s")]
    bench = Bench(["ask", "shows"], outcomes={"shows": lambda _: outcomes.pop(0)}, more=SAYS)
    async with rig(tmp_path, does("ask"), bench) as r:
        again = await approve(r, await r.agent.begin(turn("m1"), "go", LIVE))
        assert ran(bench) == 0
        assert bench.asked[1].presentation.again == "not found out"
        await approve(r, again)
    assert ran(bench) == 1, "the second card says that there is no preview, and was approved without"
    assert not bench.needed, "nobody is asked to sign in for it"


async def test_a_preview_that_cannot_be_read_any_more_is_asked_about_again(tmp_path: Path) -> None:
    outcomes = [Succeeded('{"before": {"at": "9:00"}}'), Succeeded('{"at": NaN}'), Succeeded('{"at": NaN}')]
    bench = Bench(["ask", "shows"], outcomes={"shows": lambda _: outcomes.pop(0)}, more=SAYS)
    async with rig(tmp_path, does("ask"), bench) as r:
        await approve(r, await r.agent.begin(turn("m1"), "go", LIVE))
    assert ran(bench) == 0
    again = bench.asked[1].presentation
    assert (again.again, again.preview and again.preview.problem) == ("not found out", "unreadable")


async def test_an_edit_is_compared_by_what_the_tool_says_of_the_edited_call(tmp_path: Path) -> None:
    bench = Bench(
        ["ask", "shows"], outcomes={"shows": lambda given: Succeeded(json.dumps({"before": given}))}, more=SAYS
    )
    async with rig(tmp_path, does("ask"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        edited = Approved(by=("Ana",), arguments={"k": 2}, edited_by="web:ana")
        await r.agent.resume("t", "d2", {status.interrupts[0].interrupt_id: edited}, LIVE)
    assert [each.arguments for each in bench.asked] == [{"k": 1}, {"k": 2}]
    assert bench.asked[1].presentation.preview is not None
    assert bench.asked[1].presentation.preview.before == {"k": 2}


@pytest.mark.parametrize("stop", [question(), SignInNeeded("https://x.test/", "", None, 1)])
async def test_what_was_shown_is_not_looked_at_in_the_middle_of_a_call(tmp_path: Path, stop: ToolOutcome) -> None:
    """The tool may have acted before it asked."""
    now = ["9:00"]
    bench = showing(lambda: {"at": now[0]}, ask=one_after_the_other(stop, Succeeded("done")))
    async with rig(tmp_path, does("ask"), bench) as r:
        status = await approve(r, await r.agent.begin(turn("m1"), "go", LIVE))
        now[0] = "11:00"
        status = await answer(r, status)
    assert (kinds(status), len(bench.asked), ran(bench)) == ([], 1, 2)


@pytest.mark.parametrize("stop", [question(), SignInNeeded("https://x.test/", "", None, 1)])
async def test_another_try_of_a_call_that_was_answered_is_asked_about_again(tmp_path: Path, stop: ToolOutcome) -> None:
    """Its requester alone says that it is tried again: whoever approved saw the event at 9:00."""
    now = ["9:00"]
    outcomes = one_after_the_other(stop, OutcomeUnknown("lost"), Succeeded("done"))
    bench = showing(lambda: {"at": now[0]}, ask=outcomes)
    async with rig(tmp_path, does("ask"), bench) as r:
        status = await answer(r, await approve(r, await r.agent.begin(turn("m1"), "go", LIVE)))
        assert kinds(status) == ["outcome"]
        del bench.attempts["m1.0.0"]
        now[0] = "11:00"
        again = {status.interrupts[0].interrupt_id: OutcomeSettled(choice="try_again", by="Ana")}
        status = await r.agent.resume("t", "again", again, LIVE)
        assert (kinds(status), bench.asked[-1].presentation.again, ran(bench)) == (["approval"], "changed", 2)
        await approve(r, status)
    assert (len(bench.asked), ran(bench)) == (2, 3)


async def test_a_call_that_did_nothing_for_want_of_a_sign_in_is_asked_about_again(tmp_path: Path) -> None:
    """Although it had asked something before."""
    now = ["9:00"]
    outcomes = one_after_the_other(question(), AccountNeeded("s"), Succeeded("done"))
    bench = showing(lambda: {"at": now[0]}, ask=outcomes)
    async with rig(tmp_path, does("ask"), bench) as r:
        status = await answer(r, await approve(r, await r.agent.begin(turn("m1"), "go", LIVE)))
        assert kinds(status) == ["sign_in"]
        now[0] = "11:00"
        status = await answer(r, status)
    assert (kinds(status), bench.asked[-1].presentation.again, ran(bench)) == (["approval"], "changed", 2)


async def test_a_call_that_waited_no_more_for_its_answer_is_asked_about_again(tmp_path: Path) -> None:
    """It is made anew, of a tool that may be called again: whoever answers may do so days later."""
    now = ["9:00"]
    bench = showing(lambda: {"at": now[0]}, ask=question())
    bench.more = {**SAYS, "repeatable": True}
    made: list[str] = []

    async def made_anew(_: Progress) -> ToolOutcome:
        made.append(now[0])
        return Succeeded("done")

    async with rig(tmp_path, does("ask"), bench) as r:
        status = await approve(r, await r.agent.begin(turn("m1"), "go", LIVE))
        bench.unready["ask"] = lambda: Ready(made_anew)
        now[0] = "11:00"
        status = await answer(r, status)
        assert (kinds(status), bench.asked[-1].presentation.again, made) == (["approval"], "changed", [])
        await approve(r, status)
    assert (len(bench.asked), made) == (2, ["11:00"])


async def answer(r: Any, status: Any) -> Any:
    """The requester answers what a tool asks, or opens its link."""
    (asked,) = status.interrupts
    given = SignedIn() if kinds(status) == ["sign_in"] else Answered(values={"size": "M"})
    return await r.agent.resume("t", f"answer {asked.interrupt_id}", {asked.interrupt_id: given}, LIVE)


async def test_a_call_of_another_agent_is_asked_about_again_too() -> None:
    now = ["9:00"]
    bench = showing(lambda: {"at": now[0]})
    driver, context = SingleCalls(ports_of(bench)), RunContext(live=LIVE)
    waiting = await driver.advance(first_progress(turn("g1"), "g1.0.0", "s__ask", {"k": 1}), context)
    now[0] = "11:00"
    again = await driver.advance(waiting, context, Approved(by=("Ana",)))
    assert isinstance(again.stop, ApprovalAsked)
    assert (again.stop.round, again.stop.presentation.again, ran(bench)) == (2, "changed", 0)
    ended = await driver.advance(again, context, Approved(by=("Ana",)))
    assert ended.ended is not None
    assert ran(bench) == 1


async def test_what_does_not_answer_delays_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_facts, "CARD_SECONDS", 0.01)

    async def never(_arguments: Any) -> Succeeded:
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench(["ask", "shows", "gets"], outcomes={"shows": never, "gets": never}, more=SAYS)
    async with rig(tmp_path, does("ask"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    shown = bench.asked[0].presentation
    assert shown.known_ids == ()
    assert shown.preview == Preview(source="s › shows", problem="unavailable")
    assert len(bench.given_up) == 2, "what they may have asked is given up"


async def test_a_tool_that_may_do_more_than_read_is_not_called_for_a_card(tmp_path: Path) -> None:
    bench = showing(lambda: {"at": "9:00"})
    bench.more = {**SAYS, "reads_only": False}
    async with rig(tmp_path, does("ask"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert bench.called == []
    assert bench.asked[0].presentation.preview == Preview(source="s › shows", problem="unavailable")


async def test_a_tool_that_a_rule_denies_is_not_called_for_a_card(tmp_path: Path) -> None:
    denied = POLICY.replace("rules:", "rules:\n  - {name: no, match: {tool: shows}, decide: deny, reason: not here}")
    bench = showing(lambda: {"at": "9:00"})
    async with rig(tmp_path, does("ask"), bench, policy=denied) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert [each.tool.name for each in bench.read_for_cards] == ["gets"]


async def test_a_call_that_nobody_is_asked_about_reads_nothing_for_a_card(tmp_path: Path) -> None:
    bench = Bench(["free", "shows", "gets"], more=SAYS)
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert len(bench.called) == 1


@pytest.mark.parametrize(
    ("looked_up", "title", "source"),
    [
        (Succeeded(json.dumps({"title": "Board meeting"})), "Board meeting", "s › gets"),
        (Failed("no answer"), "Standup", "s › lists"),
    ],
)
async def test_a_look_up_counts_more_than_what_an_earlier_result_says(
    tmp_path: Path, looked_up: Any, title: str, source: str
) -> None:
    """Whoever wrote a part of the result may have written an object with that id into it."""
    event = "877f3c1e-0000-4000-8000-000000000001"

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        if not any(m.type == "tool" for m in messages):
            return calls("lists")
        return AIMessage("", tool_calls=[{"name": "s__ask", "args": {"k": event}, "id": "c"}])

    listed = Succeeded(json.dumps({"events": [{"id": event, "title": "Standup"}]}), owner="web:ana")
    outcomes = {"lists": listed, "gets": looked_up}
    bench = Bench(["ask", "lists", "gets"], outcomes=outcomes, more={**SAYS, "preview_tool": ""})
    async with rig(tmp_path, answering, bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    (known,) = bench.asked[0].presentation.known_ids
    assert (known.title, known.source, known.looked_up) == (title, source, source == "s › gets")
    assert known.owner == (None if known.looked_up else "web:ana")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"before": {"a": 1}, "after": {"a": 2}}', ({"a": 1}, {"a": 2}, "")),
        ('{"a": 1}', ({"a": 1}, {}, "")),
        ('{"before": {"a": 1}, "after": null}', ({"a": 1}, {}, "")),
        ('{"before": 1, "and": 2}', ({"before": 1, "and": 2}, {}, "")),
        ("{}", ({}, {}, "nothing")),
        ('{"before": {}, "after": null}', ({}, {}, "nothing")),
        ('{"after": {"a": 2}}', ({}, {"a": 2}, "")),
        ('{"before": {}, "after": {"a": 2}}', ({}, {"a": 2}, "")),
        ('{"after": "lunch"}', ({"after": "lunch"}, {}, "")),
        ("[1]", ({}, {}, "unreadable")),
        ("no JSON", ({}, {}, "unreadable")),
        ('{"a": NaN}', ({}, {}, "unreadable")),
        ('{"\\ud800": 1}', ({}, {}, "unreadable")),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", ({}, {}, "unreadable")),
        (json.dumps({"a": "x" * card_facts.LARGEST_ANSWER}), ({}, {}, "unreadable")),
    ],
)
async def test_a_preview_has_two_sides_or_one(tmp_path: Path, given: str, shown: Any) -> None:
    bench = Bench(["ask", "shows"], outcomes={"shows": Succeeded(given)}, more=SAYS)
    async with rig(tmp_path, does("ask"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    preview = bench.asked[0].presentation.preview
    assert preview is not None
    assert (preview.before, preview.after, preview.problem) == shown
    assert bool(preview.digest) == (not preview.problem)


async def test_what_a_preview_tool_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    refused = Failed("There is no such event.", returned={"content": []})
    bench = Bench(["ask", "shows"], outcomes={"shows": refused}, more=SAYS)
    async with rig(tmp_path, does("ask"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    preview = bench.asked[0].presentation.preview
    assert preview is not None
    assert (preview.problem, preview.said) == ("refused", "There is no such event.")


def test_a_large_preview_is_counted_and_still_told_apart() -> None:
    sides = [{"a": 1, "long": "x" * card_facts.LARGEST_SIDE + end} for end in "yz"]
    first, second = (card_facts.preview_in({"before": side, "after": {}}, "s › t", None) for side in sides)
    assert (first.before, first.hidden) == ({"a": 1}, 1)
    assert first.digest != second.digest


def test_what_is_too_long_on_one_side_is_not_shown_as_if_it_were_new_on_the_other() -> None:
    before, after = {"a": 1, "text": "x" * card_facts.LARGEST_SIDE}, {"a": 2, "text": "short"}
    preview = card_facts.preview_in({"before": before, "after": after}, "s › t", None)
    assert (preview.before, preview.after, preview.hidden) == ({"a": 1}, {"a": 2}, 1)


async def approve(r: Any, status: Any) -> Any:
    answers = {each.interrupt_id: Approved(by=("Ana",)) for each in status.interrupts}
    return await r.agent.resume("t", f"d{len(r.bench.asked)}", answers, LIVE, interrupts=status.interrupts)
