"""An HTTP client for MCP in which the failure of one request is that of this request alone.

The MCP SDK lets an HTTP error (a 401, a refused connection) tear down the whole session, with every other call that
is in flight on it; and a response that breaks off leaves its caller waiting. So failures are turned into what the
protocol has for them, a JSON-RPC error in reply to that request. Whether the server can have acted stands in a table
beside it (`outcomes.Faults`), not in the error: a server can send any error itself. The questions of a server are taken
out of what it sends, and answered from here.

Over SSE all answers come on one event stream, and a POST only says that a message has arrived. There the error is put
into that stream.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore
import httpx
import structlog
from mcp.shared._httpx_utils import next_request_within_origin, stream_within_origin  # exactly what the SDK follows

from adapters.tool_servers.accounts import AccountUnknown, Bearer
from adapters.tool_servers.incoming import (
    TOO_LARGE,
    BoundedEvents,
    Intake,
    SharedEvents,
    Signals,
    Substitutes,
    Weight,
    as_event,
    elicitation_in,
    with_whole_characters,
)
from adapters.tool_servers.outcomes import (
    NOT_LOOKED_UP,
    FaultError,
    FaultKind,
    Faults,
    RequestFault,
    RequestId,
    ended_by_us,
)
from adapters.tool_servers.text import why_unreachable
from bot.accounts.ports import TokenSet
from graph.http_bounds import NoCookies, in_pieces, is_encoded, pieces, take_short_heads

log = structlog.get_logger(__name__)
LONGEST_CHALLENGE = 2_000
"""Characters of a `WWW-Authenticate` header."""
MOST_REDIRECTS = 5
"""Redirects that are followed for one message; for a call of a tool, none. The SDK would follow twenty, and end the
session at the next."""
MOST_RESUMPTIONS = 20
"""Resumptions of the answer to one request after its stream ended too early."""
MOST_RESUMED = 100
"""Requests whose answers are known to have been taken up again; the oldest are forgotten."""
FIRST_PAUSE = 1.0
"""Seconds before an event stream is opened again or resumed; doubles each time."""
LONGEST_RECONNECT_PAUSE_SECONDS = 60.0
"""Seconds."""
SETTLED = 10.0
"""Seconds after which the end of an event stream counts as the first one again."""
_REDIRECTS = "countersign.redirects"
"""Key in a request's extensions, which httpx hands on to the request that follows a redirect."""
TOLD_WITHIN = 2.0
"""Seconds that are waited for an answer to a question to arrive: a server may hold its POST for as long as it likes."""
LONGEST_BODY = 4_096
"""Bytes that are read of what a server says in place of an answer."""
BODY_TIMEOUT = 2.0
"""Seconds that reading it may take."""
_NOTHING_DONE = {
    401: "did not accept our credentials",
    403: "did not accept our credentials",
    405: "refused the request",
    413: "refused the request",
    415: "refused the request",
}
"""HTTP statuses that are given before a request is acted on (RFC 9110, 15.5). All others prove nothing: home-made
servers answer 404 or 422 when something within their tool failed, half-way."""
_EVENT_STREAM = "text/event-stream"
_SESSION_HEADERS = frozenset({"accept", "content-type", "mcp-session-id", "mcp-protocol-version"})
_SCOPE_MISSING = re.compile(r"""\berror\s*=\s*"?insufficient_scope\b""", re.IGNORECASE)

take_short_heads(httpcore.AsyncHTTP11Connection)

_for_request: ContextVar[RequestId | None] = ContextVar("for_request", default=None)
"""The request whose answer the current task reads. The SDK gives each request a task of its own, in which it also takes
up a stream that broke off."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a session's messages go, and what is told of them."""

    url: str
    silence: float
    """Seconds without a word after which an answer is given up."""
    patience: float
    """Seconds of silence after which an answer is given up once the server has asked a person something."""
    signals: Signals
    """Told when no server answers at the address (any more), and what the server asks."""
    faults: Faults
    """What becomes of requests that get no answer of the protocol, kept until somebody takes it."""
    bearer: Bearer | None = None
    """The account whose token the messages carry; `None`: none."""
    is_sse: bool = False
    """Whether all answers come on one event stream."""


@dataclass(frozen=True, slots=True)
class _AccountNotAccepted:
    """The person has no account connected, or the server does not accept it."""

    challenge: str

    @property
    def fault(self) -> RequestFault:
        return RequestFault(FaultKind.SIGN_IN, "wants this person to sign in", challenge=self.challenge)


