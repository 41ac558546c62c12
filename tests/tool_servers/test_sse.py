"""Servers that speak MCP's older transport: all answers come on one event stream, and a POST says only that it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.tool_servers.incoming import LARGEST_MESSAGE
from adapters.tool_servers.servers import ToolServers
from graph.ports import AccountNeeded, Caller, Failed, Given, OutcomeUnknown, QuestionPut, Succeeded
from tests.tool_servers.fake_accounts import FakeTokens

from .conftest import QUICK, call, running, until

TOOLS = ("ask", "echo", "hang", "held", "refused", "crash", "elsewhere", "large", "larger", "endless", "cut")
ANA = Caller(person="web:ana", thread_id="web:1", call_id="d1.0.0")


@dataclass
class OddSse:
    """A server that misbehaves by the name of the tool called."""

    url: str = ""
    endpoint: str = "/messages?session={session}"
    kind: str = "text/event-stream"
    tokens: set[str] = field(default_factory=set)
    """When there are any, requests must bear one of them."""
    streams: list[web.StreamResponse] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    asking: int = 0
    """Id of the call that asks."""
    free: asyncio.Event = field(default_factory=asyncio.Event)
    """Ends what hangs."""

    async def listen(self, request: web.Request) -> web.StreamResponse:
        if refused := self.refusal(request):
            return refused
        response = web.StreamResponse(headers={"Content-Type": self.kind})
        await response.prepare(request)
        self.streams.append(response)
        endpoint = self.endpoint.format(session=len(self.streams) - 1)
        await response.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())
        await asyncio.Event().wait()
        return response

    def refusal(self, request: web.Request) -> web.Response | None:
        if not self.tokens or request.headers.get("Authorization", "").removeprefix("Bearer ") in self.tokens:
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": 'Bearer resource_metadata="https://x.test/m"'})

    async def receive(self, request: web.Request) -> web.Response:
        if refused := self.refusal(request):
            return refused
        message = await request.json()
        stream = self.streams[int(request.query["session"])]
        match message.get("method"):
            case "initialize":
                about = {"name": "odd", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
                await self.answer(stream, message, result)
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
                await self.answer(stream, message, {"tools": tools})
            case "ping":
                await self.answer(stream, message, {})
            case "tools/call":
                return await self.call(request, stream, message)
            case None if message["id"] == "q1":
                self.calls.append(message["result"]["action"])
                await self.answer(stream, {"id": self.asking}, {"content": [{"type": "text", "text": "heard"}]})
                await self.free.wait()
        return web.Response(status=202)

    async def call(self, request: web.Request, stream: web.StreamResponse, message: dict[str, Any]) -> web.Response:
        name = message["params"]["name"]
        self.calls.append(name)
        done = {"content": [{"type": "text", "text": f"{name} done"}]}
        padding = {"content": [{"type": "text", "text": "a" * LARGEST_MESSAGE}]}
        match name:
            case "ask":
                self.asking = message["id"]
                schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
                params = {"message": "Which size?", "requestedSchema": schema}
                await self.write(
                    stream, {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params}
                )
            case "hang" | "held":
                answering = asyncio.create_task(self.answer(stream, message, done, when=self.free))
                if name == "held":
                    await answering
            case "refused" | "crash":
                return web.Response(status={"refused": 401, "crash": 500}[name], text="order 17 was created")
            case "elsewhere":
                return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/messages"})
            case "large":
                await self.answer(stream, message, padding)
            case "larger":
                whole = {"result": {"padding": padding, "id": message["id"]}, "jsonrpc": "2.0", "id": message["id"]}
                await self.write(stream, whole | {"more": 1})
            case "endless":
                await stream.write(b"data: ")
                while not self.free.is_set():
                    await stream.write(b"a" * 65_536)
            case "cut":
                await stream.write(b'data: {"jsonrpc":')
                self.streams[-1]._req.transport.close()  # type: ignore[union-attr]
            case _:
                await self.answer(stream, message, done)
        return web.Response(status=202)

    async def answer(
        self, stream: web.StreamResponse, message: dict[str, Any], result: Any, when: asyncio.Event | None = None
    ) -> None:
        if when is not None:
            await when.wait()
        await self.write(stream, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def write(self, stream: web.StreamResponse, message: Any) -> None:
        await stream.write(b"event: message\r\ndata: " + json.dumps(message).encode() + b"\r\n\r\n")


@asynccontextmanager
async def odd_sse(**more: Any) -> AsyncIterator[OddSse]:
    odd = OddSse(**more)
    app = web.Application()
    app.add_routes([web.get("/sse", odd.listen), web.post("/messages", odd.receive)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    odd.url = f"http://127.0.0.1:{runner.addresses[0][1]}/sse"
    try:
        yield odd
    finally:
        odd.free.set()
        await runner.cleanup()


@asynccontextmanager
async def odd_servers(folder: Path, **more: Any) -> AsyncIterator[tuple[ToolServers, OddSse]]:
    async with odd_sse() as odd, running(folder, {"odd": {"type": "sse", "url": odd.url, **more}}) as servers:
        yield servers, odd


async def test_calls_are_made_side_by_side_even_if_the_server_keeps_a_post_waiting(tmp_path: Path) -> None:
    async with odd_servers(tmp_path) as (servers, odd):
        waiting = [asyncio.create_task(call(servers, f"odd__{name}")) for name in ("held", "hang")]
        await until(lambda: sorted(odd.calls) == ["hang", "held"], "both calls")
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        odd.free.set()
        assert await asyncio.gather(*waiting) == [Succeeded("held done"), Succeeded("hang done")]
        assert len(odd.streams) == 1


@pytest.mark.parametrize("tool", ["crash", "elsewhere", "large"])
async def test_what_is_no_answer_leaves_that_call_open_and_no_other(tmp_path: Path, tool: str) -> None:
    """Rule 4: whether it was done is unknown. The session goes on, with the calls that are open on it."""
    async with odd_servers(tmp_path) as (servers, odd):
        other = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: odd.calls == ["hang"], "the other call")
        broken = await call(servers, f"odd__{tool}")
        assert isinstance(broken, OutcomeUnknown), broken
        if tool == "crash":
            assert "It said: order 17 was created" in broken.text
        odd.free.set()
        assert await other == Succeeded("hang done")
        assert len(odd.streams) == 1
        assert odd.calls.count(tool) == 1


async def test_an_answer_to_a_question_need_not_be_acknowledged(tmp_path: Path) -> None:
    async with odd_servers(tmp_path) as (servers, odd):
        question = await call(servers, "odd__ask")
        assert isinstance(question, QuestionPut), question
        given = Given(question.number, "accept", {"size": 4}, question.digest)
        assert await call(servers, "odd__ask", answers=(given,)) == Succeeded("heard")
        assert odd.calls == ["ask", "accept"]


async def test_a_refusal_of_http_says_that_nothing_was_done(tmp_path: Path) -> None:
    async with odd_servers(tmp_path) as (servers, odd):
        got = await call(servers, "odd__refused")
        assert got == Failed("odd did not accept our credentials (HTTP 401). Nothing was done.")
        assert len(odd.streams) == 1


@pytest.mark.parametrize("tool", ["cut", "larger", "endless"])
async def test_a_stream_that_ends_or_cannot_be_read_on_breaks_off_its_calls_and_is_opened_again(
    tmp_path: Path, tool: str
) -> None:
    """Rule 13: no more is kept of a message than is read. Nothing tells whose answer it was."""
    async with odd_servers(tmp_path) as (servers, odd):
        async with asyncio.timeout(30):
            assert isinstance(await call(servers, f"odd__{tool}"), OutcomeUnknown)
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        assert len(odd.streams) == 2
        assert odd.calls == [tool, "echo"]


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"kind": "text/html"}, "HTTP 200 without an MCP message"),
        ({"tokens": {"x"}}, "did not accept our credentials (HTTP 401)"),
    ],
)
async def test_what_is_no_event_stream_is_reported(tmp_path: Path, about: dict[str, Any], reason: str) -> None:
    async with odd_sse(**about) as odd, running(tmp_path, {"odd": {"type": "sse", "url": odd.url}}) as servers:
        assert servers.unavailable()[0].reason == reason


async def test_everybody_acts_with_their_own_account(tmp_path: Path) -> None:
    """Rule 11. A refusal of the token is a sign-in, when the stream is opened and in the middle of it."""
    async with odd_sse(tokens={"anas-token"}) as odd:
        tokens = FakeTokens({("web:ana", "odd"): "anas-token", ("web:ben", "odd"): "bens-token"})
        entry = {"type": "sse", "url": odd.url, "auth": "oauth"}
        async with running(tmp_path, {"odd": entry}, tokens=tokens) as servers:
            signed_in = await call(servers, "odd__sign_in", caller=ANA)
            assert isinstance(signed_in, Succeeded), signed_in
            assert await call(servers, "odd__echo", caller=ANA) == Succeeded("echo done", owner="web:ana")
            ben = Caller(person="web:ben", thread_id="web:2", call_id="d2.0.0")
            needed = AccountNeeded("odd", 'Bearer resource_metadata="https://x.test/m"')
            assert await call(servers, "odd__echo", caller=ben) == needed
            odd.tokens = {"another"}
            assert await call(servers, "odd__echo", caller=ANA) == needed
            assert odd.calls == ["echo"]


async def test_messages_go_to_no_other_origin(tmp_path: Path) -> None:
    """Rule 7: the address for messages, which the server names, is its own or none."""
    timings = replace(QUICK, start=1)
    async with (
        odd_sse(endpoint="http://127.0.0.1:9/messages") as odd,
        running(tmp_path, {"odd": {"type": "sse", "url": odd.url}}, timings=timings) as servers,
    ):
        assert servers.status()[0].state == "down"
        assert odd.calls == []
