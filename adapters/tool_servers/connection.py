"""One live, initialised session with a server: list its tools, call one, ask whether it is alive."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import structlog
from mcp import ClientSession, types
from mcp.shared.exceptions import McpError
from mcp.shared.session import ProgressFnT
from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS
from pydantic import ValidationError

from adapters.tool_servers.arguments import complaint_about
from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.listing import MOST_TOOLS, Listing, read_listing
from adapters.tool_servers.redaction import Redact, without_known
from adapters.tool_servers.replies import CallResult, Fault, NotSent, ToolPage, broke_off, outcome_of_error
from adapters.tool_servers.results import failed, succeeded
from adapters.tool_servers.text import clean, one_line
from graph.ports import Failed, Progress, ToolOutcome
from policies.model import Tool

log = structlog.get_logger(__name__)

LAST_WORDS = 0.5
"""Seconds that a call in flight is given when its connection is lost: its answer may be on the way within us."""

WITHDRAWAL_TIMEOUT = 2.0
"""Seconds to get a cancellation out to the server."""

MOST_PAGES = 32
"""Pages of `tools/list`; a server that has more is going round in circles."""

LONGEST_STATUS = 200
"""Characters of a progress message."""


@dataclass(slots=True)
class _Ticket:
    """Which JSON-RPC request a call became; `None`: none yet."""

    request_id: int | None = None


class Connection:
    """A session that others may call tools on, while the task that opened it keeps it.

    `lost` is set, with the reason, when there will be no more answers.
    """

    def __init__(
        self,
        server: ServerConfig,
        session: ClientSession,
        lost: asyncio.Future[str],
        result_limit: int,
        redact: Redact,
    ) -> None:
        self._server = server
        self._session = session
        self.lost = lost
        self._result_limit = result_limit
        self._redact = redact
        self._requests: set[asyncio.Task[CallResult]] = set()
        self._withdrawals: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is in flight."""
        return bool(self._requests)

    async def initialize(self) -> None:
        """Shake hands. Raises `McpError`, and `RuntimeError` for a protocol version that we do not speak.

        Not `ClientSession.initialize`: it can only promise forms together with links, and we show links alone.
        """
        capabilities = types.ClientCapabilities(
            elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability())
        )
        parameters = types.InitializeRequestParams(
            protocolVersion=types.LATEST_PROTOCOL_VERSION,
            capabilities=capabilities,
            clientInfo=types.Implementation(name="countersign", version="0.1.0"),
        )
        request = types.ClientRequest(types.InitializeRequest(params=parameters))
        answer = await self._session.send_request(request, types.InitializeResult)
        if answer.protocolVersion not in SUPPORTED_PROTOCOL_VERSIONS:
            raise RuntimeError("unsupported protocol version")
        await self._session.send_notification(types.ClientNotification(types.InitializedNotification()))

    async def list_tools(self) -> Listing:
        """What the server offers. Raises `McpError`, `ValidationError`."""
        listed: list[Any] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            parameters = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            request = types.ClientRequest(types.ListToolsRequest(params=parameters))
            page = await self._session.send_request(request, ToolPage)
            listed += page.tools
            cursor = page.nextCursor
            if not cursor or len(listed) > 4 * MOST_TOOLS:
                break
        return read_listing(self._server, listed, redact=self._redact)

    async def is_alive(self, timeout: float) -> bool:  # noqa: ASYNC109 - part of the question
        """Whether the server answers a ping within `timeout` seconds; an error is an answer, too."""
        try:
            async with asyncio.timeout(timeout):
                await self._session.send_ping()
        except McpError as error:
            return error.error.code not in set(Fault)
        except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError, ValidationError):
            return False
        return True

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> ToolOutcome | NotSent:
        """Call a tool once. Raises nothing but `CancelledError`, and then tells the server to stop."""
        if complaint := complaint_about(arguments, tool.input_schema):
            # It may repeat the arguments, which are shown masked.
            complaint = self._redact(complaint)
            return Failed(f"The arguments of {tool.full_name} are not right: {complaint}. Nothing was called.")
        ticket = _Ticket()
        request = asyncio.create_task(self._request(tool.name, arguments, progress, ticket), name="tool-call")
        self._requests.add(request)
        request.add_done_callback(self._forget)
        try:
            timeout = self._server.timeout
            waiting: set[asyncio.Future[Any]] = {request, self.lost}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if self.lost.done() and not request.done():
                await asyncio.wait({request}, timeout=LAST_WORDS)
            if request.done():
                # In a thread: masking megabytes takes a while, and nobody else should wait for it.
                return await asyncio.to_thread(self._outcome_of, request)
            lost = "the connection was lost"
            return broke_off(self._server.name, lost if self.lost.done() else f"none within {timeout:g} seconds")
        finally:
            if not request.done():
                request.cancel()
                self._withdraw(ticket)

    async def drain(self) -> None:
        """Wait until the calls in flight have heard that the connection is lost."""
        open_tasks: Collection[asyncio.Task[Any]] = {*self._requests, *self._withdrawals}
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=2 * LAST_WORDS)

    async def _request(self, tool: str, arguments: dict[str, Any], progress: Progress, ticket: _Ticket) -> CallResult:
        parameters = types.CallToolRequestParams(name=tool, arguments=arguments)
        request = types.ClientRequest(types.CallToolRequest(params=parameters))
        # The SDK does not tell the id of a request, without which it cannot be cancelled; the next statement takes it.
        ticket.request_id = self._session._request_id
        # Not `call_tool`: it raises, after the tool has acted, when a result does not fit the tool's output schema.
        return await self._session.send_request(request, CallResult, progress_callback=self._reporter(progress))

    def _forget(self, request: asyncio.Task[CallResult]) -> None:
        self._requests.discard(request)
        if not request.cancelled():
            request.exception()  # looked at, in case the caller was cancelled in the same moment

    def _reporter(self, told: Progress) -> ProgressFnT:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            fraction = min(max(progress / total, 0.0), 1.0) if total and total > 0 else None
            said = self._redact(without_known(clean(message or ""), self._server.secrets))
            told(one_line(said, LONGEST_STATUS), fraction)

        return report

    def _outcome_of(self, request: asyncio.Task[CallResult]) -> ToolOutcome | NotSent:
        server, secrets, redact = self._server.name, self._server.secrets, self._redact
        try:
            result = request.result()
        except McpError as error:
            said = error.error
            return outcome_of_error(server, said.code, said.message, said.data, secrets=secrets, redact=redact)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return NotSent("the connection was lost")  # raised by the send: the transport never took the request
        except ValidationError:
            return broke_off(server, "its answer is not what MCP prescribes")
        except Exception as error:
            log.exception("tool_call_failed", server=server, exc_info=error)
            return broke_off(server, "an error on our side")
        if result.isError:
            return failed(server, result.content, result.structuredContent, secrets=secrets, redact=redact)
        limit = self._result_limit
        return succeeded(result.content, result.structuredContent, limit=limit, secrets=secrets, redact=redact)

    def _withdraw(self, ticket: _Ticket) -> None:
        """Tell the server, in a task of its own, that nobody waits for the answer any more."""
        if ticket.request_id is None or self.lost.done():
            return
        withdrawal = asyncio.create_task(self._send_cancelled(ticket.request_id), name="tool-call-withdrawal")
        self._withdrawals.add(withdrawal)
        withdrawal.add_done_callback(self._withdrawals.discard)

    async def _send_cancelled(self, request_id: int) -> None:
        parameters = types.CancelledNotificationParams(requestId=request_id, reason="nobody waits for it any more")
        notification = types.ClientNotification(types.CancelledNotification(params=parameters))
        # best effort: a server that is gone need not be told
        with suppress(TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with asyncio.timeout(WITHDRAWAL_TIMEOUT):
                await self._session.send_notification(notification)
