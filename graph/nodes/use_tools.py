"""Makes one tool call, at most once, and writes what came of it into the ledger."""

from __future__ import annotations

from dataclasses import replace

from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from graph.calls import as_returned, digest_of, superseded, tool_message
from graph.judging import judged
from graph.models.arguments import trouble_with
from graph.nodes import Step
from graph.nodes.elicitation_needed import as_json
from graph.not_made import not_made
from graph.ports import (
    AccountNeeded,
    Begun,
    BrokeOff,
    Caller,
    CallRecord,
    Failed,
    Given,
    NotMade,
    NotPermitted,
    Ports,
    QuestionPut,
    Recorded,
    SignInNeeded,
    Skipped,
    Succeeded,
    ToolOutcome,
    Undecided,
)
from graph.state import RunContext, ToolCallState
from policies.deciding import approval_suffices
from policies.model import Allow, Ask, Tool

UNKNOWN = "Outcome unknown: the call was started and no answer came. It may or may not have taken effect."


def use_tools(ports: Ports) -> Step:
    """The node. It never raises, cancellation aside: an exception in one branch would cancel its siblings."""

    async def use_tools(state: ToolCallState, runtime: Runtime[RunContext]) -> Command[str]:
        call, context = state["call"], runtime.context
        if context.settling:
            return await _given_up(ports, state, "superseded", superseded(context.settling))
        tool = ports.tools.find(call["name"])
        if tool is None:
            return await _given_up(ports, state, "failed", f"Failed: there is no tool called {call['name']} any more.")
        if trouble := trouble_with(call["args"]):  # approved before such arguments were refused
            return await _given_up(ports, state, "failed", f"Failed: the arguments held {trouble}")
        record = await _record(ports, state, tool, context.now)
        match await ports.ledger.begin(record):
            case Begun(attempt=attempt):
                shown = f"{tool.server}: {tool.title or tool.name}"
                context.live.status(f"Using {shown}…")
                context.live.task(record.call_id, shown, "running")
                outcome = await _call(ports, tool, record, state, runtime)
                context.live.task(record.call_id, shown, "done" if isinstance(outcome, Succeeded) else "failed")
                context.live.status("")
                return await _concluded(ports, state, record, attempt, outcome)
            case Recorded(outcome=outcome):
                return _answer(state, outcome)
            case Skipped(was_done=was_done, by=by):
                return _answer(state, _settled_by_person(by, was_done))
            case Undecided(attempt=attempt):
                return Command(goto="outcome_unknown", update={"attempt": attempt})
            case NotPermitted():
                # The tool, its configuration or the policy changed since the approval: the call is judged anew.
                return Command(goto="policy_gate", update={"approved": None})

    return use_tools


async def _record(ports: Ports, state: ToolCallState, tool: Tool, now: float) -> CallRecord:
    """The call for the ledger, judged again right before it is made: since the gate there may have been a wait of days,
    and a restart under another policy, mode or `requireApproval`."""
    call, turn, asked = state["call"], state["turn"], state.get("asked")
    judgement = await judged(ports, state, tool, now)
    verdict = judgement.verdict
    given = Ask.model_validate(asked["ask"]) if asked else None
    return CallRecord(
        thread_id=turn["thread_id"],
        call_id=call["id"],
        requester=turn["requester"],
        tool=tool,
        arguments=call["args"],
        digest=digest_of(tool, call["args"]),
        approval_round=asked["round"] if asked else None,
        permitted=approval_suffices(given, verdict) if given else isinstance(verdict, Allow),
        verdict=verdict,
        mode=ports.mode,
        facts=judgement.facts,
        quote=judgement.quote,
    )


async def _call(
    ports: Ports, tool: Tool, record: CallRecord, state: ToolCallState, runtime: Runtime[RunContext]
) -> ToolOutcome:
    def progress(message: str, fraction: float | None) -> None:
        share = f" {fraction:.0%}" if fraction is not None else ""
        runtime.context.live.status(f"{tool.server}: {message or tool.title or tool.name}{share}")

    stale = state.get("stale", 0)
    kept = [Given(**given) for given in state.get("answers", [])]
    answers = (*(replace(given, digest="") for given in kept[:stale]), *kept[stale:])
    caller = Caller(record.requester, record.thread_id, record.call_id, answers, state.get("over", 0))
    return await ports.tools.call(tool, record.arguments, caller, progress)


async def _concluded(
    ports: Ports,
    state: ToolCallState,
    record: CallRecord,
    attempt: int,
    outcome: ToolOutcome,
) -> Command[str]:
    match outcome:
        case Succeeded() | Failed():
            await ports.ledger.finish(record, attempt, outcome)
            return _answer(state, outcome)
        case BrokeOff(text=text) if record.tool.repeatable:
            # It may be tried again without asking anybody, so nobody needs to be asked what came of it either.
            failed = Failed(text)
            await ports.ledger.finish(record, attempt, failed)
            return _answer(state, failed)
        case BrokeOff():
            await ports.ledger.broke_off(record, attempt)
            return Command(goto="outcome_unknown", update={"attempt": attempt})
        case QuestionPut():
            await ports.ledger.did_nothing(record.call_id, attempt)
            return Command(goto="elicitation_needed", update={"question": as_json(outcome)})
        case SignInNeeded() | AccountNeeded():
            if isinstance(outcome, SignInNeeded) and not (outcome.did_nothing or record.tool.repeatable):
                await ports.ledger.broke_off(record, attempt)  # asked about after the sign-in
            else:
                await ports.ledger.did_nothing(record.call_id, attempt)
            sign_in_id = await ports.sign_ins.ask(
                record.thread_id, record.call_id, record.requester, record.tool.server, outcome
            )
            link = outcome.number if isinstance(outcome, SignInNeeded) else 0
            return Command(goto="oauth_needed", update={"sign_in_id": sign_in_id, "link": link})


async def _given_up(ports: Ports, state: ToolCallState, status: NotMade, text: str) -> Command[str]:
    """The call shall not be started any more. `status` and `text` hold if it never was."""
    match await ports.ledger.close(state["call"]["id"]):
        case Recorded(outcome=outcome):
            return _answer(state, outcome)
        case Skipped(was_done=was_done, by=by):
            return _answer(state, _settled_by_person(by, was_done))
        case Undecided():
            return _answer(state, UNKNOWN)
        case None:
            return await not_made(ports, state, status, text)


def _settled_by_person(by: str, was_done: bool) -> str:  # noqa: FBT001  # a fact, not a flag
    if was_done:
        return f"Done, as {by} confirmed: the call took effect, but its result is not known."
    return f"Skipped by {by}: the outcome of the call is unknown and it shall not be tried again."


def _answer(state: ToolCallState, outcome: Succeeded | Failed | str) -> Command[str]:
    match outcome:
        case Succeeded(text=text, owner=owner):
            message = tool_message(state["call"], as_returned(text), owner=owner)
        case Failed(text=text, owner=owner):
            message = tool_message(state["call"], f"Failed: {text}", owner=owner, failed=True)
        case str():
            message = tool_message(state["call"], outcome, failed=True)
    return Command(goto=END, update={"messages": [message]})
