"""What waits is there after a kill -9, and at another replica: for clients of both contracts nothing has happened."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.api.agents import Agent
from tests.api.agents import said as agent_said
from tests.api.contract_clients import Chats, Runs, http, pending, response_of, token, with_tokens
from tests.fakes.openai_server import fake_openai
from tests.kills.brain import brain, wire_problems
from tests.kills.mortal import home_with_effects, mortal_product
from tests.support.brain import obedient
from tests.support.fixtures import connect, shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.two_products import share

__all__ = ["shop"]


@pytest.mark.kills
async def test_a_process_that_is_killed_between_a_question_and_its_answer_is_not_missed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(brain))
        home = with_tokens(await stack.enter_async_context(home_with_effects(tmp_path, model)))
        product = await stack.enter_async_context(mortal_product(home))
        session = await stack.enter_async_context(http())
        runs = Runs(product.url, session, token("ana"))
        chats = Chats(product.url, session, token("ana"), "ana")

        await product.start()
        first, second = (await runs.asked("t", "do lamp", "confirmation"))["tool_calls"]
        (question,) = (await runs.asked("u", "ask bed", "clarification"))["clarifications"]
        asked = await chats.told("ask desk")
        assert "What of desk?" in asked["agent_response"]
        agent = Agent(product.url, token("ana"))
        task = await agent.say("ask lamp")
        await product.kill()

        await product.start()
        left = pending(await runs.approve("t", first["call_id"]), "t", "confirmation")
        assert left["tool_calls"] == [second]
        no = {"call_id": second["call_id"], "approved": False, "feedback": "One will do."}
        assert response_of(await runs.decide("t", no)) == "done lamp"
        assert "oak" in response_of(await runs.respond("u", question["call_id"], "oak"))
        answered = await chats.told("walnut", asked["conversation_id"])
        assert "walnut" in answered["agent_response"]
        assert await agent.get(task.id) == task
        assert "brass" in agent_said(await agent.say("brass", task_id=task.id))
        assert await product.terminate() == 0
        assert (home.folder / "acts").read_text().split() == ["lamp/0"]
        assert wire_problems(model) == []


@pytest.mark.postgres
async def test_what_one_replica_has_asked_is_answered_at_another(tmp_path: Path, shop: Workshop) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(obedient))
        home = share(with_tokens(ProductFolder(tmp_path)))
        connect(home, shop, model)
        home.variables["PORT"] = "0"
        here, there = [await stack.enter_async_context(product_here(home)) for _ in range(2)]
        session = await stack.enter_async_context(http())
        runs = Runs(here, session, token("ana"))
        (call,) = (await runs.asked("t", "use make what=lamp", "confirmation"))["tool_calls"]
        elsewhere = replace(runs, url=there)
        assert response_of(await elsewhere.approve("t", call["call_id"])) == "Results: made lamp"
        assert response_of(await runs.approve("t", call["call_id"])) == "Results: made lamp"
        assert shop.done == ["make lamp 1"]

        agent = Agent(here, token("ana"), address=f"{here}/a2a")
        task = await agent.say("use make what=bed")
        agent_there = replace(agent, url=there, address=f"{there}/a2a")
        assert await agent_there.get(task.id) == task
        assert agent_said(await agent_there.decide(task, "approve")) == "Results: made bed"
        assert agent_said(await agent.get(task.id)) == "Results: made bed"

        chats = Chats(here, session, token("ana"), "ana")
        asked = await chats.told("ask desk")
        answered = await replace(chats, url=there).told("the green one", asked["conversation_id"])
        assert "the green one" in answered["agent_response"]
