"""The stand-ins speak as the services' own clients read, which know nothing of this product."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import AsyncAnthropic
from google.genai import Client
from google.genai.types import FunctionDeclaration, GenerateContentConfig, HttpOptions, Tool

from tests.fakes.anthropic_server import fake_anthropic
from tests.fakes.google_server import fake_google
from tests.fakes.openai_server import Reply, ToolUse

ANSWER = Reply(text="I will add it", calls=[ToolUse("add", {"title": "milk"}), ToolUse("list")], usage=(12, 7))
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}}


async def test_anthropics_own_client_understands_its_stand_in() -> None:
    async with fake_anthropic([ANSWER]) as server, AsyncAnthropic(api_key="k", base_url=server.base_url) as client:
        async with client.messages.stream(
            model="claude-test",
            max_tokens=100,
            messages=[{"role": "user", "content": "add milk"}],
            tools=[{"name": "add", "input_schema": {"type": "object", "properties": {"title": {"type": "string"}}}}],
        ) as stream:
            message = await stream.get_final_message()
        assert server.refused == []
    text, *calls = message.content
    assert text.type == "text"
    assert text.text == "I will add it"
    assert [(c.name, c.input) for c in calls if c.type == "tool_use"] == [("add", {"title": "milk"}), ("list", {})]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 12, 7)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")  # its own affair
async def test_googles_own_client_understands_its_stand_in() -> None:
    async with fake_google([ANSWER]) as server:
        client = Client(api_key="k", vertexai=False, http_options=HttpOptions(base_url=server.base_url))
        functions = [FunctionDeclaration(name="add", description="d", parameters_json_schema=SCHEMA)]
        config = GenerateContentConfig(tools=[Tool(function_declarations=functions)])
        stream = await client.aio.models.generate_content_stream(
            model="gemini-test", contents="add milk", config=config
        )
        chunks = [chunk async for chunk in stream]
        await client.aio.aclose()
        client.close()
        assert server.refused == []
    parts = [part for chunk in chunks for part in (chunk.parts or [])]
    assert "".join(part.text or "" for part in parts) == "I will add it"
    called = [part.function_call for part in parts if part.function_call is not None]
    assert [(call.name, call.args) for call in called] == [("add", {"title": "milk"}), ("list", {})]
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.prompt_token_count == 12
