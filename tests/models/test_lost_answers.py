"""What a service counts although nothing came of it: an answer that broke off, or that somebody broke off."""

from __future__ import annotations

import asyncio
import time

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from graph.models.asking import Asking, ask
from graph.models.problems import ModelProblem
from graph.models.streaming import Retry
from graph.nodes.policy_router import CHOOSE, create_router
from graph.observing import NOBODY, Happening, ModelAsked, Observer, TurnHandling
from graph.state import Turn
from graph.usage import ModelUse
from tests.fakes.openai_server import Reply, ToolUse, fake_openai
from tests.models.conftest import ONCE, QUICK, Connect, Spent
from tests.support.waiting import at_most_waiting

ASK: list[AnyMessage] = [SystemMessage("r" * 400), HumanMessage("h" * 40)]
QUESTION = 111
"""Tokens, by its length."""
SHOWN = "some forty letters and signs of a story. "


class Counted:
    """Notes what it is told to count."""

    def __init__(self) -> None:
        self.uses: list[ModelUse] = []

    async def __call__(self, use: ModelUse) -> None:
        self.uses.append(use)

    @property
    def tokens(self) -> list[tuple[int, int]]:
        return [(use["input_tokens"], use["output_tokens"]) for use in self.uses]


class Told:
    """Measures how models are asked."""

    def __init__(self) -> None:
        self.asked: list[ModelAsked] = []

    def note(self, happening: Happening) -> None:
        if isinstance(happening, ModelAsked):
            self.asked.append(happening)


async def asked(
    model: BaseChatModel,
    counted: Counted,
    retry: Retry = ONCE,
    first: asyncio.Event | None = None,
    observer: Observer = NOBODY,
) -> ModelUse:
    def show(_text: str) -> None:
        if first is not None:
            first.set()

    asking = Asking(observer, None, "answer", "any", time.time, keep_lost=counted)
    _answer, use = await ask(model, ASK, show, retry=retry, asking=asking)
    return use


async def test_an_answer_that_breaks_off_counts_by_its_question_and_what_had_come(connect: Connect) -> None:
    counted = Counted()
    async with fake_openai([Reply(text=SHOWN * 10, drop_after=60)]) as server:
        with pytest.raises(ModelProblem):
            await asked(connect(server), counted)
    ((given, made),) = counted.tokens
    assert given == QUESTION
    assert 60 <= made <= 103


async def test_what_is_broken_off_in_the_middle_counts_too(connect: Connect) -> None:
    counted, first = Counted(), asyncio.Event()
    async with fake_openai([Reply(text=SHOWN * 10, pause=0.01)]) as server:
        asking = asyncio.create_task(asked(connect(server), counted, first=first))
        await first.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    ((given, made),) = counted.tokens
    assert given == QUESTION
    assert made < 103


async def test_metrics_and_traces_hear_what_went_into_an_answer_that_breaks_off(connect: Connect) -> None:
    counted, told = Counted(), Told()
    async with fake_openai([Reply(text=SHOWN * 10, drop_after=60)]) as server:
        with pytest.raises(ModelProblem):
            await asked(connect(server), counted, observer=told)
    assert [each.use for each in told.asked] == counted.uses


async def test_a_broken_try_counts_with_the_answer_that_came_of_the_next_one(connect: Connect) -> None:
    counted = Counted()
    broken = Reply(calls=[ToolUse("tasks__list_tasks", {"of": "w" * 400})], drop_after=3)
    async with fake_openai([broken, Reply(text="Here", usage=(120, 1))]) as server:
        use = await asked(connect(server), counted, QUICK)
    assert use["input_tokens"] == QUESTION + 120
    assert counted.tokens == []


@pytest.mark.parametrize("refusal", [Reply(status=401), Reply(status=429), Reply(status=500)])
async def test_what_its_service_refuses_costs_nothing(connect: Connect, refusal: Reply) -> None:
    counted = Counted()
    async with fake_openai(lambda _: refusal) as server:
        with pytest.raises(ModelProblem):
            await asked(connect(server), counted)
    assert counted.tokens == []


async def test_whoever_breaks_it_off_does_not_wait_for_records_that_are_away(connect: Connect) -> None:
    class Away(Counted):
        async def __call__(self, use: ModelUse) -> None:
            await asyncio.Event().wait()

    first = asyncio.Event()
    async with fake_openai([Reply(text=SHOWN * 10, pause=0.01)]) as server:
        asking = asyncio.create_task(asked(connect(server), Away(), first=first))
        await first.wait()
        asking.cancel()
        async with at_most_waiting(3):
            with pytest.raises(asyncio.CancelledError):
                await asking


async def test_what_is_broken_off_twice_counts_once(connect: Connect) -> None:
    class Slow(Counted):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()

        async def __call__(self, use: ModelUse) -> None:
            self.begun.set()
            await self.may_go_on.wait()
            await super().__call__(use)

    counted, first = Slow(), asyncio.Event()
    async with fake_openai([Reply(text=SHOWN * 10, pause=0.01)]) as server:
        asking = asyncio.create_task(asked(connect(server), counted, first=first))
        await first.wait()
        asking.cancel()
        await counted.begun.wait()
        asking.cancel()
        counted.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert [given for given, _ in counted.tokens] == [QUESTION]


async def test_what_cannot_be_counted_changes_nothing_of_how_it_ends(connect: Connect) -> None:
    class Away(Counted):
        async def __call__(self, use: ModelUse) -> None:
            raise ConnectionError("the records are away")

    async with fake_openai([Reply(text=SHOWN, drop_after=4)]) as server:
        with pytest.raises(ModelProblem):
            await asked(connect(server), Away())


async def test_picking_tool_types_counts_too_when_it_breaks_off(connect: Connect) -> None:
    budget = Spent()
    turn = Turn(
        delivery="m1",
        requester="web:ana",
        requester_name="Ana",
        time_zone="UTC",
        platform="web",
        channel="sales",
        thread_id="t",
    )
    broken = Reply(calls=[ToolUse(CHOOSE, {"types": ["mail"] * 20})], drop_after=3)
    async with fake_openai([broken]) as server:
        route = create_router(connect(server), ONCE, NOBODY, time.time, budget)
        with pytest.raises(ModelProblem):
            await route([HumanMessage("h" * 400)], ["mail", "drive"], TurnHandling(turn, "m1"))
    ((person, channel, given),) = budget.counted
    assert (person, channel) == ("web:ana", "sales")
    assert given > 100
