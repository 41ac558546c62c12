"""A SIEM: an HTTP event collector on loopback that keeps what it takes, and fails as a test tells it to."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

TOKEN = "token-of-the-siem"


@dataclass(frozen=True)
class Trouble:
    """How the next request fails."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    drops: bool = False
    """What came is kept, and the connection is cut, so that the sender does not know."""


class FakeSiem:
    """What it has taken, and what was asked of it."""

    def __init__(self) -> None:
        self.url = ""
        self.lines: list[str] = []
        """Of all that was taken, in order."""
        self.sizes: list[int] = []
        """Events of each request, also of those that failed."""
        self.troubles: deque[Trouble] = deque()
        self.tokens: set[str] = set()
        self.most = 1_000_000
        """Bytes of a request; a larger one is a 413."""
        self.most_at_once = 1_000
        """Events of a request; where one has more, the connection is cut without a word, and nothing is kept."""
        self._go_on = asyncio.Event()
        self._go_on.set()
        self._changed = asyncio.Condition()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was taken."""
        return [json.loads(line) for line in self.lines]

    @property
    def numbers(self) -> list[int]:
        """The entries that were taken."""
        return [event["unmapped"]["chain"]["seq"] for event in self.events]

    def hold(self) -> None:
        """Answer nobody from now on."""
        self._go_on.clear()

    def go_on(self) -> None:
        """Answer again."""
        self._go_on.set()

    async def asked(self, count: int, *, within: float = 20.0) -> None:
        """Wait until so many requests have come. Raises `TimeoutError`."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.sizes) >= count)

    async def has(self, last: int, *, within: float = 60.0) -> None:
        """Wait until an entry was taken. Raises `TimeoutError`."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: last in self.numbers)

    async def take(self, request: web.Request) -> web.StreamResponse:
        """`POST`."""
        body = await request.text()
        lines = body.splitlines()
        self.tokens.add(request.headers.get("Authorization", ""))
        self.sizes.append(len(lines))
        await self._notify()
        if len(lines) > self.most_at_once:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        await self._go_on.wait()
        trouble = self.troubles.popleft() if self.troubles else Trouble()
        if trouble.status:
            return web.Response(status=trouble.status, headers=trouble.headers)
        if len(body.encode()) > self.most:
            return web.Response(status=413)
        self.lines += lines
        await self._notify()
        if trouble.drops:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=202)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def fake_siem(certificate: Path | None = None) -> AsyncIterator[FakeSiem]:
    """A running one. `certificate`: over HTTPS, with this one and its key."""
    siem = FakeSiem()
    application = web.Application(client_max_size=10_000_000)
    application.router.add_post("/ingest", siem.take)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    name = "localhost" if certificate is not None else "127.0.0.1"
    siem.url = f"{'https' if context else 'http'}://{name}:{runner.addresses[0][1]}/ingest"
    try:
        yield siem
    finally:
        siem.go_on()
        await runner.cleanup()
