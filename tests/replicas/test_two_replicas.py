"""Two replicas side by side: what one was sent, the other one knows."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

import pytest

from tests.kills.facts import check_calls, check_inbox, facts_at_rest
from tests.kills.people import PATIENCE, Ana
from tests.replicas.processes import replicas
from tests.replicas.visitors import roaming
from tests.support.product import ProductFolder
from tests.support.visitor import Answer

pytestmark = [pytest.mark.kills, pytest.mark.timeout(120)]


async def test_a_message_and_its_duplicate_and_two_decisions_at_two_replicas_are_one(
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
        await ana.say("do this", times=2)
        first, second = await ana.cards("this")
        await ana.click(here, [first], "approve")
        await ana.click(there, [second], "reject")
        await ana.hears("done this")
        facts = await facts_at_rest(home, address)
    check_inbox(facts, ana.sent)
    check_calls(facts, ana.sent)
    assert facts.effects == {"this/0": 1}
    assert refused == []
