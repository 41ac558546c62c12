"""An HTTP client for MCP in which the failure of one request concerns that request alone.

The MCP SDK lets an HTTP error (a 401, a refused connection) tear down the whole session, with every other call that
is in flight on it; and a response that breaks off leaves its caller waiting. So failures are turned into what the
protocol has for them, a JSON-RPC error in reply to that request, with a code that says whether the server can have
acted (`replies.Fault`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx
import structlog

from adapters.tool_servers.accounts import AccountUnknown, Bearer
from adapters.tool_servers.event_stream import AnswerStream, RequestId
from adapters.tool_servers.replies import Fault
from bot.accounts.ports import Tokens

log = structlog.get_logger(__name__)

LONGEST_CHALLENGE = 2_000
"""Characters of a `WWW-Authenticate` header."""

_UNKNOWN_OUTCOME = {408, 499}
"""Client error statuses that proxies give when the server was too slow: it may have acted."""

_SCOPE_MISSING = re.compile(r"""\berror\s*=\s*"?insufficient_scope\b""", re.IGNORECASE)

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
    """The same once the server has asked a person something."""
    unreachable: Callable[[str], None]
    """Told, with a reason, when nothing listens at the address (any more)."""
    asked: Callable[[RequestId, RequestId], None]
    """Told which question (first) the server asks for which request, before the question itself arrives."""
    bearer: Bearer | None = None
    """Whose account the messages carry; `None`: nobody's."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The person has no account connected, or the server does not accept it."""

    challenge: str


