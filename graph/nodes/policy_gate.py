"""Judges one tool call: it runs, it waits for people, or it is blocked."""

from __future__ import annotations

from langgraph.types import Command

from graph.agents import shown_name
from graph.call_endings import asked_again, not_found, not_made
from graph.calls import SKIPPED, WITHOUT_TOOLS, superseded
from graph.card_facts import shown_preview, with_facts
from graph.interrupts import ApprovalAsked
from graph.json_values import trouble_with
from graph.judging import judged, keep, tool_of_agent
from graph.nodes import BranchStep
from graph.observing import CallJudged, TurnHandling
from graph.options import ask_within, has_tools, may_ask_for
from graph.plans import most_calls
from graph.ports import InTurn, Judged, Ports, Spoken
from graph.presentation import presentation_of
from graph.state import RunContext, ToolCallState
from policies.approvers import digest_of, edit_needs_no_new_asking
from policies.model import Allow, Ask, Deny, Tool, Verdict, home_of
from policies.reasons import why
from policies.trust import risks_of
from translations import SOURCE, in_language

_LIMITED = (
    "Limited: one turn may make {} tool calls, and this one was over that, so it was not made. The rest can be asked "
    "for in a new message."
)

_NO_FILE = "Failed: {} names no file of this conversation that was read. The call was not made."
_SKIPPED = (
    f"{SKIPPED}: people have to approve this call, and nobody is asked anything in this turn. The call was not made. "
    "Say so, and do not propose it again now."
)


def policy_gate(ports: Ports) -> BranchStep:
    """The step. What must be asked is recorded and shown here, at once, before the next step stops for it."""

    async def policy_gate(state: ToolCallState, context: RunContext) -> Command[str]:
        with context.asking.judging(state["call"]["id"], state.get("before", 0)) as in_turn:
            return await gated(state, context, in_turn)

    async def gated(state: ToolCallState, context: RunContext, in_turn: InTurn) -> Command[str]:
        call, turn = state["call"], state["turn"]
        if context.settling:
            return await not_made(ports, state, "superseded", superseded(context.settling))
        if not has_tools(turn):
            return await not_made(ports, state, "failed", WITHOUT_TOOLS)
        if state.get("before", 0) >= (most := most_calls(turn, ports.calls_a_turn)):
            return await not_made(ports, state, "limited", _LIMITED.format(most))
        if call.get("error"):
            return await not_made(ports, state, "failed", f"Failed: {call['error']}")
        if trouble := trouble_with(call["args"]):
            return await not_made(ports, state, "failed", f"Failed: the arguments held {trouble}")
        tool = await tool_of_agent(ports, turn, call["name"])
        if tool is None:
            return await not_made(ports, state, "failed", not_found(ports, call["name"]))
        if await _names_no_file(ports, state, tool):
            await ports.approvals.not_asked(call["id"], _rounds(state) + 1)
            return await not_made(ports, state, "failed", _NO_FILE.format(tool.file_argument))
        policy, began = ports.policy(), context.clock()
        judgement = await judged(ports, state, tool, began, policy)
        verdict, run = _verdict_on(state, judgement), TurnHandling(turn, context.delivery)
        seconds, round_ = context.clock() - began, _rounds(state) + 1
        ports.observer.note(CallJudged(run, call["id"], round_, tool, verdict, began, seconds))
        match verdict:
            case Deny(reason=reason):
                await ports.approvals.not_asked(call["id"], _rounds(state) + 1)
                return await not_made(ports, state, "denied", _blocked(reason, judgement), judgement)
            case Allow():
                await ports.approvals.not_asked(call["id"], _rounds(state) + 1)
                keep(context, state, judgement, policy)
                return Command(goto="use_tools", update={**asked_again(state), "asked": None, "rounds": _rounds(state)})
            case Ask() as ask:
                if _still_covered(state, ask):
                    keep(context, state, judgement, policy)
                    return Command(goto="use_tools")
                if not may_ask_for(turn, ask):
                    await ports.approvals.not_asked(call["id"], _rounds(state) + 1)
                    return await not_made(ports, state, "skipped", _SKIPPED, judgement)
                asked = _asked(state, judgement, ask, context.clock())
                facts = await with_facts(ports, state, tool, asked.presentation, context)
                asked = asked.model_copy(update={"presentation": facts})
                spoken = tuple(Spoken(**said) for said in state.get("spoken", []))
                asked = await ports.approvals.ask(turn["thread_id"], asked, spoken, in_turn)
                kept = {"asked": asked.model_dump(mode="json"), "rounds": asked.round, "again": ""}
                kept["asked_at"] = context.clock()
                update = {**asked_again(state), **kept}
                return Command(goto="human_confirmation", update=update)

    return policy_gate


def _blocked(reason: str, judgement: Judged) -> str:
    """What the model is told, and can tell whoever asks why not."""
    with in_language(SOURCE):
        told = why(judgement.reasons) if judgement.reasons and not judgement.reasons.mode else ""
    if not told:
        return f"Blocked by policy: {reason}"
    return f"Blocked by policy: {reason if reason.endswith(('.', '!', '?')) else f'{reason}.'} {told}"


async def _names_no_file(ports: Ports, state: ToolCallState, tool: Tool) -> bool:
    """Whether the call would hand over a file that was not handed over in its conversation, or could not be read. Also
    looked at right before it is sent; but nobody should be asked about such a call."""
    named = state["call"]["args"].get(tool.file_argument) if tool.file_argument else None
    if named is None:
        return False
    return not isinstance(named, str) or await ports.files.of_thread(state["turn"]["thread_id"], named) is None


def _verdict_on(state: ToolCallState, judgement: Judged) -> Verdict:
    """What the policy says. A standing approval, which may have been given together with the approval, is no answer to
    what has changed since people looked at this very call, nor does an edited one run under it without a look at
    whether what its preview showed is still so."""
    without = judgement.unless_standing
    looked_at = state.get("again") or (state.get("approved") and shown_preview(state))
    return without if without is not None and looked_at else judgement.verdict


def _still_covered(state: ToolCallState, ask: Ask) -> bool:
    """Whether the approval that is given suffices for the call as it was edited."""
    if not state.get("approved") or not state.get("asked"):
        return False
    given = ApprovalAsked.model_validate(state["asked"])
    return edit_needs_no_new_asking(given.ask, ask, home_of(state["turn"]["requester"]))


def _asked(state: ToolCallState, judgement: Judged, ask: Ask, now: float) -> ApprovalAsked:
    call, tool = state["call"], judgement.call.tool
    presentation = presentation_of(tool, state["turn"]["time_zone"], now)
    return ApprovalAsked(
        call_id=call["id"],
        round=_rounds(state) + 1,
        server=tool.server,
        tool=tool.name,
        title=tool.title,
        arguments=call["args"],
        digest=digest_of(tool, call["args"]),
        risk=risks_of(judgement.call, ask),
        ask=ask_within(state["turn"], ask),
        requesters=tuple(state.get("requesters") or [state["turn"]["requester"]]),
        quote=judgement.quote,
        client=state["turn"].get("client", ""),
        agent=shown_name(state["turn"]),
        presentation=presentation.model_copy(update={"reasons": judgement.reasons}),
    )


def _rounds(state: ToolCallState) -> int:
    asked = state.get("asked")  # states that were kept by an earlier version have nothing else
    return max(state.get("rounds", 0), asked["round"] if asked else 0)
