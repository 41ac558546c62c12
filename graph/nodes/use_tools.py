"""Makes one tool call, at most once, and writes what came of it into the ledger.

All that may take a while comes first, then the attempt is recorded as started, then the request leaves: what fails, or
is killed, before that was never sent, and is known to be so.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, replace
from typing import Any

from langgraph.types import Command

from graph.call_endings import answered, asked_again, not_found, not_made
from graph.calls import superseded
from graph.card_facts import changed_since
from graph.interrupts import (
    Answered,
    Dismissed,
    ElicitationAsked,
    FormField,
    OutcomeUnknownAsked,
    Superseded,
    elicitation_answer,
    outcome_answer,
)
from graph.json_values import trouble_with
from graph.judging import judged_for_making, tool_of_agent
from graph.nodes import AskingStep, BranchStep
from graph.nodes.oauth_needed import server_of
from graph.observing import ToolCalled, TurnHandling
from graph.options import may_ask
from graph.ports import (
    AccountNeeded,
    AttemptUnknown,
    Beginning,
    Begun,
    Caller,
    CallRecord,
    Existing,
    Failed,
    Given,
    Judged,
    NotApproved,
    NotSent,
    OutcomeUnknown,
    Ports,
    Prepared,
    Progress,
    QuestionPut,
    Ready,
    Recorded,
    SettledByPerson,
    SignInNeeded,
    Spoken,
    Succeeded,
    ToolOutcome,
)
from graph.presentation import CallPresentation, presentation_of
from graph.state import RunContext, ToolCallState, Turn
from policies.approvers import approval_suffices, digest_of
from policies.model import Allow, Ask, Risk, Tool, home_of
from policies.trust import risks_of, warned_of
from translations import gettext as _

TRIES = 2
"""Preparations of a call whose request certainly never left."""
MOST_SIGN_INS = 3
"""Sign-ins after which a call is made again. That a server did nothing before is its own word: one that acts and then
asks for another sign-in has its effect no more often than this, and once."""
_NOBODY_ASKED = (
    "There is no place where anybody could be asked what came of it. Look whether it was done before the call is made "
    "again."
)

MakeCall = Callable[[ToolCallState, RunContext], Coroutine[Any, Any, Command[str]]]
"""Makes a call and returns what its branch does next."""


def use_tools(ports: Ports) -> BranchStep:
    """The step. All that may come of a call is a case of its own; what nobody expected ends as `contained` says."""
    make_call = making_calls(ports)

    async def use_tools(state: ToolCallState, context: RunContext) -> Command[str]:
        if context.settling:
            return await not_made(ports, state, "superseded", superseded(context.settling))
        begun = context.begun.pop(state["call"]["id"], None)
        return await (begun.ends if begun else make_call(state, context))

    return use_tools


def making_calls(ports: Ports) -> MakeCall:
    """What makes calls, within the node or before a run has come to it."""

    async def make_call(state: ToolCallState, context: RunContext) -> Command[str]:
        call = state["call"]
        tool = await tool_of_agent(ports, state["turn"], call["name"])
        if tool is None:
            return await not_made(ports, state, "failed", not_found(ports, call["name"]))
        if trouble := trouble_with(call["args"]):  # approved before such arguments were refused
            return await not_made(ports, state, "failed", f"Failed: the arguments held {trouble}")
        tries, begins_anew = 0, False
        while True:
            known = await ports.ledger.recall(call["id"], repeatable=tool.repeatable)
            if not isinstance(known, Beginning):
                return _kept_from(state, known)
            context.live.status(_("Using {tool}…").format(tool=_shown(tool)))
            # In the middle of a call it is too late to look: the tool may have acted. Another try of it begins anew.
            goes_on = known.waits and bool(state.get("answers")) and not begins_anew
            # Not within `prepared`: a server that serves one call after the other would wait for itself.
            if not goes_on and (again := await changed_since(ports, state, tool, context)):
                context.live.status("")
                return Command(goto="policy_gate", update={**asked_again(state), "again": again})
            async with ports.tools.prepared(tool, call["args"], _caller(state)) as prepared:
                begins_anew = goes_on and tool.repeatable and isinstance(prepared, Ready) and not prepared.goes_on
                if begins_anew:
                    continue  # it waits no more, and a tool that may be called again is
                tries += 1
                # Judged only now: preparing may have taken a while.
                judgement = await judged_for_making(ports, state, tool, context)
                record = replace(_record(state, judgement, context.clock()), recalled_at=known.at)
                step = await _made(ports, state, record, prepared, context)
            context.live.status("")
            if not isinstance(step, NotSent):
                return step
            if tries == TRIES:
                failed = Failed(f"{tool.server} is unavailable: it {step.reason}. Nothing was called.")
                return await _unsent(ports, state, record, failed)

    return make_call


async def _made(
    ports: Ports, state: ToolCallState, record: CallRecord, prepared: Prepared, context: RunContext
) -> Command[str] | NotSent:
    """What comes of a call that is prepared."""
    match prepared:
        case Ready(send=send, goes_on=goes_on):
            begun = await ports.ledger.begin(replace(record, goes_on=goes_on))
            if not isinstance(begun, Begun):
                return _kept_from(state, begun)
            outcome = await _observed(
                ports, state, begun.attempt, _sent(send, record, context), record=record, context=context
            )
            return await _concluded(ports, state, record, begun.attempt, outcome)
        case OutcomeUnknown():
            return _kept_from(state, await ports.ledger.unknown_after_question(record, prepared))
        case Failed():
            return await _unsent(ports, state, record, prepared)
        case AccountNeeded():
            ended = await ports.ledger.unsent(record, None)
            return (
                await _sign_in(ports, state, record, prepared) if isinstance(ended, Begun) else _kept_from(state, ended)
            )
        case SignInNeeded():
            return await _sign_in(ports, state, record, prepared)
        case QuestionPut():
            return _question(prepared)


def _record(state: ToolCallState, judgement: Judged, now: float) -> CallRecord:
    """The call for the ledger."""
    call, turn, asked = state["call"], state["turn"], state.get("asked")
    tool, verdict = judgement.call.tool, judgement.verdict
    given = Ask.model_validate(asked["ask"]) if asked else None
    digest, home = digest_of(tool, call["args"]), home_of(turn["requester"])
    without = judgement.unless_standing
    standing = without is not None and not (given and approval_suffices(given, without, home))
    return CallRecord(
        thread_id=turn["thread_id"],
        call_id=call["id"],
        requester=turn["requester"],
        tool=tool,
        arguments=call["args"],
        digest=digest,
        approval_round=asked["round"] if asked else None,
        permitted=approval_suffices(given, verdict, home) and not _is_worse_than_shown(asked, given, judgement, digest)
        if given and asked
        else isinstance(verdict, Allow),
        standing=standing,
        client=judgement.facts.client,
        judged=judgement if standing or without is None else _but_for_standing(judgement, without),
        spoken=tuple(Spoken(**said) for said in state.get("spoken", [])),
        presentation=CallPresentation.model_validate(asked.get("presentation") or {})
        if asked
        else presentation_of(tool, turn["time_zone"], now),
    )


def _but_for_standing(judgement: Judged, ask: Ask) -> Judged:
    """The judgement of a call that people have approved: a standing approval, given together with that, did not
    decide it."""
    reasons = judgement.reasons
    if reasons is not None:
        reasons = reasons.model_copy(update={"decided": ask.verdict, "is_standing": False})
    return replace(judgement, verdict=ask, unless_standing=None, reasons=reasons)


def _is_worse_than_shown(asked: Mapping[str, Any], given: Ask, judgement: Judged, digest: str) -> bool:
    """Whether the call as its card showed it may do by now what the card did not warn of: the tool's annotations are in
    no digest. What an edit adds to that is written by whoever approved it.

    `given`: what the card's risks were judged by. `digest`: of the call as it is to be made.
    """
    shown = replace(judgement.call, arguments=asked["arguments"])
    may = risks_of(shown, judgement.verdict if asked["digest"] == digest else given)
    return not warned_of(map(Risk, asked["risk"]), may)


def _caller(state: ToolCallState) -> Caller:
    turn, stale = state["turn"], state.get("stale", 0)
    kept = [Given(**given) for given in state.get("answers", [])]
    answers = (*(replace(given, digest="") for given in kept[:stale]), *kept[stale:])
    return Caller(
        turn["requester"],
        turn["thread_id"],
        state["call"]["id"],
        answers,
        state.get("over", 0),
        keeps_returned=bool(turn.get("client")) or turn["platform"] == "mcp",
        channel=turn["channel"],
    )


async def _observed(
    ports: Ports,
    state: ToolCallState,
    attempt: int,
    sent: Awaitable[ToolOutcome | NotSent],
    *,
    record: CallRecord,
    context: RunContext,
) -> ToolOutcome | NotSent:
    """What comes of a call that is being sent. Whoever measures that is told."""
    began_at, began = context.clock(), time.monotonic()
    outcome: ToolOutcome | NotSent | None = None
    try:
        outcome = await sent
    finally:
        ports.observer.note(
            ToolCalled(
                TurnHandling(state["turn"], context.delivery),
                record.call_id,
                attempt,
                record.approval_round,
                record.tool,
                record.arguments,
                outcome,
                began_at,
                time.monotonic() - began,
            )
        )
    return outcome


async def _sent(
    send: Callable[[Progress], Awaitable[ToolOutcome | NotSent]], record: CallRecord, context: RunContext
) -> ToolOutcome | NotSent:
    tool, live = record.tool, context.live

    def progress(message: str, fraction: float | None) -> None:
        share = f" {fraction:.0%}" if fraction is not None else ""
        live.status(f"{tool.server}: {message or tool.title or tool.name}{share}")

    live.task(record.call_id, _shown(tool), "running")
    context.leaves(record.call_id)
    outcome = await send(progress)
    live.task(record.call_id, _shown(tool), "done" if isinstance(outcome, Succeeded) else "failed")
    return outcome


def _shown(tool: Tool) -> str:
    """What it does, while it runs. There is one line for it, so the server's name stands before its own title."""
    return f"{tool.server}: {' '.join(tool.title.split()) or tool.name}"


