"""The product dies at each durable write of a conversation in turn, and every time the conversation ends the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.kills.crash_points import COUNTDOWN, DIED, set_countdown
from tests.kills.facts import (
    MOST_RETRIED,
    Facts,
    check_calls,
    check_endings,
    check_inbox,
    check_shown,
    check_usage,
    key_of,
    opened_anew,
    read_facts,
)
from tests.kills.habits import changes_what_drifts, retries
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, insisting, name_of, settling_outcomes
from tests.kills.programs import ACT, approves, check_programs, result_of
from tests.support.gateway_program import GatewayProgram, programs
from tests.support.product import ProductFolder
from tests.support.visitor import visiting

# The same with PostgreSQL, where another process takes over: tests/replicas.
pytestmark = [pytest.mark.kills, pytest.mark.timeout(400), pytest.mark.sqlite]

FEW_DEATHS, MANY_DEATHS = 6, 36
"""Crash points that are tried, one drawn from each of as many equal stretches of the conversation."""
FAR = 1_000_000
Conversation = Callable[[MortalProduct, str, int], Awaitable[Ana]]


async def test_a_conversation_ends_the_same_at_whichever_write_the_product_dies(
    home: ProductFolder, product: MortalProduct, seed: int, tries: Callable[[int, int], int]
) -> None:
    told, facts = await _dying_in(_conversation, home, product, seed, tries)
    assert len(facts.gateway_calls) == len(told), "each was made once"
    check_usage(facts)


async def test_a_retry_and_a_preview_end_the_same_at_whichever_write_the_product_dies(
    home: ProductFolder, product: MortalProduct, seed: int, tries: Callable[[int, int], int]
) -> None:
    """Also between the second preview and the call: that the first was read is a write of the audit log."""
    told, facts = await _dying_in(_retries_and_previews, home, product, seed, tries)
    proposed = Counter(key_of(a) for a in facts.approvals if a["tool"] == "attempt")
    # In the middle of the first try the product dies now and then: then there is nothing to retry.
    assert sum(times == MOST_RETRIED for times in proposed.values()) > len(told) * 0.6
    changed = [attempt for attempt in facts.acts() if attempt["tool"] == "change"]
    asked = Counter(a["call_id"] for a in facts.approvals if a["tool"] == "change")
    assert sum(asked[attempt["call_id"]] > 1 for attempt in changed) > len(told) * 0.6, "asked again"


async def _dying_in(
    conversation: Conversation,
    home: ProductFolder,
    product: MortalProduct,
    seed: int,
    tries: Callable[[int, int], int],
) -> tuple[list[Ana], Facts]:
    """Have the conversation again and again, and the product die at another write each time. Returns everybody who had
    one, and what is on disk in the end, as far as it is the same for all conversations."""
    deaths = tries(FEW_DEATHS, MANY_DEATHS)
    countdown = home.folder / "countdown"
    set_countdown(countdown, FAR)
    await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown)})
    async with asyncio.TaskGroup() as group:
        reviving = group.create_task(_revive(product, countdown))
        told, lengths = [], []
        for name in ("whole", "whole-again"):
            set_countdown(countdown, FAR)
            told.append(await conversation(product, name, seed))
            lengths.append(FAR - int(countdown.read_text()))
        points = min(lengths)  # writes that come at the same time share a commit, so some have fewer
        assert points > 2 * MANY_DEATHS, "the conversation writes less than it should"
        for point in _spread(points, deaths, random.Random(seed)):
            set_countdown(countdown, point)
            told.append(await conversation(product, f"at{point}", seed))
        countdown.unlink(missing_ok=True)
        assert await product.listening()
        entries = {ana.thread.thread_id: await opened_anew(product.url, ana.thread.thread_id) for ana in told}
        product.ask_to_end()
    assert reviving.result() > deaths * 0.7, "too few of the conversations were long enough"

    facts, sent = read_facts(home), [message for ana in told for message in ana.sent]
    check_inbox(facts, sent)
    check_calls(facts, sent)
    check_programs(facts)
    for ana in told:
        check_endings(facts, ana.sent, ana.thread.said)
        check_shown(entries[ana.thread.thread_id], ana.sent)
    return told, facts


def _spread(points: int, deaths: int, rng: random.Random) -> list[int]:
    stretch = points / deaths
    return [int((n + rng.random()) * stretch) for n in range(deaths)]


async def _revive(product: MortalProduct, countdown: Path) -> int:
    """Start the product again whenever it died at a crash point, until it ends well. How often it died."""
    deaths = 0
    while (code := await product.wait()) == DIED:
        deaths += 1
        await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown)})
    assert code == 0, product.log()[-3000:]
    return deaths


@asynccontextmanager
async def _ana(product: MortalProduct, name: str, seed: int) -> AsyncIterator[Ana]:
    async with AsyncExitStack() as stack:
        # The one before may have ended a moment before the process died.
        browsers = [await insisting(lambda: stack.enter_async_context(visiting(product.url, "ana"))) for _ in range(2)]
        thread = await stack.enter_async_context(browsers[0].thread(within=PATIENCE))
        ana = Ana(thread, browsers[1], random.Random(f"{seed}:{name}"))
        await stack.enter_async_context(settling_outcomes(ana, ["skip", "it_was_done"]))
        yield ana


async def _conversation(product: MortalProduct, name: str, seed: int) -> Ana:
    """One act approved and one rejected; two given up for something new; a question answered in words; and one act of
    another agent of hers approved."""
    async with _ana(product, name, seed) as ana, programs() as http:
        thread = ana.thread
        await ana.say(f"do {name}-first", times=2)
        approved, rejected = await ana.cards(f"{name}-first")
        await ana.click(thread.visitor, [approved], "approve")
        await ana.click(ana.other, [rejected], "reject")
        await ana.hears(f"done {name}-first")

        await ana.say(f"do {name}-second")
        await ana.cards(f"{name}-second")
        await ana.say(f"ask {name}-third")
        await thread.question()
        await ana.say(f"because of {name}-third", times=2)
        await ana.hears(f'noted {name}-third: {{"answer": "because of {name}-third"}}')

        key = f"{name_of(thread)}-{name}"
        calling = asyncio.create_task(result_of(GatewayProgram(product.url, http), ACT, key))
        await approves(ana, key)
        assert not (await calling).still_waits

        await ana.say(f"hey {name}-last")
        await ana.hears(f"hello {name}-last")
        assert f"hello {name}-third" not in thread.said, "the answer was taken for a new message too"
        return ana


async def _retries_and_previews(product: MortalProduct, name: str, seed: int) -> Ana:
    """One call that fails and is proposed once more, and one whose preview is another at the time of the call."""
    async with _ana(product, name, seed) as ana:
        await retries(ana, f"{name}-tried")
        await changes_what_drifts(ana, f"{name}-changed")
        await ana.say(f"hey {name}-last")
        await ana.hears(f"hello {name}-last")
        return ana
