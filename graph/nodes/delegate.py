"""Stops until the tasks of a plan have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from graph.agents import DEFAULT, name_in
from graph.calls import WITHOUT_TOOLS, superseded, tool_message
from graph.files import ListedFile
from graph.interrupts import PlanAsked, PlanEnded, Superseded, plan_answer
from graph.nodes import Node
from graph.options import has_tools
from graph.plans import MOST_PLANS, PlanError, owner_of, results_for_model, tasks_in
from graph.ports import Ports
from graph.state import RunContext, Turn

_LIMITED = (
    f"Limited: one turn may carry out {MOST_PLANS} plans, and this one was over that, so it was not begun. Answer with "
    "what there is. The rest can be asked for in a new message."
)


class DelegateState(TypedDict):
    """A call of `delegate` in its own branch."""

    call: dict[str, Any]
    """As `graph.state.ToolCallState.call`."""
    turn: Turn
    said: list[str]
    """As `graph.state.ToolCallState.said`."""
    files: NotRequired[list[ListedFile]]
    """What was handed over in the conversation, which its tasks may read."""
    before: NotRequired[int]
    """How many plans the turn holds before this one; absent: an earlier version began it."""
    agents: NotRequired[list[str]]
    """Names of those that could be given tasks when the model made the plan; absent: an earlier version began it. This
    node is run again when its plan has ended: one of them may be gone by then, and the plan was begun all the same."""


def delegates(ports: Ports, turn: Turn) -> Mapping[str, str]:
    """Returns the agents that can be given tasks in a turn, name → description: only the default agent makes plans."""
    if name_in(turn) != DEFAULT or not has_tools(turn):
        return {}
    return {agent.name: agent.description for agent in ports.agents.specialists}


def delegate(ports: Ports) -> Node:
    """The node. What is no plan that can be carried out is answered at once."""

    async def delegate(state: DelegateState, runtime: Runtime[RunContext]) -> dict[str, Any]:
        call, turn = state["call"], state["turn"]
        if runtime.context.settling:
            ended = runtime.context.ended_plans.get(call["id"])
            return {"messages": [_ended(call, ended or Superseded(reason=runtime.context.settling))]}
        if not has_tools(turn):
            return {"messages": [tool_message(call, WITHOUT_TOOLS, failed=True)]}
        if call.get("error"):
            return {"messages": [tool_message(call, f"Failed: {call['error']}", failed=True)]}
        if state.get("before", 0) >= MOST_PLANS:
            return {"messages": [tool_message(call, _LIMITED, failed=True)]}
        try:
            tasks = tasks_in(call["args"], state.get("agents") or list(delegates(ports, turn)))
        except PlanError as error:
            return {"messages": [tool_message(call, f"Failed: the plan was not begun: {error}.", failed=True)]}
        asked = PlanAsked(
            call_id=call["id"],
            tasks=tasks,
            requester=turn["requester"],
            turn=dict(turn) | ({"files": files} if (files := state.get("files")) else {}),
            said=tuple(state["said"]),
        )
        answer = plan_answer.validate_python(interrupt(asked.model_dump(mode="json")))
        return {"messages": [_ended(call, answer)]}

    return delegate


def _ended(call: dict[str, Any], answer: PlanEnded | Superseded) -> ToolMessage:
    """What the model is told: what its tasks have done stays done, also where the plan was stopped."""
    if isinstance(answer, Superseded):
        return tool_message(call, superseded(answer.reason), failed=True)
    return tool_message(call, results_for_model(answer.tasks), owner=owner_of(answer.tasks))