async def _concluded(
    ports: Ports,
    state: ToolCallState,
    record: CallRecord,
    attempt: int,
    outcome: ToolOutcome | NotSent,
) -> Command[str] | NotSent:
    match outcome:
        case NotSent():
            await ports.ledger.did_nothing(record, attempt)
            return outcome
        case Succeeded():
            await ports.ledger.finish(record, attempt, outcome)
            return answered(state, outcome)
        case Failed():
            return await _failed(ports, state, record, attempt, outcome)
        case OutcomeUnknown(text=text, owner=owner) if record.tool.repeatable:
            # It may be tried again without asking anybody, so nobody needs to be asked what came of it either.
            return await _failed(ports, state, record, attempt, Failed(text, owner=owner))
        case OutcomeUnknown():
            return _kept_from(state, await ports.ledger.outcome_unknown(record, attempt, outcome))
        case QuestionPut():
            await ports.ledger.waits(record, attempt)
            return _question(outcome)
        case SignInNeeded(did_nothing=True, number=0) | AccountNeeded() if state.get("signed_in", 0) >= MOST_SIGN_INS:
            return await _failed(ports, state, record, attempt, _insists(record.tool))
        case SignInNeeded(did_nothing=True, number=0) | AccountNeeded():
            await ports.ledger.did_nothing(record, attempt)
            return await _sign_in(ports, state, record, outcome)
        case SignInNeeded():
            await ports.ledger.waits(record, attempt)
            return await _sign_in(ports, state, record, outcome)


