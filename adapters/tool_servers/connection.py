"""One live, initialised session with a server: list its tools, call one, ask whether it is alive.

A call may stop for a question to a person; it is then answered, or abandoned, whenever that may be.
"""

from __future__ import annotations

import asyncio
import math
import reprlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx
import structlog
from langchain_mcp_adapters.sessions import create_session
from mcp import ClientSession, types
from mcp.shared.exceptions import McpError
from mcp.shared.session import ProgressFnT
from pydantic import BaseModel, ValidationError

from adapters.tool_servers.accounts import Bearer
from adapters.tool_servers.config import ServerConfig, StdioTransport
from adapters.tool_servers.elicitation import Elicitation
from adapters.tool_servers.http_client import Endpoint, McpHttpClient
from adapters.tool_servers.incoming import Signals
from adapters.tool_servers.listing import MOST_LISTED, ListingSpace, masked
from adapters.tool_servers.outcomes import (
    AnswerContext,
    CallResult,
    FaultError,
    FaultKind,
    Faults,
    SessionLost,
    ToolPage,
    outcome_of_error,
    outcome_of_fault,
    outcome_of_result,
)
from adapters.tool_servers.requester import told_requester
from adapters.tool_servers.sdk_session import read_what_is_used, write_no_messages
from adapters.tool_servers.stdio import LineLog, running_program
from adapters.tool_servers.text import (
    MaskText,
    clean,
    one_line,
    unchanged,
    without_known,
    without_links,
    without_secrets,
)
from graph.ports import Caller, NotSent, Progress, ToolOutcome
from policies.masking import A_TEXT, exceeds

if TYPE_CHECKING:
    from adapters.tool_servers.sessions import CommonParts

write_no_messages()

log = structlog.get_logger(__name__)
AnswerT = TypeVar("AnswerT", bound=BaseModel)
LAST_WORDS = 0.5
"""Seconds that a call in flight is given when its connection is lost: its answer may be on the way within us."""
TELLING_TIMEOUT = 2.0
"""Seconds to get a cancellation, or the answer to a question, out to the server."""
MOST_PAGES = 32
"""Pages of `tools/list`; a server that has more repeats itself."""
LONGEST_STATUS = 200
"""Characters of a progress message."""
SHORT_ANSWER = 1_000
"""Characters of a result that is read in the event loop, `A_TEXT` more for each of its blocks, texts and names."""
MOST_QUESTIONS = 50
"""Questions in the course of one call, those that are put to nobody included; whatever is asked beyond is cancelled,
and the time of the call runs on."""
MOST_UNREAD = 4
"""Questions of a call that nobody has taken up yet: a call may wait for half an hour, and a question be 4 MB."""
CONNECT_TIMEOUT = 10.0
"""Seconds for connecting and for sending a request; the answer has the server's own timeout."""
LONGEST_LOG = 500
"""Characters of a log message of the server."""
GRACE = 5.0
"""Seconds that an answer may take beyond the timeout of the call, so that the call's own timeout comes first."""


