"""Folds the oldest turns into the rolling summary, so that turn 200 costs what turn 20 did."""

from __future__ import annotations

from functools import partial
from typing import Any

import structlog
from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graph.files import listed
from graph.models import ModelProblem
from graph.models.asking import Asking, ask
from graph.nodes import Node
from graph.observing import TurnHandling
from graph.ports import Ports
from graph.prompts import LONGEST_SUMMARY, extract, summary_request, to_fold
from graph.state import RunContext, State, turn_of
from graph.usage import NO_USAGE, name_of, with_use

log = structlog.get_logger(__name__)


def fold_history(ports: Ports) -> Node:
    """The node. A model that cannot be asked is no reason to fail a finished turn: then the beginnings are kept."""

    async def fold_history(state: State, runtime: Runtime[RunContext]) -> dict[str, Any]:
        if runtime.context.settling:
            return {}
        folded, summary = to_fold(state["messages"]), state.get("summary", "")
        turn, usage, name = turn_of(state), state.get("usage", NO_USAGE), name_of(ports.model)
        run = TurnHandling(turn, runtime.context.delivery)
        lost = partial(ports.budget.lost, turn, name)
        asking = Asking(ports.observer, run, "summary", name, runtime.context.clock, keep_lost=lost)
        try:
            answer, use = await ask(
                ports.model, summary_request(summary, folded), lambda _: None, retry=ports.retry, asking=asking
            )
            usage = with_use(usage, name, use)
            await ports.budget.spent(turn["requester"], name, use, turn["channel"])
            new = answer.text.strip()[:LONGEST_SUMMARY]
        except ModelProblem as problem:
            log.warning("summary_without_model", cause=str(problem))
            new = ""
        kept: dict[str, Any] = {
            "summary": new or extract(summary, folded),
            "messages": [RemoveMessage(id=m.id) for m in folded if m.id],
            "usage": usage,
        }
        files = listed(state.get("files", ()), folded)
        return kept | ({"files": files} if files else {})

    return fold_history
