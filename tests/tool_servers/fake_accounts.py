"""People's tokens as the tool servers see them, and a server that checks them on the bare protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bot.accounts.ports import TokenSet


@dataclass
class FakeTokens:
    """People's tokens, in a dictionary."""

    tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    """Person and connection → access token."""
    newer: dict[str, str] = field(default_factory=dict)
    """Access token → what refreshing it gives."""
    refused_tokens: list[str] = field(default_factory=list)
    broken: bool = False

    async def current(self, person_id: str, connection: str) -> TokenSet | None:
        if self.broken:
            raise OSError("the disk is full")
        access = self.tokens.get((person_id, connection))
        return self._token_set(access) if access else None

    async def kept(self, person_id: str, connection: str) -> TokenSet | None:
        return await self.current(person_id, connection)

    async def refused(self, person_id: str, connection: str, tokens: TokenSet) -> TokenSet | None:
        self.refused_tokens.append(tokens.access_token)
        kept = await self.current(person_id, connection)
        if kept is None or kept.access_token != tokens.access_token:
            return kept
        newer = self.newer.get(tokens.access_token)
        if newer is None:
            self.tokens.pop((person_id, connection), None)
            return None
        self.tokens[person_id, connection] = newer
        return self._token_set(newer)

    def _token_set(self, access: str) -> TokenSet:
        """Those that refreshing gave are of the same sign-in, all others of another one."""
        first, older = access, {newer: older for older, newer in self.newer.items()}
        while first in older:
            first = older[first]
        return TokenSet(access, sign_in=first)


@dataclass
class FakeCatalogues:
    """The tools that were remembered, in a dictionary."""

    kept: dict[tuple[str, str], Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    told: int = 0
    """How often others have said that they kept some."""

    def news(self, server: str) -> int:
        return self.told

    async def load(self, server: str, fingerprint: str) -> Sequence[Mapping[str, Any]] | None:
        return self.kept.get((server, fingerprint))

    async def keep(self, server: str, fingerprint: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self.kept[server, fingerprint] = tools


TOOLS = ("whoami", "repeat", "scope", "error")


@dataclass
class Drive:
    """A server for which everybody needs an account; sessions are bound to whoever opened them."""

    url: str = ""
    accounts: dict[str, str] = field(default_factory=dict)
    """Access token → whose it is."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Open session → whose it is."""
    opened: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    borne: list[str] = field(default_factory=list)
    """The tokens of all requests, in order; empty for none."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Who called what."""
    mixed_up: list[tuple[str, str]] = field(default_factory=list)
    """Whose session was used with whose token."""
    before: Callable[[str], web.Response | None] = lambda _: None
    """Asked with the method before anything else."""
    tools: tuple[str, ...] = TOOLS
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    """Of all of them."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.borne.append(token)
        who = self.accounts.get(token)
        session = request.headers.get("Mcp-Session-Id", "")
        if who is None:
            challenge = 'Bearer error="invalid_token", resource_metadata="https://drive.test/meta"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        if session and self.sessions.get(session, who) != who:
            self.mixed_up.append((self.sessions[session], who))
        if request.method == "DELETE":
            self.left.append(self.sessions.pop(session, ""))
            return web.Response()
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "method" in message and (instead := self.before(message["method"])):
            return instead
        return self.answer(message, who, session, token)

    def answer(self, message: dict[str, Any], who: str, session: str, token: str) -> web.Response:
        match message.get("method"):
            case "initialize":
                name = f"s{len(self.opened)}"
                self.opened.append(who)
                self.sessions[name] = who
                about = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "d", "version": "1"},
                }
                return self.result(message, about, {"Mcp-Session-Id": name})
            case _ if session not in self.sessions:
                return web.Response(status=404)
            case "tools/list":
                return self.result(message, {"tools": [{"name": n, "inputSchema": self.schema} for n in self.tools]})
            case "tools/call":
                return self.call(message, who, token)
            case "ping":
                return self.result(message, {})
            case _:
                return web.Response(status=202)

    def call(self, message: dict[str, Any], who: str, token: str) -> web.Response:
        name = message["params"]["name"]
        self.calls.append((who, name))
        if name == "scope":
            challenge = 'Bearer error="insufficient_scope", scope="files.write"'
            return web.Response(status=403, headers={"WWW-Authenticate": challenge})
        text = f"you sent Bearer {token}" if name in {"repeat", "error"} else who
        return self.result(message, {"content": [{"type": "text", "text": text}], "isError": name == "error"})

    def result(self, message: dict[str, Any], result: dict[str, Any], headers: Any = None) -> web.Response:
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


@asynccontextmanager
async def drive_server(**accounts: str) -> AsyncIterator[Drive]:
    """The server, listening on loopback; `accounts`: person → access token."""
    drive = Drive(accounts={token: who for who, token in accounts.items()})
    app = web.Application()
    app.router.add_route("*", "/mcp", drive.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    drive.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield drive
    finally:
        await runner.cleanup()
