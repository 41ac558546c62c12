"""Two products on one PostgreSQL: whichever somebody talks to, limits, time and policy are the same."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import aiohttp
import psycopg
import pytest
from structlog.testing import capture_logs

from adapters.platforms import PlatformSetup, Senders, make_senders
from adapters.web.access import TRIES
from bot.limits import BeginningsHere
from bot.records.clock import DatabaseClock
from bot.replicas import SharedPauses
from bot.sharing import SharedState, sharing
from tests.support import postgres_cluster
from tests.support.product import ProductFolder, ProductProcess, product_here, product_process
from tests.support.visitor import Visitor

pytestmark = pytest.mark.postgres
Start = Callable[[Callable[[], float]], AbstractAsyncContextManager[str]]
FAST = 3_600.0
"""Seconds by which the clock of one machine is fast."""
ASKED = 'version: 1\nrules:\n  - {name: changes, match: {tool: "create*"}, decide: ask, expiresIn: 15m}\n'
DENIED = "version: 1\nrules:\n  - {name: nothing, match: {}, decide: deny}\n"


@pytest.fixture
def shared_home(home: ProductFolder) -> ProductFolder:
    """What both have."""
    home.variables |= {
        "DATABASE_URL": postgres_cluster.emptied_database(),
        "PUBLIC_URL": "http://127.0.0.1:3978",
    }
    home.policy(ASKED)
    return home


def by_itself(clock: Callable[[], float]) -> Any:
    """As if nothing were shared."""

    @asynccontextmanager
    async def opened(*_: Any) -> AsyncIterator[SharedState]:
        yield SharedState(clock, BeginningsHere(clock))

    return opened


BOTH_WAYS = pytest.mark.parametrize(
    "kept", ["shared", pytest.param("not shared", marks=pytest.mark.xfail(strict=True, reason="each is by itself"))]
)


@pytest.fixture
def kept() -> str:
    """Whether what there is to count is shared; a test of both ways says so."""
    return "shared"


@pytest.fixture
def start(kept: str, shared_home: ProductFolder, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a product on a machine with this clock."""
    shared_home.variables["LIMIT_TURNS_PER_MINUTE"] = "2"

    def start(clock: Callable[[], float]) -> AbstractAsyncContextManager[str]:
        monkeypatch.setattr("bot.sharing.system_clock", clock)
        monkeypatch.setattr("app.sharing", sharing if kept == "shared" else by_itself(clock))
        return product_here(shared_home)

    return start


@asynccontextmanager
async def ana_at(url: str) -> AsyncIterator[Visitor]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        ana = Visitor(url, http)
        await ana.arrive("web:ana")
        yield ana


@BOTH_WAYS
async def test_an_approval_waits_as_long_as_it_may_though_a_clock_is_fast(start: Start) -> None:
    async with start(time.time) as url, ana_at(url) as ana, ana.thread() as thread:
        await thread.send("create a meeting called Standup tomorrow at 9am")
        (card,) = await thread.waiting()
    async with (
        start(lambda: time.time() + FAST) as url,
        ana_at(url) as ana,
        ana.thread(thread.thread_id) as thread,
    ):
        await asyncio.sleep(2.5)  # in which it looks at what is due
        async with await psycopg.AsyncConnection.connect(postgres_cluster.own_database()) as records:
            assert await rows(records, "SELECT status FROM approvals") == [("pending",)]
        await thread.approve(card["id"])
        await thread.says("created")


async def test_turns_are_counted_together_whichever_is_talked_to(start: Start) -> None:
    # What happens when they are not is left to chance: a turn runs in whichever of the two takes it first.
    # tests/bot/test_shared_limits.py gives each its own.
    async with start(time.time) as here, start(time.time) as there:
        for url in (here, there) * 2:
            async with ana_at(url) as ana, ana.thread() as thread:
                await thread.send("hello")
        told = await notices()
    assert ["Limit: 2 messages a minute" in text for text in told] == [True, True]


async def notices() -> list[str]:
    """What the product has said when nothing is left to be handled."""
    async with await psycopg.AsyncConnection.connect(postgres_cluster.own_database()) as records:
        async with asyncio.timeout(20):
            while await rows(records, "SELECT FROM deliveries WHERE status = 'waiting'"):
                await asyncio.sleep(0.1)
        told = await rows(records, "SELECT content ->> 'text' FROM posts WHERE kind = 'notice'")
    return [text for (text,) in told]


async def rows(records: psycopg.AsyncConnection, query: LiteralString) -> list[Any]:
    found = await (await records.execute(query)).fetchall()
    await records.rollback()
    return found


@BOTH_WAYS
async def test_wrong_passwords_are_counted_together(start: Start) -> None:
    async with start(time.time) as here, start(time.time) as there:
        answers = []
        async with ana_at(here) as ana, ana_at(there) as also:
            for visitor in (ana, also) * 6:
                answer = await visitor.post("/api/session", {"password": "open barley"})
                answers.append(answer.status)
    assert answers == [401] * TRIES + [429] * 2


async def test_products_that_are_configured_differently_say_so(shared_home: ProductFolder, tmp_path: Path) -> None:
    other = ProductFolder(tmp_path / "other", shared_home.variables | {"WEB_PASSWORD": "open barley"})
    other.folder.mkdir()
    other.tool_servers({})
    with capture_logs() as logs:
        async with product_here(shared_home), product_here(shared_home), product_here(other), asyncio.timeout(20):
            while len(told := [each for each in logs if each["event"] == "settings_differ"]) < 4:
                await asyncio.sleep(0.02)
    assert [each["settings"] for each in told] == [["MCP_CONFIG", "WEB_PASSWORD"]] * 4
    assert "open barley" not in str(told)


async def test_platforms_are_given_what_is_shared(shared_home: ProductFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[PlatformSetup] = []

    def noting(setup: PlatformSetup) -> Senders:
        given.append(setup)
        return make_senders(setup)

    monkeypatch.setattr("app.make_senders", noting)
    async with product_here(shared_home):
        (setup,) = given
        assert isinstance(setup.clock, DatabaseClock)
        assert isinstance(setup.exchange, SharedPauses)


async def health(url: str) -> Any:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/health-check") as response:
        return await response.json()


async def test_the_health_of_each_shows_both(shared_home: ProductFolder) -> None:
    async with product_here(shared_home) as here, product_here(shared_home) as there:
        ids = set()
        for url in (here, there):
            async with asyncio.timeout(10):
                while len(found := (await health(url))["replicas"]) < 2:
                    await asyncio.sleep(0.1)
            assert [each["here"] for each in found] == [True, False]
            assert not any(each["policy_differs"] for each in found)
            ids |= {each["id"] for each in found}
        assert len(ids) == 2


async def test_sighup_to_one_is_followed_by_the_other(shared_home: ProductFolder) -> None:
    """Rule 9."""
    shared_home.environment()  # names what both use
    beside = ProductFolder(shared_home.folder / "beside", dict(shared_home.variables))
    beside.folder.mkdir()
    async with product_process(shared_home) as one, product_process(beside) as other:
        shared_home.policy(DENIED)
        one.send(signal.SIGHUP)
        await becomes(lambda: all(logged(each, "policy_reloaded") for each in (one, other)), within=20)
        versions = {logged(each, "policy_reloaded")[-1]["version"] for each in (one, other)}
        assert len(versions) == 1


def logged(product: ProductProcess, event: str) -> list[Any]:
    return [entry for line in product.log().splitlines() if (entry := json.loads(line))["message"] == event]


async def becomes(condition: Callable[[], bool], within: float) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.05)
