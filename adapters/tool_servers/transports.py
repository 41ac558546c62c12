"""Opens a session with a server: a child process over stdio, or a streamable HTTP endpoint.

The sessions of `langchain_mcp_adapters` give no way to take a child's standard error, to notice its end, or to keep a
question from holding up a session, and fill `${…}` into values a second time, with a log line that shows them; so both
kinds are put together here from the same parts of the MCP SDK.

Importing this module imports the SDK, which takes seconds: `life.py` does it late, in a thread.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import httpx
import structlog
from mcp import ClientSession, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    ElicitCompleteNotification,
    LoggingMessageNotificationParams,
    ServerNotification,
    ToolListChangedNotification,
)

from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.child import running_program
from adapters.tool_servers.config import Http, ServerConfig, Stdio
from adapters.tool_servers.http_client import Endpoint, McpHttpClient
from adapters.tool_servers.incoming import Belonging, Signals, listening
from adapters.tool_servers.redaction import Redact, unchanged, without_secrets
from adapters.tool_servers.replies import Faults
from adapters.tool_servers.stderr import LineLog, logged_stderr
from adapters.tool_servers.text import clean, one_line

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 10.0
"""Seconds for connecting and for sending a request; the answer has the server's own timeout."""

LONGEST_LOG = 500
"""Characters of a log message of the server."""

GRACE = 5.0
"""Seconds that an answer may take beyond the timeout of the call, so that the call's own timeout comes first."""


@asynccontextmanager
async def open_session(
    server: ServerConfig,
    signals: Signals,
    faults: Faults,
    *,
    patience: float,
    bearer: Bearer | None = None,
    redact: Redact = unchanged,
) -> AsyncIterator[ClientSession]:
    """A session that is connected and not initialised; to be left by the task that entered it.

    `faults` is told what becomes of requests that get no answer. `patience`: seconds that a call may wait for a person.
    `bearer`: whose account it is for; only over HTTP.
    Raises whatever the transport raises (`OSError` for a program that cannot be started, exception groups).
    """
    callbacks = {
        "message_handler": partial(_on_message, signals),
        "logging_callback": partial(_on_log, server, bearer, redact),
    }
    match server.transport:
        case Stdio() as stdio:
            lines = LineLog(server.name, server.secrets, redact=redact)
            opened = _over_stdio(stdio, lines, signals, callbacks, faults)
        case Http() as http:
            opened = _over_http(server, http, signals, callbacks, faults, patience=patience, bearer=bearer)
    async with opened as session:
        yield session


@asynccontextmanager
async def _over_stdio(
    stdio: Stdio, lines: LineLog, signals: Signals, callbacks: dict[str, Any], faults: Faults
) -> AsyncIterator[ClientSession]:
    parameters = StdioServerParameters(
        # whatever PATH is, our own servers run under the interpreter that has their libraries
        command=sys.executable if stdio.command == "python" else stdio.command,
        args=list(stdio.args),
        env=dict(stdio.env),
        cwd=stdio.cwd,
    )
    async with AsyncExitStack() as stack:
        stderr = await stack.enter_async_context(logged_stderr(lines))
        program = running_program(parameters, stderr, faults, signals.lost)
        incoming, outgoing = await stack.enter_async_context(program)
        stderr.close()
        heard = await stack.enter_async_context(listening(incoming, outgoing, signals, Belonging()))
        yield await stack.enter_async_context(ClientSession(heard, outgoing, **callbacks))


@asynccontextmanager
async def _over_http(
    server: ServerConfig,
    http: Http,
    signals: Signals,
    callbacks: dict[str, Any],
    faults: Faults,
    *,
    patience: float,
    bearer: Bearer | None,
) -> AsyncIterator[ClientSession]:
    belonging = Belonging()
    endpoint = Endpoint(
        url=http.url,
        silence=server.timeout + GRACE,
        patience=patience + server.timeout + GRACE,
        unreachable=signals.lost,
        asked=belonging.note,
        faults=faults,
        bearer=bearer,
    )
    timeout = httpx.Timeout(CONNECT_TIMEOUT, read=None)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(McpHttpClient(endpoint, headers=dict(http.headers), timeout=timeout))
        opened = streamable_http_client(http.url, http_client=client)
        incoming, outgoing, _ = await stack.enter_async_context(opened)
        heard = await stack.enter_async_context(listening(incoming, outgoing, signals, belonging))
        yield await stack.enter_async_context(ClientSession(heard, outgoing, **callbacks))


async def _on_message(signals: Signals, message: object) -> None:
    if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
        signals.tools_changed()
    elif isinstance(message, ServerNotification) and isinstance(message.root, ElicitCompleteNotification):
        signals.completed(message.root.params.elicitationId)
    elif isinstance(message, Exception):
        log.warning("tool_server_sent_no_message", error=type(message).__name__)


async def _on_log(
    server: ServerConfig, bearer: Bearer | None, redact: Redact, said: LoggingMessageNotificationParams
) -> None:
    secrets = server.secrets | (bearer.secrets() if bearer else frozenset())
    data = said.data if isinstance(said.data, str) else reprlib.repr(said.data)  # bounded, unlike `str`
    text = one_line(without_secrets(redact(clean(data[: 4 * LONGEST_LOG])), secrets), LONGEST_LOG)
    log.debug("tool_server_log", server=server.name, level=said.level, text=text)
