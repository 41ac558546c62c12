"""A plan at two replicas: begun at one, approved at the other, and killed in the middle."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.people import PATIENCE, Ana
from tests.replicas.processes import replicas
from tests.replicas.visitors import roaming
from tests.support.finance import ANSWER, REQUEST, acts_of, brain, finance_company
from tests.support.product import ProductFolder
from tests.support.visitor import Answer

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, model: FakeOpenAI) -> ProductFolder:
    """A company with agents."""
    return finance_company(ProductFolder(tmp_path), model)


async def test_a_plan_ends_once_when_it_is_approved_at_either_and_one_of_them_dies_in_the_middle(
    home: ProductFolder, address: str
) -> None:
    refused: list[Answer] = []
    async with replicas(home, address) as pair, AsyncExitStack() as stack:
        for replica in pair:
            await replica.begin()
        for replica in pair:
            await replica.ready()
        urls = [replica.url for replica in pair]
        here = await stack.enter_async_context(roaming(urls, refused))
        there = await stack.enter_async_context(roaming(urls[::-1], refused))
        thread = await stack.enter_async_context(here.thread(within=PATIENCE))
        ana = Ana(thread, there, random.Random(0))
        await ana.say(REQUEST, times=2)
        (flag,) = await thread.until(lambda: thread.approvals("pending"), "a card")
        await ana.click(there, [flag["id"]], "approve")
        await pair[0].kill()
        (draft,) = await thread.until(
            lambda: [each for each in thread.approvals("pending") if each["tool"] == "draft"], "the next card"
        )
        await pair[0].up()
        await pair[1].kill()
        await ana.click(here, [draft["id"]], "approve")
        await ana.hears(ANSWER)
        assert thread.said == ["I’ll split this up.", ANSWER]
        (plan,) = thread.contents("plan")
        assert {task["status"] for task in plan["tasks"]} == {"done"}
    assert acts_of(home) == ["flag INV-8", "draft"]
