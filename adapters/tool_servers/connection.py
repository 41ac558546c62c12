"""One live, initialised session with a server: list its tools, call one, ask whether it is alive.

A call may stop for a question to a person; it is then answered, or abandoned, whenever that may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from mcp import ClientSession, types
from mcp.shared.exceptions import McpError
from mcp.shared.session import ProgressFnT
from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS
from pydantic import ValidationError

from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.incoming import Question
from adapters.tool_servers.listing import LARGEST_LISTING, MOST_LISTED, masked, size_of
from adapters.tool_servers.outcomes import Reading, outcome_of_error, outcome_of_result
from adapters.tool_servers.redaction import Redact, without_known
from adapters.tool_servers.replies import CallResult, Fault, NotSent, ToolPage, broke_off
from adapters.tool_servers.text import clean, one_line, without_links
from graph.ports import Progress, ToolOutcome

log = structlog.get_logger(__name__)

LAST_WORDS = 0.5
"""Seconds that a call in flight is given when its connection is lost: its answer may be on the way within us."""

WITHDRAWAL_TIMEOUT = 2.0
"""Seconds to get a cancellation out to the server."""

MOST_PAGES = 32
"""Pages of `tools/list`; a server that has more is going round in circles."""

LONGEST_STATUS = 200
"""Characters of a progress message."""


@dataclass(slots=True, eq=False)
class OngoingCall:
    """One request to call a tool, from being sent to its answer."""

    tool: str
    progress: Progress
    """Who is told how far it is: the run that waits for it now."""
    request_id: int | None = None
    """`None`: not sent yet."""
    questions: asyncio.Queue[Question] = field(default_factory=asyncio.Queue)
    """What the server asked in its course and nobody has taken up yet."""
    answer: asyncio.Task[CallResult] = field(init=False, repr=False)


class Connection:
    """A session that others may call tools on, while the task that opened it keeps it.

    `lost` is set, with the reason, when there will be no more answers. `bearer`: whose account it is for.
    """

    def __init__(
        self,
        server: ServerConfig,
        session: ClientSession,
        lost: asyncio.Future[str],
        bearer: Bearer | None,
        *,
        result_limit: int,
        redact: Redact,
    ) -> None:
        self._server = server
        self._session = session
        self.lost = lost
        self._result_limit = result_limit
        self._redact = redact
        self.bearer = bearer
        self.retired = False
        """Whether it only serves the calls that are open on it."""
        self.stirred = asyncio.Event()
        """Set when a call has ended, or it was retired."""
        self.last_used = time.monotonic()
        self._calls: set[OngoingCall] = set()
        self.abandoned = self.has_asked = False
        """Whether a call was left before its answer (the server may still be at it, and ask); whether any was asked."""
        self._errands: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is in flight, or waits for somebody."""
        return bool(self._calls)

    def retire(self) -> None:
        """Take no more calls; those that are open go on."""
        self.retired = True
        self.stirred.set()

    async def initialize(self) -> None:
        """Shake hands. Raises `McpError`, and `RuntimeError` for a protocol version that we do not speak.

        Not `ClientSession.initialize`: it promises what it has callbacks for, and questions never reach those.
        """
        elicitation = types.ElicitationCapability(
            form=types.FormElicitationCapability(), url=types.UrlElicitationCapability()
        )
        capabilities = types.ClientCapabilities(elicitation=elicitation)
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

    async def list_tools(self) -> list[Any]:
        """What the server offers, unread and without secrets. Raises `McpError`, `ValidationError`."""
        listed: list[Any] = []
        room = LARGEST_LISTING
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            parameters = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            request = types.ClientRequest(types.ListToolsRequest(params=parameters))
            page = await self._session.send_request(request, ToolPage)
            # In a thread: masking megabytes takes a while, and nobody else should wait for it.
            read = await asyncio.to_thread(masked, page.tools, self._mask(), room)
            room -= await asyncio.to_thread(size_of, read)
            listed += read
            cursor = page.nextCursor
            if not cursor or len(listed) > MOST_LISTED:
                break
        return listed

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

    def begin(self, tool: str, arguments: dict[str, Any], progress: Progress) -> OngoingCall:
        """Send a call. Whoever began it goes on with `advance`, or else abandons it."""
        call = OngoingCall(tool, progress)
        self._calls.add(call)
        call.answer = asyncio.create_task(self._request(call, arguments), name="tool-call")
        call.answer.add_done_callback(lambda _: self._ended(call))
        return call

    async def advance(self, call: OngoingCall) -> ToolOutcome | NotSent | Question:
        """What comes next of a call: its outcome, or a question of the server, with which it waits.

        Raises nothing but `CancelledError`, and then tells the server to stop.
        """
        asked = asyncio.create_task(call.questions.get(), name="tool-call-question")
        timeout = self._server.timeout
        waits = False
        try:
            waiting: set[asyncio.Future[Any]] = {call.answer, asked, self.lost}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if self.lost.done() and not call.answer.done():
                await asyncio.wait({call.answer}, timeout=LAST_WORDS)
            if call.answer.done():
                # In a thread, as above.
                return await asyncio.to_thread(self._outcome_of, call.answer, self._reading())
            if self.lost.done():
                return broke_off(self._server.name, "the connection was lost")
            if asked.done():
                waits = True
                return asked.result()
            return broke_off(self._server.name, f"none within {timeout:g} seconds")
        finally:
            asked.cancel()
            if not waits:
                self.abandon(call)

    def abandon(self, call: OngoingCall) -> None:
        """Wait for its answer no more, and tell the server so; nothing happens when it has come."""
        if not call.answer.done():
            self.abandoned = True
            call.answer.cancel()
            self._withdraw(call)

    def ask(self, question: Question) -> None:
        """Give a question of the server to the call that it belongs to; it is cancelled when that is not certain."""
        self.has_asked = True
        call = self._call_of(question)
        if call is not None:
            call.questions.put_nowait(question)
            return
        log.warning("tool_server_question_belongs_to_no_call", server=self._server.name, open_calls=len(self._calls))
        self._do(self._reply(question, types.ElicitResult(action="cancel")))

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may be unknown to which call its next question belongs: one over another session is certain."""
        return self.abandoned and self.has_asked

    def _call_of(self, question: Question) -> OngoingCall | None:
        if question.request is not None:
            return next((call for call in self._calls if call.request_id == question.request), None)
        # Over stdio nothing says which call is meant. With two of them it might be somebody else's, and one that was
        # abandoned may go on over there.
        return next(iter(self._calls)) if len(self._calls) == 1 and not self.abandoned else None

    async def drain(self) -> None:
        """Wait until the calls in flight have heard that the connection is lost."""
        open_tasks: set[asyncio.Task[Any]] = {*(call.answer for call in self._calls), *self._errands}
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=2 * LAST_WORDS)

    async def _request(self, call: OngoingCall, arguments: dict[str, Any]) -> CallResult:
        parameters = types.CallToolRequestParams(name=call.tool, arguments=arguments)
        request = types.ClientRequest(types.CallToolRequest(params=parameters))
        # The SDK does not tell the id of a request, without which it cannot be cancelled; the next statement takes it.
        call.request_id = self._session._request_id
        # Not `call_tool`: it raises, after the tool has acted, when a result does not fit the tool's output schema.
        return await self._session.send_request(request, CallResult, progress_callback=self._reporter(call))

    def _ended(self, call: OngoingCall) -> None:
        self._calls.discard(call)
        self.last_used = time.monotonic()
        self.stirred.set()
        if not call.answer.cancelled():
            call.answer.exception()  # looked at, in case the caller was cancelled in the same moment

    def _reporter(self, call: OngoingCall) -> ProgressFnT:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            fraction = min(max(progress / total, 0.0), 1.0) if total and total > 0 else None
            said = without_links(
                self._mask()((message or "")[: 10 * LONGEST_STATUS])
            )  # one to sign in with is for one person
            call.progress(one_line(said, LONGEST_STATUS), fraction)

        return report

    def _secrets(self) -> frozenset[str]:
        return self._server.secrets | (self.bearer.secrets() if self.bearer else frozenset())

    def _mask(self) -> Redact:
        """What takes secrets out of what the server says, as they are known now."""
        secrets = self._secrets()
        return lambda text: self._redact(without_known(clean(text), secrets))

    def _reading(self) -> Reading:
        bearer = self.bearer
        return Reading(
            server=self._server.name,
            limit=self._result_limit,
            secrets=self._secrets(),
            redact=self._redact,
            owner=bearer.person if bearer else None,
            connection=bearer.connection if bearer else None,
            sign_in=self._server.sign_in,
        )

    def _outcome_of(self, answer: asyncio.Task[CallResult], reading: Reading) -> ToolOutcome | NotSent:
        server = reading.server
        try:
            return outcome_of_result(answer.result(), reading)
        except McpError as error:
            return outcome_of_error(error.error.code, error.error.message, error.error.data, reading)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return NotSent("the connection was lost")  # raised by the send: the transport never took the request
        except ValidationError:
            return broke_off(server, "its answer is not what MCP prescribes")
        except Exception as error:
            log.exception("tool_call_failed", server=server, exc_info=error)
            return broke_off(server, "an error on our side")

    def _withdraw(self, call: OngoingCall) -> None:
        """Tell the server, in a task of its own, that nobody waits for the answer any more."""
        if call.request_id is not None and not self.lost.done():
            self._do(self._send_cancelled(call.request_id))

    def _do(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand, name="tool-call-errand")
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _reply(self, question: Question, result: types.ElicitResult) -> None:
        # best effort: a server that is gone need not be told
        with suppress(TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with asyncio.timeout(WITHDRAWAL_TIMEOUT):
                await question.reply(result)

    async def _send_cancelled(self, request_id: int) -> None:
        parameters = types.CancelledNotificationParams(requestId=request_id, reason="nobody waits for it any more")
        notification = types.ClientNotification(types.CancelledNotification(params=parameters))
        # best effort: a server that is gone need not be told
        with suppress(TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with asyncio.timeout(WITHDRAWAL_TIMEOUT):
                await self._session.send_notification(notification)
