"""Calls of other agents while the product is killed, or ends: each is asked about once and made once, and whoever makes
the same call again gets its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.api.contract_clients import token
from tests.kills.crash_points import DIED
from tests.kills.dies_answering import DIES_ANSWERING, WHEN
from tests.kills.facts import check_calls, lines_of, read_facts
from tests.kills.mortal import MortalProduct
from tests.kills.programs import (
    ACT,
    LOOK,
    ana_at,
    approvals_of,
    approves,
    asked_about,
    asked_what_came_of,
    check_programs,
    happens,
    programs_at_rest,
    result_of,
)
from tests.support.gateway_program import Called, GatewayProgram, programs
from tests.support.hurried import HURRIED
from tests.support.product import ProductFolder
from tests.support.waiting import at_most_waiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

DONE = "Done, as Ana confirmed"
ENDS_WITHIN = 20.0
"""Seconds that a shutdown may take on a busy machine, where what is waited for would never end."""


@pytest.fixture
async def cursor(product: MortalProduct) -> AsyncIterator[GatewayProgram]:
    """A program of Ana's."""
    async with programs() as http:
        yield GatewayProgram(product.url, http)


@asynccontextmanager
async def _calling(program: GatewayProgram, tool: str, *keys: str) -> AsyncIterator[list[asyncio.Task[Called]]]:
    """Calls that are under way."""
    calls = [asyncio.create_task(program.call(tool, key=key)) for key in keys]
    try:
        yield calls
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def _break_off(calls: list[asyncio.Task[Called]]) -> None:
    """All of them end without an answer."""
    for call in calls:
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await call


async def test_a_call_that_waits_when_the_process_is_killed_goes_on_waiting_under_the_same_card(
    home: ProductFolder, product: MortalProduct, cursor: GatewayProgram
) -> None:
    await product.start()
    async with ana_at(product) as ana:
        async with _calling(cursor, ACT, "attached", "later") as calls:
            asked = [await asked_about(ana.thread, key) for key in ("attached", "later")]
            await product.kill()
            await _break_off(calls)
        await product.start()
        async with _calling(cursor, ACT, "attached") as (again,):
            await happens(lambda: any("effects: act" in text for text in cursor.told), "what it waits for")
            assert [await approves(ana, key) for key in ("attached", "later")] == asked
            assert await again == Called(False, "acted on attached", {"result": "acted on attached"}, {})
        # Nobody waited for this one when it was approved.
        assert (await result_of(cursor, ACT, "later")).text == "acted on later"
        facts = await programs_at_rest(home)
        assert await product.terminate() == 0
    check_programs(facts)
    check_calls(facts, [])
    assert facts.effects == {"attached": 1, "later": 1}
    assert len(facts.approvals) == len(facts.gateway_calls) == 2


async def test_of_calls_that_run_when_the_process_is_killed_the_caller_is_asked_and_only_reading_is_done_again(
    home: ProductFolder, product: MortalProduct, cursor: GatewayProgram
) -> None:
    acts = ["hold-done", "hold-again", "hold-skipped"]
    await product.start()
    async with ana_at(product) as ana:
        async with _calling(cursor, ACT, *acts) as acting, _calling(cursor, LOOK, "hold-look") as looking:
            for key in acts:
                await approves(ana, key)
            await happens(lambda: _effects(home) == {*acts, "hold-look"}, "all of them")
            await product.kill()
            await _break_off([*acting, *looking])
        (home.folder / "go").touch()
        await product.start()
        assert (await result_of(cursor, LOOK, "hold-look")).text == "looked at hold-look"
        cursor.told.clear()
        async with _calling(cursor, ACT, *acts) as (done, again, skipped):
            outcomes = [await asked_what_came_of(ana.thread, key) for key in acts]
            await happens(lambda: sum("unknown whether" in text for text in cursor.told) >= 3, "that it is not known")
            for outcome, choice in zip(outcomes, ("it_was_done", "try_again", "skip"), strict=True):
                assert (await ana.choose(outcome, choice)).status == 200
            results = [await each for each in (done, again, skipped)]
        facts = await programs_at_rest(home)
        assert await product.terminate() == 0
    assert results[0].text.startswith(DONE)
    assert results[0].is_error, "there is no result that could be used"
    assert not results[1].is_error
    assert "acted on hold-again" in results[1].text
    assert results[2].is_error
    check_programs(facts)
    assert facts.effects == {"hold-done": 1, "hold-again": 2, "hold-skipped": 1}
    assert lines_of(home.folder / "looks") == ["hold-look"] * 2
    assert [approvals_of(facts, key) for key in acts] == [["approved"]] * 3


