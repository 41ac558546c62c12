"""`/mcp` over real sockets and the SDK's server, whose only tool waits until the test lets it answer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import aiohttp
import mcp.types
from aiohttp import web
from mcp.server.lowlevel import Server

from adapters.gateway.in_progress import RequestsInProgress
from adapters.gateway.receiver import GatewayConfig, GatewayReceiver
from adapters.gateway.requests import GatewayRequest, gateway_request
from adapters.gateway.sessions import GatewaySessions
from adapters.gateway.tool_changes import ToolListeners
from adapters.shared.program_access import ProgramAccess, ProgramAccessConfig
from adapters.shared.token_watch import TokenWatch
from bot.domain import Person
from bot.limits import BeginningsHere
from tests.api.serving import Tokens
from tests.bot.conftest import SetClock

ANA, BEN = Person("web:ana", "Ana"), Person("web:ben", "Ben")
KEY = b"A" * 43 + b"="
PAGE = "https://app.example"
"""A site whose pages may ask."""
WITHIN = 20.0
"""Seconds that anything may take."""
BOTH = "application/json, text/event-stream"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"url": {}}, "tasks": {}},
        "clientInfo": {"name": "cursor", "title": "Cursor", "version": "2.1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "make", "arguments": {}}}


@dataclass
class WaitingTool:
    """What the server's tool does, and what it was told."""

    asked: list[GatewayRequest] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    heeds_the_end: bool = True
    text: str = "made"

    async def server(self) -> Server[Any, Any]:
        """The SDK's server with it."""
        made: Server[Any, Any] = Server("waiting")

        @made.list_tools()
        async def _tools() -> list[mcp.types.Tool]:
            self.asked.append(gateway_request(made.request_context.request))
            return [mcp.types.Tool(name="make", inputSchema={"type": "object"})]

        @made.call_tool()
        async def _call(_name: str, _arguments: dict[str, Any]) -> list[mcp.types.ContentBlock]:
            asked = gateway_request(made.request_context.request)
            self.asked.append(asked)
            self.started.set()
            waits = [asyncio.create_task(self.may_answer.wait())]
            if self.heeds_the_end:
                waits.append(asyncio.create_task(asked.ending.wait()))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self.given_up.set()
                raise
            finally:
                for each in waits:
                    each.cancel()
            if not self.may_answer.is_set():
                return [mcp.types.TextContent(type="text", text="call again")]
            asked.note_answered("call7")
            return [mcp.types.TextContent(type="text", text=self.text)]

        return made


@dataclass
class ServedGateway:
    """It, running."""

    tool: WaitingTool
    tokens: Tokens
    clock: SetClock
    listeners: ToolListeners
    http: aiohttp.ClientSession
    delivered: list[str]
    url: str = ""
    runner: web.AppRunner | None = None

    async def end(self) -> None:
        """End it, as a restart does."""
        assert self.runner is not None
        await self.runner.cleanup()

    def client(self, person: Person = ANA, *scopes: Any) -> McpClient:
        """A client with a token; without scopes, with all."""
        return McpClient(self.url, self.http, self.tokens.of(person, *scopes))


@dataclass
class HttpAnswer:
    """What a request got."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Its JSON."""
        return json.loads(self.text)

    @property
    def messages(self) -> list[Any]:
        """The messages of its event stream."""
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: ")]


@dataclass
class McpClient:
    """A client that says over HTTP exactly what a test wants."""

    url: str
    http: aiohttp.ClientSession
    token: str = ""
    session: str = ""
    more: dict[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """What it sends with each request."""
        return {
            "Accept": BOTH,
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **({"Mcp-Session-Id": self.session} if self.session else {}),
            **self.more,
        }

    async def ask(self, method: str, body: Any = None, path: str = "/mcp", **headers: str) -> HttpAnswer:
        """One request, and its whole answer. Bytes are sent as they are."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**self.headers, **({"Content-Type": "application/json"} if body is not None else {}), **given}
        data = body if isinstance(body, bytes | io.BytesIO | None) else json.dumps(body).encode()
        async with (
            asyncio.timeout(WITHIN),
            self.http.request(method, f"{self.url}{path}", data=data, headers=sent) as response,
        ):
            return HttpAnswer(response.status, dict(response.headers), await response.text())

    async def post(self, body: Any, path: str = "/mcp", **headers: str) -> HttpAnswer:
        """Send a message."""
        return await self.ask("POST", body, path, **headers)

    async def initialized(self, path: str = "/mcp") -> McpClient:
        """The same, in a session."""
        answer = await self.post(INITIALIZE, path)
        assert answer.status == 200, answer
        self.session = answer.headers["Mcp-Session-Id"]
        return self

    @asynccontextmanager
    async def begun(self, body: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a message, and read the answer as it comes."""
        headers = {**self.headers, "Content-Type": "application/json"}
        async with self.http.post(f"{self.url}/mcp", data=json.dumps(body), headers=headers) as response:
            yield response

    @asynccontextmanager
    async def stream(self, path: str = "/mcp") -> AsyncIterator[aiohttp.ClientResponse]:
        """The stream that tells of other tools."""
        async with self.http.get(f"{self.url}{path}", headers=self.headers) as response:
            yield response


async def next_message(response: aiohttp.ClientResponse) -> Any:
    """The next message of an event stream; `None`: it has ended."""
    async with asyncio.timeout(WITHIN):
        async for line in response.content:
            if line.startswith(b"data: "):
                return json.loads(line[6:])
    return None


class Handed:
    """Notes which results have arrived, and which have not."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.lost: list[str] = []

    async def delivered(self, gateway_call_id: str) -> None:
        """It has arrived."""
        self.arrived.append(gateway_call_id)

    async def put_back(self, gateway_call_id: str) -> None:
        """It has not."""
        self.lost.append(gateway_call_id)


@asynccontextmanager
async def served_gateway(
    key: bytes = KEY,
    *,
    tokens: Tokens | None = None,
    local: Person | None = None,
    public_url: str | None = None,
    issuer: str | None = "https://id.example",
) -> AsyncIterator[ServedGateway]:
    """The gateway alone, on loopback, with one tool server called `workshop`."""
    tokens, clock, listeners = tokens or Tokens(), SetClock(), ToolListeners()
    tool, handed = WaitingTool(), Handed()
    access = ProgramAccess(ProgramAccessConfig(local, public_url, (PAGE,)), tokens, BeginningsHere(monotonic))
    receiver = GatewayReceiver(
        GatewayConfig({"workshop"}, public_url, issuer),
        access,
        GatewaySessions(key, clock),
        TokenWatch(tokens, clock, every=0.02),
        make_server=tool.server,
        handed=handed,
        listeners=listeners,
        in_progress=RequestsInProgress(),
    )
    application = web.Application()
    application.add_routes(receiver.routes())
    application.on_shutdown.append(receiver.end)
    runner = web.AppRunner(application, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as http:
        served = ServedGateway(tool, tokens, clock, listeners, http, handed.arrived, runner=runner)
        served.url = "http://{}:{}".format(*runner.addresses[0][:2])
        try:
            yield served
        finally:
            await runner.cleanup()
