"""Tokens and keys are fetched while everything else goes on: the loop is not held up.

The servers run in a thread of their own, and answer only once the loop of the bot has come round: whoever waits for
them by blocking is seen, on a machine that stalls too. What is computed in one go is counted in seconds of CPU.
"""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
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
from tests.support.cpu import hold_to, without_collections

ROUNDS = 10
"""How often the loop comes round before Microsoft answers."""
LOOK_EVERY = 0.002
"""Seconds between two looks at that, and between two rounds of the loop."""
MOST_AT_ONCE = 0.1
"""Seconds of CPU, now 15 ms."""
CONCURRENT = 20


class SlowMicrosoft:
    """Keys, tokens and a Bot Connector."""

    def __init__(self) -> None:
        self.issuer = Issuer(Clock(), APP_ID)
        self.rounds = 0
        """How often the loop of the bot has come round."""
        self.most_looks = 2_000
        self.asked: list[str] = []
        self.held_up: list[str] = []
        """For which of these the loop stood still."""
        self.url = ""

    @property
    def config(self) -> TeamsConfig:
        cloud = Cloud(f"{self.url}/login", f"{self.url}/metadata", ISSUER, ISSUER, f"{self.url}/teams/")
        return TeamsConfig(APP_ID, "secret", tenant=TENANT, allowed_tenants=frozenset({TENANT}), cloud=cloud)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        enough = self.rounds + ROUNDS
        for _ in range(self.most_looks):
            if self.rounds >= enough:
                break
            await asyncio.sleep(LOOK_EVERY)
        else:
            self.held_up.append(request.path)
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


async def most_at_once(microsoft: SlowMicrosoft, work: Awaitable[object]) -> float:
    """The most CPU time, in seconds, between two rounds of the loop while the work was done."""
    most = 0.0

    async def come_round() -> None:
        nonlocal most
        while True:
            began = time.thread_time()
            await asyncio.sleep(LOOK_EVERY)
            most = max(most, time.thread_time() - began)
            microsoft.rounds += 1

    rounds = asyncio.create_task(come_round())
    try:
        with without_collections():
            await work
    finally:
        rounds.cancel()
    return most


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


@pytest.fixture
def microsoft() -> Iterator[SlowMicrosoft]:
    with slow_microsoft() as running:
        yield running


async def test_slow_keys_and_slow_tokens_hold_nobody_up(microsoft: SlowMicrosoft) -> None:
    async with bot_of(microsoft) as work:
        most = await most_at_once(microsoft, work())
    login = [path for path in microsoft.asked if not path.startswith("/teams")]
    assert sorted(login) == ["/keys", f"/login/{TENANT}/oauth2/v2.0/token", "/metadata"]
    assert len(microsoft.asked) == CONCURRENT + len(login)
    assert microsoft.held_up == []
    hold_to(MOST_AT_ONCE, most)


async def test_the_measure_sees_who_waits_by_blocking(microsoft: SlowMicrosoft) -> None:
    async def block() -> None:
        urllib.request.urlopen(f"{microsoft.url}/metadata").close()

    microsoft.most_looks = 10
    await most_at_once(microsoft, block())
    assert microsoft.held_up == ["/metadata"]


async def test_the_measure_sees_what_is_computed_in_one_go(microsoft: SlowMicrosoft) -> None:
    async def compute() -> None:
        await asyncio.sleep(LOOK_EVERY)
        until = time.thread_time() + 2 * MOST_AT_ONCE
        while time.thread_time() < until:
            pass
        await asyncio.sleep(2 * LOOK_EVERY)

    assert await most_at_once(microsoft, compute()) > MOST_AT_ONCE
