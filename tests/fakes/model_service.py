"""What the stand-ins of Anthropic's and Google's services share: a real server on loopback that refuses what the
service would refuse, and otherwise answers what a test tells it to, in the service's own events."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from tests.fakes.openai_server import Brain, Reply, Request


class RefusedError(Exception):
    """What the service would say about a request that it does not take; it is a 400."""


class ModelService(ABC):
    """A running stand-in: where it is, and what it was asked."""

    keep_alive = b": keep-alive\n\n"
    """What is sent while nothing is said."""
    first_text = 0
    """Number of the event with the first text of an answer, after which it may be held back."""

    def __init__(self, script: Sequence[Reply] | Brain) -> None:
        self.requests: list[Request] = []
        """The journal: the body of every request, in order."""
        self.headers: list[Mapping[str, str]] = []
        self.refused: list[str] = []
        """Why it refused requests; a test that is not about that wants it empty."""
        self.times: list[float] = []
        """When each request came, `time.monotonic()`."""
        self.base_url = ""
        self._arrived = asyncio.Condition()
        self._brain = script if callable(script) else _play(script)

    def replies_with(self, brain: Brain) -> None:
        """From now on answers differently."""
        self._brain = brain

    @abstractmethod
    def check(self, request: web.Request, body: Request) -> None:
        """Raises `RefusedError` for what the service would refuse."""

    @abstractmethod
    def events(self, body: Request, reply: Reply) -> Iterator[bytes]:
        """An answer as the service streams it, one server-sent event after the other."""

    @abstractmethod
    def error(self, status: int, error: Mapping[str, Any]) -> Any:
        """The JSON body of an error. `error`: what a test says of it."""

    async def asked(self, count: int, *, within: float = 10.0) -> None:
        """Wait until so many requests have come. Raises `TimeoutError`."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: Request = await request.json()
        async with self._arrived:
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
            self.times.append(time.monotonic())
            self._arrived.notify_all()
        try:
            self.check(request, body)
        except RefusedError as problem:
            self.refused.append(str(problem))
            return web.json_response(self.error(400, {"message": str(problem)}), status=400)
        reply = self._brain(body)
        if not isinstance(reply, Reply):
            reply = await reply
        if reply.raw is not None:
            return web.Response(text=reply.raw, content_type="text/event-stream")
        if reply.status != 200:
            if isinstance(reply.error, str):
                return web.Response(status=reply.status, text=reply.error, headers=reply.headers)
            return web.json_response(self.error(reply.status, reply.error), status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **reply.headers})
        with suppress(ConnectionResetError):  # whoever asked has gone: nobody is left to answer
            await self._stream(request, response, body, reply)
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, body: Request, reply: Reply) -> None:
        await response.prepare(request)
        for number, event in enumerate(self.events(body, reply)):
            if number == reply.drop_after:
                if not reply.end_early and request.transport is not None:
                    request.transport.abort()
                return
            if reply.pause:
                await asyncio.sleep(reply.pause)
            await response.write(event)
            if number == self.first_text and reply.wait_for is not None:
                await _hold(response, reply.wait_for, self.keep_alive if reply.keep_alive else b"")


async def _hold(response: web.StreamResponse, until: asyncio.Event, keep_alive: bytes) -> None:
    while keep_alive and not until.is_set():
        await response.write(keep_alive)
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), timeout=0.02)
    await until.wait()


def _play(script: Sequence[Reply]) -> Brain:
    replies = iter(script)

    def brain(_request: Request) -> Reply:
        reply = next(replies, None)
        return reply or Reply(status=500, error={"message": "the script of the fake server is at its end"})

    return brain


@asynccontextmanager
async def running(server: ModelService, path: str) -> AsyncIterator[None]:
    """Serve on loopback. `path`: a route of aiohttp."""
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_post(path, server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.base_url = f"http://{host}:{port}"
        yield
    finally:
        await runner.cleanup()


def data_event(payload: str, *, name: str = "") -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {payload}\n\n".encode()


def words(text: str) -> list[str]:
    """Words, each with the space before it."""
    found = text.split(" ")
    return [word if n == 0 else " " + word for n, word in enumerate(found)] if text else []


def pieces_of_json(text: str) -> list[str]:
    """A text in two halves, as arguments stream."""
    half = len(text) // 2
    return [text[:half], text[half:]]


def object_of(text: str) -> dict[str, Any]:
    """A scripted call's arguments, for a service that has no others."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("this service cannot say arguments that are no object")
    return value
