"""kill -9 at random moments under load: nothing is lost, nothing runs twice, and no conversation is stuck."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import pytest

from tests.kills.facts import check_calls, check_endings, check_inbox, check_shown, opened_anew, read_facts
from tests.kills.habits import live
from tests.kills.mortal import TAKEOVER, MortalProduct
from tests.kills.people import PATIENCE, Ana
from tests.kills.programs import check_programs
from tests.support.product import ProductFolder
from tests.support.visitor import Visitor, visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(700)]

FEW_KILLS, MANY_KILLS = 8, 60
FEW_THREADS, MANY_THREADS = 5, 8
MOST_SHOWN = 18
"""Posts and changes of posts that the product gets to show before it is killed, at most."""
LONGEST_MOMENT = 0.15
"""Seconds that it lives on after that, at most."""
LONGEST_LIFE = 5.0 + TAKEOVER
"""Seconds that it lives, at most, when nothing happens."""


async def test_nothing_is_lost_and_nothing_runs_twice_however_often_the_product_is_killed(
    home: ProductFolder,
    product: MortalProduct,
    seed: int,
    tries: Callable[[int, int], int],
    record_property: Callable[[str, object], None],
) -> None:
    kills, threads = tries(FEW_KILLS, MANY_KILLS), tries(FEW_THREADS, MANY_THREADS)
    await product.start()
    dying_is_over = asyncio.Event()
    async with AsyncExitStack() as stack:
        browsers = [await stack.enter_async_context(visiting(product.url, "ana")) for _ in range(2)]
        people = [await _ana(stack, browsers, number, seed) for number in range(threads)]
        async with asyncio.TaskGroup() as group:
            living = [group.create_task(live(ana, dying_is_over)) for ana in people]
            await _die_again_and_again(product, people, kills, random.Random(seed))
            dying_is_over.set()
        said = [text for ana in people for text in ana.thread.said]
    sent = [message for ana in people for message in ana.sent]
    entries = {ana.thread.thread_id: await opened_anew(product.url, ana.thread.thread_id) for ana in people}
    assert await product.terminate() == 0

    facts = read_facts(home)
    check_inbox(facts, sent)
    check_calls(facts, sent)
    check_programs(facts)
    check_endings(facts, sent, said)
    for thread_id, shown in entries.items():
        check_shown(shown, [s for s in sent if s.thread_id == thread_id])
    unknown = sum(a["status"] == "unknown" for a in facts.acts())
    summary = {
        "kills": kills,
        "turns": len(sent),
        "effects": facts.effects.total(),
        "unknown": unknown,
        "settled_by_ana": sum(len(task.result()) for task in living),
        "superseded": sum(a["status"] == "superseded" for a in facts.approvals),
        "of_programs": len(facts.gateway_calls),
        "stopped": sum(s.stopped for s in sent),
    }
    record_property("kills", summary)
    print(summary)
    assert summary["effects"] >= threads, "so few effects prove nothing"


async def _ana(stack: AsyncExitStack, browsers: list[Visitor], number: int, seed: int) -> Ana:
    first, second = browsers if number % 2 else reversed(browsers)
    thread = await stack.enter_async_context(first.thread(within=PATIENCE))
    return Ana(thread, second, random.Random(seed + 1 + number))


async def _die_again_and_again(product: MortalProduct, people: Sequence[Ana], kills: int, rng: random.Random) -> None:
    """Kill the product after so and so many things have been shown, and a moment more: whatever the machine's speed,
    conversations get on, and no delivery comes to be parked for having died too often."""
    for number in range(kills):
        if number % 6 != 5:  # each sixth hits it while it starts
            assert await product.listening(), product.log()[-3000:]
            await _get_on(people, rng.randrange(MOST_SHOWN))
        await asyncio.sleep(rng.uniform(0, LONGEST_MOMENT))
        await product.kill()
        await product.fork()
    assert await product.listening(), product.log()[-3000:]


async def _get_on(people: Sequence[Ana], shown: int) -> None:
    goal = sum(ana.revisions for ana in people) + shown
    with contextlib.suppress(TimeoutError):  # then everybody waits for something that a new start may bring
        async with asyncio.timeout(LONGEST_LIFE):
            while sum(ana.revisions for ana in people) < goal:
                await asyncio.sleep(0.005)
