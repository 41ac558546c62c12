"""A real server on loopback that speaks OpenAI's `/v1/chat/completions` and answers what a test tells it to.

async with fake_openai([Reply(text="Hello"), Reply(status=429, headers={"Retry-After": "0"})]) as server:
    ... server.base_url ... server.requests
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Request = dict[str, Any]
"""The JSON body of a request."""


@dataclass(frozen=True)
class ToolUse:
    """A tool call of the model. `arguments` as text goes out as it is, so that it may be broken JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    call_id: str = ""
    """Empty: `call_0`, `call_1`…, the same in every answer, as some services do."""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """One answer."""

    text: str = ""
    calls: Sequence[ToolUse] = ()
    finish_reason: str = ""
    """Empty: `tool_calls` with calls, else `stop`."""
    usage: tuple[int, int] = (10, 5)
    """Tokens of input and output."""
    status: int = 200
    error: Mapping[str, Any] | str = field(default_factory=dict)
    """Body of an error: the `error` object, or raw text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_for: asyncio.Event | None = None
    """Held back until this is set; in a stream, after the first event."""
    pause: float = 0.0
    """Seconds before each event of a stream: a model that takes its time."""
    keep_alive: bool = False
    """While held back, send a comment every few milliseconds, as proxies do."""
    drop_after: int | None = None
    """Cut the connection after so many events of a stream (0: before the first one)."""
    end_early: bool = False
    """With `drop_after`: end the response properly there, so that only what is missing tells that it is cut."""
    raw: str | None = None
    """A body to send as it is instead of all this, with status 200."""


Brain = Callable[[Request], Reply | Awaitable[Reply]]


class FakeOpenAI:
    """The running server: where it is, and what it was asked."""

    def __init__(self, script: Sequence[Reply] | Brain) -> None:
        self.requests: list[Request] = []
        """The journal: the body of every request, in order."""
        self.headers: list[Mapping[str, str]] = []
        self.times: list[float] = []
        """When each request came, `time.monotonic()`."""
        self.base_url = ""
        self._arrived = asyncio.Condition()
        self._brain = script if callable(script) else _play(script)

    async def asked(self, count: int, *, within: float = 10.0) -> None:
        """Wait until so many requests have come. Raises `TimeoutError`."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: Request = await request.json()
        async with self._arrived:
            self.requests.append(body)
            self.headers.append(dict(request.headers))
            self.times.append(time.monotonic())
            self._arrived.notify_all()
        if problem := wire_problem(body.get("messages", [])):
            return _error(400, {"message": problem, "type": "invalid_request_error", "code": None}, {})
        reply = self._brain(body)
        if not isinstance(reply, Reply):
            reply = await reply
        if reply.raw is not None:
            return web.Response(text=reply.raw, content_type="text/event-stream")
        if reply.status >= 400:
            return _error(reply.status, reply.error, reply.headers)
        if body.get("stream"):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
            with suppress(ConnectionResetError):  # whoever asked has gone: nobody is left to answer
                await _stream(request, response, body, reply)
            return response
        if reply.wait_for is not None:
            await reply.wait_for.wait()
        return web.json_response(_whole(body, reply))


@asynccontextmanager
async def fake_openai(script: Sequence[Reply] | Brain) -> AsyncIterator[FakeOpenAI]:
    """Run a server with a script (one reply per request) or a function of the request."""
    server = FakeOpenAI(script)
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.base_url = f"http://{host}:{port}/v1"
        yield server
    finally:
        await runner.cleanup()


def wire_problem(messages: Sequence[Mapping[str, Any]]) -> str:
    """What OpenAI would refuse in these messages; empty when nothing."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.[{number}]"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return (
                    f"{where}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"{where}: 'tool_calls' must be followed by tool messages responding to each: {waiting}."
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) != len(waiting):
            return f"{where}: duplicate tool call ids."
        if too_long := [call_id for call_id in waiting if len(call_id) > 40]:
            return f"{where}: tool call ids longer than 40 characters: {too_long}."
    return f"'tool_calls' without responses at the end: {waiting}." if waiting else ""


def _play(script: Sequence[Reply]) -> Brain:
    replies = iter(script)

    def brain(_request: Request) -> Reply:
        reply = next(replies, None)
        return reply or Reply(status=500, error={"message": "the script of the fake server is at its end"})

    return brain


def _error(status: int, error: Mapping[str, Any] | str, headers: Mapping[str, str]) -> web.Response:
    if isinstance(error, str):
        return web.Response(status=status, text=error, headers=headers)
    return web.json_response({"error": {"message": "no", **error}}, status=status, headers=headers)


async def _stream(request: web.Request, response: web.StreamResponse, body: Request, reply: Reply) -> None:
    await response.prepare(request)
    for number, event in enumerate(_events(body, reply)):
        if number == reply.drop_after:
            if not reply.end_early and request.transport is not None:
                request.transport.abort()
            return
        if reply.pause:
            await asyncio.sleep(reply.pause)
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        if number == 0 and reply.wait_for is not None:
            await _hold(response, reply.wait_for, keep_alive=reply.keep_alive)
    await response.write(b"data: [DONE]\n\n")


async def _hold(response: web.StreamResponse, until: asyncio.Event, *, keep_alive: bool) -> None:
    while keep_alive and not until.is_set():
        await response.write(b": keep-alive\n\n")
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), timeout=0.02)
    await until.wait()


def _events(body: Request, reply: Reply) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(reply.text)]
    for index, call in enumerate(reply.calls):
        half = len(call.text) // 2
        function = {"name": call.name, "arguments": call.text[:half]}
        deltas.append(
            {"tool_calls": [{"index": index, "id": _id(call, index), "type": "function", "function": function}]}
        )
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": call.text[half:]}}]})
    events = [_event(body, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(_event(body, [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]))
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append(_event(body, []) | {"usage": _usage(reply)})
    return events


def _event(body: Request, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": body["model"],
        "choices": choices,
    }


def _whole(body: Request, reply: Reply) -> dict[str, Any]:
    calls = [
        {"id": _id(call, i), "type": "function", "function": {"name": call.name, "arguments": call.text}}
        for i, call in enumerate(reply.calls)
    ]
    message = {"role": "assistant", "content": reply.text or None} | ({"tool_calls": calls} if calls else {})
    choices = [{"index": 0, "message": message, "finish_reason": _finish(reply)}]
    return _event(body, choices) | {"object": "chat.completion", "usage": _usage(reply)}


def _pieces(text: str) -> list[str]:
    """Words, each with the space before it."""
    words = text.split(" ")
    return [word if n == 0 else " " + word for n, word in enumerate(words)] if text else []


def _id(call: ToolUse, index: int) -> str:
    return call.call_id or f"call_{index}"


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")


def _usage(reply: Reply) -> dict[str, int]:
    given, made = reply.usage
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
