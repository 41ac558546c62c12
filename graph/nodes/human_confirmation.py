"""An approval: the call stops until the people who may decide have decided."""

from __future__ import annotations

from typing import Any

from langgraph.types import Command

from graph.call_endings import as_told, changed_values, not_made, status_of
from graph.calls import refusal
from graph.interrupts import ApprovalAnswer, ApprovalAsked, Approved, approval_answer
from graph.judging import call_of, facts_of
from graph.nodes import AskingStep
from graph.observing import ApprovalAnswered, TurnHandling
from graph.ports import Judged, Ports
from graph.state import RunContext, ToolCallState


def human_confirmation(ports: Ports) -> AskingStep:
    """What is asked and what follows. What was approved is what runs; edited arguments are judged anew first."""

    async def asks(state: ToolCallState, context: RunContext) -> dict[str, Any]:
        context.stopped[state["call"]["id"]] = state
        return state["asked"] or {}

    async def follows(state: ToolCallState, context: RunContext, given: Any) -> Command[str]:
        answer = as_told(approval_answer.validate_python(given), ports.masker)
        asked = ApprovalAsked.model_validate(state["asked"])
        ports.observer.note(_answered(state, context, asked, answer))
        if not isinstance(answer, Approved):
            judgement = await _as_asked(ports, state, asked, context.now)
            return await not_made(ports, state, status_of(answer), refusal(answer), judgement)
        approved = answer.model_dump(mode="json")
        if answer.arguments is None:
            return Command(goto="use_tools", update={"approved": approved})
        editors = [answer.edited_by] if answer.edited_by else []
        requesters = list(dict.fromkeys([*asked.requesters, *editors]))
        edited = {**state["call"], "args": answer.arguments}
        stale = len(state.get("answers", []))
        proposed = state.get("proposed", state["call"]["args"])
        update = {
            "call": edited,
            "proposed": proposed,
            "given": changed_values(proposed, answer.arguments, ports.masker),
            "approved": approved,
            "requesters": requesters,
            "stale": stale,
        }
        return Command(goto="policy_gate", update=update)

    return AskingStep(asks, follows)


def _answered(
    state: ToolCallState, context: RunContext, asked: ApprovalAsked, answer: ApprovalAnswer
) -> ApprovalAnswered:
    return ApprovalAnswered(
        TurnHandling(state["turn"], context.delivery),
        asked.call_id,
        asked.round,
        server=asked.server,
        tool=asked.tool,
        rule=asked.ask.rule,
        outcome="edited" if isinstance(answer, Approved) and answer.arguments is not None else answer.kind,
        asked_at=state.get("asked_at"),
        ended_at=context.now,
    )


async def _as_asked(ports: Ports, state: ToolCallState, asked: ApprovalAsked, now: float) -> Judged | None:
    """What the policy said when it was asked about, for the audit log; nothing when the tool is gone."""
    tool = await ports.tools.find(state["call"]["name"])
    if tool is None:
        return None
    facts = await facts_of(ports, ports.policy(), state, tool, now)
    return Judged(call_of(state, tool), facts, asked.ask, asked.quote, reasons=asked.presentation.reasons)
