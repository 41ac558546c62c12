"""ASGI applications behind aiohttp: one request at a time, its answer streamed, for clients that may go away.

Not `aiohttp-asgi`: its `receive` never says that the client has gone, and says after the body over and over that there
is no more of it, which keeps whoever waits for the end busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from time import monotonic
from typing import Any

from aiohttp import web

from adapters.shared.requests import is_there
from bot.events import happens

AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], AsgiReceive, AsgiSend], Awaitable[None]]

LOOK_SECONDS = 2.0
"""Seconds between two looks whether the client of a long answer is still there: aiohttp tells nobody."""
WRITE_SECONDS = 10.0
"""A client that takes nothing for so long has gone away."""
_TAKEN_SECONDS = 0.02
"""Seconds between two looks whether the last of an answer has been taken."""
_OF_THE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding"})
"""Headers that are aiohttp's to send."""


class AsgiExchange:
    """One request and its answer by an ASGI application.

    Args:
        body: of the request, all of it: whoever knows its limits has read it.
        headers: of the answer, unless the application says otherwise.
        scope: what the application finds in its scope beside what HTTP says.
    """

    def __init__(
        self,
        request: web.Request,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self._request = request
        self._body: bytes | None = body
        self._headers = headers or {}
        self._scope = scope or {}
        self._response: web.StreamResponse | None = None
        self._is_complete = False
        self._left = asyncio.Event()

    def leave(self) -> None:
        """Nobody waits for the answer any more: the application is told that its client has gone. One that is still
        there gets the end of what was begun."""
        self._left.set()

    async def run(self, app: AsgiApp) -> web.StreamResponse:
        """Have it answered. Raises what the application raises; an answer that was begun breaks off then."""
        try:
            await app(self._asgi_scope(), self._receive, self._send)
        except BaseException:
            self._break_off()
            raise
        if self._response is None:
            if is_there(self._request) and not self._left.is_set():
                raise RuntimeError("the application has not answered")
            return web.Response(status=503)  # to nobody, or to whoever does not wait for it any more
        if not self._is_complete:
            if not self._left.is_set():
                self._break_off()
            else:
                await self._written(self._response.write_eof)
        return self._response

    async def is_taken(self) -> bool:
        """Whether the system has taken all that was written so far, for a connection that nobody has closed."""
        until = monotonic() + WRITE_SECONDS
        while is_there(self._request) and (transport := self._request.transport) is not None:
            if not transport.get_write_buffer_size():
                return True
            if monotonic() >= until:
                self._break_off()
                break
            await asyncio.sleep(_TAKEN_SECONDS)
        return False

    def _asgi_scope(self) -> dict[str, Any]:
        request = self._request
        return {
            "type": "http",
            # Before 2.4 an application listens for the end of the connection, after which what it sends goes nowhere.
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": f"{request.version.major}.{request.version.minor}",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.rel_url.raw_path.encode(),
            "query_string": request.rel_url.raw_query_string.encode(),
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": (request.remote, 0) if request.remote else None,
            "server": None,
            **self._scope,
        }

    async def _receive(self) -> AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while is_there(self._request) and not self._left.is_set() and not self._is_complete:
            await happens(self._left, LOOK_SECONDS)
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        """Write it; what comes after the end of the connection goes nowhere, as ASGI has it."""
        if message["type"] == "http.response.start":
            begun = self._response = self._answer(message)
            await self._written(partial(begun.prepare, self._request))
        elif message["type"] == "http.response.body":
            response = self._response
            if response is None:
                raise RuntimeError("the application sends a body before its headers")
            if body := bytes(message.get("body", b"")):
                await self._written(partial(response.write, body))
            if not message.get("more_body", False):
                self._is_complete = True
                await self._written(response.write_eof)

    def _answer(self, message: AsgiMessage) -> web.StreamResponse:
        answer = web.StreamResponse(status=message["status"])
        for name, value in message.get("headers", ()):
            if (header := name.decode("latin-1")).lower() not in _OF_THE_CONNECTION:
                answer.headers.add(header, value.decode("latin-1"))
        for header, text in self._headers.items():
            answer.headers.setdefault(header, text)
        return answer

    async def _written(self, write: Callable[[], Awaitable[Any]]) -> bool:
        """Whether it could be written."""
        if not is_there(self._request):
            return False
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await write()
        except (ConnectionError, TimeoutError):
            self._break_off()
            return False
        return True

    def _break_off(self) -> None:
        """Close the connection in the middle of an answer, so that nobody takes what there is for all of it."""
        if self._response is not None and self._response.prepared and self._request.transport is not None:
            self._request.transport.abort()
