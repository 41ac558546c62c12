"""A server on the bare protocol over HTTP, in the test's own loop, that misbehaves by the name of the tool called."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

TOOLS = (
    "echo",
    "event",
    "hang",
    "unauthorized",
    "too_many",
    "crash",
    "page",
    "no_json",
    "cut_json",
    "cut_events",
    "end_events",
    "forget",
    "endless",
    "endless_event",
    "dense",
    "compressed",
    "elsewhere",
    "in_circles",
    "parts",
    "status",
    "error",
    "slow_body",
    "headers",
    "cookies",
    "ask",
)


@dataclass
class OddHttp:
    """What came in, and how to behave."""

    url: str = ""
    pings: int = 0
    deaf: bool = False
    """Whether pings wait until `hanging` is set."""
    token: str = ""
    """When set, requests must bear it."""
    calls: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    moved: bool = False
    """Whether it is elsewhere now, and sends there whoever comes to the old address."""
    sent_on: list[str] = field(default_factory=list)
    """Methods of the messages that came to the old address then."""
    written: int = 0
    """Bytes of the last body without an end."""
    answers: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    """What came in answer to requests of the server's own."""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    _ids: Any = field(default_factory=itertools.count)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "method" not in message:
            self.answers.put_nowait(message)
            return web.Response(status=202)
        if self.moved and request.path == "/mcp":
            self.sent_on.append(message["method"])
            return web.Response(status=307, headers={"Location": "/mcp/moved"})
        if message["method"] == "initialize":
            session = f"s{next(self._ids)}"
            self.sessions.add(session)
            about = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "odd", "version": "1"}}
            return answer(message, about, headers={"Mcp-Session-Id": session})
        if request.headers.get("Mcp-Session-Id") not in self.sessions:
            return web.Response(status=404)
        match message["method"]:
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
                return answer(message, {"tools": tools})
            case "tools/call":
                return await self.call(request, message)
            case "ping":
                self.pings += 1
                if self.deaf:
                    await self.hanging.wait()
                return answer(message, {})
            case _:
                return web.Response(status=202)

    async def call(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        name = message["params"]["name"]
        self.calls.append(name)
        match name:
            case "hang":
                await self.hanging.wait()
            case "unauthorized" | "too_many" | "crash":
                return web.Response(status={"unauthorized": 401, "too_many": 429, "crash": 500}[name])
            case "page":
                return web.Response(text="<h1>Sign in</h1>", content_type="text/html")
            case "no_json":
                return web.Response(text="{oops", content_type="application/json")
            case "cut_json" | "cut_events" | "end_events":
                return await self.stop_early(request, name)
            case "endless" | "endless_event":
                return await self.go_on_for_ever(request, name)
            case "dense":
                dense = b'{"jsonrpc": "2.0", "id": %d, "result": {"a": [' % message["id"] + b"[]," * 700_000 + b"1]}}"
                return web.Response(body=dense, content_type="application/json")
            case "compressed":
                small = gzip.compress(b'{"a": "' + b"a" * 50_000_000, 1)
                headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
                return web.Response(body=small, headers=headers)
            case "elsewhere" | "in_circles":
                to = "http://127.0.0.1:9/mcp" if name == "elsewhere" else str(request.url)
                return web.Response(status=307, headers={"Location": to})
            case "headers" | "cookies":
                many = CIMultiDict([("A" if name == "headers" else "Set-Cookie", "a=b")] * 4_000)
                return answer(message, {"content": [{"type": "text", "text": "done"}]}, headers=many)
            case "ask":
                return await self.ask(request, message)
            case "parts":
                return answer(message, {"content": [{"type": "text", "text": "a"}] * 5_000})
            case "forget" if self.calls.count("forget") == 1:
                self.sessions.clear()
                return web.Response(status=404)
            case "status":
                given = message["params"]["arguments"]
                return web.Response(status=given["status"], text=given.get("text", ""))
            case "echo" | "event" if "result" in message["params"]["arguments"]:
                return self.said(name, message)
            case "error":
                error = {"jsonrpc": "2.0", "id": message["id"], "error": message["params"]["arguments"]}
                return web.json_response(error)
            case "slow_body":
                response = web.StreamResponse(status=500, headers={"Content-Type": "text/plain"})
                await response.prepare(request)
                while not self.hanging.is_set():
                    await response.write(b"order 17 was created " * 1_000)
                    await asyncio.sleep(0.001)
                return response
        return answer(message, {"content": [{"type": "text", "text": f"{name} done"}]})

    def said(self, how: str, message: dict[str, Any]) -> web.Response:
        given = message["params"]["arguments"]
        said = {"jsonrpc": "2.0", "id": message["id"], "result": json.loads(given["result"])}
        if how == "event":
            return web.Response(text=f"id: \\ud83d\ndata: {json.dumps(said)}\n\n", content_type="text/event-stream")
        body = json.dumps(said, ensure_ascii=not given.get("raw")).encode("utf-8", "surrogatepass")
        return web.Response(body=body, content_type="application/json")

    async def ask(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        asked = {"jsonrpc": "2.0", "id": "asked", **message["params"]["arguments"]}
        await response.write(f"data: {json.dumps(asked)}\n\n".encode())
        code = (await self.answers.get())["error"]["code"]
        result = {"content": [{"type": "text", "text": str(code)}]}
        await response.write(
            f"data: {json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result})}\n\n".encode()
        )
        return response

    async def go_on_for_ever(self, request: web.Request, how: str) -> web.StreamResponse:
        kind = "application/json" if how == "endless" else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        await response.write(b'{"a": "' if how == "endless" else b"data: ")
        self.written = 0
        with suppress(ConnectionError):
            while self.written < 200_000_000:
                await response.write(b"a" * 65_536)
                self.written += 65_536
        return response

    async def stop_early(self, request: web.Request, how: str) -> web.StreamResponse:
        kind = "application/json" if how == "cut_json" else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        await response.write(b'{"jsonrpc":' if how == "cut_json" else b"event: message\ndata: \n\n")
        if how != "end_events" and request.transport:
            request.transport.close()
        return response


def answer(message: dict[str, Any], result: dict[str, Any], **more: Any) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result}, **more)


@asynccontextmanager
async def odd_http(port: int = 0) -> AsyncIterator[OddHttp]:
    """The server, listening on loopback."""
    odd = OddHttp()
    app = web.Application()
    app.router.add_route("*", "/mcp", odd.handle)
    app.router.add_route("*", "/mcp/moved", odd.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    odd.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield odd
    finally:
        await runner.cleanup()