async def _failed(ports: Ports, state: ToolCallState, record: CallRecord, attempt: int, failed: Failed) -> Command[str]:
    """What follows from a failure: it is told as the ledger knows it, which may know of an earlier try."""
    await ports.ledger.finish(record, attempt, failed)
    known = await ports.ledger.recall(record.call_id, repeatable=record.tool.repeatable)
    return answered(state, failed) if isinstance(known, Beginning) else _kept_from(state, known)


def _insists(tool: Tool) -> Failed:
    asked = f"{tool.server} asked for another sign-in after {MOST_SIGN_INS} of them"
    return Failed(f"{asked}, so {tool.title or tool.name} was not called again.")


async def _unsent(ports: Ports, state: ToolCallState, record: CallRecord, failed: Failed) -> Command[str]:
    ended = await ports.ledger.unsent(record, failed)
    return answered(state, failed) if isinstance(ended, Begun) else _kept_from(state, ended)


def _kept_from(state: ToolCallState, known: Existing | NotApproved) -> Command[str]:
    """What follows where the ledger does not let the call be sent."""
    match known:
        case AttemptUnknown(attempt=attempt, text=text, owner=owner):
            unknown = {"attempt": attempt, "known": text, "known_to": owner}
            return Command(goto="outcome_unknown", update=unknown)
        case NotApproved():
            # The tool, its configuration or the policy changed since the approval: the call is judged anew.
            return Command(goto="policy_gate", update=asked_again(state))
        case Recorded() | SettledByPerson():
            return answered(state, known)


