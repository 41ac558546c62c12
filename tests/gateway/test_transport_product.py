"""`/mcp` of the whole product: the SDK's own client, tools that change, and switched off."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import mcp.types
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.fastmcp import Context

from bot.policy_in_force import PolicyInForce
from tests.api.contract_clients import Caller, token, with_tokens
from tests.gateway.transport import BOTH, INITIALIZE, LIST, WITHIN, McpClient, next_message
from tests.support.fixtures import shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry
from tests.support.two_products import share

__all__ = ["shop"]


@pytest.fixture
def home(tmp_path: Path, shop: Workshop) -> ProductFolder:
    """The product with the workshop, and with tokens."""
    made = with_tokens(ProductFolder(tmp_path))
    made.tool_servers({"workshop": entry(shop)})
    return made


async def test_the_sdks_client_is_told_when_the_tools_of_a_server_change(home: ProductFolder, shop: Workshop) -> None:
    told = asyncio.Event()

    async def grow(ctx: Context) -> str:  # type: ignore[type-arg]
        """Make another tool."""
        shop.server.tool(name="sew")(grow)
        await ctx.session.send_tool_list_changed()
        return "there is another tool"

    shop.server.tool(annotations=mcp.types.ToolAnnotations(readOnlyHint=True, openWorldHint=False))(grow)

    async def hear(message: Any) -> None:
        if isinstance(message, mcp.types.ServerNotification) and isinstance(
            message.root, mcp.types.ToolListChangedNotification
        ):
            told.set()

    async with (
        product_here(home) as url,
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token('ana')}"}, timeout=WITHIN) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (read, write, session_id),
        ClientSession(read, write, message_handler=hear) as session,
        asyncio.timeout(WITHIN),
    ):
        await session.initialize()
        assert session_id()
        while "workshop__grow" not in (names := {tool.name for tool in (await session.list_tools()).tools}):
            await asyncio.sleep(0.05)
        assert "workshop__sew" not in names
        assert all(tool.outputSchema for tool in (await session.list_tools()).tools)
        told.clear()
        result = await session.call_tool("workshop__grow", {})
        assert not result.isError, result
        assert result.structuredContent == {"result": "there is another tool"}  # as its output schema says
        await told.wait()
        assert "workshop__sew" in {tool.name for tool in (await session.list_tools()).tools}


async def test_the_stream_tells_that_other_rules_list_other_tools(
    home: ProductFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PolicyInForce] = []

    def noted(*arguments: Any) -> PolicyInForce:
        made.append(PolicyInForce(*arguments))
        return made[-1]

    monkeypatch.setattr("app.PolicyInForce", noted)
    home.policy("version: 1\nrules: []\n")
    async with product_here(home) as url, aiohttp.ClientSession() as http:
        client = await McpClient(url, http, token("ana")).initialized()
        async with asyncio.timeout(WITHIN):
            while not (await client.post(LIST)).messages[0]["result"]["tools"]:
                await asyncio.sleep(0.05)
        async with client.stream() as stream:
            await stream.content.readline()
            home.policy("version: 1\nrules:\n  - {name: no, match: {tool: '*'}, decide: deny, reason: 'No.'}\n")
            assert await made[0].reload()
            assert (await next_message(stream))["method"] == "notifications/tools/list_changed"
            assert (await client.post(LIST)).messages[0]["result"]["tools"] == []


async def test_switched_off_there_is_nothing_at_the_address(home: ProductFolder) -> None:
    home.variables["GATEWAY_ENABLE"] = "false"
    async with product_here(home) as url, aiohttp.ClientSession() as http:
        client = McpClient(url, http, token("ana"))
        for path in ("/mcp", "/mcp/workshop"):
            assert (await client.post(INITIALIZE, path)).status == 404
        assert (await client.ask("GET", path="/.well-known/oauth-protected-resource")).status == 404


async def test_a_token_for_another_audience_never_counts_and_one_for_the_resource_does(home: ProductFolder) -> None:
    home.variables["PUBLIC_URL"] = "https://bot.example"
    home.variables["WEB_PASSWORD"] = "open sesame"
    async with product_here(home) as url, aiohttp.ClientSession() as http:
        client = McpClient(url, http)
        for audience, path, status in (
            ("https://bot.example/mcp", "/mcp", 200),
            ("https://bot.example/mcp", "/mcp/workshop", 200),
            ("https://bot.example/mcp/workshop", "/mcp/workshop", 200),
            ("https://bot.example/mcp/workshop", "/mcp", 401),
            ("https://other.example/mcp", "/mcp", 401),
        ):
            client.token = token("ana", audience=audience)
            assert (await client.post(INITIALIZE, path)).status == status, (audience, path)
            api = Caller(url, http, client.token)
            assert (await api.get("/api/v1/me")).status == 401, "it was made for a gateway"
        assert (await Caller(url, http, token("ana", audience="anything")).get("/api/v1/me")).status == 200


@pytest.mark.sqlite  # with PostgreSQL there always is one
async def test_where_the_product_has_no_address_no_token_with_an_audience_counts(home: ProductFolder) -> None:
    async with product_here(home) as url, aiohttp.ClientSession() as http:
        for audience, status in (("https://other.example/mcp", 401), (f"{url}/mcp", 401), ("", 200)):
            client = McpClient(url, http, token("ana", audience=audience))
            assert (await client.post(INITIALIZE)).status == status, audience


@pytest.mark.postgres
async def test_a_request_that_waits_at_one_replica_is_given_up_at_the_other(home: ProductFolder) -> None:
    share(home)
    call = {"name": "workshop__make", "arguments": {"what": "lamp"}, "_meta": {"progressToken": 1}}
    message = {"jsonrpc": "2.0", "id": "call 1", "method": "tools/call", "params": call}
    given_up = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call 1"}}
    async with product_here(home) as one, product_here(home) as other, aiohttp.ClientSession() as http:
        client = await McpClient(one, http, token("ana")).initialized()
        async with client.begun(message) as response:
            while "approv" not in str(await next_message(response)).lower():  # people are asked
                pass
            client.url = other
            assert (await client.post(given_up)).status == 202
            async with asyncio.timeout(WITHIN):
                assert b'"result"' not in await response.read()


@pytest.mark.postgres
async def test_a_client_that_initializes_at_one_replica_lists_at_the_other(home: ProductFolder) -> None:
    share(home)
    async with product_here(home) as one, product_here(home) as other, aiohttp.ClientSession() as http:
        client = await McpClient(one, http, token("ana")).initialized()
        async with asyncio.timeout(WITHIN):
            for url in (other, one):
                client.url = url
                while not (answer := await client.post(LIST, Accept=BOTH)).messages[0]["result"]["tools"]:
                    await asyncio.sleep(0.05)
                assert answer.status == 200