class Connection:
    """A session that others may call tools on, while the task that opened it keeps it.

    `lost` is set, with the reason, when there will be no more answers. `faults`: what is known of requests that got
    none. `bearer`: whose account it is for.
    """

    def __init__(
        self,
        server: ServerConfig,
        common: CommonParts,
        session: ClientSession,
        lost: asyncio.Future[str],
        faults: Faults,
        *,
        bearer: Bearer | None,
    ) -> None:
        self._server = server
        self._common = common
        self._session = session
        self.lost = lost
        self._faults = faults
        self.server = server.name
        self.bearer = bearer
        self.retired = False
        """Whether it only serves the calls that are open on it."""
        self.stirred = asyncio.Event()
        """Set when a call has ended, or it was retired."""
        self.last_used = time.monotonic()
        self._alive_at = -math.inf
        self._calls: set[OngoingCall] = set()
        self.abandoned = self.has_asked = False
        """Whether a call was left before its answer (the server may still be at it, and ask); whether any was asked."""
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is in flight, or waits for somebody."""
        return bool(self._calls)

    def is_fresh(self, age: float) -> bool:
        """Whether the server has given a sign of life within the last `age` seconds, and nothing since was amiss."""
        return time.monotonic() - self._alive_at <= age

    def retire(self) -> None:
        """Take no more calls; those that are open go on."""
        self.retired = True
        self.stirred.set()

    async def initialize(self) -> None:
        """Shake hands. Raises `McpError`, `FaultError`, and `RuntimeError` for a protocol version that we do not
        speak."""
        await self._answered(self._session.initialize())

    async def list_tools(self) -> list[Any]:
        """What the server offers, unread and without secrets. Raises `McpError`, `FaultError`,
        `ValidationError`."""
        listed: list[Any] = []
        space = ListingSpace()
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            parameters = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            request = types.ClientRequest(types.ListToolsRequest(params=parameters))
            page = await self._answered(self._session.send_request(request, ToolPage))
            # In a thread: masking megabytes takes a while, and nobody else should wait for it.
            listed += await asyncio.to_thread(masked, page.tools, self._mask_all(), space)
            cursor = page.nextCursor
            if not cursor or len(listed) > MOST_LISTED:
                break
        return listed

    async def is_alive(self, timeout: float) -> bool | None:  # noqa: ASYNC109 - part of the question
        """Whether the server answers a ping; an error is an answer, too. `None`: it says nothing within `timeout`
        seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._answered(self._session.send_ping())
        except McpError:
            return not self.lost.done()
        except TimeoutError:
            return None
        except (FaultError, anyio.ClosedResourceError, anyio.BrokenResourceError, ValidationError):
            return False
        return True

    async def _answered(self, asking: Coroutine[Any, Any, AnswerT]) -> AnswerT:
        """The answer to a request that `asking` is about to send. Raises `McpError` with an error of the server,
        `FaultError` when no answer came."""
        # The SDK does not tell the id of a request; the next statement that it runs takes this one.
        request_id = self._session._request_id
        try:
            answer = await asking
        except McpError as error:
            if fault := self._faults.get(request_id):
                if fault.kind is not FaultKind.NOT_SENT:
                    self._alive_at = -math.inf  # it may be another server by now, or none
                raise FaultError(fault) from error
            raise
        finally:
            self._faults.pop(request_id, None)
        self._alive_at = time.monotonic()
        return answer

    def begin(self, tool: str, arguments: dict[str, Any], caller: Caller, progress: Progress) -> OngoingCall:
        """Send a call. Whoever began it goes on with `advance`, or else abandons it."""
        call = OngoingCall(tool, progress, caller.keeps_returned)
        self._calls.add(call)
        call.answer = asyncio.create_task(self._request(call, arguments, caller), name="tool-call")
        call.answer.add_done_callback(lambda _: self._ended(call))
        return call

    async def advance(self, call: OngoingCall) -> ToolOutcome | NotSent | SessionLost | Elicitation:
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
                reading = replace(self._reading(), keeps_returned=call.keeps_returned)
                if _is_short(call.answer):
                    return self._outcome_of(call.answer, reading)
                # In a thread, as above.
                return await asyncio.to_thread(self._outcome_of, call.answer, reading)
            if self.lost.done():
                return self._reading().outcome_unknown("the connection was lost")
            if asked.done():
                waits = True
                return asked.result()
            self._alive_at = -math.inf
            return self._reading().outcome_unknown(f"none within {timeout:g} seconds")
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

    def ask(self, question: Elicitation) -> None:
        """Give a question of the server to the call that it belongs to; it is cancelled when that is not certain, or
        when the call has asked more than anybody answers."""
        if question.params is None:
            self._in_background(question.refuse)
            return
        self.has_asked = True
        call = self._call_of(question)
        if call is None:
            open_calls = len(self._calls)
            log.warning("tool_server_question_belongs_to_no_call", server=self._server.name, open_calls=open_calls)
        elif call.asked < MOST_QUESTIONS and not call.questions.full():
            call.asked += 1
            call.questions.put_nowait(question)
            return
        else:
            log.debug("tool_server_asks_too_much", server=self._server.name, tool=call.tool)
        self._in_background(partial(question.answer, "cancel"))

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may be unknown to which call its next question belongs: one over another session is certain."""
        return self.abandoned and self.has_asked

    def _call_of(self, question: Elicitation) -> OngoingCall | None:
        if question.request is not None:
            return next((call for call in self._calls if call.request_id == question.request), None)
        # Over stdio nothing says which call is meant. With two of them it might be somebody else's, and one that was
        # abandoned may go on over there.
        return next(iter(self._calls)) if len(self._calls) == 1 and not self.abandoned else None

    async def drain(self) -> None:
        """Wait until the calls in flight have heard that the connection is lost."""
        open_tasks: set[asyncio.Task[Any]] = {*(call.answer for call in self._calls), *self._telling}
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=2 * LAST_WORDS)

    async def _request(self, call: OngoingCall, arguments: dict[str, Any], caller: Caller) -> CallResult:
        parameters = types.CallToolRequestParams(name=call.tool, arguments=arguments)
        if secret := self._server.requester_secret:
            tell = partial(
                told_requester,
                caller.person,
                self.server,
                call.tool,
                arguments,
                secret=secret,
                at=int(time.time()),
                channel=caller.channel if self._server.tells_channel else None,
                files=caller.files,
            )
            # Of a long file it takes a twentieth of a second.
            told = await asyncio.to_thread(tell) if caller.files else tell()
            parameters.meta = types.RequestParams.Meta.model_validate(told)
        request = types.ClientRequest(types.CallToolRequest(params=parameters))
        call.request_id = self._session._request_id  # as `_answered` says; without it the call cannot be cancelled
        # Not `call_tool`: it raises, after the tool has acted, when a result does not fit the tool's output schema.
        sending = self._session.send_request(request, CallResult, progress_callback=self._reporter(call))
        return await self._answered(sending)

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
                self._mask_all()((message or "")[: 10 * LONGEST_STATUS])
            )  # one to sign in with is for one person
            call.progress(one_line(said, LONGEST_STATUS), fraction)

        return report

    def _secrets(self) -> frozenset[str]:
        return self._server.secrets | (self.bearer.secrets() if self.bearer else frozenset())

    def _mask_all(self) -> MaskText:
        """What takes secrets out of what the server says, as they are known now."""
        secrets = self._secrets()
        return lambda text: self._common.mask(without_known(clean(text), secrets))

    def _reading(self) -> AnswerContext:
        bearer = self.bearer
        return AnswerContext(
            server=self._server.name,
            limit=self._common.result_limit,
            secrets=self._secrets(),
            mask=self._common.mask,
            owner=bearer.person if bearer else None,
            connection=bearer.connection if bearer else None,
            sign_in=self._server.sign_in,
        )

    def _outcome_of(
        self, answer: asyncio.Task[CallResult], reading: AnswerContext
    ) -> ToolOutcome | NotSent | SessionLost:
        try:
            return outcome_of_result(answer.result(), reading)
        except FaultError as error:
            return outcome_of_fault(error.fault, reading)
        except McpError as error:
            return outcome_of_error(error.error.code, error.error.message, error.error.data, reading)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return NotSent("the connection was lost")  # raised by the send: the transport never took the request
        except ValidationError:
            return reading.outcome_unknown("its answer is not what MCP prescribes")
        except Exception as error:
            log.exception("tool_call_failed", server=reading.server, exc_info=error)
            return reading.outcome_unknown("an error on our side")

    def _withdraw(self, call: OngoingCall) -> None:
        """Tell the server, in a task of its own, that nobody waits for the answer any more."""
        if call.request_id is not None and not self.lost.done():
            self._in_background(partial(self._send_cancelled, call.request_id))

    def _in_background(self, telling: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(_briefly(telling), name="tool-call-telling")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _send_cancelled(self, request_id: int) -> None:
        parameters = types.CancelledNotificationParams(requestId=request_id, reason="nobody waits for it any more")
        notification = types.ClientNotification(types.CancelledNotification(params=parameters))
        await self._session.send_notification(notification)


@dataclass(slots=True, eq=False)
class OngoingCall:
    """One request to call a tool, from being sent to its answer."""

    tool: str
    progress: Progress
    """Who is told how far it is: the run that waits for it now."""
    keeps_returned: bool
    """Whether its result is kept as the server returned it."""
    request_id: int | None = None
    """`None`: not sent yet."""
    questions: asyncio.Queue[Elicitation] = field(default_factory=lambda: asyncio.Queue(MOST_UNREAD))
    """What the server asked in its course and nobody has taken up yet."""
    asked: int = 0
    """Questions that were taken into `questions` so far."""
    answer: asyncio.Task[CallResult] = field(init=False, repr=False)


def _is_short(answer: asyncio.Task[CallResult]) -> bool:
    """Whether an answer is a result that takes less to read (0.1 ms) than a thread takes to begin and to be heard of
    (0.3 ms, and more the more there is to do)."""
    if answer.cancelled() or answer.exception() is not None:
        return False
    result = answer.result()
    left = SHORT_ANSWER - len(result.content) * A_TEXT
    return not exceeds([result.content, result.structuredContent], left)


async def _briefly(telling: Callable[[], Awaitable[None]]) -> None:
    """Tell a server something; one that is gone need not be told."""
    with suppress(TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with asyncio.timeout(TELLING_TIMEOUT):
            await telling()


@asynccontextmanager
async def open_session(
    server: ServerConfig,
    signals: Signals,
    faults: Faults,
    *,
    patience: float,
    bearer: Bearer | None = None,
    mask: MaskText = unchanged,
) -> AsyncIterator[ClientSession]:
    """A session that is connected and not initialised; to be left by the task that entered it.

    `faults` is told what becomes of requests that get no answer. `patience`: seconds that a call may wait for a person.
    `bearer`: whose account it is for; only over HTTP.
    Raises whatever the transport raises (`OSError` for a program that cannot be started, exception groups).
    """
    settings: dict[str, Any] = {
        "message_handler": _MessageHandler(server.name, signals),
        "logging_callback": partial(_on_log, server, bearer, mask),
        "elicitation_callback": _cancel,
        "client_info": types.Implementation(name="countersign", version="0.1.0"),
    }
    async with AsyncExitStack() as stack:
        if isinstance(server.transport, StdioTransport):
            lines = LineLog(server.name, server.secrets, mask=mask)
            program = running_program(server.transport, lines, signals, faults)
            incoming, outgoing = await stack.enter_async_context(program)
            session = await stack.enter_async_context(ClientSession(incoming, outgoing, **settings))
            read_what_is_used(session)
            yield session
            return
        http = server.transport
        endpoint = Endpoint(
            url=http.url,
            is_sse=http.is_sse,
            silence=server.timeout + GRACE,
            patience=patience + server.timeout + GRACE,
            signals=signals,
            faults=faults,
            bearer=bearer,
        )
        connection: Any = {
            "transport": "sse" if http.is_sse else "streamable_http",
            "url": http.url,
            "headers": dict(http.headers),
            "session_kwargs": settings,
            "httpx_client_factory": partial(_client, endpoint),
        }
        session = await stack.enter_async_context(create_session(connection))
        read_what_is_used(session)
        yield session


def _client(
    endpoint: Endpoint, headers: dict[str, str] | None, timeout: httpx.Timeout | None, auth: httpx.Auth | None
) -> McpHttpClient:
    """The client that a session gets. `timeout` is not the session's to say: `Endpoint` has the limits."""
    return McpHttpClient(endpoint, headers=headers, auth=auth, timeout=httpx.Timeout(CONNECT_TIMEOUT, read=None))


