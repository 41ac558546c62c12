"""Rule 13: what a server asks and tells costs the MCP SDK next to nothing, however it is made."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession
from mcp.shared.message import SessionMessage
from mcp.types import EmptyResult, JSONRPCMessage, ServerNotification
from pydantic import ValidationError

from adapters.tool_servers.sdk_session import read_what_is_used, write_no_messages
from graph.ports import Succeeded

from .conftest import bare_server, call, running
from .http_odd import odd_http

INVISIBLE = "\u200b" * 10_000
FAULTY = {"messages": [{"role": "user", "content": [{}] * 100}] * 20, "maxTokens": 5}
"""Each of these blocks is none of five kinds, and each kind lacks something else: 2 MB of faults."""


@asynccontextmanager
async def odd(folder: Path, transport: str) -> AsyncIterator[Mapping[str, Any]]:
    if transport == "stdio":
        yield bare_server("odd.py", folder)
        return
    async with odd_http() as http:
        yield {"url": http.url}


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("sampling/createMessage", FAULTY, -32600),
        ("sampling/createMessage", {"messages": [], "maxTokens": 5}, -32600),
        ("roots/list", {"_meta": {"a": [[]]}}, -32600),
        ("tasks/get", {"taskId": []}, -32601),
        ("something/else", {"a": [{}] * 1_000}, -32601),
    ],
)
async def test_what_is_not_offered_is_refused_without_being_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, transport: str, method: str, params: Any, code: int
) -> None:
    """50 kB of such a request held everybody up for 0.6 s, and took 0.2 GB."""
    async with odd(tmp_path, transport) as entry, running(tmp_path, {"odd": entry}) as servers:
        assert await call(servers, "odd__ask", method=method, params=params) == Succeeded(str(code))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@asynccontextmanager
async def session_with(heard: list[object], *said: Mapping[str, Any]) -> AsyncIterator[ClientSession]:
    """A session with a server that says this, and answers a ping with whatever comes first."""
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](len(said))
    outgoing, _from_us = anyio.create_memory_object_stream[SessionMessage](10)

    async def hear(message: object) -> None:
        heard.append(message)

    async with ClientSession(incoming, outgoing, message_handler=hear) as session, to_us, _from_us:
        read_what_is_used(session)
        for each in said:
            to_us.send_nowait(SessionMessage(JSONRPCMessage.model_validate({"jsonrpc": "2.0", **each})))
        yield session


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/else", {"a": INVISIBLE}),
        ("notifications/progress", {"progressToken": [INVISIBLE]}),
        ("notifications/message", {"a": INVISIBLE}),
        ("notifications/resources/updated", {"uri": INVISIBLE}),
    ],
)
async def test_nothing_is_made_of_notifications_that_nobody_wants_or_that_are_faulty(
    caplog: pytest.LogCaptureFixture, method: str, params: Any
) -> None:
    heard: list[object] = []
    changed = {"method": "notifications/tools/list_changed"}
    async with session_with(heard, {"method": method, "params": params}, changed):
        while len(heard) < 2:
            await anyio.lowlevel.checkpoint()
    kinds = [each.root.method for each in heard if isinstance(each, ServerNotification)]
    assert kinds == ["notifications/resources/list_changed", "notifications/tools/list_changed"]
    assert not caplog.records


@pytest.mark.parametrize("others", [INVISIBLE, "9" * 5_000, "\u0660", "-0", 7])
async def test_an_answer_is_told_by_its_number_alone(caplog: pytest.LogCaptureFixture, others: Any) -> None:
    """Some servers make a text of it; a text that is no number is not looked into."""
    heard: list[object] = []
    async with session_with(heard, {"id": others, "result": {}}, {"id": "0", "result": {}}) as session:
        with anyio.fail_after(5):
            assert await session.send_ping() == EmptyResult()
    assert [str(each)[:40] for each in heard] == ["Received response with an unknown reques"]
    assert len(str(heard[0])) < 1_000
    assert not caplog.records


@pytest.mark.parametrize("key", ["jsonrpc", "method", "params"])
def test_complaints_of_what_is_no_message_do_not_write_it_out(key: str) -> None:
    """They are logged with each: 90,000 numbers were written seven times, in 0.9 s of the event loop."""
    write_no_messages()
    odd = {"jsonrpc": "2.0", "id": 1, "method": "a", key: [1.25, INVISIBLE]}
    with pytest.raises(ValidationError) as complaint:
        JSONRPCMessage.model_validate_json(json.dumps(odd))
    assert "1.25" not in str(complaint.value)


def test_messages_are_not_written_out_for_a_log_that_is_switched_off() -> None:
    write_no_messages()
    message = JSONRPCMessage.model_validate({"jsonrpc": "2.0", "method": "a", "params": {"a": INVISIBLE}})
    assert len(f"{message} {message!r} {SessionMessage(message)}") < 200
