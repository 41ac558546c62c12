"""Where the workflow goes next: functions of the state that look nothing up.

They are coroutines only because LangGraph hands plain functions to a thread, which costs more than they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from langgraph.graph import END
from langgraph.types import Send

from graph.calls import CLARIFICATION, calls_before, current_turn, open_calls, spoken_in
from graph.history import to_fold
from graph.nodes.policy_router import needs_routing
from graph.ports import Tools
from graph.quotes import said_by_requester
from graph.state import State, turn_of


def at_start(tools: Tools) -> Callable[[State], Awaitable[str]]:
    """Route only where there is something to pick."""

    async def at_start(_: State) -> str:
        return "policy_router" if needs_routing(tools.available()) else "task_executor"

    return at_start


async def after_model(state: State) -> str | list[Send]:
    """Clarifications first, then every call in its own branch; nothing open: the turn is over."""
    calls = open_calls(state["messages"])
    if not calls:
        return "fold_history" if to_fold(state["messages"]) else END
    return _calls(state, calls)


async def after_clarification(state: State) -> str | list[Send]:
    """The other calls of the same message proceed without asking the model again."""
    calls = open_calls(state["messages"])
    return _calls(state, calls) if calls else "task_executor"


def _calls(state: State, calls: list[dict[str, Any]]) -> str | list[Send]:
    if any(c["name"] == CLARIFICATION for c in calls):
        return "human_clarification"
    turn, messages = turn_of(state), current_turn(state["messages"])
    common = {
        "turn": turn,
        "requesters": [turn["requester"]],
        "spoken": [asdict(spoken) for spoken in spoken_in(messages)],
        "said": list(said_by_requester(messages, turn)),
    }
    return [Send("tool_call", {"call": c, "before": calls_before(messages, c["id"]), **common}) for c in calls]
