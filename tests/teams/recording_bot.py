"""A bot that writes down what Teams tells it, and answers as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web

from tests.fakes.teams.server import FakeTeams
from tests.support.teams_transports import HttpTransport, LocalTransport

Json = dict[str, Any]


@dataclass
class RecordingBot:
    """What it heard, and what it answers to every invoke."""

    teams: FakeTeams
    url: str = ""
    heard: list[Json] = field(default_factory=list)
    tokens: list[Json] = field(default_factory=list)
    """The claims of the tokens that came with it; `{}`: none came."""
    answer: Any = None

    @property
    def transport(self) -> HttpTransport:
        """As Teams comes."""
        return HttpTransport(self.url, self.teams)

    @property
    def local_door(self) -> LocalTransport:
        """As local clients come."""
        return LocalTransport(self.url)

    async def hear(self, request: web.Request) -> web.StreamResponse:
        """Take anything."""
        activity = await request.json()
        self.heard.append(activity)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.tokens.append(jwt.decode(token, options={"verify_signature": False}) if token else {})
        return web.json_response(self.answer) if activity["type"] == "invoke" else web.Response()


@asynccontextmanager
async def recording_bot(teams: FakeTeams) -> AsyncIterator[RecordingBot]:
    """Run one."""
    bot = RecordingBot(teams)
    app = web.Application()
    app.router.add_post("/api/messages", bot.hear)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        bot.url = f"http://{host}:{port}/api/messages"
        yield bot
    finally:
        await runner.cleanup()
