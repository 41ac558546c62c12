"""Whatever is sent to `/mcp`: a clear answer, and never a failure of ours."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import INTERNAL_ERROR

from tests.gateway.agents import address, authorization
from tests.support.examples import examples
from tests.support.visitor import Json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800") | st.just("\0"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
METHODS = st.sampled_from(
    [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "tasks/get",
        "tasks/result",
        "tasks/list",
        "tasks/cancel",
        "resources/list",
        "completion/complete",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "nothing/known",
    ]
)
NAMES = st.sampled_from(["workshop__look", "workshop__nothing", "workshop__", "__"])
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES | VALUES,
        "arguments": st.fixed_dictionaries({"what": VALUES}) | VALUES,
        "cursor": VALUES,
        "taskId": VALUES,
        "task": st.fixed_dictionaries({}, optional={"ttl": VALUES | st.just(10**400)}) | VALUES,
        "_meta": st.fixed_dictionaries({}, optional={"progressToken": VALUES}) | VALUES,
        "requestId": VALUES,
        "protocolVersion": VALUES,
        "clientInfo": st.fixed_dictionaries({"name": VALUES, "version": VALUES}) | VALUES,
        "capabilities": VALUES,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS}, optional={"id": st.integers() | VALUES, "params": PARAMS | VALUES}
)


def bodies() -> list[bytes]:
    found: list[bytes] = []

    @settings(max_examples=examples(120))
    @given(MESSAGES.map(lambda message: json.dumps(message).encode()) | VALUES.map(json.dumps).map(str.encode))
    def each(body: bytes) -> None:
        found.append(body)

    each()
    return found


def answered(content_type: str, text: str) -> list[Json]:
    """The messages of an answer."""
    if content_type == "text/event-stream":
        return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(text)] if text else []


async def test_no_message_is_answered_with_a_failure_of_ours(url: str) -> None:
    headers = {**authorization(), "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as http:

        async def post(body: bytes, session: str) -> tuple[aiohttp.ClientResponse, list[Json]]:
            sent = {"Mcp-Session-Id": session} if session else {}
            async with http.post(address(url), data=body, headers=sent) as response:
                return response, answered(response.content_type, await response.text())

        about: Any = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        begun = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        response, _ = await post(json.dumps(begun).encode(), "")
        session = response.headers["Mcp-Session-Id"]
        for body in bodies():
            response, messages = await post(body, session)
            assert response.status in {200, 202, 400, 415}, (body, response.status)
            for message in messages:
                assert message.get("error", {}).get("code") != INTERNAL_ERROR, (body, message)
                assert "Traceback" not in json.dumps(message), (body, message)
