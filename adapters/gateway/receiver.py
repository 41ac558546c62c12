"""`/mcp`: who asks, in which session, and the SDK's server behind it; the stream that tells of other tools; and where
tokens come from (RFC 9728)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from adapters.gateway.in_progress import RequestsInProgress
from adapters.gateway.requests import SCOPE_KEY, GatewayRequest, GatewaySession
from adapters.gateway.sessions import NO_NAME, GatewaySessions
from adapters.gateway.tool_changes import ToolListeners
from adapters.shared.asgi import AsgiApp, AsgiExchange, AsgiMessage
from adapters.shared.importing import imported
from adapters.shared.long_answers import LongAnswers
from adapters.shared.outages import AGAIN_SECONDS, AWAY
from adapters.shared.problems import Problem, new_reference, problem_answer
from adapters.shared.program_access import ProgramAccess, ScopeMissing
from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.server_sent import EVENT_STREAM, ClientGone, EventStream, OpenStreams
from adapters.shared.token_watch import TokenWatch
from adapters.shared.untrusted_json import (
    LONG,
    MalformedBodyError,
    has_too_many_values,
    json_in,
    part,
    refuse_unsound,
    words,
)
from bot.gateway.views import GatewayCaller
from bot.identity.principal import ALL_SCOPES, Principal, Scope
from bot.records.database import is_outage

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

log = structlog.get_logger(__name__)
PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
METHODS = "POST, GET, DELETE"
LARGEST_BODY = 1024 * 1024
"""Bytes. A call that waits for people is held in memory several times over while its client waits."""
LONGEST_ID = 1_000
"""Characters of what a client calls a request or its progress: every answer repeats it."""
DEEPEST = 64
"""How deep a message may nest; the arguments of a tool less."""
MOST_STREAMS = 16
"""Event streams that are open for one person, in one process."""
MOST_OPEN = 1100
"""Requests of one person that are answered at a time, in one process: more than may wait for people
(LIMIT_GATEWAY_CALLS_WAITING)."""
HEARTBEAT_SECONDS = 15.0
"""Proxies close what is silent for longer; 30 to 60 s is usual."""
GATHERED_SECONDS = 0.5
"""Tools that change within so long are told of once."""
START_SECONDS = 30.0
"""Seconds that a request waits while this process starts, before its client is told to come back."""
LAST_ANSWER_SECONDS = 0.6
"""Seconds in which whoever waits is told how to go on, when this process ends."""
CALLS: frozenset[str] = frozenset({"tools/call", "tasks/cancel", "tasks/result"})
"""Methods that a token has to have `run` for; all others are listing."""
LISTING: tuple[Scope, ...] = ("run", "read")
SESSION_HEADER = "Mcp-Session-Id"
VERSION_HEADER = "MCP-Protocol-Version"
NO_SERVER = "There’s no tool server of this name."
"""Clients show it only as the answer to their message: of a status 404 the SDK's says that its session is over."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_ANSWER = re.compile(rb'(?:^|\n)data: \{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*"),"(result|error)":')
"""How the SDK writes the event that answers a request, and with what."""
_LOOKED_AT = 16 * 1024
"""Bytes of an event in which that is looked for: an id takes 6 kB at most."""
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character, or the halves of one: what can be half of one cannot be written in an answer."""
TOOLS_CHANGED = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'

MakeServer = Callable[[], Awaitable["Server[Any, Any]"]]


class NotUnderstood(Exception):  # noqa: N818  # an answer
    """A message that is none, or is in no session: answered with an error of JSON-RPC."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code


class HandedOut(Protocol):
    """Where results come from that are written to clients."""

    async def delivered(self, gateway_call_id: str) -> None:
        """All of it was written to a connected client."""
        ...

    async def put_back(self, gateway_call_id: str) -> None:
        """It was not."""
        ...


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """Where `/mcp` is, and who gives out tokens for it."""

    servers: Collection[str]
    """The names of the tool servers, each of which has a path of its own."""
    public_url: str | None = None
    issuer: str | None = None
    """Whose tokens are accepted (API_JWT_ISSUER)."""


class GatewayReceiver:
    """Takes what other agents send.

    Args:
        make_server: the SDK's server, with its handlers, once calls can be taken: before, the tools are not known yet,
            and a client would be told that there are none. Called once, when the first message comes.
        handed: told of each result that was handed out what became of it.
        listeners: hear of tools that have changed.
        in_progress: the requests that are being answered, of which clients may say that they do not wait any more.
    """

    def __init__(
        self,
        config: GatewayConfig,
        access: ProgramAccess,
        sessions: GatewaySessions,
        watch: TokenWatch,
        *,
        make_server: MakeServer,
        handed: HandedOut,
        listeners: ToolListeners,
        in_progress: RequestsInProgress,
    ) -> None:
        self._in_progress = in_progress
        self._config = config
        self._access = access
        self._sessions = sessions
        self._watch = watch
        self._handed = handed
        self.listeners = listeners
        self._ending = asyncio.Event()
        self._server = RunningServer(make_server)
        self._streams = OpenStreams(access, watch, LongAnswers(MOST_STREAMS, "event streams of /mcp are open for"))
        self._answers = LongAnswers(MOST_OPEN, "requests at /mcp are answered for")

    def routes(self) -> list[web.RouteDef]:
        """Those of `/mcp`, and of what says where its tokens come from."""
        routes: list[web.RouteDef] = []
        for path in _with_and_without_slash(PATH, PATH + "/{server}"):
            routes += [
                web.post(path, self._answered(self._post)),
                web.get(path, self._answered(self._stream), allow_head=False),
                web.delete(path, self._answered(self._end_session)),
                web.options(path, self._preflight(METHODS)),
                web.route("*", path, self._not_allowed),
            ]
        for path in _with_and_without_slash(METADATA_PATH, METADATA_PATH + PATH, METADATA_PATH + PATH + "/{server}"):
            routes += [web.get(path, self._answered(self._metadata)), web.options(path, self._preflight("GET"))]
        return routes

    async def end(self, _application: web.Application) -> None:
        """Tell whoever waits how to go on, and end what is still open then. For `on_shutdown`."""
        self._ending.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWER_SECONDS):
                await self._in_progress.none_left()
        await self._server.stop()

    # ------------------------------------------------------------------------------------------- messages
    async def _post(self, request: web.Request) -> web.StreamResponse:
        principal = await self._access.principal(request, LISTING, self._resources(request))
        body, message = await _read_message(request)
        method = words(message, "method")
        if method == "initialize" and not self._is_there(request) and isinstance(message.get("id"), str | int):
            return _rpc_error(NotUnderstood(200, NO_SERVER), message["id"])
        server = self._server_in(request)
        if method in CALLS and not principal.may("run"):
            raise ScopeMissing(("run",))
        session: GatewaySession | None = None
        begins: dict[str, str] = {}
        if method == "initialize" and "id" in message:
            if (begun := self._sessions.begun(principal, message.get("params"))) is not None:
                begins[SESSION_HEADER], session = begun
        else:
            session = self._session(request, principal)
            if method == "notifications/cancelled":
                self._in_progress.give_up(session.session_id, part(message, "params").get("requestId"))
                return web.Response(status=202)
            if not method:
                return web.Response(status=202)  # an answer, and clients are asked nothing
        client = session.client_name if session is not None else NO_NAME
        caller = GatewayCaller(principal.person, principal.person_ids, client)
        asked = GatewayRequest(principal, caller, session, server, self._ending)
        exchange = AsgiExchange(request, body, headers=self._access.answer_headers(request), scope={SCOPE_KEY: asked})
        session_id, request_id = session.session_id if session is not None else "", message.get("id")
        del body, message  # a megabyte each, and there may be a thousand requests that wait for hours
        with self._in_progress.noted(session_id, request_id, exchange.leave):
            return await self._exchange(exchange, asked, begins)

    async def _exchange(
        self, exchange: AsgiExchange, asked: GatewayRequest, begins: Mapping[str, str]
    ) -> web.StreamResponse:
        seen = _SeenAnswer(await self._server.app(), exchange, begins)
        principal = asked.principal
        has_arrived = False
        try:
            with self._answers.one_more(principal), self._watch.watched(principal, exchange.leave) as token:
                response = await exchange.run(seen)
                has_arrived = seen.is_answered and not token.is_over
        finally:
            if asked.answered_call:
                await (self._handed.delivered if has_arrived else self._handed.put_back)(asked.answered_call)
        return response

    # ------------------------------------------------------------------------------------------- the stream
    async def _stream(self, request: web.Request) -> web.StreamResponse:
        principal = await self._access.principal(request, LISTING, self._resources(request))
        server = self._server_in(request)
        if EVENT_STREAM not in request.headers.get("Accept", ""):
            raise NotUnderstood(406, f"Not Acceptable: Client must accept {EVENT_STREAM}")
        self._session(request, principal)
        if self._ending.is_set():
            raise Problem(503, "This process is shutting down. Try again.", retry_after=1.0)
        with (
            self._streams.opened(request, principal) as stream,
            self.listeners.listening(server) as changed,
            suppress(ClientGone),
        ):
            await stream.begin()
            await stream.beat()
            while await self._told(stream, changed):
                pass
            await stream.end()
        return stream.response

    async def _told(self, stream: EventStream, changed: asyncio.Event) -> bool:
        """Tell what there is to tell next; whether there is more to come."""
        waits = [asyncio.create_task(each.wait()) for each in (changed, self._ending)]
        try:
            await asyncio.wait(waits, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._ending.is_set():
            return False
        if changed.is_set():
            await asyncio.sleep(GATHERED_SECONDS)
            changed.clear()
            await stream.send(TOOLS_CHANGED)
        else:
            await stream.beat()
        return True

    async def _end_session(self, request: web.Request) -> web.StreamResponse:
        """Nothing is kept of a session that could be ended; who says so will not use it again."""
        principal = await self._access.principal(request, LISTING, self._resources(request))
        self._server_in(request)
        self._session(request, principal)
        return web.Response(status=204)

    # ------------------------------------------------------------------------------------------- who and where
    def _session(self, request: web.Request, principal: Principal) -> GatewaySession:
        sent = request.headers.get(SESSION_HEADER)
        if not sent:
            raise NotUnderstood(400, f"Bad Request: send {SESSION_HEADER}, which initialize answers with")
        session = self._sessions.known(principal, sent)
        if session is None:
            raise NotUnderstood(404, "Not Found: this session is not known or is over. Initialize again.")
        return session

    def _server_in(self, request: web.Request) -> str | None:
        if not self._is_there(request):
            raise Problem(404, NO_SERVER)
        return request.match_info.get("server")

    def _is_there(self, request: web.Request) -> bool:
        server = request.match_info.get("server")
        return server is None or server in self._config.servers

    def _base(self, request: web.Request) -> str:
        return self._config.public_url or f"{request.scheme}://{request.host}"

    def _resources(self, request: web.Request) -> tuple[str, ...]:
        """What tokens may be for that count here. Only our own address says so, never the request's."""
        if self._config.public_url is None:
            return ()
        everything = f"{self._config.public_url}{PATH}"
        server = request.match_info.get("server")
        return (everything,) if server is None else (everything, f"{everything}/{server}")

    def _metadata_url(self, request: web.Request) -> str:
        server = request.match_info.get("server")
        return f"{self._base(request)}{METADATA_PATH}{PATH}" + (f"/{server}" if server is not None else "")

    async def _metadata(self, request: web.Request) -> web.StreamResponse:
        """Where tokens come from (RFC 9728). Where no issuer gives any there is nothing to tell: clients that find such
        metadata sign in by it, and leave out the token that they were configured with."""
        server = self._server_in(request)
        if self._config.issuer is None:
            raise Problem(404, "The operator of this server gives out tokens: see docs/gateway.md.")
        path = PATH if server is None else f"{PATH}/{server}"
        return web.json_response(
            {
                "resource": f"{self._base(request)}{path}",
                "resource_name": "Countersign",
                "authorization_servers": [self._config.issuer],
                "scopes_supported": sorted(ALL_SCOPES & {"run", "read"}),
                "bearer_methods_supported": ["header"],
            }
        )

    def _answered(self, handle: Handler) -> Handler:
        """A handler whose refusals and failures become answers."""

        async def answer(request: web.Request) -> web.StreamResponse:
            reference = new_reference()
            try:
                self._access.check_origin(request)
                response = await handle(request)
            except Problem as problem:
                response = self._problem(request, problem, reference)
            except NotUnderstood as trouble:
                response = _rpc_error(trouble)
            except (web.HTTPException, asyncio.CancelledError):
                raise
            except Exception as error:
                if is_outage(error):
                    response = problem_answer(Problem(503, AWAY, retry_after=AGAIN_SECONDS), reference)
                else:
                    log.exception("gateway_request_failed", reference=reference)
                    response = problem_answer(Problem(500, "Something went wrong."), reference)
            if not response.prepared:
                for name, value in self._access.answer_headers(request).items():
                    response.headers.setdefault(name, value)
            return response

        return answer

    def _problem(self, request: web.Request, problem: Problem, reference: str) -> web.Response:
        """The answer, with what a client needs to get a token that counts (RFC 6750, RFC 9728)."""
        answer = problem_answer(problem, reference)
        where = [f'resource_metadata="{self._metadata_url(request)}"'] if self._config.issuer else []
        if problem.status == 401:
            fault = ['error="invalid_token"'] if "Authorization" in request.headers else []
            said = ", ".join([*fault, *where, 'scope="run"'])
            answer.headers["WWW-Authenticate"] = f"Bearer {said}"
        elif isinstance(problem, ScopeMissing):
            needed = ['error="insufficient_scope"', f'scope="{problem.scopes[0]}"']
            said = ", ".join([*needed, *where])
            answer.headers["WWW-Authenticate"] = f"Bearer {said}"
        return answer

    def _preflight(self, methods: str) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=204, headers=self._access.preflight(request, methods))

        return answer

    async def _not_allowed(self, request: web.Request) -> web.Response:
        said = f"{request.method} isn’t allowed here. Use {METHODS}."
        answer = problem_answer(Problem(405, said), new_reference())
        answer.headers.update({**self._access.answer_headers(request), "Allow": METHODS})
        return answer


