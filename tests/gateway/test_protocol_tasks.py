"""Calls as tasks: begun at once, asked after, waited for, and taken back, by the client that began them."""

from __future__ import annotations

import asyncio

import pytest
from mcp.shared.exceptions import McpError
from mcp.types import CallToolResult

from tests.gateway.agents import agent, deciding, texts
from tests.support.tools import Workshop

pytestmark = pytest.mark.filterwarnings("ignore:The experimental tasks API is deprecated")
"""Of the client: specifications to come have tasks as an extension."""


async def test_a_task_is_there_at_once_and_its_result_is_waited_for(url: str, shop: Workshop) -> None:
    async with agent(url) as cursor, deciding(url) as ana:
        begun = (await cursor.experimental.call_tool_as_task("workshop__make", {"what": "lamp"}, ttl=3_600_000)).task
        assert (begun.ttl, begun.pollInterval) == (3_600_000, 2_000)
        (approval,) = await ana.asked()
        task = await cursor.experimental.get_task(begun.taskId)
        assert task.status == "input_required"
        assert "approv" in (task.statusMessage or "").lower()
        waiting = asyncio.create_task(cursor.experimental.get_task_result(begun.taskId, CallToolResult))
        await ana.approve(approval)
        result = await waiting
        assert texts(result) == ["made lamp"]
        assert result.meta == {"io.modelcontextprotocol/related-task": {"taskId": begun.taskId}}
        assert (await cursor.experimental.get_task(begun.taskId)).status == "completed"
        assert texts(await cursor.experimental.get_task_result(begun.taskId, CallToolResult)) == ["made lamp"]
    assert shop.done == ["make lamp 1"]


async def test_a_task_is_taken_back_by_its_own_client_alone_and_nobody_is_asked_any_more(
    url: str, shop: Workshop
) -> None:
    async with agent(url) as cursor, agent(url, name="claude-code") as claude, deciding(url) as ana:
        task_id = (await cursor.experimental.call_tool_as_task("workshop__make", {"what": "lamp"})).task.taskId
        await ana.asked()
        async with agent(url, person="ben") as bens:
            for other in (claude, bens):
                assert (await other.experimental.list_tasks()).tasks == []
                for ask in (other.experimental.get_task, other.experimental.cancel_task):
                    with pytest.raises(McpError) as error:
                        await ask(task_id)
                    assert (error.value.error.code, error.value.error.message) == (
                        -32602,
                        f"Task not found: {task_id}",
                    )
        assert [each.taskId for each in (await cursor.experimental.list_tasks()).tasks] == [task_id]
        assert (await cursor.experimental.cancel_task(task_id)).status == "cancelled"
        assert await ana.asked(0) == []
        assert (await cursor.experimental.get_task(task_id)).status == "cancelled"
        with pytest.raises(McpError, match="can’t be canceled"):
            await cursor.experimental.cancel_task(task_id)
    assert shop.done == []
