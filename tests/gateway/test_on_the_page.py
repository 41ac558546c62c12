"""Calls of other agents whose people are at the page: what waits is beside whichever conversation is open, in no list
of conversations, and answered there."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import ClientSession

from tests.gateway.agents import agent, texts
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry, reserve
from tests.support.visitor import Json, Thread, visiting

ALL_IS_FREE = "version: 1\nrules: [{name: all is free, match: {}, decide: allow}]"
BEN_DECIDES = """
version: 1
rules: [{name: Ben decides, match: {}, decide: ask, approvers: ["web:ben"]}]
"""


def called(session: ClientSession, name: str, **arguments: Any) -> asyncio.Task[Any]:
    """A call that is made while people answer."""
    return asyncio.create_task(session.call_tool(f"workshop__{name}", arguments))


async def waiting(thread: Thread, kind: str) -> Json:
    """Wait until something of a kind waits for the calls of one's agents."""

    def found() -> Json | None:
        return next((each["card"] for each in thread.through_programs if each["card"]["kind"] == kind), None)

    card: Json = await thread.until(found, kind)
    assert card["client"] == "cursor"
    return card


async def test_a_question_a_link_and_an_unknown_outcome_are_answered_there(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    shop.server.tool(title="Reserve")(reserve)
    agents_home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    agents_home.policy(ALL_IS_FREE)
    async with (
        product_here(agents_home) as url,
        agent(url) as session,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
    ):
        reserved = called(session, "reserve", what="a seat")
        question = (await waiting(thread, "clarification"))["id"]
        answer = {"id": "k1", "values": {"seat": "7a"}}
        assert (await ben.post(f"/api/clarifications/{question}/answer", answer)).status == 404
        assert (await ana.post(f"/api/clarifications/{question}/answer", answer)).status == 200
        assert texts(await reserved) == ["a seat in 7a"]

        made = called(session, "make_with_account", what="lamp")
        sign_in = (await waiting(thread, "sign_in"))["id"]
        assert (await ben.get(f"/api/sign-ins/{sign_in}/link")).status == 404
        assert "top-secret-ticket" in (await ana.get(f"/api/sign-ins/{sign_in}/link")).body["url"]
        shop.signed_in = True
        assert (await ana.post(f"/api/sign-ins/{sign_in}", {"id": "k2", "done": True})).status == 200
        assert texts(await made) == ["made lamp with the account"]

        slowly = called(session, "make_slowly", what="lamp")
        outcome = (await waiting(thread, "outcome"))["id"]
        assert (await ben.post(f"/api/outcomes/{outcome}", {"id": "k3", "choice": "skip"})).status == 404
        assert (await ana.post(f"/api/outcomes/{outcome}", {"id": "k4", "choice": "it_was_done"})).status == 200
        assert "Done, as Ana confirmed" in texts(await slowly)[0]
        await thread.until(lambda: not thread.through_programs, "nothing waits any more")
        assert (await ana.get("/api/threads")).body["threads"] == []


async def test_a_decision_is_asked_of_whoever_may_and_seen_to_wait_by_whose_agent_it_is(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    agents_home.policy(BEN_DECIDES)
    async with (
        product_here(agents_home) as url,
        agent(url) as session,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread() as hers,
        ben.thread() as his,
    ):
        made = called(session, "make", what="lamp")
        own = await waiting(hers, "approval")
        [asked] = await his.until(lambda: his.asked, "Ben is asked")
        card = asked["card"]
        assert (asked["id"], card["requester"], card["client"]) == (own["id"], "ana", "cursor")
        assert card["arguments"][0]["value"] == "lamp"
        decision = {"id": "k1", "approvals": [own["id"]], "verb": "approve"}
        assert (await ana.post("/api/approvals/decisions", decision)).status == 403
        assert (await ben.post("/api/approvals/decisions", decision)).status == 200
        assert texts(await made) == ["made lamp"]
        await hers.until(lambda: not hers.through_programs, "nothing waits any more")
