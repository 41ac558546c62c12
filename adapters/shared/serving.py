"""The port on which everything listens, and who may hold on to it.

aiohttp waits for the rest of a request for as long as its client keeps the connection. Here a request has to arrive
within a time, and the bodies of those that arrive share a limit of memory. When there are as many connections as the
process can have, the one that has been without a request for longest is closed, so that a new one is answered. aiohttp
has no option for that: each of its protocols is wrapped in one that sees the bytes arrive, and a middleware says when
they have become a request.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import StreamReader, web
from aiohttp.typedefs import Handler

from adapters.shared.requests import why_not_from_here

log = structlog.get_logger(__name__)
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
QUIET_SECONDS = 60.0
"""Between two lines of the log that say that connections had to be closed."""
MOST_CONNECTIONS = 10_000
"""Connections at a time. An idle one takes about 6 kB of memory."""
MACOS_OPEN_FILES = 10_240
"""What macOS grants when it calls its hard limit infinite (`OPEN_MAX`)."""
HostAndPort = tuple[str, int]
Handle = Callable[[Any], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What connections may take."""

    header_seconds: float = 10.0
    """Seconds from connecting, or from the first byte of a further request, until its headers are there."""
    body_seconds: float = 20.0
    """Seconds from then until its body is there, unless `body_may_take` says otherwise. The largest that is taken
    without that, 1 MiB, needs 53 kB/s."""
    connections: int = MOST_CONNECTIONS
    body_bytes: int = 64 * 1024 * 1024
    """Bytes of all unfinished bodies together: Slack's have to be read whole before it is known who sends them."""