async def _sign_in(
    ports: Ports, state: ToolCallState, record: CallRecord, needed: SignInNeeded | AccountNeeded
) -> Command[str]:
    if not may_ask(state["turn"]):
        return await not_made(ports, state, "failed", _not_connected(record.tool, state["turn"]), record.judged)
    sign_in_id = await ports.sign_ins.ask(
        record.thread_id, record.call_id, record.requester, record.tool.server, needed
    )
    link = needed.number if isinstance(needed, SignInNeeded) else 0
    return Command(goto="oauth_needed", update={"sign_in_id": sign_in_id, "link": link})


def _not_connected(tool: Tool, turn: Turn) -> str:
    if turn["platform"] == "mcp":
        return (
            f"Failed: {turn['requester_name']} has to connect an account for {tool.server} first, and there is no "
            "place to which the link for that could be sent: they are in no chat that Countersign is connected to, and "
            "its page is off. The call was not made. Whoever runs Countersign can turn on the page or a chat; once the "
            "account is connected there, make the call again."
        )
    return (
        f"Failed: {turn['requester_name']} has to connect an account for {tool.server} first, and nobody is asked to "
        "sign in in this turn. The call was not made."
    )


def _question(put: QuestionPut) -> Command[str]:
    """The state keeps what is needed to ask it, as JSON."""
    kept = {
        "number": put.number,
        "message": put.message,
        "fields": [field.model_dump(mode="json") for field in put.fields],
        "schema": dict(put.schema),
        "digest": put.digest,
    }
    return Command(goto="elicitation_needed", update={"question": kept})


# -------------------------------------------------------------------- stops in the middle of a call


def elicitation_needed(ports: Ports) -> AskingStep:
    """What a tool asked in the middle of its call: the requester answers it, and the same call then goes on. The tool
    is told of a refusal too, and decides what it does without an answer; where nobody is asked, that is a "cancel"."""

    async def asks(state: ToolCallState, _: RunContext) -> dict[str, Any] | Command[str]:
        question = state["question"]
        if not may_ask(state["turn"]):
            unanswered = Given(question["number"], "cancel", digest=question["digest"])
            return Command(goto="use_tools", update={"answers": [asdict(unanswered)]})
        asked = ElicitationAsked(
            call_id=state["call"]["id"],
            number=question["number"],
            server=server_of(state["call"]["name"]),
            message=question["message"],
            fields=tuple(FormField.model_validate(field) for field in question["fields"]),
            schema_=question["schema"],
            requester=state["turn"]["requester"],
        )
        return asked.model_dump(mode="json")

    async def follows(state: ToolCallState, _: RunContext, answer: Any) -> Command[str]:
        question = state["question"]
        match elicitation_answer.validate_python(answer):
            case Answered(values=values):
                given = Given(question["number"], "accept", values, question["digest"])
            case Dismissed(action=action):
                given = Given(question["number"], action, digest=question["digest"])
            case Superseded(reason=reason):
                return await not_made(ports, state, "superseded", superseded(reason))
        return Command(goto="use_tools", update={"answers": [asdict(given)]})

    return AskingStep(asks, follows)


def outcome_unknown(ports: Ports) -> AskingStep:
    """What came of an attempt whose outcome is unknown: a person settles it. What they say is in the ledger:
    `use_tools` reads it there and acts on it."""

    async def asks(state: ToolCallState, _: RunContext) -> dict[str, Any] | Command[str]:
        call, turn = state["call"], state["turn"]
        if turn["platform"] == "mcp" and not may_ask(turn):  # elsewhere the page and the API can settle it
            await ports.ledger.close(call["id"], repeatable=False)
            told = " ".join(filter(None, [state.get("known", ""), _NOBODY_ASKED]))
            return answered(state, AttemptUnknown(state["attempt"], told, state.get("known_to")))
        tool = await ports.tools.find(call["name"])
        asked = OutcomeUnknownAsked(
            call_id=call["id"],
            attempt=state["attempt"],
            server=tool.server if tool else server_of(call["name"]),
            tool=tool.name if tool else call["name"],
            title=tool.title if tool else "",
            arguments=call["args"],
            requester=state["turn"]["requester"],
        )
        return asked.model_dump(mode="json")

    async def follows(state: ToolCallState, _: RunContext, answer: Any) -> Command[str]:
        if isinstance(outcome_answer.validate_python(answer), Superseded):
            return answered(state, AttemptUnknown(state["attempt"], state.get("known", ""), state.get("known_to")))
        # Where it is tried again, nothing is left to find out about what was answered before.
        return Command(goto="use_tools", update={"over": len(state.get("answers", [])), "signed_in": 0})

    return AskingStep(asks, follows)
