"""Picks the tool types that a request may use, so that the model is not offered every tool of the company."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from langgraph.runtime import Runtime

from graph.models import ModelProblem
from graph.nodes import Node
from graph.ports import Ports
from graph.state import RunContext, State, turn_of
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
        requester = turn_of(state)["requester"]
        if await ports.budget.refusal(requester):
            return {"categories": []}  # the next node says so
        categories = sorted({t.category for t in ports.tools.available()})
        try:
            picked = await ports.router(state["messages"], categories)
        except ModelProblem as problem:
            log.warning("router_unavailable", cause=str(problem))
            return {"categories": []}
        await ports.budget.spent(requester, picked.tokens)
        return {"categories": [c for c in categories if c in picked.categories]}

    return policy_router
