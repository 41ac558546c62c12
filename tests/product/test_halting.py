"""An operator stops everything, and lets it go on: nothing runs meanwhile, and nothing is lost."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from a2a.helpers.proto_helpers import get_message_text
from a2a.types import Part
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

from tests.api.agents import COMPLETED, WORKING, Agent
from tests.api.contract_clients import Caller, Runs, http, response_of, token, with_tokens
from tests.api.stream_clients import program, querying
from tests.fakes.openai_server import fake_openai
from tests.gateway.agents import agent, texts
from tests.gateway.test_on_the_page import called
from tests.product.test_audit import log_of
from tests.product.test_console import once_it_rests
from tests.product.test_plans import stand
from tests.support.planning import planning, with_worker
from tests.support.product import ProductFolder, product_here, product_process
from tests.support.tools import Workshop, serving
from tests.support.visitor import WITHIN, Visitor, visiting
from tests.support.waiting import at_most_waiting

MAKING_IS_FREE = """
version: 1
rules:
  - {name: slowly is free, match: {tool: make_slowly}, decide: allow}
  - {name: makers ask, match: {tool: "make*"}, decide: ask, approvers: [requester]}
"""
STOPPED = "An operator has stopped Countersign. Messages and decisions are kept; nothing runs until it goes on."
KEPT = "An operator has stopped Countersign. The request is kept, and is answered when it goes on."
STOP, GO_ON = "/api/v1/operator/stop", "/api/v1/operator/resumption"


class Length(BaseModel):
    """What a tool asks for."""

    length: int


@pytest.fixture
def home(workshop_home: ProductFolder) -> ProductFolder:
    """A product whose operator is Olga."""
    workshop_home.policy(MAKING_IS_FREE)
    workshop_home.variables["OPERATORS"] = "web:olga"
    return with_tokens(workshop_home)


async def settle(visitor: Visitor, outcome_id: str, choice: str) -> None:
    """Say what came of a call."""
    answer = await visitor.post(f"/api/outcomes/{outcome_id}", {"id": "click", "choice": choice})
    assert answer.status == 200, answer


async def test_a_call_under_way_becomes_unknown_and_its_turn_goes_on_later(home: ProductFolder, shop: Workshop) -> None:
    async with (
        product_here(home) as url,
        visiting(url) as ana,
        ana.thread() as thread,
        http() as connections,
    ):
        olga = Caller(url, connections, token("olga"))
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        async with at_most_waiting(2):
            assert (await olga.post(STOP, {"why": "it makes too many lamps"})).status == 200
            (outcome,) = await thread.until(lambda: thread.contents("outcome"))
        await thread.notice("An operator has stopped Countersign")
        assert (await olga.post(STOP, {"why": "again"})).status == 409
        state = (await olga.get(STOP)).body
        assert (state["stopped"], state["person_id"], state["why"]) == (True, "web:olga", "it makes too many lamps")
        await settle(ana, outcome["id"], "it_was_done")
        assert thread.said == []
        assert (await olga.post(GO_ON, {"why": "it is mended"})).status == 200
        await thread.says("as ana confirmed")
        assert (await olga.post(GO_ON, {})).status == 409
    assert shop.done == ["make_slowly lamp"], "it was not made again"
    acts = [(entry["status"], entry["settled"], entry["note"]) for entry in log_of(home) if entry["status"] == "acted"]
    by = "web:olga (operator)"
    assert [(note, settled["choice"]) for _, settled, note in acts] == [
        ("it makes too many lamps", "stopped everything"),
        ("it is mended", "let everything go on"),
    ]
    assert all(by.partition(" ")[0] in settled["by"] and settled["by"].endswith("(operator)") for _, settled, _ in acts)


async def test_the_turns_that_were_broken_off_or_waited_say_who_stopped_everything_and_why(
    home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
        olga = Caller(url, connections, token("olga"))
        async with ana.thread() as ended:
            await ended.send("hello")
            await ended.says("you said: hello")
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        await olga.post(STOP, {"why": "too many lamps"})
        (outcome,) = await thread.until(lambda: thread.contents("outcome"))
        await settle(ana, outcome["id"], "it_was_done")
        await olga.post(GO_ON, {"why": "enough now"})
        await thread.says("as ana confirmed")
        turns = [await once_it_rests(olga, thread_id=each.thread_id) for each in (thread, ended)]
    told = [
        [(each["kind"], each["person"], each["text"]) for each in turn["events"] if each["what"] == "everything"]
        for turn in turns
    ]
    assert told == [[("stopped", "olga", "too many lamps"), ("went on", "olga", "enough now")], []]


async def test_a_call_that_has_asked_something_is_ended_at_its_server_too(home: ProductFolder) -> None:
    """It would act by itself once it has waited for long enough."""
    server, ended = FastMCP("joiner"), asyncio.Event()

    @server.tool()
    async def join(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        try:
            await ctx.elicit("How long?", Length)
        finally:
            ended.set()
        return f"joined {what}"

    home.policy("version: 1\nrules: [{name: joining is free, match: {server: joiner}, decide: allow}]")
    async with serving(server) as joiner:
        home.tool_servers({"joiner": {"url": joiner}})
        async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
            olga = Caller(url, connections, token("olga"))
            await thread.send("use joiner__join what=legs")
            question = await thread.question()
            async with at_most_waiting(2):
                await olga.post(STOP, {"why": "it joins what it must not"})
                await ended.wait()
            assert (await thread.answer_form(question["id"], {"length": "7"})).status == 200
            await olga.post(GO_ON, {})
            (outcome,) = await thread.until(lambda: thread.contents("outcome"))
            await settle(ana, outcome["id"], "skip")
            await thread.says("results")


async def test_those_whose_messages_wait_for_their_turn_are_told(home: ProductFolder, shop: Workshop) -> None:
    home.variables["TURN_CONCURRENCY"] = "1"
    async with product_here(home) as url, visiting(url) as ana, AsyncExitStack() as stack, http() as connections:
        first, *others = [await stack.enter_async_context(ana.thread()) for _ in range(8)]
        await first.send("use make_slowly what=lamp")
        await shop.started.wait()
        for other in others:
            await other.send("hello")
        await Caller(url, connections, token("olga")).post(STOP, {"why": "too many lamps"})
        for other in others:
            await other.notice(STOPPED)


async def test_what_people_write_and_decide_meanwhile_is_kept_also_over_a_restart(
    home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
        olga = Caller(url, connections, token("olga"))
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await olga.post(STOP, {"why": "an audit"})
        assert (await thread.approve(card["id"]))["kind"] == "settled"
        await thread.notice(STOPPED)
        async with ana.thread() as other:
            await other.send("hello")
            await other.notice(STOPPED)
            await other.send("are you there?")
            other_id = other.thread_id
    async with (
        product_here(home) as url,
        visiting(url) as ana,
        ana.thread(thread.thread_id) as thread,
        ana.thread(other_id) as other,
        http() as connections,
    ):
        olga = Caller(url, connections, token("olga"))
        await other.send("and now?")
        async with ana.thread() as third:
            await third.send("anybody?")
            await third.notice(STOPPED)
        assert (await olga.get(STOP)).body["stopped"]
        assert (thread.said[1:], other.said, shop.done) == ([], [], [])
        await olga.post(GO_ON, {})
        await thread.says("made lamp")
        for text in ("hello", "are you there?", "and now?"):
            await other.says(f"you said: {text}")
        assert other.notices == [STOPPED], "they were told once"
    assert shop.done == ["make lamp 1"]


async def test_who_has_a_call_requested_again_meanwhile_is_told(home: ProductFolder) -> None:
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
        await thread.send("use fail what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        await thread.says("lamp is broken")
        await Caller(url, connections, token("olga")).post(STOP, {"why": "a fire"})
        assert (await ana.post(f"/api/approvals/{card['id']}/retry", {"id": "click"})).status == 200
        await thread.notice(STOPPED)


async def test_a_plan_is_broken_off_and_goes_on_later(home: ProductFolder, shop: Workshop) -> None:
    async with fake_openai(planning) as model:
        with_worker(home, shop, model).policy(MAKING_IS_FREE)
        async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
            olga = Caller(url, connections, token("olga"))
            await thread.send("plan slow: use make_slowly what=lamp, after(slow): use make_slowly what=vase")
            await shop.started.wait()
            async with at_most_waiting(2):
                await olga.post(STOP, {"why": "too many lamps"})
                (outcome,) = await thread.until(lambda: thread.contents("outcome"))
            await thread.notice("An operator has stopped Countersign")
            await settle(ana, outcome["id"], "it_was_done")
            assert thread.said == []
            shop.may_end.set()
            await olga.post(GO_ON, {})
            await stand(thread, slow="done", after="done")
            await thread.says("results", "made vase slowly")
            assert len([text for text in thread.notices if "has stopped Countersign" in text]) == 1
    assert shop.done == ["make_slowly lamp", "make_slowly vase"]


@pytest.mark.timeout(180)
async def test_what_was_broken_off_and_decided_is_there_after_kill_9_while_it_is_stopped(
    home: ProductFolder, shop: Workshop
) -> None:
    async with product_process(home) as product:
        async with visiting(product.url) as ana, ana.thread() as slow, ana.thread() as asked, http() as connections:
            await asked.send("use make what=chair")
            (card,) = await asked.waiting()
            await slow.send("use make_slowly what=lamp")
            await shop.started.wait()
            assert (await Caller(product.url, connections, token("olga")).post(STOP, {"why": "a fire"})).status == 200
            (outcome,) = await slow.until(lambda: slow.contents("outcome"))
            await asked.approve(card["id"])
            await slow.send("hello")
        await product.kill()
        await product.start()
        async with (
            visiting(product.url) as ana,
            ana.thread(slow.thread_id) as slow,
            ana.thread(asked.thread_id) as asked,
            http() as connections,
        ):
            olga = Caller(product.url, connections, token("olga"))
            assert (await olga.get(STOP)).body["why"] == "a fire"
            await settle(ana, outcome["id"], "it_was_done")
            assert (slow.said, asked.said[1:], shop.done) == ([], [], ["make_slowly lamp"])
            await olga.post(GO_ON, {})
            await asked.says("made chair")
            await slow.says("as ana confirmed")
            await slow.says("you said: hello")
    assert shop.done == ["make_slowly lamp", "make chair 1"]


async def test_calls_of_other_agents_are_refused_and_those_under_way_are_told(
    home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(home) as url, http() as connections, agent(url) as session:
        olga = Caller(url, connections, token("olga"))
        waiting = called(session, "make_slowly", what="lamp")
        await shop.started.wait()
        async with at_most_waiting(2):
            await olga.post(STOP, {"why": "an attack"})
            told = await waiting
        assert told.isError
        assert "An operator has stopped Countersign." in texts(told)[0]
        refused = await session.call_tool("workshop__make_slowly", {"what": "vase"})
        assert texts(refused) == ["The call was not made: an operator has stopped Countersign. Try again later."]
        assert [tool.name for tool in (await session.list_tools()).tools]
        await olga.post(GO_ON, {})
        shop.may_end.set()
        assert texts(await session.call_tool("workshop__make_slowly", {"what": "vase"})) == ["made vase slowly"]
    assert shop.done == ["make_slowly lamp", "make_slowly vase"]


async def test_an_agent_with_an_operators_token_to_call_tools_does_not_let_itself_go_on(home: ProductFolder) -> None:
    async with product_here(home) as url, http() as connections:
        agents = Caller(url, connections, token("olga", "run read"))
        assert (await agents.post(STOP, {"why": "it repeats itself"})).status == 200
        assert (await agents.post(GO_ON, {"why": "I need it"})).status == 403
        assert (await agents.get(STOP)).body["stopped"]
        assert (await Caller(url, connections, token("olga", "approve")).post(GO_ON, {})).status == 200


async def test_who_means_an_earlier_stop_does_not_end_the_one_that_another_operator_has_made_since(
    home: ProductFolder,
) -> None:
    home.variables["OPERATORS"] = "web:olga,web:otto"
    async with product_here(home) as url, http() as connections:
        olga, otto = (Caller(url, connections, token(name)) for name in ("olga", "otto"))
        await olga.post(STOP, {"why": "too many lamps"})
        seen = (await olga.get(STOP)).body["id"]
        assert (await otto.post(GO_ON, {"id": seen})).status == 200
        await otto.post(STOP, {"why": "an attack"})
        late = await olga.post(GO_ON, {"why": "enough lamps", "id": seen})
        told = "Countersign was stopped again since. Look at the new reason first."
        assert (late.status, late.body["detail"]) == (409, told)
        assert (await olga.get(STOP)).body["why"] == "an attack"
        assert (await olga.post(GO_ON, {})).status == 200


async def test_a_program_that_waits_for_an_answer_is_told_at_once_and_gets_it_later(
    home: ProductFolder, shop: Workshop
) -> None:
    home.variables["TURN_CONCURRENCY"] = "1"
    async with product_here(home) as url, http() as connections, visiting(url) as ana, ana.thread() as thread:
        olga, runs = Caller(url, connections, token("olga")), Runs(url, connections, token("ben"))
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        waiting = asyncio.create_task(runs.run("one", "one", key="key one"))
        async with asyncio.timeout(WITHIN):
            while not (await runs.get("/api/v1/threads")).body["threads"]:
                await asyncio.sleep(0.02)
        await olga.post(STOP, {"why": "a fire"})
        async with at_most_waiting(10):
            told = [await waiting, await runs.run("two", "two", key="key two")]
        for answer in told:
            assert (answer.status, answer.body["detail"][:36]) == (503, "An operator has stopped Countersign.")
            turn = await runs.get(answer.body["turn"])
            assert (turn.status, turn.body["status"]) == (200, "running")
        shop.may_end.set()
        await olga.post(GO_ON, {})
        for name in ("one", "two"):
            assert response_of(await runs.run(name, name, key=f"key {name}")) == f"You said: {name}"
        assert len((await runs.get("/api/v1/threads")).body["threads"]) == 2


async def test_streams_and_agents_that_wait_are_told_and_get_the_rest_later(
    home: ProductFolder, shop: Workshop
) -> None:
    home.variables["TURN_CONCURRENCY"] = "1"
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
        olga, other = Caller(url, connections, token("olga")), Agent(url, token("ana"))
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        async with program(url) as anas, querying(anas, "one") as query:
            waiting = asyncio.create_task(other.say("two", context_id="two"))
            streaming = asyncio.create_task(other.stream(Part(text="three"), context_id="three"))
            async with asyncio.timeout(WITHIN):
                while len(await anas.threads()) < 4:
                    await asyncio.sleep(0.02)
            async with at_most_waiting(10):
                await olga.post(STOP, {"why": "a fire"})
                task = await waiting
            assert (task.status.state, get_message_text(task.status.message)) == (WORKING, KEPT)
            assert (await other.get(task.id)).status == task.status
            await query.until("token")
            assert query.text == KEPT
            shop.may_end.set()
            await olga.post(GO_ON, {})
            await query.until("done")
            assert query.text == f"{KEPT}\n\nYou said: one"
            told = [each.status_update.status for each in await streaming if each.HasField("status_update")]
        assert [(each.state, get_message_text(each.message)) for each in told] == [
            (WORKING, KEPT),
            (COMPLETED, "You said: three"),
        ]


async def test_whatever_operators_do_at_once_the_log_has_each_of_it(home: ProductFolder) -> None:
    async with product_here(home) as url, http() as connections, visiting(url) as ana, ana.thread() as thread:
        olga = Caller(url, connections, token("olga"))
        asked = [olga.post(STOP, {"why": "a race"}) if number % 2 else olga.post(GO_ON, {}) for number in range(40)]
        done = [answer for answer in await asyncio.gather(*asked) if answer.status == 200]
        if (await olga.get(STOP)).body["stopped"]:
            done.append(await olga.post(GO_ON, {}))
        await thread.send("hello")
        await thread.says("you said: hello")
    acts = [entry["settled"]["choice"] for entry in log_of(home) if entry["status"] == "acted"]
    assert acts == ["stopped everything", "let everything go on"] * (len(done) // 2)
    assert len(acts) == len(done)


@pytest.mark.parametrize("body", [{}, {"why": ""}, {"why": "  "}, {"why": "x" * 201}])
async def test_whoever_stops_everything_is_an_operator_and_says_why(home: ProductFolder, body: dict[str, Any]) -> None:
    async with product_here(home) as url, http() as connections:
        assert (await Caller(url, connections, token("olga")).post(STOP, body)).status == 422
        ben = Caller(url, connections, token("ben"))
        reader = Caller(url, connections, token("olga", "read"))
        for who in (ben, reader):
            assert (await who.post(STOP, {"why": "because"})).status == 403
            assert (await who.post(GO_ON, {})).status == 403
        assert (await ben.get(STOP)).status == 403
        assert (await reader.get(STOP)).body["stopped"] is False
