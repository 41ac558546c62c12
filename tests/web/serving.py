"""The page served for real: an aiohttp application on a free port of this machine, with stand-in services behind it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp import web

from adapters.web.config import PageFacts, ToolServerFacts, WebConfig
from adapters.web.receiver import WebReceiver
from adapters.web.sender import WebSender
from tests.web.stand_in_services import StandInServices

FACTS = PageFacts(
    model_notice="No language model is connected. A small built-in model answers; it knows calendar and tasks only.",
    mode="default",
    tool_servers=(
        ToolServerFacts("calendar", "connected", 5),
        ToolServerFacts("tasks", "unavailable", 0, "It stopped; starting it again in 4 s."),
    ),
)


@dataclass(frozen=True, slots=True)
class Product:
    """The page, served."""

    url: str
    sender: WebSender
    receiver: WebReceiver
    services: StandInServices


@asynccontextmanager
async def serve(**changes: Any) -> AsyncIterator[Product]:
    """Serve the page until the block ends; `changes` are those of the configuration."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        config = replace(WebConfig(host="127.0.0.1", port=port, secret=b"sixteen bytes or more"), **changes)
        sender = WebSender(config)
        services = StandInServices(sender)
        receiver = WebReceiver(sender, services.services, lambda: FACTS)
        application = web.Application()
        application.add_routes(receiver.routes())
        runner = web.AppRunner(application, shutdown_timeout=2)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        try:
            yield Product(f"http://127.0.0.1:{port}", sender, receiver, services)
        finally:
            await receiver.stop()
            await runner.cleanup()


class Browser:
    """What a browser with the page open sends: cookies, and the session's token with everything that changes things."""

    def __init__(self, http: aiohttp.ClientSession, product: Product) -> None:
        self.http = http
        self.product = product
        self.token = ""

    async def hello(self) -> dict[str, Any]:
        """Begin, or look up, the session."""
        async with self.http.get(f"{self.product.url}/api/session") as response:
            body: dict[str, Any] = await response.json()
        self.token = body["csrf"]
        return body

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and body of a reading."""
        async with self.http.get(f"{self.product.url}{path}", headers=headers) as response:
            return response.status, await response.json()

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and body of an action."""
        headers = {"X-CSRF-Token": self.token} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(f"{self.product.url}{path}", json=body, headers=headers) as response:
            return response.status, await response.json()


@asynccontextmanager
async def browser_of(product: Product, person: str | None = None) -> AsyncIterator[Browser]:
    """A browser with a session, as that person (`web:ben`) or the first one."""
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of IP addresses, as real browsers keep them
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=30)) as http:
        browser = Browser(http, product)
        await browser.hello()
        if person is not None:
            status, _ = await browser.post("/api/session", {"person": person})
            assert status == 200
        yield browser