class McpHttpClient(httpx.AsyncClient):
    """Sends MCP messages to one endpoint."""

    def __init__(self, endpoint: Endpoint, **settings: Any) -> None:
        super().__init__(**settings)
        self._endpoint = endpoint

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """As `httpx.AsyncClient.send`; a POST that carries a JSON-RPC request always gets a JSON-RPC answer."""
        # How long an answer may take is watched here: a server may wait for a person. The listening stream says nothing
        # for hours; whether the server is alive is asked with pings.
        request.extensions = {**request.extensions, "timeout": {**request.extensions.get("timeout", {}), "read": None}}
        request.headers["accept-encoding"] = "identity"  # so that events can be read and added here
        if request.method != "POST":
            return await self._other(request, **options)
        request_id = _request_id(request)
        _for_request.set(request_id)
        try:
            async with asyncio.timeout(self._endpoint.silence):
                response = await self._send(request, **options)
        except httpx.ConnectError:
            return _instead(request, request_id, Fault.NOT_SENT, "cannot be reached")
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            # Perhaps only busy: no reason to give up the session, on which other calls may be in flight.
            return _instead(request, request_id, Fault.REFUSED, "could not be reached in time")
        except (httpx.TransportError, TimeoutError) as error:
            return _instead(request, request_id, Fault.NO_ANSWER, f"the connection broke: {type(error).__name__}")
        except AccountUnknown:
            return _instead(request, request_id, Fault.REFUSED, "was not asked: the account could not be looked up")
        if isinstance(response, _Refusal):
            data = {"challenge": response.challenge}
            return _instead(request, request_id, Fault.SIGN_IN, "wants this person to sign in", data)
        return await self._checked(response, request, request_id)

    async def _other(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Listening, taking up a stream that broke off, and taking leave."""
        try:
            response = await self._send(request, **options)
        except AccountUnknown:
            return httpx.Response(503, request=request)
        if isinstance(response, _Refusal):
            return httpx.Response(401, request=request)
        request_id = _for_request.get()
        if request_id is not None and _is_event_stream(response):
            # If it ends, too, the SDK takes it up again.
            self._attend(response, request_id, last_words=b"", silence=self._endpoint.patience)
        return response

    async def _send(self, request: httpx.Request, **options: Any) -> httpx.Response | _Refusal:
        """Send it with the person's account; once more with a newer token when the first is not accepted."""
        bearer = self._endpoint.bearer
        if bearer is None or not _same_origin(str(request.url), self._endpoint.url):
            return await self._bare(request, **options)
        tokens = await bearer.current()
        if tokens is None:
            return _Refusal("")
        response = await self._bare(_carrying(request, tokens), **options)
        if response.status_code == 401:
            await response.aclose()
            newer = await bearer.after_refusal(tokens)
            if newer is None:
                return _Refusal(_challenge(response))
            response = await self._bare(_carrying(request, newer), **options)
        # A newer token would allow no more than this one, so for a scope that is missing none is asked for.
        if response.status_code == 401 or (response.status_code == 403 and _SCOPE_MISSING.search(_challenge(response))):
            await response.aclose()
            return _Refusal(_challenge(response))
        return response

    async def _bare(self, request: httpx.Request, **options: Any) -> httpx.Response:
        try:
            return await super().send(request, **options)
        except httpx.ConnectError:
            self._endpoint.unreachable("cannot be reached")
            raise

    async def _checked(
        self, response: httpx.Response, request: httpx.Request, request_id: RequestId | None
    ) -> httpx.Response:
        if response.is_redirect:
            return response  # the SDK follows it within its origin
        fault = _fault_of(response, expects_answer=request_id is not None)
        if fault is not None:
            await response.aclose()
            return _instead(request, request_id, *fault)
        if request_id is None:
            return response
        if _is_event_stream(response):
            gone = _error(request_id, Fault.NO_ANSWER, "the connection broke before the answer")
            self._attend(response, request_id, json.dumps(gone).encode(), self._endpoint.silence)
            return response
        return await self._whole(response, request, request_id)

    def _attend(self, response: httpx.Response, request_id: RequestId, last_words: bytes, silence: float) -> None:
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = AnswerStream(
                response.stream,
                last_words,
                lambda question: self._endpoint.asked(question, request_id),
                silence=silence,
                patience=self._endpoint.patience,
            )

    async def _whole(self, response: httpx.Response, request: httpx.Request, request_id: RequestId) -> httpx.Response:
        try:
            async with asyncio.timeout(self._endpoint.silence):
                json.loads(await response.aread())
        except (httpx.TransportError, TimeoutError) as error:
            return _instead(request, request_id, Fault.NO_ANSWER, f"the connection broke: {type(error).__name__}")
        except ValueError:
            return _instead(request, request_id, Fault.NO_ANSWER, "its answer is not JSON")
        return response


def _carrying(request: httpx.Request, tokens: Tokens) -> httpx.Request:
    request.headers["authorization"] = f"Bearer {tokens.access_token}"
    return request


def _challenge(response: httpx.Response) -> str:
    return str(response.headers.get("www-authenticate", ""))[:LONGEST_CHALLENGE]


def _is_event_stream(response: httpx.Response) -> bool:
    return bool(response.headers.get("content-type", "").lower().startswith("text/event-stream"))


def _same_origin(url: str, other: str) -> bool:
    """Whether a token for `other` may be sent to `url`: the same host and port, encrypted if the other is."""
    to, meant = urlsplit(url), urlsplit(other)
    upgraded = (meant.scheme, to.scheme) == ("http", "https") and meant.port is None and to.port is None
    same = (to.scheme, _port(to)) == (meant.scheme, _port(meant))
    return to.hostname == meant.hostname and (same or upgraded)


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _fault_of(response: httpx.Response, *, expects_answer: bool) -> tuple[Fault, str] | None:
    status = response.status_code
    if status in {401, 403}:
        return Fault.REFUSED, f"did not accept our credentials (HTTP {status})"
    if status == 404:
        return Fault.SESSION_ENDED, "does not know the session or the address (HTTP 404)"
    if status in _UNKNOWN_OUTCOME or status >= 500:
        return Fault.NO_ANSWER, f"HTTP {status}"
    if status >= 400:
        return Fault.REFUSED, f"refused the request (HTTP {status})"
    kind = response.headers.get("content-type", "").lower()
    if expects_answer and not kind.startswith(("application/json", "text/event-stream")):
        return Fault.NO_ANSWER, f"HTTP {status} without an MCP message"
    return None


def _request_id(request: httpx.Request) -> RequestId | None:
    """The id of the JSON-RPC request in a POST; `None` for a notification or a response."""
    message = json.loads(request.content)
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return request_id if isinstance(request_id, str | int) else None


def _instead(
    request: httpx.Request, request_id: RequestId | None, fault: Fault, reason: str, data: Any = None
) -> httpx.Response:
    if request_id is None:
        # A notification that got lost is nothing to end a session for; what matters shows with the next request.
        log.debug("tool_server_notification_lost", fault=fault.name, reason=reason)
        return httpx.Response(202, request=request)
    return httpx.Response(200, json=_error(request_id, fault, reason, data), request=request)


def _error(request_id: RequestId, fault: Fault, reason: str, data: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": int(fault), "message": reason, "data": data}}
