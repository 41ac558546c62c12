"""Calls outside of a conversation take the same steps as a branch of the graph, and come to the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from graph.interrupts import Answered as AnsweredByPerson
from graph.interrupts import (
    ApprovalAsked,
    Approved,
    Asked,
    Dismissed,
    ElicitationAsked,
    Expired,
    InterruptAnswer,
    OutcomeSettled,
    Rejected,
    SignedIn,
    SignInAsked,
    Superseded,
    Withdrawn,
)
from graph.ports import Failed, OutcomeUnknown, QuestionPut, SignInNeeded, Succeeded
from graph.single_calls import CallProgress, SingleCalls, first_progress
from graph.state import RunContext, Silent, Turn
from tests.graph.parts import Bench, does, ports_of, rig, turn
from tests.graph.test_faults import OURS, failing

CALL_ID = "m1.0.0"
APPROVED = Approved(by=("Ana",))
EDITED = Approved(by=("Ben",), arguments={"k": 2}, edited_by="web:ben")
RETURNED = {"content": [{"type": "text", "text": "fine"}], "structuredContent": {"k": 1}}


class Killed(BaseException):
    """The process dies."""


VERBS = {
    *("find", "recall", "begin", "send", "finish", "unsent", "outcome_unknown", "waits", "did_nothing", "close"),
    *("ask", "not_asked", "not_made", "give_up"),
}


@dataclass
class Dying(Bench):
    """Dies once, right before or after one of the things that it is asked to do."""

    dies_at: int = 0
    """Number of the moment, two of each verb, from 1; 0: never."""
    moments: int = 0
    within: bool = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._mortal(found) if name in VERBS and not self.within else found

    def _mortal(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        async def mortal(*given: Any, **more: Any) -> Any:
            self._may_die()
            self.within = True  # each verb is one transaction
            try:
                found = await verb(*given, **more)
            finally:
                self.within = False
            self._may_die()
            return found

        return mortal

    def _may_die(self) -> None:
        self.moments += 1
        if self.moments == self.dies_at:
            raise Killed


@dataclass
class Story:
    """A call, what the tool does, and what people answer."""

    tool: str
    outcome: Callable[[Story], Any] = lambda story: story.acts()
    answers: dict[str, InterruptAnswer] = field(default_factory=dict)
    """By kind and number of what is asked."""
    bench: Bench = field(default_factory=lambda: Bench([]))
    acted: int = 0
    asked: list[Asked] = field(default_factory=list)

    def acts(self) -> Succeeded:
        self.acted += 1
        return Succeeded("fine", returned=RETURNED)

    def kinds(self, kind: str) -> int:
        return [each.kind for each in self.asked].count(kind)

    def answer(self, asked: Asked) -> InterruptAnswer:
        """What was decided about exactly this, from the records."""
        self.asked.append(asked)
        match asked:
            case ApprovalAsked(round=number) | ElicitationAsked(number=number):
                return self.answers[f"{asked.kind} {number}"]
            case SignInAsked():
                return self.answers["sign_in"]
            case _:
                chosen = self.answers.get("outcome", OutcomeSettled(choice="it_was_done", by="Ana"))
                tried_again = isinstance(chosen, OutcomeSettled) and chosen.choice == "try_again"
                self.bench.attempts[CALL_ID] = "nothing" if tried_again else Succeeded("seen to be done")
                return chosen


def has_answers(story: Story) -> bool:
    return bool(story.bench.callers[-1].answers)


def has_signed_in(story: Story) -> bool:
    return story.kinds("sign_in") > 0


QUESTION = QuestionPut(1, "Which size?", (), {"type": "object"})
STORIES: dict[str, Callable[[], Story]] = {
    "allowed": lambda: Story("free"),
    "denied": lambda: Story("deny_it"),
    "approved": lambda: Story("ask", answers={"approval 1": APPROVED}),
    "edited": lambda: Story("ask", answers={"approval 1": EDITED}),
    "edited and asked again": lambda: Story("ask_four", answers={"approval 1": EDITED, "approval 2": APPROVED}),
    "rejected": lambda: Story("ask", answers={"approval 1": Rejected(by="Ben", reason="not now")}),
    "expired": lambda: Story("ask", answers={"approval 1": Expired()}),
    "withdrawn": lambda: Story("ask", answers={"approval 1": Withdrawn(by="Ana")}),
    "superseded": lambda: Story("ask", answers={"approval 1": Superseded(reason="enough")}),
    "signed in": lambda: Story(
        "free",
        lambda story: story.acts() if has_signed_in(story) else SignInNeeded("https://x/", ""),
        {"sign_in": SignedIn()},
    ),
    "not signed in": lambda: Story(
        "ask", lambda _: SignInNeeded("https://x/", ""), {"approval 1": APPROVED, "sign_in": Expired()}
    ),
    "answered": lambda: Story(
        "free",
        lambda story: story.acts() if has_answers(story) else QUESTION,
        {"elicitation 1": AnsweredByPerson(values={"size": "M"})},
    ),
    "dismissed": lambda: Story(
        "free",
        lambda story: story.acts() if has_answers(story) else QUESTION,
        {"elicitation 1": Dismissed(action="decline")},
    ),
    "failed": lambda: Story("free", lambda _: Failed("no", returned={"content": []})),
    "unknown": lambda: Story("free", lambda _: OutcomeUnknown("no answer")),
    "unknown and tried again": lambda: Story(
        "free",
        lambda story: story.acts() if story.kinds("outcome") else OutcomeUnknown("no answer"),
        {"outcome": OutcomeSettled(choice="try_again", by="Ana")},
    ),
}


def told(story: Story, bench: Bench) -> Bench:
    bench.names = [story.tool]
    bench.outcomes[story.tool] = lambda _: story.outcome(story)
    story.bench = bench
    return bench


def of_program() -> Turn:
    return {**turn("m1"), "platform": "mcp", "client": "editor"}


async def driven(story: Story, bench: Bench) -> CallProgress:
    """Drives the call as a handler of deliveries does: what is kept is JSON, and a death begins from it anew."""
    calls = SingleCalls(ports_of(told(story, bench)))
    begun = first_progress(of_program(), CALL_ID, f"s__{story.tool}", {"k": 1}).to_json()
    begun["state"]["said"] = ["go"]  # what begins the turn in a conversation
    kept = json.dumps(begun)
    while True:
        progress = CallProgress.from_json(json.loads(kept))
        if progress.ended:
            return progress
        answer = story.answer(progress.stop) if progress.stop else None
        try:
            progress = await calls.advance(progress, RunContext(clock=lambda: 0.0), answer)
        except Killed:
            continue
        kept = json.dumps(progress.to_json())


async def in_graph(story: Story, bench: Bench, tmp_path: Path) -> ToolMessage:
    async with rig(tmp_path, does(story.tool), told(story, bench)) as r:
        status = await r.agent.begin(of_program(), "go", Silent())
        while status.interrupts:
            (stop,) = status.interrupts
            status = await r.agent.resume("t", "r", {stop.interrupt_id: story.answer(stop.asked)}, Silent())
        found = await r.checkpoints.aget_tuple({"configurable": {"thread_id": "t"}})
        assert found is not None
        (message,) = [m for m in found.checkpoint["channel_values"]["messages"] if isinstance(m, ToolMessage)]
    return message


@pytest.mark.parametrize("name", STORIES)
async def test_a_single_call_comes_to_the_same_as_in_a_conversation(tmp_path: Path, name: str) -> None:
    alone, beside = STORIES[name](), STORIES[name]()
    progress = await driven(alone, Bench([]))
    message = await in_graph(beside, Bench([]), tmp_path)
    ended = progress.ended
    assert ended is not None
    assert (ended.text, ended.failed, ended.returned) == (message.text, message.status == "error", message.artifact)
    assert alone.asked == beside.asked
    assert (alone.bench.records, alone.bench.unmade) == (beside.bench.records, beside.bench.unmade)
    assert (alone.bench.callers, alone.bench.attempts) == (beside.bench.callers, beside.bench.attempts)


@pytest.mark.parametrize("name", STORIES)
async def test_a_call_whose_process_dies_at_any_moment_is_made_once_or_asked_about(name: str) -> None:
    """Rule 4: it goes on from what was kept last, and what nobody knows is asked."""
    undisturbed = STORIES[name]()
    whole = await driven(undisturbed, counting := Dying([]))
    assert counting.moments > 0
    for moment in range(1, counting.moments + 1):
        story = STORIES[name]()
        progress = await driven(story, bench := Dying([], dies_at=moment))
        assert bench.moments >= moment
        asked_again = story.kinds("outcome") - undisturbed.kinds("outcome")
        if not asked_again:
            assert (progress.ended, story.acted) == (whole.ended, undisturbed.acted), moment
        elif "outcome" in story.answers:
            assert (progress.ended, story.acted <= 1 + asked_again) == (whole.ended, True), moment
        else:
            assert progress.ended is not None
            assert (progress.ended.text[-15:], story.acted <= 1) == ("seen to be done", True), moment


@pytest.mark.parametrize("name", STORIES)
async def test_ending_the_turn_ends_a_call_from_wherever_it_is(name: str) -> None:
    """Nothing is called any more; and what has ended stays as it is."""
    story, ending = STORIES[name](), RunContext(clock=lambda: 0.0, settling="the client took it back")
    calls = SingleCalls(ports_of(told(story, bench := Bench([]))))
    progress = first_progress(of_program(), CALL_ID, f"s__{story.tool}", {"k": 1})
    while not progress.ended:
        called, attempts = len(bench.called), dict(bench.attempts)
        settled = await calls.advance(progress, ending)
        assert settled.ended is not None
        assert settled.ended.text.startswith(("Superseded: the client took it back", "Outcome unknown: "))
        assert (len(bench.called), bench.given_up[-1:] or [CALL_ID]) == (called, [CALL_ID])
        assert await calls.advance(settled, RunContext()) is settled
        bench.attempts = attempts
        answer = story.answer(progress.stop) if progress.stop else None
        progress = await calls.advance(progress, RunContext(clock=lambda: 0.0), answer)
    assert await calls.advance(progress, ending) is progress


async def test_a_call_that_waits_takes_no_answer_to_something_else() -> None:
    story = STORIES["approved"]()
    calls = SingleCalls(ports_of(told(story, bench := Bench([]))))
    begun = first_progress(of_program(), CALL_ID, "s__ask", {"k": 1})
    with pytest.raises(ValueError, match="waits for no answer"):
        await calls.advance(begun, RunContext(), APPROVED)
    waits = await calls.advance(begun, RunContext())
    with pytest.raises(ValueError, match="signed_in"):
        await calls.advance(waits, RunContext(), SignedIn())
    assert await calls.advance(waits, RunContext()) is waits
    assert (bench.called, bench.unmade) == ([], [])


async def test_a_failure_of_the_records_is_raised_and_a_fault_of_ours_ends_the_call() -> None:
    begun = first_progress(of_program(), CALL_ID, "s__free", {"k": 1})
    calls = SingleCalls(ports_of(Bench(["free"], unready={"free": failing(sqlite3.OperationalError("full"))})))
    with pytest.raises(sqlite3.OperationalError):
        await calls.advance(begun, RunContext())
    calls = SingleCalls(ports_of(bench := Bench(["free"], unready={"free": failing(KeyError("ours"))})))
    ended = (await calls.advance(begun, RunContext())).ended
    assert ended is not None
    assert (ended.failed, ended.text.startswith(OURS), bench.called) == (True, True, [])


async def test_people_and_rules_are_told_which_program_calls_and_what_it_returned_is_kept() -> None:
    story = STORIES["edited"]()
    calls = SingleCalls(ports_of(told(story, bench := Bench([]))))
    waits = await calls.advance(first_progress(of_program(), CALL_ID, "s__ask", {"k": 1}), RunContext())
    assert isinstance(waits.stop, ApprovalAsked)
    assert waits.stop.client == "editor"
    ended = (await calls.advance(waits, RunContext(), EDITED)).ended
    assert ended is not None
    (record,) = bench.records
    assert record.judged is not None
    assert (record.judged.facts.client, record.judged.facts.platform) == ("editor", "mcp")
    assert [caller.keeps_returned for caller in bench.callers] == [True]
    assert (ended.returned, ended.changed) == (RETURNED, True)
    assert ended.note.startswith('Approved with changes: an approver gave other values than yours: "k": 2.')
    assert ended.text == f"{ended.note}\n\nfine"


async def test_nothing_is_kept_for_our_own_agent(tmp_path: Path) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", Silent())
    assert [caller.keeps_returned for caller in bench.callers] == [False]
