"""What a stream has asked outlives the process that asked it, and is decided at any replica."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.contract_clients import with_tokens
from tests.api.stream_clients import ask_agent, program, querying, respond
from tests.fakes.openai_server import fake_openai
from tests.kills.brain import brain, wire_problems
from tests.kills.mortal import home_with_effects, mortal_product
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.two_products import share


@pytest.mark.kills
@pytest.mark.sqlite  # with PostgreSQL, where it takes 12 seconds until another process takes over: tests/replicas
async def test_what_a_stream_has_asked_is_decided_after_a_kill_and_the_turn_ends(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(brain))
        home = with_tokens(await stack.enter_async_context(home_with_effects(tmp_path, model)))
        product = await stack.enter_async_context(mortal_product(home))
        await product.start()
        ana = await stack.enter_async_context(program(product.url))
        async with querying(ana, "do lamp", thread_id="mine") as query:
            asked = [await query.until("hitl_required") for _ in range(2)]
            assert {each["task_description"] for each in asked} == {"act (key: lamp/0)", "act (key: lamp/1)"}
            await product.kill()
            assert await query.is_broken_off()

        await product.start()
        keys = {each["task_description"][-7:-1]: each["request_id"] for each in asked}
        assert await respond(ana, keys["lamp/0"], "approved") == 200
        assert await respond(ana, keys["lamp/0"], "approved") == 409
        assert await respond(ana, keys["lamp/1"], "denied", instructions="One will do.") == 200
        [thread_id] = await ana.threads()
        turn = await ana.turn(thread_id)
        assert (turn["status"], turn["answer"]) == ("ended", "done lamp")
        async with querying(ana, "again", thread_id="mine") as query:
            assert await query.until("done") == {"thread_id": "mine"}
        assert (query.text, query.names) == ("hello again", ["done"])
        assert await product.terminate() == 0
        assert (home.folder / "acts").read_text().split() == ["lamp/0"]
        assert wire_problems(model) == []


@pytest.mark.postgres
async def test_streams_are_right_at_whichever_replica_they_are_read_and_decided(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.variables["PORT"] = "0"
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(product_here(share(workshop_home))) for _ in range(2)]
        here, there = [await stack.enter_async_context(program(url)) for url in urls]
        async with querying(here, "use make what=lamp", thread_id="mine") as query:
            asked = await query.until("hitl_required")
            assert await respond(there, asked["request_id"], "approved") == 200
            await query.until("done")
        assert query.names == ["hitl_required", "hitl_approved", "done"]
        assert query.text == "On it.\n\nResults: made lamp"
        for each in (here, there, here, there):  # one of them handles the conversation, the other one does not
            streamed = await ask_agent(each, "hello", threadId="yours")
            assert (streamed.text, streamed.is_over) == ("You said: hello", True)
        async with querying(there, "use make what=chair", thread_id="mine") as query:
            asked = await query.until("hitl_required")
            assert await respond(here, asked["request_id"], "denied", instructions="no chairs") == 200
            await query.until("done")
        assert query.names == ["hitl_required", "hitl_denied", "done"]
        assert shop.done == ["make lamp 1"]
