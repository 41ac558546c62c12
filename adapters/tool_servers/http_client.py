"""An HTTP client for MCP in which the failure of one request concerns that request alone.

The MCP SDK lets an HTTP error (a 401, a refused connection) tear down the whole session, with every other call that
is in flight on it; and a response that breaks off leaves its caller waiting. So failures are turned into what the
protocol has for them, a JSON-RPC error in reply to that request, with a code that says whether the server can have
acted (`replies.Fault`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import structlog

from adapters.tool_servers.replies import Fault

log = structlog.get_logger(__name__)

RequestId = str | int

_UNKNOWN_OUTCOME = {408, 499}
"""Client error statuses that proxies give when the server was too slow: it may have acted."""


class McpHttpClient(httpx.AsyncClient):
    """Sends MCP messages. `on_unreachable` is told, with a reason, when nothing listens at the address (any more)."""

    def __init__(self, *, on_unreachable: Callable[[str], None], **settings: Any) -> None:
        super().__init__(**settings)
        self._on_unreachable = on_unreachable

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """As `httpx.AsyncClient.send`; a POST that carries a JSON-RPC request always gets a JSON-RPC answer."""
        if request.method != "POST":
            # The listening stream says nothing for hours; whether the server is alive is asked with pings.
            timeout = {**request.extensions.get("timeout", {}), "read": None}
            request.extensions = {**request.extensions, "timeout": timeout}
            return await self._send(request, **options)
        request.headers["accept-encoding"] = "identity"  # so that an event can be added to the stream
        request_id = _request_id(request)
        try:
            response = await self._send(request, **options)
        except httpx.ConnectError:
            return _instead(request, request_id, Fault.NOT_SENT, "cannot be reached")
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            # Perhaps only busy: no reason to give up the session, on which other calls may be in flight.
            return _instead(request, request_id, Fault.REFUSED, "could not be reached in time")
        except httpx.TransportError as error:
            return _instead(request, request_id, Fault.NO_ANSWER, f"the connection broke: {type(error).__name__}")
        return await _checked(response, request, request_id)

    async def _send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        try:
            return await super().send(request, **options)
        except httpx.ConnectError:
            self._on_unreachable("cannot be reached")
            raise


async def _checked(response: httpx.Response, request: httpx.Request, request_id: RequestId | None) -> httpx.Response:
    if response.is_redirect:
        return response  # the SDK follows it within its origin
    fault = _fault_of(response, expects_answer=request_id is not None)
    if fault is None:
        if request_id is None:
            return response
        return await _completed(response, request, request_id)
    await response.aclose()
    return _instead(request, request_id, *fault)


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


async def _completed(response: httpx.Response, request: httpx.Request, request_id: RequestId) -> httpx.Response:
    if response.headers["content-type"].lower().startswith("text/event-stream"):
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _Completed(response.stream, request_id)
        return response
    try:
        body = await response.aread()
        json.loads(body)
    except httpx.TransportError as error:
        return _instead(request, request_id, Fault.NO_ANSWER, f"the connection broke: {type(error).__name__}")
    except ValueError:
        return _instead(request, request_id, Fault.NO_ANSWER, "its answer is not JSON")
    return response


class _Completed(httpx.AsyncByteStream):
    """An event stream that ends with an answer.

    Once the real answer has come the SDK reads no further, so the one added here is seen only where it is missing.
    A stream whose events have ids is left alone: the SDK takes it up again where it broke off.
    """

    def __init__(self, stream: httpx.AsyncByteStream, request_id: RequestId) -> None:
        self._stream = stream
        self._request_id = request_id

    async def __aiter__(self) -> AsyncIterator[bytes]:
        resumable = False
        tail = b"\n"
        try:
            async for chunk in self._stream:
                resumable = resumable or b"\nid:" in tail + chunk
                tail = (tail + chunk)[-3:]
                yield chunk
        except httpx.TransportError as error:
            if resumable:
                raise
            log.debug("tool_server_stream_broke", error=type(error).__name__)
        if not resumable:
            error_message = _error(self._request_id, Fault.NO_ANSWER, "the connection broke before the answer")
            yield b"\n\nevent: message\ndata: " + json.dumps(error_message).encode() + b"\n\n"

    async def aclose(self) -> None:
        await self._stream.aclose()


def _request_id(request: httpx.Request) -> RequestId | None:
    """The id of the JSON-RPC request in a POST; `None` for a notification or a response."""
    message = json.loads(request.content)
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return request_id if isinstance(request_id, str | int) else None


def _instead(request: httpx.Request, request_id: RequestId | None, fault: Fault, reason: str) -> httpx.Response:
    if request_id is None:
        # A notification that got lost is nothing to end a session for; what matters shows with the next request.
        log.debug("tool_server_notification_lost", fault=fault.name, reason=reason)
        return httpx.Response(202, request=request)
    return httpx.Response(200, json=_error(request_id, fault, reason), request=request)


def _error(request_id: RequestId, fault: Fault, reason: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": int(fault), "message": reason}}
