"""The tools that the server scenarios of MCP's conformance suite call, as they describe them."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import AnyUrl

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
OF_2020: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
RESULTS: dict[str, list[ContentBlock]] = {
    "test_simple_text": [TextContent(type="text", text="This is a simple text response for testing.")],
    "test_image_content": [ImageContent(type="image", data=PNG, mimeType="image/png")],
    "test_audio_content": [AudioContent(type="audio", data=WAV, mimeType="audio/wav")],
    "test_embedded_resource": [
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(
                uri=AnyUrl("test://embedded-resource"),
                mimeType="text/plain",
                text="This is an embedded resource content.",
            ),
        )
    ],
    "test_multiple_content_types": [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PNG, mimeType="image/png"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(
                uri=AnyUrl("test://mixed-content-resource"),
                mimeType="application/json",
                text='{"test":"data","value":123}',
            ),
        ),
    ],
    "json_schema_2020_12_tool": [TextContent(type="text", text="fine")],
}
LOGGED = ("Tool execution started", "Tool processing data", "Tool execution completed")
OTHERS = ("test_tool_with_logging", "test_tool_with_progress", "test_error_handling")


def conformance_server() -> Server[Any, Any]:
    """The server with them; what needs a model, a form or a resource is left out, since the gateway passes on none."""
    server: Server[Any, Any] = Server("conformance")

    @server.list_tools()
    async def _list() -> list[Tool]:
        return [
            Tool(
                name=name,
                description=f"{name} of the conformance suite",
                inputSchema=OF_2020 if name.startswith("json_schema") else NOTHING,
            )
            for name in (*RESULTS, *OTHERS)
        ]

    @server.call_tool()
    async def _call(name: str, _arguments: dict[str, Any]) -> list[ContentBlock]:
        context = server.request_context
        if name == "test_error_handling":
            raise ValueError("This tool intentionally returns an error for testing")
        if name == "test_tool_with_logging":
            for text in LOGGED:
                await context.session.send_log_message("info", text, related_request_id=context.request_id)
        if name == "test_tool_with_progress" and context.meta is not None and context.meta.progressToken is not None:
            for done in (0, 50, 100):
                await context.session.send_progress_notification(
                    context.meta.progressToken, done, 100, related_request_id=str(context.request_id)
                )
        return RESULTS.get(name) or [TextContent(type="text", text=f"{name} is done")]

    return server
