"""The demo model behind the OpenAI wire: whatever it can carry in the product, it can carry as a remote service too."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langchain_core.messages.utils import convert_to_messages

from demo_model.model import DemoChatModel
from tests.fakes.openai_server import Reply, Request, ToolUse


async def demo_brain(request: Request) -> Reply:
    """Answers a chat completions request as `DemoChatModel` would: `fake_openai(demo_brain)`."""
    model = DemoChatModel()
    messages = convert_to_messages(request["messages"])
    asked = model.bind_tools(request["tools"]) if request.get("tools") else model
    answer = await asked.ainvoke(messages)
    assert isinstance(answer, AIMessage)
    return Reply(text=answer.text, calls=[ToolUse(call["name"], call["args"]) for call in answer.tool_calls])
