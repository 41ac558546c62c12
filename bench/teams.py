"""The same conversations in Teams: beside the web page, and its invokes beside a handler that only answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from bench import measures
from bench.client import Client, visiting
from bench.contestants import Contestants
from bench.figures import Figure, Limit, median_ms, p99_ms
from bench.marks import WRITE
from bench.measures import Fifth, Sizes
from bench.teams_client import TeamsClient, in_teams

ANSWER_WITHIN = 5_000.0
"""Milliseconds that Teams waits for the answer to an invoke."""


async def in_teams_and_at_the_page(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Turns and clicks, taken in turns from two products."""
    pairs: list[tuple[Fifth, Fifth]] = []
    async with AsyncExitStack() as stack:
        api = contestants.around.teams
        page = await stack.enter_async_context(contestants.product())
        there = await stack.enter_async_context(contestants.product(chat=api.variables()))
        at_page = await stack.enter_async_context(visiting(page.url))
        by_mention = await stack.enter_async_context(in_teams(there.url, api))
        for number in range(sizes.warm_ups + sizes.conversations):
            pair = (await measures.fifth_turn(by_mention, sizes), await measures.fifth_turn(at_page, sizes))
            if number >= sizes.warm_ups:
                pairs.append(pair)

    def both(what: str, seconds: Callable[[Fifth], float], limit: Limit | None = None) -> list[Figure]:
        there, page = (median_ms([seconds(pair[side]) for pair in pairs]) for side in (0, 1))
        return [
            Figure(f"page: {what}: median", page, "ms", None, limit),
            Figure(f"Teams: {what}: median (baseline: the page)", there, "ms", page),
        ]

    return [
        *both("accept a message, idle", lambda f: f.plain.acknowledged, Limit(5)),
        *both("message → answer, turn 5", lambda f: f.plain.answered),
        *both("… with one tool call", lambda f: f.with_tool.answered),
        *both("click → the tool has run", lambda f: f.click.ran, Limit(15)),
    ]


async def invokes(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """How soon Teams has the answer to an invoke."""
    async with AsyncExitStack() as stack:
        api = contestants.around.teams
        there = await stack.enter_async_context(contestants.product(chat=api.variables()))
        bare = await stack.enter_async_context(contestants.bare_handler())
        person = await stack.enter_async_context(in_teams(there.url, api))
        at_the_bare = await stack.enter_async_context(in_teams(bare.url, api))
        async with _card(person) as card:
            refreshed = [await _timed(lambda: person.refresh(card)) for _ in range(sizes.invokes + 5)][5:]
        bare_answers = [await _timed(lambda: at_the_bare.refresh("any")) for _ in range(sizes.invokes + 5)][5:]
        for _ in range(sizes.warm_ups):
            await _click(person, sizes.reading_seconds)
        clicked = [await _click(person, sizes.reading_seconds) for _ in range(sizes.conversations)]
    floor = median_ms(bare_answers)
    return [
        Figure(
            "Teams: refresh of a card, answered: median (baseline: bare handler)", median_ms(refreshed), "ms", floor
        ),
        Figure(
            "Teams: refresh of a card, answered: p99 (baseline: bare handler)",
            p99_ms(refreshed),
            "ms",
            p99_ms(bare_answers),
            Limit(ANSWER_WITHIN),
        ),
        Figure(
            "Teams: a click that decides, answered: median (baseline: bare handler)", median_ms(clicked), "ms", floor
        ),
    ]


async def _click(person: TeamsClient, reading_seconds: float) -> float:
    """Seconds until a click on Approve is answered."""
    async with _card(person) as card:
        await asyncio.sleep(reading_seconds)
        return await _timed(lambda: person.approve(card))


@asynccontextmanager
async def _card(person: Client) -> AsyncIterator[str]:
    """An approval that waits; its id."""
    async with person.thread() as thread:
        await person.send(thread.thread_id, f"{WRITE} something")
        card = await thread.until(lambda c: c["kind"] == "approval" and c["status"] == "pending")
        yield str(card.content["id"])


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    began = time.monotonic()
    await act()
    return time.monotonic() - began
