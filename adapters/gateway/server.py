"""The MCP server of the gateway: what clients may ask, by the SDK's types, told of calls in the service's words.

It is without state: which program asks, for whom, and what the program is able to do come with each request, and the
tasks are the rows of the calls. So it does not matter which process a request reaches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import structlog
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import McpError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequest,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskResult,
    CreateTaskResult,
    ErrorData,
    GetTaskPayloadRequest,
    GetTaskRequest,
    GetTaskResult,
    ListTasksRequest,
    ListTasksResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    ServerCapabilities,
    ServerResult,
    ServerTasksCapability,
    ServerTasksRequestsCapability,
    TasksCallCapability,
    TasksCancelCapability,
    TasksListCapability,
    TasksToolsCapability,
)

from adapters.gateway.requests import GatewayRequest, gateway_request
from adapters.gateway.results import (
    LONGEST_TASK,
    ended_task,
    link_needed,
    lost,
    progress_message,
    refused,
    still_waiting,
    task_facts,
    task_of,
    task_result,
    task_seconds,
    tool_result,
    unfinished_task,
    unknown_task,
    unknown_tool,
)
from adapters.gateway.tools import listed_tool, promises_structure
from adapters.gateway.waiting import outcome
from adapters.shared.outages import AWAY, OutageLog
from adapters.shared.problems import new_reference
from bot.accounts.sign_ins import SignInLinks
from bot.gateway.calls import GatewayCalls
from bot.gateway.views import GatewayCallView, GatewayRefusal
from bot.records.database import is_outage
from policies.model import Tool, tool_name_for_model

log = structlog.get_logger(__name__)
NAME = "countersign"
INSTRUCTIONS = (
    "These tools act on the company's systems, and some of their calls wait until a person has approved them in Slack, "
    "in Teams or on a page: that can take minutes, and it is not a failure. When a result says that a call is still "
    "waiting, call the same tool again with exactly the same arguments to go on waiting; it is never made twice. When "
    "a call is rejected or blocked, do not try to get the same done in another way: tell the person why."
)
"""For the model of a client (`instructions` of the initialize result)."""
_AGAIN = "Make the same request again: a call that was begun then goes on, and is not made twice."
MOST_LISTED = 1_000
"""Tools, or tasks, in one answer; the others follow."""
_LONGEST_CURSOR = 9
"""Digits."""
_Item = TypeVar("_Item")
_Request = TypeVar("_Request")
FindTool = Callable[[str], Awaitable[Tool | None]]
"""Returns the tool of a full name, whether its server is up or not. Raises what the records raise."""
DeclaredTool = Callable[[Tool], Mapping[str, Any] | None]
"""Returns a tool as its server lists it; `None`: not known now."""


def make_server(
    calls: GatewayCalls,
    links: SignInLinks,
    find: FindTool,
    declared: DeclaredTool,
    *,
    wait_seconds: float,
    version: str,
) -> Server[Any, Any]:
    """Returns the server. Each of its requests must come with a `GatewayRequest`.

    Args:
        wait_seconds: how long a call waits for people before its client is told to ask again.
        version: of this product.
    """
    return _GatewayServer(calls, links, find, declared, wait_seconds=wait_seconds, version=version)


class _GatewayServer(Server[Any, Any]):
    def __init__(
        self,
        calls: GatewayCalls,
        links: SignInLinks,
        find: FindTool,
        declared: DeclaredTool,
        *,
        wait_seconds: float,
        version: str,
    ) -> None:
        super().__init__(NAME, version, INSTRUCTIONS)
        self._calls = calls
        self._links = links
        self._find = find
        self._declared = declared
        self._wait_seconds = wait_seconds
        self._outages = OutageLog("gateway_requests_refused", over="gateway_requests_taken_again")
        self._handle(ListToolsRequest, self._list_tools)
        self._handle(CallToolRequest, self._call_tool)
        self._handle(GetTaskRequest, self._get_task)
        self._handle(GetTaskPayloadRequest, self._get_task_result)
        self._handle(ListTasksRequest, self._list_tasks)
        self._handle(CancelTaskRequest, self._cancel_task)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """As the SDK's, which its session manager asks for without saying what there is."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities)

    def get_capabilities(
        self, notification_options: NotificationOptions, experimental_capabilities: dict[str, dict[str, Any]]
    ) -> ServerCapabilities:
        """As the SDK's, with tasks: the SDK says so only of tasks that it keeps itself."""
        capabilities = super().get_capabilities(notification_options, experimental_capabilities)
        capabilities.tasks = ServerTasksCapability(
            list=TasksListCapability(),
            cancel=TasksCancelCapability(),
            requests=ServerTasksRequestsCapability(tools=TasksToolsCapability(call=TasksCallCapability())),
        )
        return capabilities

    # --------------------------------------------------------------------------------------------- tools
    async def _list_tools(self, request: ListToolsRequest) -> ListToolsResult:
        asked = self._asked
        tools = [
            tool
            for tool in await self._calls.tools(asked.caller)
            if asked.server is None or tool.server == asked.server
        ]
        shown, following = _page(tools, request.params)
        return ListToolsResult(
            tools=[listed_tool(tool, self._declared(tool), own_name=asked.server is not None) for tool in shown],
            nextCursor=following,
        )

    async def _call_tool(self, request: CallToolRequest) -> CallToolResult | CreateTaskResult:
        asked, params = self._asked, request.params
        tool = await self._tool(params.name)
        if tool is None:
            raise unknown_tool(params.name)
        kept = task_seconds(params.task.ttl) if params.task is not None else None
        begun = await self._calls.call(asked.caller, tool, params.arguments or {}, task_seconds=kept)
        if isinstance(begun, GatewayRefusal):
            return refused(begun.text)
        if params.task is not None:
            return CreateTaskResult(task=task_of(begun))
        view = await outcome(self._calls, begun, self._wait_seconds, self._teller(), ending=asked.ending)
        if view is not None and view.status != "ended":
            return still_waiting(view)
        return await self._handed_out(view, begun.gateway_call_id, tool)

    async def _tool(self, name: str) -> Tool | None:
        """The tool that a client means by a name, also one that is not listed: the policy says why it may not run."""
        server = self._asked.server
        tool = await self._find(name if server is None else tool_name_for_model(server, name))
        if tool is None or server is None:
            return tool
        return tool if (tool.server, tool.name) == (server, name) else None

    async def _handed_out(
        self, view: GatewayCallView | None, gateway_call_id: str, tool: Tool | None
    ) -> CallToolResult:
        """The result of a call, which is on its way to this client from now on."""
        result = self._result(view, tool)
        if view is not None:
            await self._calls.hand_out(view)
            self._asked.note_answered(gateway_call_id)
        return result

    def _result(self, view: GatewayCallView | None, tool: Tool | None) -> CallToolResult:
        """`tool`: `None` where it is not there any more."""
        if view is None or view.result is None:
            return lost()
        declared = self._declared(tool) if tool is not None else None
        return tool_result(view.result, promises_structure=promises_structure(declared))

    # --------------------------------------------------------------------------------------------- tasks
    async def _get_task(self, request: GetTaskRequest) -> GetTaskResult:
        return GetTaskResult(**task_facts(await self._task(request.params.taskId)))

    async def _get_task_result(self, request: GetTaskPayloadRequest) -> Any:
        asked, task_id = self._asked, request.params.taskId
        begun = await self._task(task_id)
        view = await outcome(self._calls, begun, LONGEST_TASK, self._teller(), ending=asked.ending)
        if view is None:
            raise unknown_task(task_id)
        if view.status != "ended":
            raise unfinished_task(view)
        tool = await self._find(tool_name_for_model(view.server, view.tool))
        return task_result(await self._handed_out(view, task_id, tool), task_id)

    async def _list_tasks(self, request: ListTasksRequest) -> ListTasksResult:
        shown, following = _page(await self._calls.listed(self._asked.caller), request.params)
        return ListTasksResult(tasks=[task_of(view) for view in shown], nextCursor=following)

    async def _cancel_task(self, request: CancelTaskRequest) -> CancelTaskResult:
        task_id = request.params.taskId
        before = await self._task(task_id)
        if before.status == "ended":
            raise ended_task(before)
        after = await self._calls.cancel(self._asked.caller, task_id)
        if after is None:
            raise unknown_task(task_id)
        if not after.cancelled:
            raise ended_task(after)
        return CancelTaskResult(**task_facts(after))

    async def _task(self, task_id: str) -> GatewayCallView:
        view = await self._calls.view(self._asked.caller, task_id)
        if view is None:
            raise unknown_task(task_id)
        return view

    # ------------------------------------------------------------------------------------------- waiting
    def _teller(self) -> Callable[[GatewayCallView], Awaitable[None]]:
        """Tells the client of this request of a call that has not ended. Raises `McpError` when the client is able to
        show its person the link that the call waits for."""
        context = self.request_context
        token = context.meta.progressToken if context.meta is not None else None
        told = 0

        async def tell(view: GatewayCallView) -> None:
            nonlocal told
            if (link := await self._link(view)) is not None:
                raise link_needed(view, link)
            if token is None:
                return
            told += 1
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it has gone: this ends with it
                await context.session.send_progress_notification(
                    token, told, message=progress_message(view), related_request_id=str(context.request_id)
                )

        return tell

    async def _link(self, view: GatewayCallView) -> str | None:
        """The link of the sign-in that a call waits for; `None`: it waits for none, the client cannot show it to its
        person, or there is none to be had (now)."""
        asked, wait = self._asked, view.waits_for
        if wait is None or wait.kind != "sign_in" or not _shows_links(asked):
            return None
        caller = asked.caller
        for person_id in (caller.person.person_id, *sorted(caller.accounts - {caller.person.person_id})):
            link = await self._links.link(wait.subject, person_id)
            if isinstance(link, str):
                return link
        return None

    # ------------------------------------------------------------------------------------------ requests
    @property
    def _asked(self) -> GatewayRequest:
        return gateway_request(self.request_context.request)

    def _handle(self, kind: type[_Request], handler: Callable[[_Request], Awaitable[Any]]) -> None:
        self.request_handlers[kind] = partial(self._answered, handler)

    async def _answered(self, handler: Callable[[_Request], Awaitable[Any]], request: _Request) -> ServerResult:
        """Answers a request. Raises `McpError`, which the SDK tells the client; of other errors it would tell the
        text."""
        method = str(getattr(request, "method", ""))
        try:
            result = ServerResult(await handler(request))
        except McpError:
            raise
        except Exception as error:
            if is_outage(error):
                self._outages.failed(method, error)
                raise McpError(ErrorData(code=INTERNAL_ERROR, message=AWAY)) from None
            reference = new_reference()
            log.exception("gateway_request_failed", method=method, reference=reference)
            said = f"Something went wrong here (reference {reference}). {_AGAIN}"
            raise McpError(ErrorData(code=INTERNAL_ERROR, message=said)) from None
        self._outages.worked(method)
        return result


def _shows_links(asked: GatewayRequest) -> bool:
    return asked.session is not None and asked.session.url_elicitation


def _page(items: Sequence[_Item], params: PaginatedRequestParams | None) -> tuple[Sequence[_Item], str | None]:
    """The part of a list that a client asks for, and the cursor of the next one. Raises `McpError` for a cursor that is
    not ours."""
    cursor = params.cursor if params is not None else None
    if cursor is None:
        start = 0
    elif cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_CURSOR:
        start = int(cursor)
    else:
        raise McpError(ErrorData(code=INVALID_PARAMS, message="This cursor is none that was given here."))
    end = start + MOST_LISTED
    return items[start:end], str(end) if end < len(items) else None
