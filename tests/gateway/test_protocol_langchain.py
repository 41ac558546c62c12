"""An agent that nobody here wrote: `langchain-mcp-adapters` with a calendar, and an approval in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient

from tests.api.contract_clients import with_tokens
from tests.gateway.agents import address, authorization, deciding
from tests.support.product import ProductFolder, product_here


async def test_a_langchain_agent_makes_a_meeting_that_somebody_has_approved(tmp_path: Path) -> None:
    home = with_tokens(ProductFolder(tmp_path))
    async with product_here(home) as url, deciding(url) as ana:
        connection: Any = {"transport": "streamable_http", "url": address(url), "headers": authorization()}
        tools = {tool.name: tool for tool in await MultiServerMCPClient({"company": connection}).get_tools()}
        arguments = {"title": "Stand-up", "start": "2026-12-01T09:00:00", "end": "2026-12-01T09:15:00"}
        call = asyncio.create_task(tools["calendar__create_event"].ainvoke(arguments))
        (approval,) = await ana.asked()
        await ana.approve(approval)
        made = await call
        day = {"start": "2026-12-01T00:00:00", "end": "2026-12-02T00:00:00"}
        found = await tools["calendar__list_events"].ainvoke(day)
    assert "Stand-up" in str(made)
    assert "Stand-up" in str(found)