class McpHttpClient(httpx.AsyncClient):
    """Sends MCP messages to one endpoint."""

    def __init__(self, endpoint: Endpoint, **settings: Any) -> None:
        super().__init__(cookies=NoCookies(), **settings)
        self._endpoint = endpoint
        self._intake = Intake()
        self._reconnecting = ReconnectPauses()
        self._resumed: dict[RequestId, ReconnectPauses] = {}
        self._moved_to: httpx.URL | None = None
        """Where the server sent a message other than a call; those that follow go there at once."""
        self._last_posted: tuple[httpx.URL, dict[str, str]] = (httpx.URL(endpoint.url), {})
        """Address and headers of the session's last message: those of an answer to a question."""
        self._shared: SharedEvents | None = None
        self._deliveries: set[asyncio.Task[object]] = set()

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Sends as `httpx.AsyncClient.send` does; a POST that carries a JSON-RPC request always gets a JSON-RPC
        answer."""
        # How long an answer may take is watched here: a server may wait for a person. The event stream says nothing
        # for hours; whether the server is alive is asked with pings.
        request.extensions = {
            **request.extensions,
            "timeout": {**request.extensions.get("timeout", {}), "read": None},
            _REDIRECTS: request.extensions.get(_REDIRECTS, 0) + 1,
        }
        request.headers["accept-encoding"] = "identity"  # so that events can be read and added here
        if request.method != "POST":
            opens_session = self._endpoint.is_sse and request.method == "GET"
            return await (self._open_events if opens_session else self._other)(request, **options)
        message = json.loads(await request.aread())  # one that follows a redirect has not been read
        request_id = _request_id(message)
        if isinstance(message, dict) and "method" in message:
            headers = {name: value for name, value in request.headers.items() if name in _SESSION_HEADERS}
            self._last_posted = (request.url, headers)
        if self._moved_to is not None and request.extensions[_REDIRECTS] == 1:
            request.url = self._moved_to
        _for_request.set(request_id)
        if not self._endpoint.is_sse:
            return await self._answered(request, request_id, **options)
        if not _calls_a_tool(request):
            return await self._delivered(request, request_id, **options)
        # The SDK sends one message after the other over SSE, and a server may take its time to say that it has one.
        self._in_background(self._delivered(request, request_id, **options))
        return httpx.Response(202, request=request)

    def _in_background(self, delivering: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        delivery = asyncio.create_task(delivering, name="tool-server-delivery")
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)
        return delivery

    async def __aexit__(self, *about: Any) -> None:
        """Closes the client."""
        for delivery in self._deliveries:
            delivery.cancel()
        if self._deliveries:
            await asyncio.wait(self._deliveries)
        await super().__aexit__(*about)

    async def _answered(self, request: httpx.Request, request_id: RequestId | None, **options: Any) -> httpx.Response:
        """What a message gets over streamable HTTP."""
        response = await self._response_to(request, request_id, self._endpoint.silence, **options)
        if isinstance(response, RequestFault):
            return self._instead(request, request_id, response)
        if request_id is None or response.is_redirect:
            return response
        if not _is_event_stream(response):
            return await self._whole(response, request, request_id)
        substitutes = Substitutes(
            broken=partial(self._ending, request_id, "the connection broke before the answer"),
            too_large=lambda _: self._ending(request_id, TOO_LARGE),
        )
        self._bound(response, request_id, substitutes, silence=self._endpoint.silence)
        return response

    async def _delivered(self, request: httpx.Request, request_id: RequestId | None, **options: Any) -> httpx.Response:
        """What a message gets over SSE: nothing, the answer comes on the event stream."""
        response = await self._response_to(request, request_id, self._endpoint.patience, **options)
        if isinstance(response, RequestFault):
            instead = self._instead(request, request_id, response)
            if request_id is not None and self._shared is not None:
                await self._shared.add(as_event(instead.json()))
        elif response.is_redirect:
            return response
        else:
            await response.aclose()
        return httpx.Response(202, request=request)

    async def _response_to(
        self, request: httpx.Request, request_id: RequestId | None, limit: float, **options: Any
    ) -> httpx.Response | RequestFault:
        """The server's response to a message, or what became of the message instead. `limit`: seconds."""
        wire = _Wire()
        request.extensions["trace"] = wire.trace
        try:
            async with asyncio.timeout(limit):
                response = await self._send(request, wire, **options)
        except httpx.ConnectError as error:
            return RequestFault(FaultKind.NOT_SENT, why_unreachable(error))
        except (httpx.TransportError, TimeoutError) as error:
            if not wire.written:
                # Perhaps only busy: no reason to give up the session, on which other calls may be in flight.
                return RequestFault(FaultKind.NOT_SENT, "could not be reached in time")
            return _broke(error)
        except AccountUnknown:
            return RequestFault(FaultKind.NOT_SENT, NOT_LOOKED_UP)
        if isinstance(response, _AccountNotAccepted):
            return response.fault
        if response.is_redirect:
            following = next_request_within_origin(response)
            if following and request.extensions[_REDIRECTS] <= MOST_REDIRECTS and not _calls_a_tool(request):
                self._moved_to = following.url
                return await _without_body(response, follow=True)
            # A call is sent once: whoever sends it on may have acted. That a server has moved shows before, when the
            # session is opened.
            await response.aclose()
            return RequestFault(FaultKind.NO_ANSWER, "sent us elsewhere, where we do not go")
        answers_here = request_id is not None and not self._endpoint.is_sse
        fault = _fault_of(response, ("application/json", _EVENT_STREAM) if answers_here else ())
        if fault is None:
            return response
        if fault.kind is not FaultKind.NOTHING_DONE and request_id is not None:
            fault = replace(fault, said=await _beginning(response))
        await response.aclose()
        return fault

    async def _open_events(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """The event stream of an SSE session. Raises `FaultError`, and what httpx raises."""
        try:
            response = await self._send(request, _Wire(), **options)
        except AccountUnknown:
            raise FaultError(RequestFault(FaultKind.NOT_SENT, NOT_LOOKED_UP)) from None
        if isinstance(response, _AccountNotAccepted):
            raise FaultError(response.fault)
        if response.is_redirect:
            return await _without_body(response, follow=request.extensions[_REDIRECTS] <= MOST_REDIRECTS)
        if fault := _fault_of(response, (_EVENT_STREAM,)):
            await response.aclose()
            raise FaultError(fault)
        bounded = self._bound(response, None, Substitutes(too_large=self._skipped, one_answer=False), silence=None)
        self._shared = SharedEvents(bounded, partial(self._endpoint.signals.lost, "closed its event stream"))
        response.stream = self._shared
        return response

    def _skipped(self, request_id: int | None) -> bytes | None:
        if request_id is None:
            self._endpoint.signals.lost("sent a message that is too large to be read")
            return None
        return self._ending(request_id, TOO_LARGE)

    async def _other(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Sends all but messages: GET for the event stream or to resume one, DELETE to end the session."""
        request_id = _for_request.get()
        if request.method == "GET" and request.extensions[_REDIRECTS] == 1 and not await self._may_connect(request_id):
            return httpx.Response(503, request=request)
        try:
            response = await self._send(request, _Wire(), **options)
        except AccountUnknown:
            return httpx.Response(503, request=request)
        if isinstance(response, _AccountNotAccepted):
            return httpx.Response(401, request=request)
        if response.is_redirect:
            return await _without_body(response, follow=request.extensions[_REDIRECTS] <= MOST_REDIRECTS)
        if request.method != "GET" or not _is_event_stream(response) or _is_encoded(response):
            return await _without_body(response, follow=False)
        if request_id is None:
            self._bound(response, None, Substitutes(), silence=None)
        else:
            # If it ends, too, the SDK takes it up again.
            substitutes = Substitutes(too_large=lambda _: self._ending(request_id, TOO_LARGE))
            self._bound(response, request_id, substitutes, silence=self._endpoint.patience)
        return response

    async def _may_connect(self, request_id: RequestId | None) -> bool:
        """Wait before an event stream is opened (again) or resumed, longer each time. Returns false when it has been
        resumed too often."""
        if request_id is None:
            await asyncio.sleep(self._reconnecting.pause())
            return True
        while request_id not in self._resumed and len(self._resumed) >= MOST_RESUMED:
            del self._resumed[next(iter(self._resumed))]
        resumed = self._resumed.setdefault(request_id, ReconnectPauses(first=FIRST_PAUSE))
        await asyncio.sleep(resumed.pause())
        return resumed.times <= MOST_RESUMPTIONS

    async def _send(self, request: httpx.Request, wire: _Wire, **options: Any) -> httpx.Response | _AccountNotAccepted:
        """Send it with the person's account; once more with a newer token when the first is not accepted."""
        bearer = self._endpoint.bearer
        if bearer is None or not _same_origin(str(request.url), self._endpoint.url):
            return await self._bare(request, **options)
        # A call was prepared: its attempt has begun, and nothing is to be waited for.
        tokens = bearer.looked_up() if _calls_a_tool(request) else await bearer.current()
        if tokens is None:
            return _AccountNotAccepted("")
        response = await self._bare(_carrying(request, tokens), **options)
        if response.status_code == 401:
            await response.aclose()
            newer = await bearer.after_refusal(tokens)
            if newer is None:
                return _AccountNotAccepted(_challenge(response))
            wire.written = False
            response = await self._bare(_carrying(request, newer), **options)
        # A newer token would allow no more than this one, so for a scope that is missing none is asked for.
        if response.status_code == 401 or (response.status_code == 403 and _SCOPE_MISSING.search(_challenge(response))):
            await response.aclose()
            return _AccountNotAccepted(_challenge(response))
        return response

    async def _bare(self, request: httpx.Request, **options: Any) -> httpx.Response:
        try:
            return await super().send(request, **options)
        except httpx.ConnectError as error:
            self._endpoint.signals.lost(why_unreachable(error))
            raise

    def _ending(self, request_id: RequestId, reason: str) -> bytes:
        return as_event(ended_by_us(self._endpoint.faults, request_id, RequestFault(FaultKind.NO_ANSWER, reason)))

    def _instead(self, request: httpx.Request, request_id: RequestId | None, fault: RequestFault) -> httpx.Response:
        if request_id is None:
            # A notification that got lost is nothing to end a session for; what matters shows with the next request.
            log.debug("tool_server_notification_lost", fault=fault.kind.name, reason=fault.reason)
            return httpx.Response(202, request=request)
        return httpx.Response(200, json=ended_by_us(self._endpoint.faults, request_id, fault), request=request)

    def _bound(
        self, response: httpx.Response, request_id: RequestId | None, substitutes: Substitutes, *, silence: float | None
    ) -> BoundedEvents:
        """Make the response's stream a bounded one without the questions in it."""
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("the response has no stream")

        def asked(message: bytes) -> bool:
            question = elicitation_in(message, request_id, self._tell)
            if question is not None:
                self._endpoint.signals.asked(question)
            return question is not None

        patience = self._endpoint.patience
        bounded = BoundedEvents(response.stream, self._intake, substitutes, asked, silence=silence, patience=patience)
        response.stream = bounded
        return bounded

    async def _tell(self, message: dict[str, Any]) -> None:
        """Send a message of ours in the session; returns when it has arrived, or after `TOLD_WITHIN` while it is on the
        way. Nothing happens when the server is gone."""
        if not self.is_closed:
            await asyncio.wait({self._in_background(self._post(message))}, timeout=TOLD_WITHIN)

    async def _post(self, message: dict[str, Any]) -> None:
        url, headers = self._last_posted
        async with stream_within_origin(self, "POST", url, content=json.dumps(message), headers=headers):
            pass

    async def _whole(self, response: httpx.Response, request: httpx.Request, request_id: RequestId) -> httpx.Response:
        try:
            async with asyncio.timeout(self._endpoint.silence):
                body = await _read(response)
            if body is None:
                return self._instead(request, request_id, RequestFault(FaultKind.NO_ANSWER, TOO_LARGE))
            # In a thread: it is parsed once more by the SDK, and others may have their turn in between.
            body = await with_whole_characters(await asyncio.to_thread(_as_utf8, body))
        except (httpx.TransportError, TimeoutError) as error:
            return self._instead(request, request_id, _broke(error))
        except (ValueError, RecursionError):
            return self._instead(request, request_id, RequestFault(FaultKind.NO_ANSWER, "its answer is not JSON"))
        await asyncio.sleep(self._intake.pause(len(body)))
        return httpx.Response(response.status_code, headers=_plain(response.headers), content=body, request=request)


class _Wire:
    """Whether anything of a request was written to its connection."""

    def __init__(self) -> None:
        self.written = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by httpcore what it does, before it does it. The server hears nothing of it when a proxy is asked for a
        tunnel."""
        if event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT":
            self.written = True


class ReconnectPauses:
    """How long to wait before connecting again to what broke off: each time twice as long, unless it had held for a
    while. `first`: seconds before the first connection. `now`: a monotonic clock."""

    def __init__(
        self,
        *,
        first: float = 0.0,
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._now = now
        self._jitter = jitter
        self._connects_at: float | None = None
        self._pause = FIRST_PAUSE
        self.times = 0
        """How often it was connected, or is about to be."""

    def pause(self) -> float:
        """Seconds to wait now; connecting follows."""
        now, last = self._now(), self._connects_at
        self.times += 1
        pause = self._first
        if last is not None:
            self._pause = (
                FIRST_PAUSE if now - last >= SETTLED else min(2 * self._pause, LONGEST_RECONNECT_PAUSE_SECONDS)
            )
            pause = self._pause * (0.5 + self._jitter() / 2)
        self._connects_at = now + pause
        return pause


def _broke(error: Exception) -> RequestFault:
    return RequestFault(FaultKind.NO_ANSWER, f"the connection broke: {type(error).__name__}")


async def _beginning(response: httpx.Response) -> str:
    """What a response says, at most `LONGEST_BODY` bytes of it."""
    if _is_encoded(response):
        return ""
    read = b""
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            async for chunk in in_pieces(response.aiter_raw()):
                read += chunk
                if len(read) >= LONGEST_BODY:
                    break
    except (httpx.TransportError, TimeoutError) as error:
        log.debug("tool_server_said_no_more", error=type(error).__name__)
    return read[:LONGEST_BODY].decode("utf-8", "replace")


async def _read(response: httpx.Response) -> bytes | None:
    """The body, as it was sent; `None`: it is larger than is parsed, and what follows is not read."""
    weight = Weight()
    read = []
    try:
        async for chunk in response.aiter_raw():
            for piece in pieces(chunk):
                weight.feed(piece)
                if weight.too_large:
                    return None
                await asyncio.sleep(0)
            read.append(chunk)
    finally:
        await response.aclose()
    return b"".join(read)


async def _without_body(response: httpx.Response, *, follow: bool) -> httpx.Response:
    """The response without its body, which the SDK would read to its end, however long. `follow`: whether a redirect
    may be followed."""
    await response.aclose()
    bare = httpx.Response(response.status_code, headers=_plain(response.headers), request=response.request)
    bare.next_request = response.next_request if follow else None
    return bare


def _plain(headers: httpx.Headers) -> httpx.Headers:
    """The headers of a response whose body is here, whole and decoded."""
    about_the_body = {"content-length", "content-encoding", "transfer-encoding"}
    return httpx.Headers([(name, value) for name, value in headers.multi_items() if name not in about_the_body])


def _is_encoded(response: httpx.Response) -> bool:
    return is_encoded(response.headers.get("content-encoding"))


def _carrying(request: httpx.Request, tokens: TokenSet) -> httpx.Request:
    request.headers["authorization"] = f"Bearer {tokens.access_token}"
    return request


def _challenge(response: httpx.Response) -> str:
    return str(response.headers.get("www-authenticate", ""))[:LONGEST_CHALLENGE]


def _as_utf8(body: bytes) -> bytes:
    """A JSON text with the replacement character for what is no character. Raises `ValueError` or `RecursionError` for
    what is no JSON."""
    text = body.decode(json.detect_encoding(body), "replace")
    json.loads(text)
    return text.encode()


def _is_event_stream(response: httpx.Response) -> bool:
    return bool(response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM))


def _same_origin(url: str, other: str) -> bool:
    """Whether a token for `other` may be sent to `url`: the same host and port, encrypted if the other is."""
    to, meant = urlsplit(url), urlsplit(other)
    upgraded = (meant.scheme, to.scheme) == ("http", "https") and meant.port is None and to.port is None
    same = (to.scheme, _port(to)) == (meant.scheme, _port(meant))
    return to.hostname == meant.hostname and (same or upgraded)


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _fault_of(response: httpx.Response, wanted: tuple[str, ...]) -> RequestFault | None:
    """What a response proves that is none of the protocol. `wanted`: the types of which one has to come."""
    status = response.status_code
    if status in _NOTHING_DONE:
        return RequestFault(FaultKind.NOTHING_DONE, f"{_NOTHING_DONE[status]} (HTTP {status})")
    if status == 404:
        return RequestFault(FaultKind.SESSION_ENDED, "does not know the session or the address (HTTP 404)")
    if status >= 400:
        return RequestFault(FaultKind.NO_ANSWER, f"HTTP {status}")
    if wanted and not response.headers.get("content-type", "").lower().startswith(wanted):
        return RequestFault(FaultKind.NO_ANSWER, f"HTTP {status} without an MCP message")
    if wanted and _is_encoded(response):
        return RequestFault(FaultKind.NO_ANSWER, "its answer is compressed, which nobody asked for")
    return None


def _calls_a_tool(request: httpx.Request) -> bool:
    if request.method != "POST":
        return False
    message = json.loads(request.content)
    return isinstance(message, dict) and message.get("method") == "tools/call"


def _request_id(message: object) -> RequestId | None:
    """The id of the JSON-RPC request that a message is; `None` for a notification or a response."""
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return request_id if isinstance(request_id, str | int) else None