def raise_open_files_limit() -> int:
    """Let this process open as many files as the system allows it. Returns how many it may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, MACOS_OPEN_FILES):
        if soft in (hard, resource.RLIM_INFINITY) or (wanted != resource.RLIM_INFINITY and wanted <= soft):
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MOST_CONNECTIONS * 2 if soft == resource.RLIM_INFINITY else soft


def limits_for(open_files: int) -> Limits:
    """A quarter of the open files stays for the databases, tool servers, and requests to elsewhere."""
    return Limits(connections=min(MOST_CONNECTIONS, open_files * 3 // 4))


@asynccontextmanager
async def started_server(
    application: web.Application, host: str, port: int, limits: Limits
) -> AsyncIterator[HostAndPort]:
    """Serve `application` within `limits`. Gives host and port as they are; for port 0 the system chooses one.

    Raises `OSError`: it cannot listen there.
    """
    connections = application[CONNECTIONS] = HttpConnections(limits)
    application.middlewares.insert(0, connections.middleware)
    # Nobody who sends us something compresses it, and a kilobyte can become a megabyte: aiohttp would inflate it in the
    # event loop, and even what no route wants.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0, auto_decompress=False)
    await runner.setup()
    loop, make = asyncio.get_running_loop(), runner.server
    assert make is not None  # noqa: S101  # after `setup`
    make.request_handler = _each_in_its_turn(make.request_handler)
    loop.set_exception_handler(connections.loop_exception)
    try:
        server = await loop.create_server(lambda: connections.watch(make()), host, port, backlog=128)
        try:
            host, port = server.sockets[0].getsockname()[:2]
            yield host, port
        finally:
            server.close()
    finally:
        loop.set_exception_handler(None)
        await runner.cleanup()


def _each_in_its_turn(handle: Handle) -> Handle:
    """Let everybody else go on before a request is handled. A client may send thousands in one piece, and from Python
    3.12 on aiohttp answers those that wait for nothing one after the other, in one step of the event loop. Around all
    that it does for a request: not even middlewares see one that expects what nobody knows."""

    async def handle_in_turn(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0)
        return await handle(request)

    return handle_in_turn


class HttpConnections:
    """All open connections: those with a request in progress, and idle ones."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # Both in the order in which it became so: the first is the one that has been in this state for longest.
        self._resting: dict[_Watched, None] = {}
        self._working: dict[_Watched, None] = {}
        self._watched: dict[web.RequestHandler, _Watched] = {}
        self._arriving: dict[_Watched, int] = {}
        """The bytes that are there of bodies that are not whole, in the order in which they began."""
        self._arrived = 0
        self._said_at = float("-inf")

    def watch(self, protocol: web.RequestHandler) -> asyncio.Protocol:
        """The protocol of a new connection, around aiohttp's own."""
        watched = self._watched[protocol] = _Watched(protocol, self)
        return watched

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The headers of a request have arrived. Outermost, so that all that is done for it counts as work."""
        if any(each.strip().lower() not in {"", "identity"} for each in request.headers.getall("Content-Encoding", ())):
            handler = _not_compressed
        watched = self._watched.get(request.protocol)
        if watched is None:
            return await handler(request)
        self._resting.pop(watched, None)
        self._working[watched] = None
        watched.begin(request.content)
        try:
            return await handler(request)
        except (ConnectionError, web.RequestPayloadError):
            if request.transport is not None and not request.transport.is_closing():
                raise
            return web.Response(status=408)  # to nobody: it failed because the connection is closed
        finally:
            watched.end()
            if watched in self._working:  # it is not, when it was closed meanwhile
                del self._working[watched]
                self._resting[watched] = None

    def body_may_take(self, request: web.Request, seconds: float) -> None:
        """As the function."""
        if (watched := self._watched.get(request.protocol)) is not None:
            watched.body_may_take(seconds)

    def opened(self, watched: _Watched) -> None:
        """Called when a connection is made; if that makes too many, another one is closed."""
        if len(self._resting) + len(self._working) >= self.limits.connections:
            self._close_longest_open(1, "as many connections as can be had")
        self._resting[watched] = None

    def arriving(self, watched: _Watched, count: int) -> None:
        """So many bytes of its body are there, and it is not whole. If all together have too many, those are closed
        that have been arriving for longest."""
        self._arrived += count - self._arriving.get(watched, 0)
        self._arriving[watched] = count
        while self._arrived > self.limits.body_bytes:
            self._close(next(iter(self._arriving)))
            self._say("too many bytes of unfinished bodies")

    def arrived(self, watched: _Watched) -> None:
        """Called when a body is whole, or no longer expected."""
        self._arrived -= self._arriving.pop(watched, 0)

    def closed(self, watched: _Watched) -> None:
        """Called when a connection has ended."""
        self.arrived(watched)
        self._resting.pop(watched, None)
        self._working.pop(watched, None)
        self._watched.pop(watched.protocol, None)

    def loop_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """When no connection can be accepted for want of open files, the loop pauses for a second; close some for when
        it goes on. Whatever else goes wrong is reported as always."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE) and "socket" in context:
            self._close_longest_open(max(1, len(self._resting) // 10), "no more files can be opened")
        else:
            loop.default_exception_handler(context)

    def _close_longest_open(self, count: int, why: str) -> None:
        """Close those that have been idle for longest. When none is idle, the one whose request has taken longest: that
        is an event stream, and pages open theirs again."""
        for _ in range(count):
            candidates = self._resting or self._working
            if not candidates:
                return
            self._close(next(iter(candidates)))
        self._say(why)

    def _close(self, watched: _Watched) -> None:
        self.closed(watched)
        watched.abort()

    def _say(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._said_at >= QUIET_SECONDS:
            self._said_at = now
            log.warning("connections_closed", why=why, open=len(self._resting) + len(self._working))


CONNECTIONS = web.AppKey("connections", HttpConnections)


def body_may_take(request: web.Request, seconds: float) -> None:
    """The rest of a request's body has so many seconds from now on: it is known who sends it, and it may be large."""
    if (connections := request.config_dict.get(CONNECTIONS)) is not None:
        connections.body_may_take(request, seconds)


async def _not_compressed(_: web.Request) -> web.StreamResponse:
    return web.json_response({"error": "Send the body as it is: compressed ones are not read."}, status=415)


class _Watched(asyncio.Protocol):
    """One connection: passes everything on, and has a timer for what is to arrive."""

    def __init__(self, protocol: web.RequestHandler, connections: HttpConnections) -> None:
        self.protocol = protocol
        self.aborted = False
        self._connections = connections
        self._limits = connections.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body: StreamReader | None = None
        self._received = False
        """Whether bytes of a request have arrived whose headers are not all there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when a connection begins: its first request is expected."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # of a server on TCP
        self._transport = transport
        self.protocol.connection_made(transport)
        self._within(self._limits.header_seconds, self._headers_overdue)
        self._connections.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived, of a body that is not complete, or of a further request."""
        if self._body is None or self._body.is_eof():
            self._received = True
            if self._body is None and self._timer is None:
                self._within(self._limits.header_seconds, self._headers_overdue)
        self.protocol.data_received(data)
        self._count_body()

    def begin(self, body: StreamReader) -> None:
        """The headers of a request are there."""
        self._body, self._received = body, False
        self._stop_timer()
        if not body.is_eof():
            self._within(self._limits.body_seconds, self._body_overdue)
        self._count_body()

    def body_may_take(self, seconds: float) -> None:
        """So long from now on."""
        if self._body is not None and not self._body.is_eof() and not self.aborted:
            self._stop_timer()
            self._within(seconds, self._body_overdue)

    def end(self) -> None:
        """Called when the request is answered. Another one may have begun to arrive meanwhile."""
        self._body = None
        self._connections.arrived(self)
        self._stop_timer()
        if self._received and not self.aborted:
            self._within(self._limits.header_seconds, self._headers_overdue)

    def eof_received(self) -> None:
        """The client sends no more."""
        self.protocol.eof_received()

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Called when the peer has read what was written."""
        self.protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection has ended."""
        self.aborted = True
        self._stop_timer()
        self._connections.closed(self)
        self.protocol.connection_lost(exc)

    def abort(self) -> None:
        """Close it at once, whatever is still to be read or written."""
        self.aborted = True
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def _count_body(self) -> None:
        if self._body is None or self.aborted:
            return
        if self._body.is_eof():
            self._connections.arrived(self)
        else:
            self._connections.arriving(self, self._body.total_bytes)

    def _headers_overdue(self) -> None:
        if self._received and self._transport is not None and not self._transport.get_write_buffer_size():
            self._transport.write(TOO_SLOW)
        self.abort()

    def _body_overdue(self) -> None:
        if self._body is not None and not self._body.is_eof():
            self.abort()

    def _within(self, seconds: float, overdue: Callable[[], None]) -> None:
        self._timer = self._loop.call_later(seconds, overdue)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# --------------------- `GET /health-check`: that it serves, for everybody; how it is, for operators

Details = Callable[[], Awaitable[Mapping[str, Any]]]
MaySee = Callable[[web.Request], Awaitable[bool]]


async def _nobody(_request: web.Request) -> bool:
    return False


def health_check(
    details: Details, token: str | None, may_see: MaySee = _nobody
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler. `details` are for this machine, for whoever has the `token`, and for whoever `may_see` them; it
    answers 200 to all."""

    async def handle(request: web.Request) -> web.Response:
        about = {"status": "ok"}
        if _may_see_details(request.headers, request.remote, token) or await may_see(request):
            return web.json_response(about | dict(await details()), headers={"Cache-Control": "no-store"})
        return web.json_response(about)

    return handle


def metrics_page(
    page: Callable[[], Awaitable[bytes]], content_type: str, token: str | None, may_see: MaySee = _nobody
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler of `GET /metrics`, for those who may see the details of the health check; 403 for others."""

    async def handle(request: web.Request) -> web.Response:
        if _may_see_details(request.headers, request.remote, token) or await may_see(request):
            headers = {"Content-Type": content_type, "Cache-Control": "no-store"}
            return web.Response(body=await page(), headers=headers)
        return web.json_response({"error": "Metrics are for this machine, and for HEALTH_TOKEN."}, status=403)

    return handle


def readiness(is_ready: Callable[[], bool]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler of `GET /ready`, for whoever hands out requests to several processes: 200 while this one takes work,
    else 503."""

    async def handle(_request: web.Request) -> web.Response:
        ready = is_ready()
        about = {"status": "ready" if ready else "not ready"}
        return web.json_response(about, status=200 if ready else 503, headers={"Cache-Control": "no-store"})

    return handle


def last_answers(ending: asyncio.Event) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """For `on_response_prepare`: once the process ends, each answer says that it is the last on its connection. Whoever
    keeps connections sends nothing more on this one, which would be closed in its face."""

    async def say_so(_request: web.Request, response: web.StreamResponse) -> None:
        if ending.is_set():
            response.headers["Connection"] = "close"
            response.force_close()

    return say_so


def _may_see_details(headers: Mapping[str, str], remote: str | None, token: str | None) -> bool:
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    if token is not None and scheme.lower() == "bearer":
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode())
    return not why_not_from_here(headers, remote)