def _with_and_without_slash(*paths: str) -> list[str]:
    """Paths, each also with a slash at its end, as many configurations of clients have it."""
    return [each for path in paths for each in (path, f"{path}/")]


# ---------------------------------------------------------------------------------------------- reading and seeing
async def _read_message(request: web.Request) -> tuple[bytes, Mapping[str, Any]]:
    """The body of a request, and the message that it is. Raises `NotUnderstood`: 400, 408, 413, 415."""
    if request.content_type != "application/json":
        raise NotUnderstood(415, "Unsupported Media Type: Content-Type must be application/json")
    too_large = f"The body is larger than {LARGEST_BODY // 1024**2} MiB."
    try:
        raw = await read_whole_body(request, LARGEST_BODY, too_large)
    except BodyNotReadError as error:
        raise NotUnderstood(error.status, str(error)) from None
    value = await asyncio.to_thread(_message_in, raw) if len(raw) > LONG else _message_in(raw)
    if isinstance(value, list):
        raise NotUnderstood(400, "Batches are not taken: send one message at a time.")
    if not isinstance(value, dict):
        raise NotUnderstood(400, "The body is no message of JSON-RPC.")
    if trouble := _trouble_with(value):
        raise NotUnderstood(400, f"Invalid Request: {trouble}")
    return raw, value


