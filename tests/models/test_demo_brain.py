from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.models.streaming import stream_message
from tests.fakes.demo_brain import demo_brain
from tests.fakes.openai_server import fake_openai
from tests.models.conftest import Connect

NOW = SystemMessage("Now: 2026-11-21T09:00:00+01:00 (Europe/Berlin)")


def bound(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


async def test_the_demo_model_carries_a_conversation_over_the_wire(connect: Connect) -> None:
    messages: list[AnyMessage] = [NOW, HumanMessage("add a task to buy milk")]
    async with fake_openai(demo_brain) as server:
        model = connect(server).bind_tools(bound("tasks__add_task", "tasks__list_tasks"))
        asked = await stream_message(model, messages, lambda _: None)
        (call,) = asked.tool_calls
        assert call["name"] == "tasks__add_task"
        assert "milk" in str(call["args"])

        ours = AIMessage(asked.content, tool_calls=[{**call, "id": "slack:T1:C1:1732150000.123456.0.0"}])
        refused = ToolMessage("Rejected by Ben. No reason was given.", tool_call_id="slack:T1:C1:1732150000.123456.0.0")
        told = await stream_message(model, [*messages, ours, refused], lambda _: None)
    assert told.tool_calls == []
    assert "Ben" in told.text


async def test_without_tools_it_says_so_over_the_wire_too(connect: Connect) -> None:
    shown: list[str] = []
    async with fake_openai(demo_brain) as server:
        await stream_message(connect(server), [NOW, HumanMessage("help")], shown.append)
    assert "language model" in "".join(shown)
