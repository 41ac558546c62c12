"""The same call of one program on several connections, and many that wait, through the whole product."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from bot.records.database import Transaction
from tests.gateway.agents import agent, deciding, texts, until
from tests.support.gateway_program import GatewayProgram, programs
from tests.support.tools import Workshop
from tests.support.transactions import Execute, statement_of, wrap_statements
from tests.support.visitor import WITHIN

MANY = 50
STILL_SECONDS = 1.0
"""For how long nothing is looked at."""


async def test_one_program_that_makes_a_call_on_two_connections_asks_once_and_both_get_the_result(
    url: str, shop: Workshop
) -> None:
    async with agent(url) as here, agent(url) as there, deciding(url) as ana:
        calls = [asyncio.create_task(each.call_tool("workshop__make", {"what": "lamp"})) for each in (here, there)]
        (approval,) = await ana.asked()
        await ana.approve(approval)
        assert [texts(await call) for call in calls] == [["made lamp"]] * 2
        assert shop.done == ["make lamp 1"]


async def test_who_goes_away_and_comes_back_gets_the_result_of_what_was_approved_meanwhile_and_then_asks_anew(
    url: str, shop: Workshop
) -> None:
    async with programs() as http, deciding(url) as ana:
        cursor = GatewayProgram(url, http)
        waits = asyncio.create_task(cursor.call("workshop__make", what="lamp"))
        (approval,) = await ana.asked()
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        await ana.approve(approval)
        await until(lambda: shop.done == ["make lamp 1"])
        assert (await cursor.call("workshop__make", what="lamp")).text == "made lamp"
        again = asyncio.create_task(cursor.call("workshop__make", what="lamp"))
        await until(lambda: any(anew["id"] != approval["id"] for anew in ana.waiting()))
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
    assert shop.done == ["make lamp 1"]


async def test_while_many_calls_wait_nothing_is_looked_up_for_them(
    url: str, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[str] = Counter()

    def counting(execute: Execute) -> Execute:
        async def count(tx: Transaction, statement: Any, values: Any = None) -> Any:
            counted[str(statement_of(tx, statement)) if not isinstance(statement, sa.TextClause) else "text"] += 1
            return await execute(tx, statement, values)

        return count

    async with programs() as http:
        cursor = GatewayProgram(url, http)
        await cursor.begin()
        calls = [asyncio.create_task(cursor.call("workshop__make", what=f"lamp {n}")) for n in range(MANY)]
        await until(lambda: len([text for text in cursor.told if "approval" in text]) >= MANY)
        wrap_statements(monkeypatch, counting)
        async with asyncio.timeout(WITHIN):  # until the cards are all sent
            while True:
                counted.clear()
                await asyncio.sleep(STILL_SECONDS)
                if max(counted.values(), default=0) < MANY / 5:
                    break
        async with deciding(url) as ana:
            await until(ana.waiting)
            newest = ana.waiting()[0]
            await ana.approve(newest)
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        assert [call.result().text for call in done] == [f"made {newest['card']['arguments'][0]['value']}"]
        assert any("gateway_calls" in said for said in counted), "statements are counted"
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
