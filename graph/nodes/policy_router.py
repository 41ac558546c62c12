"""Picks the tool types that a request may use, so that the model is not offered every tool of the company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from graph.models import ModelProblem
from graph.models.asking import Asking, ask
from graph.models.streaming import Retry
from graph.nodes import Node
from graph.observing import Observer, TurnHandling
from graph.ports import Budget, Picked, Ports, Router
from graph.state import RunContext, State, turn_of
from graph.usage import NO_USAGE, name_of, with_use
from policies.model import Tool

log = structlog.get_logger(__name__)
ROUTE_ABOVE = 24
"""Tools. Up to this many are simply all offered: asking a model first would cost more than it saves."""


def needs_routing(tools: Sequence[Tool]) -> bool:
    """Whether there is anything to pick: several categories, and too many tools to offer them all."""
    return len({t.category for t in tools}) > 1 and len(tools) > ROUTE_ABOVE


def policy_router(ports: Ports) -> Node:
    """The node. A router that cannot be asked costs nothing but the selection: all categories are offered."""

    async def policy_router(state: State, runtime: Runtime[RunContext]) -> dict[str, Any]:
        if runtime.context.settling:
            return {}
        turn = turn_of(state)
        agent = ports.agents.of(turn)
        if agent is None or await ports.budget.refusal(turn["requester"], turn["channel"]):
            return {"categories": []}  # the next node says so
        categories = sorted({t.category for t in agent.offered(await ports.tools.available())})
        try:
            run = TurnHandling(turn, runtime.context.delivery)
            picked = await ports.router(state["messages"], categories, run)
        except ModelProblem as problem:
            log.warning("router_unavailable", cause=str(problem))
            return {"categories": []}
        kept: dict[str, Any] = {"categories": [c for c in categories if c in picked.categories]}
        if picked.use is None:
            return kept
        await ports.budget.spent(turn["requester"], picked.model, picked.use, turn["channel"])
        return kept | {"usage": with_use(state.get("usage", NO_USAGE), picked.model, picked.use)}

    return policy_router


# -------------------------------------------------- asking a model which tool types a request needs

CHOOSE = "choose_tool_types"
_RECENT = 6
"""Messages of the conversation that the router sees: enough to understand "and the other one too"."""
_RULES = (
    "Choose the tool types that may be needed to handle the person's last message. "
    f"Call {CHOOSE} once. When in doubt, choose more rather than fewer; choose none for small talk."
)


def create_router(
    model: BaseChatModel, retry: Retry, observer: Observer, clock: Callable[[], float], budget: Budget
) -> Router:
    """A router over a model. It raises `ModelProblem`; an answer that makes no sense picks everything.

    Args:
        budget: counts lost answers. The caller counts the answer that it gets.
    """

    async def route(messages: Sequence[AnyMessage], categories: Sequence[str], run: TurnHandling) -> Picked:
        recent = [m for m in messages if isinstance(m, HumanMessage)][-_RECENT:]
        bound = model.bind_tools([_tool(categories)])
        name = name_of(model)
        asking = Asking(observer, run, "routing", name, clock, keep_lost=partial(budget.lost, run.turn, name))
        answer, use = await ask(bound, [SystemMessage(_RULES), *recent], lambda _: None, retry=retry, asking=asking)
        picked = [c for call in answer.tool_calls if call["name"] == CHOOSE for c in _listed(call["args"])]
        known = [c for c in categories if c in picked]
        return Picked(known or list(categories), name, use)

    return route


def _listed(arguments: dict[str, Any]) -> list[Any]:
    types = arguments.get("types")
    return types if isinstance(types, list) else []


def _tool(categories: Sequence[str]) -> dict[str, Any]:
    types = {"type": "array", "items": {"type": "string", "enum": list(categories)}}
    return {
        "type": "function",
        "function": {
            "name": CHOOSE,
            "description": "Say which types of tools the request may need.",
            "parameters": {"type": "object", "properties": {"types": types}, "required": ["types"]},
        },
    }
