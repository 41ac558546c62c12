"""Calls of other agents at two replicas: any of them knows the session, the card and the result, whichever dies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest

from tests.kills.facts import check_calls, lines_of
from tests.kills.people import PATIENCE, Ana
from tests.kills.programs import (
    ACT,
    LOOK,
    approves,
    asked_about,
    asked_what_came_of,
    check_programs,
    happens,
    programs_at_rest,
    result_of,
)
from tests.replicas.processes import Replica, replicas
from tests.replicas.visitors import roaming
from tests.support.gateway_program import Called, GatewayProgram, programs
from tests.support.product import ProductFolder
from tests.support.visitor import Answer
from tests.support.waiting import at_most_waiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

TOLD_WITHIN = 3.5
"""Seconds until a call that waits at one replica ends by what was done at another, with the call itself, while other
tests keep the machine busy. Nobody told, they would look every five."""


@dataclass(frozen=True)
class Pair:
    """Both of them, Ana at the page of each, and her program, which asks the one or the other."""

    first: Replica
    second: Replica
    ana: Ana
    program: GatewayProgram

    def calling(self, replica: Replica, tool: str, key: str) -> asyncio.Task[Called]:
        """A call that is made at one of them."""
        return asyncio.create_task(self.program.at(replica.url).call(tool, key=key))


@pytest.fixture
async def pair(home: ProductFolder, address: str) -> AsyncIterator[Pair]:
    """Both, running."""
    refused: list[Answer] = []
    async with replicas(home, address) as both, AsyncExitStack() as stack:
        for replica in both:
            await replica.begin()
        for replica in both:
            await replica.ready()
        urls = [replica.url for replica in both]
        here = await stack.enter_async_context(roaming(urls, refused))
        there = await stack.enter_async_context(roaming(urls[::-1], refused))
        thread = await stack.enter_async_context(here.thread(within=PATIENCE))
        http = await stack.enter_async_context(programs())
        program = GatewayProgram(both[0].url, http)
        await program.begin()
        yield Pair(both[0], both[1], Ana(thread, there, random.Random(0)), program)


async def test_what_is_begun_at_one_replica_is_waited_for_at_another_and_approved_at_any(
    home: ProductFolder, address: str, pair: Pair
) -> None:
    ana, here = pair.ana, pair.ana.thread.visitor
    waits = pair.calling(pair.second, ACT, "elsewhere")
    await approves(ana, "elsewhere", here)
    async with at_most_waiting(TOLD_WITHIN):
        assert (await waits).text == "acted on elsewhere"

    # Whoever waited there waits here now.
    waits = pair.calling(pair.second, ACT, "left")
    asked = await asked_about(ana.thread, "left")
    await pair.second.kill()
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await waits
    waits = pair.calling(pair.first, ACT, "left")
    await happens(lambda: bool(pair.program.told), "that it waits")
    assert await approves(ana, "left", here) == asked
    async with at_most_waiting(TOLD_WITHIN):
        assert (await waits).text == "acted on left"
    facts = await programs_at_rest(home, address)
    check_programs(facts)
    check_calls(facts, [])
    assert facts.effects == {"elsewhere": 1, "left": 1}
    assert len(facts.gateway_calls) == 2


async def test_of_a_call_whose_replica_died_another_one_asks_what_came_of_it_and_tells_whoever_waits(
    home: ProductFolder, address: str, pair: Pair
) -> None:
    ana = pair.ana
    waits, looks = pair.calling(pair.first, ACT, "hold-act"), pair.calling(pair.second, LOOK, "hold-look")
    await asked_about(ana.thread, "hold-act")
    pair.first.stand_still()  # it makes a call that was approved at the other one, where that one is late
    await approves(ana, "hold-act", ana.other)
    await happens(lambda: "hold-act" in lines_of(home.folder / "acts"), "the act")
    pair.first.go_on()
    await happens(lambda: "hold-look" in lines_of(home.folder / "looks"), "the look")
    await pair.second.kill()
    (home.folder / "go").touch()
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await looks
    assert (await result_of(pair.program, LOOK, "hold-look")).text == "looked at hold-look"

    outcome = await asked_what_came_of(ana.thread, "hold-act")
    assert (await ana.choose(outcome, "it_was_done")).status == 200
    async with at_most_waiting(TOLD_WITHIN):
        assert (await waits).text.startswith("Done, as Ana confirmed")
    facts = await programs_at_rest(home, address)
    check_programs(facts)
    check_calls(facts, [])
    assert facts.effects == {"hold-act": 1}
    assert lines_of(home.folder / "looks") == ["hold-look"] * 2
