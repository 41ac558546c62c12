"""Killed while the preview of an approved call is fetched again: the call is made once all the same, under its card."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.kills.facts import check_calls, check_inbox, lines_of, read_facts
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]


@pytest.mark.parametrize(("kind", "cards"), [("hold", 1), ("hold-drift", 2)])
async def test_a_call_whose_preview_was_being_fetched_again_when_the_product_was_killed_is_made_once(
    home: ProductFolder, product: MortalProduct, kind: str, cards: int
) -> None:
    previews, go = home.folder / "previews", home.folder / "go"
    await product.start()
    async with visiting(product.url) as browser, browser.thread(within=PATIENCE) as thread:
        ana = Ana(thread, browser, random.Random(0))
        await ana.say(f"change {kind}")
        first = await ana.card(f"{kind}/change")
        await ana.click(browser, [first], "approve")
        async with asyncio.timeout(PATIENCE):
            while len(lines_of(previews)) < 2:
                await asyncio.sleep(0.01)
        await product.kill()
        go.touch()
        await product.start()
        asked_again = await ana.approves_until(f"done {kind}", f"{kind}/change")
        statuses = [card["status"] for card in thread.approvals()]
        sent = ana.sent
    assert await product.terminate() == 0
    facts = read_facts(home)
    check_inbox(facts, sent)
    check_calls(facts, sent)
    assert len({first, *asked_again}) == len(facts.approvals) == cards
    assert statuses == ["void"] * (cards - 1) + ["approved"]
    assert [attempt["status"] for attempt in facts.acts()] == ["done"]
    assert facts.effects == {f"{kind}/change": 1}