def _trouble_with(message: Mapping[str, Any]) -> str:
    """What is wrong with a message of JSON-RPC; empty: nothing that can be told without knowing its method. The SDK
    takes a request whose id is none for a notification, which nobody answers."""
    if message.get("jsonrpc") != "2.0":
        return '"jsonrpc" has to be "2.0"'
    if "method" not in message and not _is_answer(message):
        return 'there has to be a "method"'
    if not isinstance(message.get("method", ""), str):
        return '"method" has to be a text'
    if not isinstance(message.get("params"), dict | None):
        return '"params" has to be an object'
    if "id" in message and (trouble := _trouble_with_id(message["id"])):
        return f'"id" {trouble}'
    token = part(message, "params", "_meta").get("progressToken")
    if token is not None and (trouble := _trouble_with_id(token)):
        return f'"progressToken" {trouble}'
    return ""


def _is_answer(message: Mapping[str, Any]) -> bool:
    """Whether it answers a request of the server's."""
    return isinstance(message.get("result"), dict) or isinstance(message.get("error"), dict)


def _trouble_with_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return "has to be a text or a whole number"
    return f"is longer than {LONGEST_ID:,} characters" if len(str(value)) > LONGEST_ID else ""


def _message_in(raw: bytes) -> Any:
    if has_too_many_values(raw):
        raise NotUnderstood(413, "The body has too many values.")
    try:
        value = json_in(raw)
        refuse_unsound(value, DEEPEST)
        if _ESCAPED_SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except MalformedBodyError as error:
        raise NotUnderstood(400, f"Parse error: {error}", PARSE_ERROR) from None
    except UnicodeEncodeError:
        raise NotUnderstood(400, "Parse error: it holds half of a surrogate pair", PARSE_ERROR) from None
    return value


