"""Keeps a fault of one tool call within its branch.

An exception that leaves a branch makes LangGraph cancel all others beside it: the finished write of another server
would end as unknown. And a value that no checkpoint takes stands in the way of whatever transaction of the thread comes
next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import END
from langgraph.types import Command

from graph.call_endings import OUTCOME_UNKNOWN, not_made
from graph.calls import tool_message
from graph.nodes import BranchStep
from graph.ports import AttemptUnknown, Ports
from graph.state import RunContext, ToolCallState

log = structlog.get_logger(__name__)
_KEPT_WITHIN = 8
"""Levels of nesting that a checkpoint, and the state in it, put around what a node returns."""
_serialiser = JsonPlusSerializer(allowed_msgpack_modules=[])

Ending = Callable[[Ports, ToolCallState, RunContext, str], Awaitable[Command[str]]]
"""How a call ends that a fault has broken off: its state, and what is said of it if it was never sent."""


def contained(ports: Ports, step: BranchStep, ending: Ending) -> BranchStep:
    """A step of the branch that neither raises nor stops for, nor returns, what no checkpoint takes.

    Interrupts and cancellation pass, and so does a failure of the records: it is no fault of the call, and the turn is
    tried again.
    """

    async def contained(state: ToolCallState, context: RunContext) -> Command[str]:
        try:
            return await _kept(step, state, context)
        except Exception as fault:
            if isinstance(fault, GraphBubbleUp) or ports.is_outage(fault):
                raise
            return await _ended(ports, state, context, ending, fault)

    return contained


async def _kept(step: BranchStep, state: ToolCallState, context: RunContext) -> Command[str]:
    """What the step returns. Raises what the serialiser raises, besides what the step does."""
    try:
        then = await step(state, context)
    except GraphInterrupt as stop:
        _serialise([each.value for each in stop.args[0]])
        raise
    _serialise(then.update)
    return then


def _serialise(value: Any) -> None:
    for _ in range(_KEPT_WITHIN):
        value = [value]
    _serialiser.dumps_typed(value)


async def _ended(
    ports: Ports, state: ToolCallState, context: RunContext, ending: Ending, fault: Exception
) -> Command[str]:
    call = state["call"]
    reference = hashlib.sha256(call["id"].encode()).hexdigest()[:8]
    log.error("tool_call_broke", call_id=call["id"], tool=call["name"], reference=reference, exc_info=fault)
    told = f"Failed: something went wrong on our side. Nothing was called. (Reference {reference})"
    try:
        then = await ending(ports, state, context, told)
        _serialise(then.update)
    except Exception as again:
        if ports.is_outage(again):
            raise
        # What is known of the call can be neither looked up nor kept: then nothing may be claimed of it.
        log.exception("tool_call_not_ended", call_id=call["id"], reference=reference)
        text = f"{OUTCOME_UNKNOWN} Something went wrong on our side. (Reference {reference})"
        return Command(goto=END, update={"messages": [tool_message(call, text, failed=True)]})
    return then


async def told_as_known(ports: Ports, state: ToolCallState, _: RunContext, told: str) -> Command[str]:
    """End the call: nothing waits for people any more, and it is told as the ledger knows it."""
    call, asked = state["call"], state.get("asked")
    for round_ in {state.get("rounds", 0) + 1, asked["round"] if asked else 1}:
        await ports.approvals.not_asked(call["id"], round_)
    return await not_made(ports, state, "failed", told)


async def asked_if_begun(ports: Ports, state: ToolCallState, context: RunContext, told: str) -> Command[str]:
    """The same; but what came of a call that has begun is asked, as after the death of the process."""
    call = state["call"]
    tool = await ports.tools.find(call["name"])
    if not context.settling:
        known = await ports.ledger.recall(call["id"], repeatable=tool is not None and tool.repeatable)
        if isinstance(known, AttemptUnknown):
            unknown = {"attempt": known.attempt, "known": known.text, "known_to": known.owner}
            return Command(goto="outcome_unknown", update=unknown)
    return await told_as_known(ports, state, context, told)
