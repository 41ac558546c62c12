"""SIGTERM: what runs may finish, for a while; what does not is taken up again, or reported as unknown."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.kills.brain import brain
from tests.kills.facts import check_calls, check_inbox, facts_at_rest, read_facts
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, next_outcome
from tests.support.hurried import HURRIED
from tests.support.product import ProductFolder
from tests.support.visitor import visiting
from tests.support.waiting import at_most_waiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

LIMIT = 20.0
"""Seconds that a shutdown may take where running turns have one of them. Here they would never end."""


class Held:
    """A model that holds back its answers to what says "hold" until it is told to go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def __call__(self, request: Request) -> Reply:
        reply = brain(request)
        return Reply(text=reply.text, calls=reply.calls, wait_for=self.go_on) if "hold" in reply.text else reply


@pytest.fixture
def held() -> Held:
    """Lets the model go on."""
    return Held()


@pytest.fixture
async def model(held: Held) -> AsyncIterator[FakeOpenAI]:
    """A model that can be held."""
    async with fake_openai(held) as server:
        yield server


@asynccontextmanager
async def _ana(product: MortalProduct, thread_id: str | None = None) -> AsyncIterator[Ana]:
    async with visiting(product.url) as browser, browser.thread(thread_id, within=PATIENCE) as thread:
        yield Ana(thread, browser, random.Random(0))


async def test_a_turn_that_ends_in_time_is_finished_before_the_product_ends_and_nothing_new_is_taken(
    product: MortalProduct, model: FakeOpenAI, held: Held
) -> None:
    await product.start()
    async with _ana(product) as ana:
        await ana.say("hey hold-1")
        await model.asked(1, within=PATIENCE)
        ending = asyncio.create_task(product.terminate())
        await _refuses(product)
        assert not ending.done()
        held.go_on.set()
        assert await ending == 0
        thread_id = ana.thread.thread_id
    await product.start()
    async with _ana(product, thread_id) as ana:
        assert ana.thread.said == ["hello hold-1"]
    assert len(model.requests) == 1, "it was finished, so nothing was taken up again"


async def test_a_turn_that_does_not_end_in_time_is_taken_up_again_at_the_next_start(
    product: MortalProduct, model: FakeOpenAI, held: Held
) -> None:
    await product.start(*HURRIED)
    async with _ana(product) as ana:
        await ana.say("hey hold-2")
        await model.asked(1, within=PATIENCE)
        async with at_most_waiting(LIMIT):
            assert await product.terminate() == 0
        held.go_on.set()
        await product.start(*HURRIED)
        await ana.hears("hello hold-2")
        assert ana.thread.said == ["hello hold-2"]


async def test_a_call_in_flight_at_the_deadline_is_reported_as_unknown_afterwards(
    home: ProductFolder, product: MortalProduct
) -> None:
    await product.start(*HURRIED)
    async with _ana(product) as ana:
        await ana.say("do hang-3")
        first, second = await ana.cards("hang-3")
        await ana.click(ana.other, [second], "reject")
        await ana.click(ana.other, [first], "approve")
        await _took_effect(home, 1)
        async with at_most_waiting(LIMIT):
            assert await product.terminate() == 0

        await product.start(*HURRIED)
        outcome = await asyncio.wait_for(next_outcome(ana.thread, set()), PATIENCE)
        assert "done hang-3" not in ana.thread.said
        await ana.choose(outcome["id"], "it_was_done")
        await ana.hears("done hang-3")
        await ana.thread.card(first, "approved", result="confirmed by Ana")
        facts = await facts_at_rest(home)
        assert await product.terminate() == 0
    check_inbox(facts, ana.sent)
    check_calls(facts, ana.sent)
    assert facts.effects == {"hang-3/0": 1}


async def test_trying_again_after_an_unknown_outcome_has_exactly_one_more_effect(
    home: ProductFolder, product: MortalProduct
) -> None:
    await product.start()
    async with _ana(product) as ana:
        await ana.say("do hang-4")
        first, second = await ana.cards("hang-4")
        await ana.click(ana.other, [second], "reject")
        await ana.click(ana.other, [first], "approve")
        await _took_effect(home, 1)
        await product.kill()
        await product.start()
        outcome = await asyncio.wait_for(next_outcome(ana.thread, set()), PATIENCE)
        clicks = (ana.choose(outcome["id"], "try_again"), ana.choose(outcome["id"], "try_again"))
        assert sorted([a.status for a in await asyncio.gather(*clicks)]) == [200, 409]
        await _took_effect(home, 2)

        # This one hangs as well: it is killed too, and left at that.
        await product.kill()
        await product.start()
        outcome = await asyncio.wait_for(next_outcome(ana.thread, {outcome["id"]}), PATIENCE)
        await ana.choose(outcome["id"], "skip")
        await ana.hears("done hang-4")
        assert await product.terminate() == 0
    facts = read_facts(home)
    assert facts.effects == {"hang-4/0": 2}
    assert [(a["number"], a["choice"]) for a in facts.acts()] == [(1, "try_again"), (2, "skip")]


async def _refuses(product: MortalProduct) -> None:
    """Wait until nobody can connect any more."""
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(f"{product.url}/health-check"):
                    await asyncio.sleep(0.02)
            except aiohttp.ClientConnectorError:
                return


async def _took_effect(home: ProductFolder, times: int) -> None:
    """Wait until acts have taken effect so many times."""
    async with asyncio.timeout(PATIENCE):
        while read_facts(home).effects.total() < times:
            await asyncio.sleep(0.02)
