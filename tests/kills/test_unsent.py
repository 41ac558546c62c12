"""Rule 4: what is killed before a request has left is no unknown outcome. It was never sent, and is sent then, once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.kills.facts import check_calls, check_inbox, lines_of, read_facts
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

FEW_TIMES, MANY_TIMES = 2, 5


@pytest.fixture
async def home(tmp_path: Path, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What is on disk, with a tool server that can be kept from coming up."""
    home = ProductFolder(tmp_path)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    program = Path(__file__).with_name("held_server.py")
    entry = {"command": sys.executable, "args": [str(program), str(home.folder)], "trustAnnotations": True}
    home.tool_servers({"effects": entry})
    yield home


async def test_no_outcome_is_unknown_of_writes_that_were_waiting_for_their_server_when_the_process_died(
    home: ProductFolder, product: MortalProduct, tries: Callable[[int, int], int]
) -> None:
    times = tries(FEW_TIMES, MANY_TIMES)
    hold, starts = home.folder / "hold", home.folder / "starts"
    await product.start()
    async with visiting(product.url) as browser, browser.thread(within=PATIENCE) as thread:
        ana = Ana(thread, browser, random.Random(0))
        for number in range(times):
            await ana.say(f"do held-{number}")
            cards = await ana.cards(f"held-{number}")
            hold.touch()
            before = len(lines_of(starts))
            os.kill(int(lines_of(starts)[-1]), signal.SIGKILL)
            await _longer(starts, before)
            thread.statuses.clear()
            await ana.click(browser, cards, "approve")
            async with asyncio.timeout(PATIENCE):
                while not any("Using effects" in said for said in thread.statuses):
                    await asyncio.sleep(0.01)
            await product.kill()
            hold.unlink()
            await product.start()
            await ana.hears(f"done held-{number}")
        sent = ana.sent
    assert await product.terminate() == 0
    facts = read_facts(home)
    check_inbox(facts, sent)
    check_calls(facts, sent)
    assert [attempt["status"] for attempt in facts.acts()] == ["done"] * 2 * times
    assert facts.effects.total() == 2 * times


async def _longer(file: Path, before: int) -> None:
    """Wait until a file has more lines."""
    async with asyncio.timeout(PATIENCE):
        while len(lines_of(file)) <= before:
            await asyncio.sleep(0.01)
