"""Tokens and keys are fetched while everything else goes on: the loop is never held up for more than 50 ms.

The servers that are slow run in a thread of their own, so that whoever waited for them by blocking would be seen.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from aiohttp import web

from adapters.teams.config import Cloud, TeamsConfig
from adapters.teams.connector.authentication import Authentication
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import TeamsLocation
from tests.fakes.teams.clock import Clock
from tests.fakes.teams.tokens import ISSUER, Issuer
from tests.fakes.teams.world import APP_ID, TENANT

SLOW = 0.15
"""Seconds that each answer of Microsoft's takes."""
MOST_LAG = 0.05
"""Seconds (issue 4, "Done when" 5)."""
CONCURRENT = 20


class SlowMicrosoft:
    """Keys, tokens and a Bot Connector."""

    def __init__(self) -> None:
        self.issuer = Issuer(Clock(), APP_ID)
        self.asked: list[str] = []
        self.url = ""

    @property
    def config(self) -> TeamsConfig:
        cloud = Cloud(f"{self.url}/login", f"{self.url}/metadata", ISSUER, ISSUER, f"{self.url}/teams/")
        return TeamsConfig(APP_ID, "secret", tenant=TENANT, allowed_tenants=frozenset({TENANT}), cloud=cloud)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        await asyncio.sleep(SLOW)
        if request.path == "/metadata":
            return web.json_response({"jwks_uri": f"{self.url}/keys"})
        if request.path == "/keys":
            return web.json_response(self.issuer.keys())
        if request.path.startswith("/login"):
            return web.json_response({"access_token": "t", "expires_in": 3600})
        return web.json_response({"id": "1"})


@contextmanager
def slow_microsoft() -> Iterator[SlowMicrosoft]:
    microsoft, ready, loop = SlowMicrosoft(), threading.Event(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", microsoft.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        microsoft.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()

    def serve() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait(10)
    try:
        yield microsoft
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def longest_lag(work: Awaitable[object]) -> float:
    """The longest time, in seconds, for which the loop did not come round while the work was done."""
    lags = [0.0]

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(time.perf_counter() - began - 0.002)

    ticking = asyncio.create_task(tick())
    gc.collect()
    try:
        await work
    finally:
        ticking.cancel()
    return max(lags)


@asynccontextmanager
async def bot_of(microsoft: SlowMicrosoft) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """A bot that knows nothing yet, and what it is to do: judge many requests, and answer as many."""
    config = microsoft.config
    authentication, tokens = Authentication(config), tokens_of(config, environ={})
    connector = BotConnector(config, tokens)
    microsoft.issuer.service_url = config.cloud.service_url
    headers = {"Authorization": f"Bearer {microsoft.issuer.token({}, headers={})}"}
    activity = {
        "channelId": "msteams",
        "serviceUrl": config.cloud.service_url,
        "channelData": {"tenant": {"id": TENANT}},
    }

    async def turn(number: int) -> None:
        await authentication.admit(headers, "127.0.0.1", activity)
        await connector.send(TeamsLocation(TENANT, f"19:{number}", "groupChat"), {"type": "message", "text": "hello"})

    async def work() -> None:
        await asyncio.gather(*map(turn, range(CONCURRENT)))

    try:
        yield work
    finally:
        await connector.close()
        await tokens.close()
        await authentication.close()


@pytest.fixture(scope="module")
def microsoft() -> Iterator[SlowMicrosoft]:
    with slow_microsoft() as running:
        yield running


async def test_slow_keys_and_slow_tokens_hold_nobody_up(microsoft: SlowMicrosoft) -> None:
    measured = []
    for _ in range(3):  # other processes may take the processor away: the best of three is ours
        microsoft.asked.clear()
        async with bot_of(microsoft) as work:
            measured.append(await longest_lag(work()))
        login = [path for path in microsoft.asked if not path.startswith("/teams")]
        assert sorted(login) == ["/keys", f"/login/{TENANT}/oauth2/v2.0/token", "/metadata"]
        assert len(microsoft.asked) == CONCURRENT + len(login)
        if measured[-1] < MOST_LAG:
            break
    assert min(measured) < MOST_LAG


async def test_the_measure_sees_a_blocked_loop() -> None:
    async def block() -> None:
        await asyncio.sleep(0.01)
        time.sleep(0.08)
        await asyncio.sleep(0.01)

    assert await longest_lag(block()) > MOST_LAG