def _rpc_error(trouble: NotUnderstood, request_id: object = "server-error") -> web.Response:
    """What is wrong with a request; where its id is not known, as the SDK's server says it."""
    error = {"code": trouble.code, "message": trouble.message}
    body = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return web.json_response(body, status=trouble.status)


class _SeenAnswer:
    """An application that is watched for whether it has answered the request, or only closed the stream.

    What counts is that the event with the answer was taken: clients that have it close the connection, some before the
    end of the stream could be written.

    Args:
        begins: headers of an answer that is a result and no error: what an answer is, its headers have to wait for.
    """

    def __init__(self, app: AsgiApp, exchange: AsgiExchange, begins: Mapping[str, str]) -> None:
        self.is_answered = False
        """Whether a connected client has taken the answer, which is a result, as far as is known."""
        self._app = app
        self._exchange = exchange
        self._begins = begins

    async def __call__(self, scope: Any, receive: Any, send: Callable[[AsgiMessage], Awaitable[None]]) -> None:
        """Pass all of it on."""
        start: AsgiMessage | None = None

        async def seen(message: AsgiMessage) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and self._begins:
                start = message
                return
            found = (
                _ANSWER.search(message.get("body", b""), 0, _LOOKED_AT)
                if message["type"] == "http.response.body"
                else None
            )
            if start is not None:
                more = self._begins if found is not None and found[1] == b"result" else {}
                headers = [(name.encode(), value.encode()) for name, value in more.items()]
                held, start = {**start, "headers": [*start.get("headers", ()), *headers]}, None
                await send(held)
            await send(message)
            if found is not None and found[1] == b"result":
                self.is_answered = await self._exchange.is_taken()

        await self._app(scope, receive, seen)


