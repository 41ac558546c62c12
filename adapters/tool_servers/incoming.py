"""What a server sends, on its way to the SDK's session: questions to people are taken out.

The SDK handles one message after another, a question included, so a question that waits for a person would hold up
every other answer of the session. Here it is told to whoever made the call, and answered whenever that may be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from adapters.tool_servers.event_stream import ASKING
from adapters.tool_servers.replies import RequestId

log = structlog.get_logger(__name__)

MOST_REMEMBERED = 1_000
"""Questions whose request is known and that never came: a server that plays games."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class Question:
    """Something a server wants to know before it goes on."""

    params: ElicitRequestParams
    request: RequestId | None
    """The request in whose course it is asked; `None`: the transport does not tell."""
    reply: Callable[[ElicitResult], Awaitable[None]] = field(repr=False, compare=False)
    """Sends the answer. Raises `anyio.ClosedResourceError`, `anyio.BrokenResourceError` when the server is gone."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What the transport tells the owner of the session; each returns at once."""

    lost: Callable[[str], None]
    """The connection is gone, with the reason."""
    tools_changed: Callable[[], None]
    """The server says that it has other tools now."""
    asked: Callable[[Question], None]
    """The server asks a person something."""
    completed: Callable[[str], None]
    """The server says that the link of this elicitation id was used."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Which question belongs to which request, as far as the transport tells."""

    _requests: dict[RequestId, RequestId] = field(default_factory=dict)

    def note(self, question: RequestId, request: RequestId) -> None:
        """Remember it until the question comes."""
        if len(self._requests) < MOST_REMEMBERED:
            self._requests[question] = request

    def request_of(self, question: RequestId) -> RequestId | None:
        """The request, once."""
        return self._requests.pop(question, None)


@asynccontextmanager
async def listening(
    incoming: Incoming, outgoing: Outgoing, signals: Signals, belonging: Belonging
) -> AsyncIterator[Incoming]:
    """The same messages without the questions; tells `signals` when there will be no more, before the session sees
    it."""
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def pass_on() -> None:
        async with sender:
            try:
                async for message in incoming:
                    if isinstance(message, SessionMessage) and _is_question(message):
                        await _take(message.message.root, outgoing, signals, belonging)
                    else:
                        await sender.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                log.debug("tool_server_session_closed_first")
            signals.lost("ended by itself")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        yield receiver
        tasks.cancel_scope.cancel()


def _is_question(message: SessionMessage) -> bool:
    root = message.message.root
    return isinstance(root, JSONRPCRequest) and root.method == ASKING


async def _take(message: Any, outgoing: Outgoing, signals: Signals, belonging: Belonging) -> None:
    async def reply(result: ElicitResult) -> None:
        answer = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        response = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=answer)
        await outgoing.send(SessionMessage(JSONRPCMessage(response)))

    request = belonging.request_of(message.id)
    try:
        params = ElicitRequest.model_validate({"method": message.method, "params": message.params}).params
    except ValidationError:
        error = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters")
        refusal = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
        await outgoing.send(SessionMessage(JSONRPCMessage(refusal)))
        return
    signals.asked(Question(params, request, reply))