async def _cancel(_context: object, _params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answers a question that was too large, or too oddly written, to be taken out before the session read it. That
    there is a callback at all promises the server that it may ask."""
    return types.ElicitResult(action="cancel")


class _MessageHandler:
    """Handles what a server sends that is no answer. Of what is no message either, only the first is logged: a server
    may send a hundred of them in a second, endlessly."""

    def __init__(self, server: str, signals: Signals) -> None:
        self._server = server
        self._signals = signals
        self._said = False

    async def __call__(self, message: object) -> None:
        notification = message.root if isinstance(message, types.ServerNotification) else None
        if isinstance(notification, types.ToolListChangedNotification):
            self._signals.tools_changed()
        elif isinstance(notification, types.ElicitCompleteNotification):
            self._signals.completed(notification.params.elicitationId)
        elif isinstance(message, Exception) and not self._said:
            self._said = True
            log.warning("tool_server_sent_no_message", server=self._server, error=type(message).__name__)


async def _on_log(
    server: ServerConfig, bearer: Bearer | None, mask: MaskText, said: types.LoggingMessageNotificationParams
) -> None:
    secrets = server.secrets | (bearer.secrets() if bearer else frozenset())
    data = said.data if isinstance(said.data, str) else reprlib.repr(said.data)  # bounded, unlike `str`
    text = one_line(without_secrets(mask(clean(data[: 4 * LONGEST_LOG])), secrets), LONGEST_LOG)
    log.debug("tool_server_log", server=server.name, level=said.level, text=text)
