"""Twelve requests of a plan and everything at once: two people, three browsers, Approve, Edit, Reject, Approve all, in
any order. Afterwards what was approved has run, once and as it was approved, and nothing else has."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest

from tests.product.test_audit import audit
from tests.product.test_plans import BY_BEN
from tests.product.test_tasks_of_plans import model, workshop_home
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Json, Thread, visiting

__all__ = ["model", "workshop_home"]

TASKS = "abcdefghijkl"
"""As many as a plan may have."""
FEW_STORMS, MANY_STORMS = 1, 10

Done = str
"""`make <what> <count>`, as the tool server notes it; empty: the call does not run."""


@pytest.mark.parametrize("stopped", [False, True], ids=["to the end", "stopped in the middle"])
async def test_in_a_storm_of_clicks_what_was_approved_runs_once_and_as_approved(
    workshop_home: ProductFolder, shop: Workshop, seed: int, tries: Callable[[int, int], int], *, stopped: bool
) -> None:
    workshop_home.policy(BY_BEN)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url) as ana_elsewhere,
        visiting(url, "ben") as ben,
    ):
        for number in range(tries(FEW_STORMS, MANY_STORMS)):
            rng = random.Random(f"{seed} {number} {stopped}")
            shop.done.clear()
            async with ana.thread() as thread:
                await thread.send("plan " + ", ".join(f"{task}: use make what={task}" for task in TASKS))
                cards = {card["id"]: what_of(card) for card in await thread.waiting(len(TASKS))}
                browsers = [thread, Thread(thread.thread_id, ana_elsewhere), Thread(thread.thread_id, ben)]
                storm = [click(browser, cards, rng, name) for name, browser in enumerate(browsers) for _ in range(8)]
                settled: list[tuple[str, Done]] = []
                for clicks in asyncio.as_completed(storm):
                    settled += await clicks
                    if stopped and len(settled) > len(TASKS) // 2:
                        await thread.stop()
                for left in () if stopped else sorted(cards.keys() - {approval for approval, _ in settled}):
                    settled += await one(thread, left, f"make {cards[left]} 1")
                await thread.until(lambda: not thread.approvals("pending") and is_over(thread), "the end of the plan")
            assert [a for a, times in Counter(approval for approval, _ in settled).items() if times > 1] == []
            approved = Counter(done for _, done in settled if done)
            if stopped:  # what was approved, and had not begun, may not begin
                assert Counter(shop.done) <= approved
            else:
                assert Counter(shop.done) == approved
    assert audit(workshop_home, "audit", "verify")[0] == 0


def what_of(card: Json) -> str:
    """What a card asks to make."""
    return next(str(each["value"]) for each in card["arguments"] if each["name"] == "What")


def is_over(thread: Thread) -> bool:
    """Whether nothing of the newest plan goes on."""
    tasks = [task["status"] for task in thread.contents("plan")[-1]["tasks"]]
    return bool(tasks) and not {"running", "waiting", "blocked"} & {*tasks}


async def click(browser: Thread, cards: dict[str, str], rng: random.Random, name: int) -> list[tuple[str, Done]]:
    """One click on one card or several; of those that it settled: what is to be done.

    Args:
        name: the browser's, which is in the values of its edits.
    """
    approval, verb, several = rng.choice([*cards]), rng.random(), rng.sample([*cards], 5)
    if verb < 0.3:
        return await one(browser, approval, f"make {cards[approval]} 1")
    if verb < 0.6:
        what = f"{cards[approval]}-{name}"
        return await one(browser, approval, f"make {what} 7", values={"what": what, "count": "7"})
    if verb < 0.8:
        result = await browser.reject(approval, "not now")
        return [(approval, "")] if result["kind"] == "settled" else []
    results = await browser.approve(*several)
    return [(each, f"make {cards[each]} 1") for each in several if results[each]["kind"] == "settled"]


async def one(browser: Thread, approval: str, done: Done, *, values: Json | None = None) -> list[tuple[str, Done]]:
    """Approve one, perhaps with changes."""
    result = await browser.approve(approval, values=values)
    assert result["kind"] in {"settled", "already_settled"}, result
    return [(approval, done)] if result["kind"] == "settled" else []
