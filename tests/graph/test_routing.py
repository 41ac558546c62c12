"""Of many tools, the model is offered those of the types that a request may need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from graph.agents import ONLY_DEFAULT
from graph.models import ModelProblem, Trouble
from graph.nodes.policy_router import ROUTE_ABOVE
from graph.observing import TurnHandling
from graph.ports import Picked
from graph.running import Agent
from graph.state import Silent
from graph.usage import ModelUse, total_tokens
from policies.model import Tool
from tests.graph.parts import Bench, rig, tool, turn

LIVE = Silent()
USE = ModelUse(calls=1, input_tokens=70, cached_tokens=0, output_tokens=5, seconds=0.1)
TYPES = ("drive", "mail", "tasks")
EACH = ROUTE_ABOVE // len(TYPES) + 1


class ManyTools(Bench):
    """Some tools of each type."""

    async def available(self) -> list[Tool]:
        return [tool(f"{type_}_{number}", category=type_) for type_ in TYPES for number in range(EACH)]


@dataclass
class Picking:
    """A router that picks mail, and a type that there is not."""

    fails: bool = False
    asked: list[Sequence[str]] = field(default_factory=list)

    async def __call__(self, messages: Sequence[AnyMessage], categories: Sequence[str], run: TurnHandling) -> Picked:
        self.asked.append(categories)
        if self.fails:
            raise ModelProblem(Trouble.UNREACHABLE)
        return Picked(["mail", "weather"], "small", USE)


@asynccontextmanager
async def routed(tmp_path: Path, bench: Bench, router: Picking) -> AsyncIterator[tuple[Agent, list[list[Any]]]]:
    """An agent with this router, and what its model is offered."""

    def answering(_messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage("hello")

    async with rig(tmp_path, answering, bench) as r:
        r.ports = replace(r.ports, router=router)
        yield r.with_agents(ONLY_DEFAULT), r.model.bound


def types_in(definitions: Sequence[Any]) -> set[str]:
    names = [each["function"]["name"] for each in definitions]
    return {name.removeprefix("s__").split("_")[0] for name in names if name.startswith("s__")}


async def test_the_model_is_offered_tools_of_the_types_that_were_picked(tmp_path: Path) -> None:
    router, bench = Picking(), ManyTools([])
    async with routed(tmp_path, bench, router) as (agent, bound):
        status = await agent.begin(turn("m1"), "write to Ben", LIVE)
    assert router.asked == [list(TYPES)]
    assert types_in(bound[-1]) == {"mail"}
    assert status.usage["small"] == USE
    assert bench.tokens == sum(map(total_tokens, status.usage.values())), "both count in budgets"


async def test_where_the_router_cannot_be_asked_all_tools_are_offered(tmp_path: Path) -> None:
    async with routed(tmp_path, ManyTools([]), Picking(fails=True)) as (agent, bound):
        status = await agent.begin(turn("m1"), "write to Ben", LIVE)
    assert types_in(bound[-1]) == set(TYPES)
    assert "small" not in status.usage


async def test_the_router_is_not_asked_where_a_budget_is_used_up(tmp_path: Path) -> None:
    router = Picking()
    async with routed(tmp_path, ManyTools([], used_up="You have used today’s 10 tokens."), router) as (agent, bound):
        status = await agent.begin(turn("m1"), "write to Ben", LIVE)
    assert (router.asked, bound) == ([], [])
    assert status.spoken[-1].text == "You have used today’s 10 tokens."
