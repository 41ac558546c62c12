"""kill -9 at random moments under load: nothing is lost, nothing runs twice, and no conversation is stuck."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import pytest

from tests.kills.facts import check_calls, check_endings, check_inbox, check_shown, opened_anew, read_facts
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, Sent, settling_outcomes
from tests.support.product import ProductFolder
from tests.support.visitor import Visitor, visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(400)]

FEW_KILLS, MANY_KILLS = 12, 60
THREADS = 8
LEAST_TURNS = 4
MOST_SHOWN = 18
"""Posts and changes of posts that the product gets to show before it is killed, at most."""
LONGEST_MOMENT = 0.15
"""Seconds that it lives on after that, at most."""
LONGEST_LIFE = 5.0
"""Seconds that it lives, at most, when nothing happens."""


async def test_nothing_is_lost_and_nothing_runs_twice_however_often_the_product_is_killed(
    home: ProductFolder,
    product: MortalProduct,
    seed: int,
    tries: Callable[[int, int], int],
    record_property: Callable[[str, object], None],
) -> None:
    kills = tries(FEW_KILLS, MANY_KILLS)
    await product.start()
    dying_is_over = asyncio.Event()
    async with AsyncExitStack() as stack:
        browsers = [await stack.enter_async_context(visiting(product.url, "ana")) for _ in range(2)]
        people = [await _ana(stack, browsers, number, seed) for number in range(THREADS)]
        async with asyncio.TaskGroup() as group:
            living = [group.create_task(_live(ana, dying_is_over)) for ana in people]
            await _die_again_and_again(product, people, kills, random.Random(seed))
            dying_is_over.set()
        said = [text for ana in people for text in ana.thread.said]
    sent = [message for ana in people for message in ana.sent]
    entries = {ana.thread.thread_id: await opened_anew(product.url, ana.thread.thread_id) for ana in people}
    assert await product.terminate() == 0

    facts = read_facts(home)
    check_inbox(facts, sent)
    check_calls(facts, sent)
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
        "stopped": sum(s.stopped for s in sent),
    }
    record_property("kills", summary)
    print(summary)
    assert summary["effects"] >= THREADS, "so few effects prove nothing"


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


# ------------------------------------------------------------------------------------------------ a person's life


async def _live(ana: Ana, dying_is_over: asyncio.Event) -> list[str]:
    """Take turn after turn while the product is being killed, and then ask whether anybody is there. Returns the
    outcomes that she had to settle."""
    turn = 0
    number = ana.thread.thread_id[-6:]
    async with settling_outcomes(ana, ["skip", "it_was_done"]) as settled:
        while turn < LEAST_TURNS or not dying_is_over.is_set():
            await ana.rng.choice(HABITS)(ana, f"{number}-{turn}")
            turn += 1
        await ana.say(f"hey {number}-last")
        await ana.hears(f"hello {number}-last")
    return settled


async def _decides(ana: Ana, key: str) -> None:
    """Every card is approved and rejected at once, from two browsers; the first one wins."""
    await ana.say(f"do {key}", times=ana.rng.choice([1, 2, 3]))
    for card in await ana.cards(key):
        verbs = ana.rng.sample(["approve", "reject"], 2)
        clicks = [ana.click(b, [card], v) for b, v in zip([ana.thread.visitor, ana.other], verbs, strict=True)]
        kinds = [next(iter(results.values()))["kind"] for results in await asyncio.gather(*clicks)]
        assert sorted(kinds) == ["already_settled", "settled"], kinds
    await ana.hears(f"done {key}")


async def _clicks_twice(ana: Ana, key: str) -> None:
    """One click on Approve all arrives three times."""
    await ana.say(f"do {key}")
    cards, click = await ana.cards(key), ana.new_id()
    browsers = [ana.thread.visitor, ana.other, ana.thread.visitor]
    answers = await asyncio.gather(*(ana.click(b, cards, "approve", click) for b in browsers))
    assert {result["kind"] for results in answers for result in results.values()} == {"settled"}
    await ana.hears(f"done {key}")


async def _approves_impatiently(ana: Ana, key: str) -> None:
    """Two different clicks on the same Approve."""
    await ana.say(f"do {key}", times=2)
    first, second = await ana.cards(key)
    await asyncio.gather(*(ana.click(b, [first], "approve") for b in (ana.thread.visitor, ana.other)))
    await ana.click(ana.other, [second], ana.rng.choice(["approve", "reject"]))
    await ana.hears(f"done {key}")


async def _changes_her_mind(ana: Ana, key: str) -> None:
    """Something new while one act is approved and one still waits."""
    await ana.say(f"do {key}")
    first, _ = await ana.cards(key)
    if ana.rng.random() < 0.5:
        await ana.click(ana.thread.visitor, [first], "approve")
    await ana.say(f"hey {key}-instead", times=2)
    await ana.hears(f"hello {key}-instead")


async def _crosses_herself(ana: Ana, key: str) -> None:
    """Something new is on its way while she approves: what the click settled first runs first."""
    message = await ana.say(f"do {key}")
    first, second = await ana.cards(key)
    both = [first, second] if ana.rng.random() < 0.5 else [first]
    await asyncio.gather(
        ana.say(f"hey {key}-instead"), ana.click(ana.other, both, "approve"), ana.click(ana.other, [second], "reject")
    )
    await ana.hears(f"hello {message.key}-instead")


async def _is_in_a_hurry(ana: Ana, key: str) -> None:
    """Two messages at once; the second gives up what the first one asked for."""
    await ana.say(f"do {key}a")
    await ana.say(f"do {key}b")
    await ana.click(ana.other, await ana.cards(f"{key}b"), "approve")
    await ana.hears(f"done {key}b")


async def _stops_what_waits(ana: Ana, key: str) -> None:
    message = await ana.say(f"do {key}")
    await ana.some_card(key)
    await _stop(ana, message)


async def _stops_what_runs(ana: Ana, key: str) -> None:
    """Stop right after Approve, while the acts run or are about to."""
    message = await ana.say(f"do {key}")
    await ana.click(ana.thread.visitor, await ana.cards(key), "approve")
    await _stop(ana, message)


async def _stop(ana: Ana, message: Sent) -> None:
    message.stopped = await ana.stop()
    if not message.stopped:
        await ana.hears(f"done {message.key}")


async def _chats(ana: Ana, key: str) -> None:
    await ana.say(f"hey {key}", times=2)
    await ana.hears(f"hello {key}")


HABITS: tuple[Callable[[Ana, str], Awaitable[None]], ...] = (
    _decides,
    _decides,
    _clicks_twice,
    _approves_impatiently,
    _changes_her_mind,
    _crosses_herself,
    _is_in_a_hurry,
    _stops_what_waits,
    _stops_what_runs,
    _chats,
)
