"""The thread of another agent's call is no conversation: nobody writes in it or stops it with a token, and the call
waits for its decision as before."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.api.contract_clients import Caller, token
from tests.gateway.agents import agent, deciding, texts


async def test_with_a_token_nothing_is_written_or_stopped_where_an_agents_call_waits(url: str) -> None:
    async with agent(url) as session, deciding(url) as ana, aiohttp.ClientSession() as http:
        call = asyncio.create_task(session.call_tool("workshop__make", {"what": "lamp"}))
        (asked,) = await ana.asked()
        api, thread = Caller(url, http, token("ana")), f"/api/v1/threads/{asked['thread_id']}"
        assert (await api.get(thread)).status == 200
        tried = [
            await api.post(f"{thread}/stop", {}),
            await api.post(f"{thread}/messages", {"text": "make another lamp"}),
            await api.post(f"{thread}/messages", {"text": "stop"}),
        ]
        assert [each.status for each in tried] == [404, 404, 404]
        assert (await api.get("/api/v1/threads")).body["threads"] == []
        await ana.approve(asked)
        assert texts(await call) == ["made lamp"]
