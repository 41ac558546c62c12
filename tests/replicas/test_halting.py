"""An operator stops everything at one replica: all stop, also one that is started meanwhile, and go on later."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from tests.api.contract_clients import Caller, http, token, with_tokens
from tests.fakes.openai_server import FakeOpenAI
from tests.product.test_halting import GO_ON, MAKING_IS_FREE, STOP, STOPPED, settle
from tests.replicas.processes import replicas
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder
from tests.support.tools import Workshop
from tests.support.visitor import Thread, Visitor, visiting
from tests.support.waiting import at_most_waiting

__all__ = ["model", "shop"]
pytestmark = [pytest.mark.kills, pytest.mark.timeout(180)]


@pytest.fixture
def made_home(home: ProductFolder, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """Replicas with the workshop, whose operator is Olga."""
    connect(home, shop, model)
    home.policy(MAKING_IS_FREE)
    home.variables["OPERATORS"] = "web:olga"
    return with_tokens(home)


async def making_slowly(url: str, shop: Workshop, stack: AsyncExitStack) -> tuple[Visitor, Thread]:
    """Ana at a replica, with a thread of hers in which a call is under way."""
    ana = await stack.enter_async_context(visiting(url))
    thread = await stack.enter_async_context(ana.thread())
    await thread.send("use make_slowly what=lamp")
    await shop.started.wait()
    return ana, thread


async def test_all_replicas_stop_at_once_and_go_on_later(
    made_home: ProductFolder, address: str, shop: Workshop
) -> None:
    async with replicas(made_home, address) as (first, second), AsyncExitStack() as stack:
        await first.up()
        ana, thread = await making_slowly(first.url, shop, stack)
        connections = await stack.enter_async_context(http())
        await second.up()
        olga = Caller(second.url, connections, token("olga"))
        async with at_most_waiting(2 + 2):  # and as much again for a machine that other tests keep busy
            assert (await olga.post(STOP, {"why": "too many lamps"})).status == 200
            (outcome,) = await thread.until(lambda: thread.contents("outcome"))
        assert (await Caller(first.url, connections, token("olga")).get(STOP)).body["stopped"]

        await settle(ana, outcome["id"], "it_was_done")
        await second.kill()
        await second.up()
        ben = await stack.enter_async_context(visiting(second.url, "ben"))
        other = await stack.enter_async_context(ben.thread())
        await other.send("hello")
        await other.notice(STOPPED)
        await thread.send("and a vase")
        await thread.notice("An operator has stopped Countersign")
        assert (thread.said, other.said) == ([], [])

        await Caller(second.url, connections, token("olga")).post(GO_ON, {})
        await other.says("you said: hello")
        await thread.says("as ana confirmed")
        await thread.says("you said: and a vase")
    assert shop.done == ["make_slowly lamp"]


async def test_what_a_replica_was_calling_that_died_just_before_the_stop_is_asked_about_while_it_is_stopped(
    made_home: ProductFolder, address: str, shop: Workshop
) -> None:
    """Nobody would take it over until it goes on."""
    async with replicas(made_home, address) as (first, second), AsyncExitStack() as stack:
        await first.up()
        _, thread = await making_slowly(first.url, shop, stack)
        await second.up()
        connections = await stack.enter_async_context(http())
        olga = Caller(second.url, connections, token("olga"))
        ana = await stack.enter_async_context(visiting(second.url))
        there = await stack.enter_async_context(ana.thread(thread.thread_id))
        await first.kill()
        assert (await olga.post(STOP, {"why": "too many lamps"})).status == 200
        (outcome,) = await there.until(lambda: there.contents("outcome"))
        await there.notice("An operator has stopped Countersign")
        await settle(ana, outcome["id"], "it_was_done")
        await olga.post(GO_ON, {})
        await there.says("as ana confirmed")
    assert shop.done == ["make_slowly lamp"]
