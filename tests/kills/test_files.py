"""The product dies at each write while a file is handed over, and every time it is taken once, by its message alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import quote

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.crash_points import COUNTDOWN, DIED, set_countdown
from tests.kills.facts import check_inbox, facts_at_rest
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, Sent, insisting
from tests.support.brain import obedient
from tests.support.product import ProductFolder
from tests.support.product_records import rows_in_records
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(400), pytest.mark.sqlite]
FEW_DEATHS, MANY_DEATHS = 8, 60
FAR = 1_000_000


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(obedient) as server:
        yield server


async def test_a_file_is_taken_once_at_whichever_write_the_product_dies(
    home: ProductFolder, product: MortalProduct, seed: int, tries: Callable[[int, int], int]
) -> None:
    countdown = home.folder / "countdown"
    deaths, rng = tries(FEW_DEATHS, MANY_DEATHS), random.Random(seed)

    async def start() -> None:
        await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown)})

    async def revive() -> int:
        died = 0
        while (code := await product.wait()) == DIED:
            died += 1
            await start()
        assert code == 0, product.log()[-3000:]
        return died

    set_countdown(countdown, FAR)
    await start()
    async with asyncio.TaskGroup() as group:
        reviving = group.create_task(revive())
        async with ana_at(product, rng) as ana:
            await hand_over(ana, "first")  # how many writes that takes
            points = FAR - int(countdown.read_text())
            for n in range(deaths):
                set_countdown(countdown, int((n + rng.random()) * points / deaths))
                await hand_over(ana, f"word{n}")
            countdown.unlink(missing_ok=True)
            assert await product.listening()
        facts = await facts_at_rest(home)
        product.ask_to_end()
    assert reviving.result() > deaths * 0.5
    check_inbox(facts, ana.sent)
    taken = rows_in_records(home, "SELECT message_key, text FROM files WHERE message_key IS NOT NULL")
    words = ["first", *(f"word{n}" for n in range(deaths))]
    assert sorted(text for _key, text in taken) == sorted(words), "each is taken once"
    assert len({key for key, _text in taken}) == len(words), "by its own message"


async def hand_over(ana: Ana, word: str) -> None:
    """Upload a file and send it with a message, again under the same id where no answer came; wait for what is said."""
    browser = ana.thread.visitor
    uploaded = await insisting(lambda: browser.upload(f"{word}.txt", word.encode()))
    assert uploaded.status == 201, uploaded
    path = f"/api/threads/{quote(ana.thread.thread_id, safe='')}/messages"
    body = {"id": ana.new_id(), "text": f"look at {word}", "files": [uploaded.body["id"]]}
    answer = await ana.post(browser, path, body)
    assert answer.status == 202, answer
    ana.sent.append(Sent(ana.thread.thread_id, body["text"]))
    await ana.thread.says(f"You said: look at {word}")


@asynccontextmanager
async def ana_at(product: MortalProduct, rng: random.Random) -> AsyncIterator[Ana]:
    async with AsyncExitStack() as stack:
        browser = await insisting(lambda: stack.enter_async_context(visiting(product.url, "ana")))
        thread = await stack.enter_async_context(browser.thread(within=PATIENCE))
        yield Ana(thread, browser, rng)
