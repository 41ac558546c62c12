"""The product dies at each write while it remembers, and every time each thing is remembered once, and told once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.crash_points import COUNTDOWN, DIED, set_countdown
from tests.kills.facts import facts_at_rest
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, insisting
from tests.support.brain import attentive
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(400), pytest.mark.sqlite]
FEW_DEATHS, MANY_DEATHS = 8, 60
FAR = 1_000_000


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(attentive) as server:
        yield server


async def test_each_thing_is_remembered_once_at_whichever_write_the_product_dies(
    home: ProductFolder, product: MortalProduct, seed: int, tries: Callable[[int, int], int]
) -> None:
    countdown = home.folder / "countdown"
    deaths = tries(FEW_DEATHS, MANY_DEATHS)

    async def start() -> None:
        await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown), "MEMORY": "true"})

    async def revive() -> int:
        died = 0
        while (code := await product.wait()) == DIED:
            died += 1
            await start()
        assert code == 0, product.log()[-3000:]
        return died

    set_countdown(countdown, FAR)
    await start()
    rng, wanted = random.Random(seed), []
    async with asyncio.TaskGroup() as group:
        reviving = group.create_task(revive())
        async with ana_at(product, rng) as ana:
            await say(ana, "I work on nothing")  # how many writes that takes
            points = FAR - int(countdown.read_text())
            for n in range(deaths):
                set_countdown(countdown, int((n + rng.random()) * points / deaths))
                await say(ana, f"I work on project {n}")
                wanted.append(f"I work on project {n}")
            countdown.unlink(missing_ok=True)
            assert await product.listening()
            listed = (await insisting(lambda: ana.other.get("/api/memories"))).body["memories"]
            told = [notice for notice in ana.thread.notices if "I’ll remember" in notice]
        facts = await facts_at_rest(home)
        product.ask_to_end()
    assert reviving.result() > deaths * 0.5
    assert [each["text"] for each in listed] == [*reversed(wanted), "I work on nothing"]
    assert len(told) == len(wanted) + 1
    left = [row for row in facts.deliveries if row["kind"] == "memory"]
    assert {row["status"] for row in left} == {"done"}
    assert [row["body"] for row in left if row["body"]] == [], "of the words nothing is left"


async def say(ana: Ana, text: str) -> None:
    await ana.say(text)
    await ana.thread.notice(f"I’ll remember: “{text}”")


@asynccontextmanager
async def ana_at(product: MortalProduct, rng: random.Random) -> AsyncIterator[Ana]:
    async with AsyncExitStack() as stack:
        browsers = [await insisting(lambda: stack.enter_async_context(visiting(product.url, "ana"))) for _ in range(2)]
        thread = await stack.enter_async_context(browsers[0].thread(within=PATIENCE))
        yield Ana(thread, browsers[1], rng)