@pytest.mark.parametrize("when", ["wait", "delivered"], ids=["before its result is written", "when it is written"])
async def test_a_result_that_the_process_died_answering_with_is_given_out_by_the_same_call_again(
    when: str, home: ProductFolder, product: MortalProduct, cursor: GatewayProgram
) -> None:
    await product.start(*DIES_ANSWERING, **{WHEN: when})
    async with ana_at(product) as ana:
        async with _calling(cursor, ACT, "once") as calls:
            await approves(ana, "once")
            if when == "wait":
                await _break_off(calls)
            else:
                assert (await calls[0]).text == "acted on once"
            assert await product.wait() == DIED
        await product.start()
        assert await result_of(cursor, ACT, "once") == Called(False, "acted on once", {"result": "acted on once"}, {})
        facts = await programs_at_rest(home)
        assert facts.effects == {"once": 1}
        check_programs(facts)

        async with _calling(cursor, ACT, "once"):
            await asked_about(ana.thread, "once")
        assert await product.terminate() == 0
    assert approvals_of(read_facts(home), "once") == ["approved", "pending"]


async def test_a_shutdown_waits_for_no_call_that_waits_for_people_and_loses_none(
    home: ProductFolder, product: MortalProduct, cursor: GatewayProgram
) -> None:
    await product.start(*HURRIED)
    async with ana_at(product) as ana:
        async with _calling(cursor, ACT, "waits", "hold-runs") as (waits, runs):
            asked = await asked_about(ana.thread, "waits")
            await approves(ana, "hold-runs")
            await happens(lambda: _effects(home) == {"hold-runs"}, "the call that runs")
            async with at_most_waiting(ENDS_WITHIN):
                assert await product.terminate() == 0
            ends = await asyncio.gather(waits, runs, return_exceptions=True)
            for end in ends:
                # It is told how to go on, if there is time for that.
                assert isinstance(end, aiohttp.ClientError) or (isinstance(end, Called) and end.still_waits), end
        (home.folder / "go").touch()
        await product.start(*HURRIED)
        async with _calling(cursor, ACT, "waits", "hold-runs") as (waits, runs):
            assert await approves(ana, "waits") == asked
            assert (await waits).text == "acted on waits"
            outcome = await asked_what_came_of(ana.thread, "hold-runs")
            assert (await ana.choose(outcome, "it_was_done")).status == 200
            assert (await runs).text.startswith(DONE)
        facts = await programs_at_rest(home)
        assert await product.terminate() == 0
    check_programs(facts)
    check_calls(facts, [])
    assert facts.effects == {"waits": 1, "hold-runs": 1}


async def test_a_shutdown_lets_a_call_that_ends_in_time_answer_its_program(
    home: ProductFolder, product: MortalProduct, cursor: GatewayProgram
) -> None:
    await product.start()
    async with ana_at(product) as ana, _calling(cursor, ACT, "hold-soon") as (call,):
        await approves(ana, "hold-soon")
        await happens(lambda: _effects(home) == {"hold-soon"}, "the call that runs")
        ending = asyncio.create_task(product.terminate())
        (home.folder / "go").touch()
        assert await ending == 0
        end = (await asyncio.gather(call, return_exceptions=True))[0]
        await product.start()
        # Whether it was written in time or not: it is the result of the one call that was made.
        if not isinstance(end, Called) or end.still_waits:
            end = await result_of(cursor, ACT, "hold-soon")
        assert end.text == "acted on hold-soon"
        facts = await programs_at_rest(home)
        assert await product.terminate() == 0
    check_programs(facts)
    check_calls(facts, [])
    assert facts.effects == {"hold-soon": 1}


def _effects(home: ProductFolder) -> set[str]:
    return {*lines_of(home.folder / "acts"), *lines_of(home.folder / "looks")}


async def test_the_sdks_client_that_has_read_a_result_and_calls_again_gets_a_new_one(
    home: ProductFolder, product: MortalProduct
) -> None:
    await product.start()
    looks = 6
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token('ana')}"}) as http,
        streamable_http_client(f"{product.url}/mcp", http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        for _ in range(looks):
            result = await session.call_tool(LOOK, {"key": "again"})
            assert not result.isError
            # As a program that thinks between its calls: its connection, which it closed with the result, is gone then.
            await asyncio.sleep(0.1)
    assert lines_of(home.folder / "looks") == ["again"] * looks
