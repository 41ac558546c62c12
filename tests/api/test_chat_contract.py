"""`POST /api/v1/agent/{user_id}/chat`, as a client that knows only its description uses it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp.types import ToolAnnotations

from tests.api.contract_clients import Chats, Runs, http, response_of, token, with_tokens
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.support.brain import obedient
from tests.support.fixtures import connect, shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop

__all__ = ["shop"]


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """A model service that does what the message says, and fails where that says so."""

    def brain(request: Request) -> Reply:
        if "fail" in str(request["messages"][-1]["content"]):
            return Reply(status=401, error={"code": "invalid_api_key", "message": "Incorrect key"})
        return obedient(request)

    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A product with that tool server and that model, which takes tokens."""

    async def count(what: str) -> str:
        return json.dumps({"what": what, "count": 3, "of": [1, 2, None]})

    shop.server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))(count)
    home = with_tokens(ProductFolder(tmp_path))
    connect(home, shop, model)
    return home


@pytest.fixture
async def ana(home: ProductFolder) -> AsyncIterator[Chats]:
    """Ana's program."""
    async with product_here(home) as url, http() as session:
        yield Chats(url, session, token("ana@example.com"), "ana@example.com")


async def test_messages_are_answered_with_the_calls_that_were_made_in_a_conversation_with_a_number(ana: Chats) -> None:
    assert (await ana.get("/api/v1/agent/health")).body == {"status": "healthy", "service": "agent-chat"}
    first = await ana.told("hello")
    assert (first["agent_response"], first["tool_calls"]) == ("You said: hello", [])
    second = await ana.told("use count what=lamp; look what=sky", first["conversation_id"])
    assert second["conversation_id"] == first["conversation_id"]
    assert second["user_message_id"] > first["user_message_id"]
    assert second["agent_message_id"] > first["agent_message_id"]
    counted, looked = second["tool_calls"]
    assert counted == {
        "tool_name": "count",
        "arguments": {"what": "lamp"},
        "result": {"what": "lamp", "count": 3, "of": [1, 2, None]},
    }
    assert (looked["tool_name"], looked["result"]) == ("look", "sky looks fine")
    assert (await ana.told("hello"))["conversation_id"] != first["conversation_id"]
    for conversation in (None, first["conversation_id"]):
        once, twice = [await ana.chat("hello", conversation, key="k") for _ in range(2)]
        assert (once.status, once) == (200, twice)
        assert (await ana.chat("goodbye", conversation, key="k")).status == 422


async def test_what_waits_is_said_and_a_question_is_answered_by_the_next_message(ana: Chats, shop: Workshop) -> None:
    asked = await ana.told("use make what=lamp")
    (call,) = asked["tool_calls"]
    assert call["result"].keys() == {"status", "approval_id"}
    assert call["result"]["status"] == "approval_required"
    assert "make waits for approval" in asked["agent_response"]
    assert shop.done == []
    decision = {"approval_id": call["result"]["approval_id"], "verb": "approve"}
    assert (await ana.post("/api/v1/approvals/decisions", {"decisions": [decision]})).status == 200
    question = await ana.told("ask lamp")
    assert "Which lamp?" in question["agent_response"]
    answered = await ana.told("the green one", question["conversation_id"])
    assert "the green one" in answered["agent_response"]


async def test_others_and_what_is_not_there_and_empty_messages_are_refused(ana: Chats) -> None:
    number = (await ana.told("hello"))["conversation_id"]
    ben = Chats(ana.url, ana.http, token("ben"), "ben")
    assert (await ana.chat("")).status == 400
    assert (await ana.chat(" \n")).status == 400
    assert (await Chats(ana.url, ana.http, "forged", "ana@example.com").chat("hello")).status == 401
    assert (await ana.chat("hello", user_id="ben")).status == 403
    assert (await ben.chat("hello", number)).status == 403
    for missing in (number + 1000, 0, -1, 2**63, 2**200):
        assert (await ana.chat("hello", missing)).status == 404
    assert (
        await ana.post("/api/v1/agent/ana@example.com/chat", {"message": "hi", "conversation_id": "1"})
    ).status == 422
    assert (await Chats(ana.url, ana.http, token("ana@example.com", "read"), ana.user_id).chat("hello")).status == 403


async def test_a_model_that_fails_is_unavailable(ana: Chats) -> None:
    failed = await ana.chat("fail")
    assert failed.status == 500
    assert failed.body["detail"] == "Agent is currently unavailable. Please try again later."


async def test_who_writes_while_turns_are_switched_off_is_told_so(home: ProductFolder, model: FakeOpenAI) -> None:
    home.variables["AGENT_ENABLE"] = "0"
    async with product_here(home) as url, http() as session:
        told = await Chats(url, session, token("ana"), "ana").told("hello")
        assert "switched off" in told["agent_response"]
        assert "switched off" in response_of(await Runs(url, session, token("ana")).run("t", "hello"))
    assert model.requests == []
