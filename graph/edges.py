"""Where the workflow goes next: pure functions of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.graph import END
from langgraph.types import Send

from graph.calls import CLARIFICATION, current_turn, open_calls, spoken_in
from graph.history import to_fold
from graph.nodes.policy_router import needs_routing
from graph.ports import Tools
from graph.state import State, turn_of


def at_start(tools: Tools) -> Callable[[State], str]:
    """Route only where there is something to pick."""

    def at_start(_: State) -> str:
        return "policy_router" if needs_routing(tools.available()) else "task_executor"

    return at_start


def after_model(state: State) -> str | list[Send]:
    """Clarifications first, then every call in its own branch; nothing open: the turn is over."""
    calls = open_calls(state["messages"])
    if not calls:
        return "fold_history" if to_fold(state["messages"]) else END
    return _calls(state, calls)


def after_clarification(state: State) -> str | list[Send]:
    """The other calls of the same message proceed without asking the model again."""
    calls = open_calls(state["messages"])
    return _calls(state, calls) if calls else "task_executor"


def _calls(state: State, calls: list[dict[str, Any]]) -> str | list[Send]:
    if any(c["name"] == CLARIFICATION for c in calls):
        return "human_clarification"
    turn = turn_of(state)
    common = {"turn": turn, "requesters": [turn["requester"]], "spoken": _said_with(calls, state)}
    return [Send("tool_call", {"call": c, **common}) for c in calls]


def _said_with(calls: list[dict[str, Any]], state: State) -> dict[str, str] | None:
    said = spoken_in(current_turn(state["messages"]))
    if not said or not calls[0]["id"].startswith(f"{said[-1].message_id}."):
        return None
    return {"message_id": said[-1].message_id, "text": said[-1].text}
