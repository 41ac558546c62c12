"""What clients of the official SDK see of `/mcp`: tools, calls that wait for people, links, and what goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.context import RequestContext
from mcp.shared.exceptions import McpError
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, PaginatedRequestParams

from adapters.shared.outages import AWAY
from bot.gateway.calls import GatewayCalls
from tests.gateway.agents import Told, agent, as_sent, deciding, texts, until
from tests.support import outage
from tests.support.everything import everything, needs_everything
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import WITHIN


async def by_hand(context: RequestContext[ClientSession, Any], params: ElicitRequestParams) -> ElicitResult:
    """A client that can ask its person; nobody asks it to in a call."""
    return ElicitResult(action="decline")


async def ended(client: ClientSession, name: str, **arguments: Any) -> CallToolResult:
    """The result of a call, as a client gets it that makes the same call until there is one."""
    async with asyncio.timeout(WITHIN):
        while "countersign/status" in ((result := await client.call_tool(name, arguments)).meta or {}):
            pass
    return result


# ------------------------------------------------------------------------------------------------- tools
async def test_tools_are_listed_as_their_servers_declare_them_but_not_what_is_denied_anyway(
    url: str, shop: Workshop
) -> None:
    async with (
        streamable_http_client(shop.url) as (read, write, _),
        ClientSession(read, write) as directly,
        agent(url) as cursor,
        agent(url, server="workshop") as at_workshop,
    ):
        await directly.initialize()
        declared = [as_sent(tool) for tool in (await directly.list_tools()).tools]
        wanted = {
            tool["name"]: {**tool, "execution": {"taskSupport": "optional"}}
            for tool in declared
            if tool["name"] != "delete"
        }
        own = {tool.name: as_sent(tool) for tool in (await at_workshop.list_tools()).tools}
        assert own == wanted
        full = {tool.name: as_sent(tool) for tool in (await cursor.list_tools()).tools}
        assert full == {f"workshop__{name}": {**tool, "name": f"workshop__{name}"} for name, tool in wanted.items()}


async def test_a_client_is_told_at_the_beginning_what_waiting_means(url: str) -> None:
    async with agent(url) as cursor:
        said = await cursor.initialize()
    assert (said.serverInfo.name, said.serverInfo.version) == ("countersign", "0.1.0")
    assert said.instructions is not None
    assert "the same arguments" in said.instructions
    assert as_sent(said.capabilities) == {
        "experimental": {},
        "tools": {"listChanged": True},
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    }


@needs_everything
async def test_what_is_allowed_returns_what_the_server_returned(agents_home: ProductFolder) -> None:
    everything(agents_home)
    async with product_here(agents_home) as url, agent(url, server="everything") as cursor:
        structured = await cursor.call_tool("get-structured-content", {"location": "Chicago"})
        assert structured.structuredContent is not None
        assert set(structured.structuredContent) == {"temperature", "conditions", "humidity"}
        image = await cursor.call_tool("get-tiny-image", {})
        assert [block.type for block in image.content] == ["text", "image", "text"]
        links = await cursor.call_tool("get-resource-links", {"count": 2})
        assert [block.type for block in links.content] == ["text", "resource_link", "resource_link"]


# --------------------------------------------------------------------------------------------- approvals
async def test_a_call_waits_until_it_is_approved_and_says_so_meanwhile(url: str, shop: Workshop) -> None:
    told = Told()
    async with agent(url) as cursor, deciding(url) as ana:
        call = asyncio.create_task(cursor.call_tool("workshop__make", {"what": "lamp"}, progress_callback=told))
        assert "ana" in (await told.until("approv")).lower()
        assert shop.done == []
        (approval,) = await ana.asked()
        await ana.approve(approval)
        result = await call
    assert (result.isError, texts(result), result.structuredContent) == (False, ["made lamp"], {"result": "made lamp"})
    assert shop.done == ["make lamp 1"]
    assert told.progress == sorted(set(told.progress))


async def test_edited_arguments_run_as_edited_and_the_result_says_so(url: str, shop: Workshop) -> None:
    async with agent(url) as cursor, deciding(url) as ana:
        call = asyncio.create_task(cursor.call_tool("workshop__make", {"what": "lamp"}))
        (approval,) = await ana.asked()
        await ana.approve(approval, what="chair", count=2)
        result = await call
    assert shop.done == ["make chair 2"]
    said, returned = texts(result)
    assert "Approved with changes" in said
    assert (returned, result.isError, result.structuredContent) == ("made chair", False, {"result": "made chair"})
    assert result.meta == {"countersign/changed": True}


async def test_who_is_rejected_gets_the_reason_and_who_is_blocked_too(url: str, shop: Workshop) -> None:
    async with agent(url) as cursor, deciding(url) as ana:
        call = asyncio.create_task(cursor.call_tool("workshop__make", {"what": "lamp"}))
        (approval,) = await ana.asked()
        await ana.reject(approval, "We have lamps.")
        rejected = await call
        blocked = await cursor.call_tool("workshop__delete", {"what": "lamp"})
    assert rejected.isError
    assert "We have lamps." in texts(rejected)[0]
    assert blocked.isError
    assert "Nothing may be deleted." in texts(blocked)[0]
    assert shop.done == []


async def test_who_has_waited_long_enough_goes_on_waiting_by_the_same_call(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    agents_home.variables["GATEWAY_WAIT"] = "1s"
    async with product_here(agents_home) as url, agent(url) as cursor, deciding(url) as ana:
        waiting = await cursor.call_tool("workshop__make", {"what": "lamp"})
        assert waiting.isError
        assert "Call the same tool again with the same arguments" in texts(waiting)[0]
        assert waiting.meta is not None
        assert waiting.meta["countersign/status"] == "waiting"
        (approval,) = await ana.asked()
        await ana.approve(approval)
        assert texts(await ended(cursor, "workshop__make", what="lamp")) == ["made lamp"]
        assert shop.done == ["make lamp 1"]
        asked_anew = await cursor.call_tool("workshop__make", {"what": "lamp"})
        assert "Call the same tool again" in texts(asked_anew)[0]
        await ana.asked()
    assert shop.done == ["make lamp 1"]


async def test_a_client_that_has_gone_gets_the_result_by_the_same_call(url: str, shop: Workshop) -> None:
    told = Told()
    async with deciding(url) as ana:
        async with agent(url) as cursor:
            call = asyncio.create_task(cursor.call_tool("workshop__make", {"what": "lamp"}, progress_callback=told))
            await told.until("approv")
            call.cancel()
        (approval,) = await ana.asked()
        await ana.approve(approval)
        await until(lambda: shop.done)
        async with agent(url) as again:
            assert texts(await again.call_tool("workshop__make", {"what": "lamp"})) == ["made lamp"]
    assert shop.done == ["make lamp 1"]


async def test_a_client_that_waits_while_the_product_is_restarted_is_told_so_and_goes_on_with_the_next(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    told, make = Told(), ("workshop__make", {"what": "lamp"})
    async with AsyncExitStack() as running:
        url = await running.enter_async_context(product_here(agents_home))
        async with agent(url) as cursor:
            call = asyncio.create_task(cursor.call_tool(*make, progress_callback=told))
            await told.until("approv")
            await running.aclose()
            assert "Call the same tool again" in texts(await call)[0]
    async with product_here(agents_home) as url, agent(url) as cursor, deciding(url) as ana:
        call = asyncio.create_task(cursor.call_tool(*make))
        (approval,) = await ana.asked()
        await ana.approve(approval)
        assert texts(await call) == ["made lamp"]
    assert shop.done == ["make lamp 1"]


async def test_whoever_has_read_a_result_and_makes_the_same_call_makes_a_new_one(url: str, shop: Workshop) -> None:
    """However fast: a client has the result before it is on record that it has."""
    async with agent(url) as cursor:
        for _ in range(20):
            assert texts(await cursor.call_tool("workshop__look", {"what": "lamp"})) == ["lamp looks fine"]
    assert len(shop.looked) == 20


async def test_two_programs_with_the_same_call_are_two_calls(url: str, shop: Workshop) -> None:
    async with agent(url) as cursor, agent(url, name="claude-code") as claude, deciding(url) as ana:
        calls = [asyncio.create_task(each.call_tool("workshop__make", {"what": "lamp"})) for each in (cursor, claude)]
        first, second = await ana.asked(2)
        await ana.approve(first)
        await ana.reject(second, "One is enough.")
        results = await asyncio.gather(*calls)
    assert sorted(result.isError for result in results) == [False, True]
    assert shop.done == ["make lamp 1"]


# ------------------------------------------------------------------------------------------------- links
async def test_a_client_that_can_show_links_gets_the_link_and_goes_on_by_the_same_call(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    agents_home.policy("version: 1\nrules:\n  - {name: all is free, match: {}, decide: allow}\n")
    async with product_here(agents_home) as url, agent(url, elicitation=by_hand) as cursor, deciding(url) as ana:
        with pytest.raises(McpError) as error:
            await cursor.call_tool("workshop__make_with_account", {"what": "lamp"})
        assert error.value.error.code == -32042
        (elicitation,) = error.value.error.data["elicitations"]  # type: ignore[index]
        assert elicitation["url"] == "https://accounts.example.com/start?ticket=top-secret-ticket"
        shop.signed_in = True
        done = await ana.thread.visitor.post(f"/api/sign-ins/{elicitation['elicitationId']}", {"id": "k", "done": True})
        assert done.status == 200, done
        result = await cursor.call_tool("workshop__make_with_account", {"what": "lamp"})
    assert texts(result) == ["made lamp with the account"]
    assert shop.done == ["make_with_account lamp"]


async def test_other_clients_are_told_where_the_link_is(agents_home: ProductFolder, shop: Workshop) -> None:
    agents_home.policy("version: 1\nrules:\n  - {name: all is free, match: {}, decide: allow}\n")
    agents_home.variables["GATEWAY_WAIT"] = "1s"
    async with product_here(agents_home) as url, agent(url) as cursor:
        waiting = await cursor.call_tool("workshop__make_with_account", {"what": "lamp"})
    (said,) = texts(waiting)
    assert waiting.isError
    assert "to sign in with the link they got" in said
    assert "top-secret-ticket" not in said


# ------------------------------------------------------------------------------------- what goes wrong
async def test_what_is_not_there_is_an_error_of_the_protocol(url: str) -> None:
    async with agent(url) as cursor, agent(url, server="workshop") as at_workshop:
        for client, name in ((cursor, "make"), (cursor, "workshop__nothing"), (at_workshop, "workshop__make")):
            with pytest.raises(McpError) as error:
                await client.call_tool(name, {})
            assert (error.value.error.code, error.value.error.message) == (-32602, f"Unknown tool: {name}")
        with pytest.raises(McpError) as error:
            await cursor.list_tools(params=PaginatedRequestParams(cursor="1" * 5_000))
        assert error.value.error.code == -32602


@pytest.mark.parametrize(
    ("error", "said", "logged"),
    [(outage.FULL, AWAY, "gateway_requests_refused"), (ValueError("s3cret"), "reference", "gateway_request_failed")],
)
async def test_what_goes_wrong_here_is_a_sentence_for_the_client_and_logged_once(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    said: str,
    logged: str,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    async with agent(url) as cursor:
        monkeypatch.setattr(GatewayCalls, "call", fail)
        capsys.readouterr()
        with pytest.raises(McpError) as told:
            await cursor.call_tool("workshop__look", {"what": "lamp"})
    assert told.value.error.code == -32603
    assert said in told.value.error.message
    assert "s3cret" not in told.value.error.message
    assert capsys.readouterr().out.count(logged) == 1