class RunningServer:
    """The SDK's server behind its transport, which makes a session of its own for each request: what lasts is sealed
    into the id of a session. One task owns it, from the first message until the process ends."""

    def __init__(self, make_server: MakeServer) -> None:
        self._make_server = make_server
        self._stopping = asyncio.Event()
        self._running: asyncio.Future[AsgiApp] | None = None
        self._task: asyncio.Task[None] | None = None

    async def app(self) -> AsgiApp:
        """The application, running. Raises `Problem` (503) when it ends, or does not begin to run for long."""
        if self._stopping.is_set():
            raise Problem(503, "This process is shutting down. Try again.", retry_after=1.0)
        if self._running is None:
            self._running = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._running), name="mcp server")
        try:
            async with asyncio.timeout(START_SECONDS):
                return await asyncio.shield(self._running)
        except TimeoutError:
            raise Problem(503, "This process is starting. Try again.", retry_after=AGAIN_SECONDS) from None

    async def _run(self, running: asyncio.Future[AsgiApp]) -> None:
        try:
            server = await self._make_server()
            sdk = await imported("mcp.server.streamable_http_manager")
            manager = sdk.StreamableHTTPSessionManager(server, stateless=True, json_response=False)
            async with manager.run():
                running.set_result(manager.handle_request)
                await self._stopping.wait()
        except asyncio.CancelledError:
            if running.done():
                raise
            running.set_exception(Problem(503, "This process is shutting down. Try again.", retry_after=1.0))
            running.exception()  # nobody may be waiting for it
        except Exception as error:
            self._running = None  # the next message tries again
            if running.done():
                log.exception("gateway_server_ended")
            else:
                running.set_exception(error)

    async def stop(self) -> None:
        """End it, and what it is still doing."""
        self._stopping.set()
        if self._task is None or self._running is None:
            return
        if not self._running.done():
            self._task.cancel()
        await asyncio.wait([self._task])
