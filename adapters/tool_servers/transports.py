"""Opens a session with a server: a child process over stdio, or a streamable HTTP endpoint.

HTTP sessions come from `langchain_mcp_adapters.sessions.create_session`. Its stdio sessions give no way to take the
child's standard error or to notice its end, and fill `${…}` into values a second time, with a log line that shows
them; so the one for stdio is put together here from the same parts of the MCP SDK.

Importing this module imports the SDK, which takes seconds: `server.py` does it late, in a thread.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import httpx
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream
from langchain_mcp_adapters.sessions import StreamableHttpConnection, create_session
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    LoggingMessageNotificationParams,
    ServerNotification,
    ToolListChangedNotification,
)

from adapters.tool_servers.config import Http, ServerConfig, Stdio
from adapters.tool_servers.http_client import McpHttpClient
from adapters.tool_servers.redaction import Redact, unchanged, without_secrets
from adapters.tool_servers.stderr import LineLog, logged_stderr
from adapters.tool_servers.text import clean, one_line

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = timedelta(seconds=10)
"""For connecting and for sending a request; the answer has the server's own timeout."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]


@dataclass(frozen=True, slots=True)
class Signals:
    """What the transport tells the owner of the session; each returns at once."""

    lost: Callable[[str], None]
    """The connection is gone, with the reason."""
    tools_changed: Callable[[], None]
    """The server says that it has other tools now."""


@asynccontextmanager
async def open_session(
    server: ServerConfig, signals: Signals, *, redact: Redact = unchanged
) -> AsyncIterator[ClientSession]:
    """A session that is connected and not initialised; to be left by the task that entered it.

    Raises whatever the transport raises (`OSError` for a program that cannot be started, exception groups).
    """
    callbacks = {
        "message_handler": partial(_on_message, signals),
        "logging_callback": partial(_on_log, server, redact),
        "elicitation_callback": partial(_on_elicitation, server),
    }
    match server.transport:
        case Stdio() as stdio:
            lines = LineLog(server.name, server.secrets, redact=redact)
            opened = _over_stdio(stdio, lines, signals, callbacks)
        case Http() as http:
            opened = create_session(_http_connection(server, http, signals, callbacks))
    async with opened as session:
        yield session


@asynccontextmanager
async def _over_stdio(
    stdio: Stdio, lines: LineLog, signals: Signals, callbacks: dict[str, Any]
) -> AsyncIterator[ClientSession]:
    parameters = StdioServerParameters(
        # whatever PATH is, our own servers run under the interpreter that has their libraries
        command=sys.executable if stdio.command == "python" else stdio.command,
        args=list(stdio.args),
        env=dict(stdio.env),
        cwd=stdio.cwd,
        encoding_error_handler="replace",
    )
    async with AsyncExitStack() as stack:
        stderr = await stack.enter_async_context(logged_stderr(lines))
        incoming, outgoing = await stack.enter_async_context(stdio_client(parameters, errlog=stderr))
        stderr.close()
        noticed = await stack.enter_async_context(_noticing_the_end(incoming, signals))
        yield await stack.enter_async_context(ClientSession(noticed, outgoing, **callbacks))


@asynccontextmanager
async def _noticing_the_end(incoming: Incoming, signals: Signals) -> AsyncIterator[Incoming]:
    """The same messages; tells `signals` when there will be no more, before the session sees it."""
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def pass_on() -> None:
        async with sender:
            try:
                async for message in incoming:
                    await sender.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                log.debug("tool_server_session_closed_first")
            signals.lost("ended by itself")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        yield receiver
        tasks.cancel_scope.cancel()


def _http_connection(
    server: ServerConfig, http: Http, signals: Signals, callbacks: dict[str, Any]
) -> StreamableHttpConnection:
    def client(
        headers: dict[str, str] | None = None, timeout: httpx.Timeout | None = None, auth: httpx.Auth | None = None
    ) -> httpx.AsyncClient:
        return McpHttpClient(on_unreachable=signals.lost, headers=headers, timeout=timeout, auth=auth)

    return StreamableHttpConnection(
        transport="streamable_http",
        url=http.url,
        headers=dict(http.headers),
        timeout=CONNECT_TIMEOUT,
        # a little more than the call may take, so that the call's own timeout comes first
        sse_read_timeout=timedelta(seconds=server.timeout + 5),
        httpx_client_factory=client,
        session_kwargs=callbacks,
    )


async def _on_message(signals: Signals, message: object) -> None:
    if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
        signals.tools_changed()
    elif isinstance(message, Exception):
        log.warning("tool_server_sent_no_message", error=type(message).__name__)


async def _on_log(server: ServerConfig, redact: Redact, said: LoggingMessageNotificationParams) -> None:
    text = one_line(without_secrets(redact(clean(str(said.data))), server.secrets), 500)
    log.debug("tool_server_log", server=server.name, level=said.level, text=text)


async def _on_elicitation(
    server: ServerConfig, _context: object, wanted: ElicitRequestParams
) -> ElicitResult | ErrorData:
    # In the middle of a call there is nobody to show a link to; servers that end the call with it are understood.
    log.info("tool_server_elicitation_declined", server=server.name, mode=wanted.mode)
    if isinstance(wanted, ElicitRequestURLParams):
        return ElicitResult(action="decline")
    return ErrorData(code=INVALID_REQUEST, message="Elicitation by form is not supported")
